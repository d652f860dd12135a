"""A change that waits to be confirmed: the review before it, the page of it, and the box's new address."""

import re

import pytest
from django.urls import reverse
from forms_on_page import form_values, words

from changes import arrival
from changes.models import Revision
from lbconfig.snapshot import Management, Snapshot

OLD, NEW = "192.168.10.2", "192.168.10.7"
HERE = {"HTTP_HOST": OLD, "REMOTE_ADDR": "192.168.10.50"}
THERE = {"HTTP_HOST": NEW, "REMOTE_ADDR": "192.168.10.50"}


@pytest.fixture
def gateway(client):
    """A draft whose change may cut the admin off; the address that he uses stays."""
    client.post("/network/", form_values(client.get("/network/")) | {"gateway": "192.168.10.254"})


@pytest.fixture
def moved(client):
    """A draft that moves the box to another address."""
    page = form_values(client.get("/network/"))
    client.post("/network/", page | {"interfaces-0-addresses": f"{NEW}/24"})


def apply(client, secure=False, **changes) -> str:
    """Apply what was reviewed; the path of its page, which comes at once: the box may be gone for a second question."""
    values = form_values(client.get("/changes/", secure=secure, **HERE)) | changes
    answer = client.post("/changes/apply/", values, secure=secure, **HERE)
    assert answer.status_code == 200, words(answer)
    return re.search(r'id="follow" data-here="([^"]+)"', answer.text)[1]


def live(path: str) -> str:
    return f"/live{path.removeprefix('/changes')}"


def ago(box, seconds=30.0) -> None:
    """The waiting began so long ago, and goes on: a test takes as long as it takes."""
    deadline = box.run.deadline
    now = deadline.begun
    deadline.begun, deadline._clock = now - seconds, lambda: now


def new_connection(seconds=1.0) -> dict:
    return {"HTTP_X_CONNECTION_AGE": f"{seconds}"}


def confirm(client, box, **extra):
    return client.post("/changes/confirm/", {"apply": box.run.id}, **HERE, **extra)


# --- before the click ---------------------------------------------------------------------------------


def test_the_review_says_that_it_will_ask_and_why(client, gateway):
    text = words(client.get("/changes/", **HERE))
    assert "You will be asked to confirm" in text and "The default gateway changes." in text
    assert "goes back by itself after 90 seconds" in text
    assert "This page goes on at" not in text


def test_the_review_says_where_the_page_goes_on(client, moved):
    assert f"This page goes on at https://{NEW}/" in words(client.get("/changes/", secure=True, **HERE))
    assert "goes on at" not in words(client.get("/changes/", HTTP_HOST="box.example"))


def test_a_change_that_cuts_nobody_off_asks_only_if_wished(client, box):
    client.post("/services/1/", form_values(client.get("/services/1/")) | {"scheduler": "lc"})
    text = words(client.get("/changes/"))
    assert "You will be asked" not in text and "More: ask me to confirm" in text
    apply(client, confirm_within="600")
    assert box.run.state == "waiting" and box.run.ask.within == 600


@pytest.mark.parametrize("value", ["9", "3601", "-1", "many", "1e9", "９９９９９"])
def test_a_wrong_time_is_told_beside_its_field(client, box, gateway, value):
    answer = client.post(
        "/changes/apply/", form_values(client.get("/changes/")) | {"confirm_within": value, "comment": "kept"}
    )
    assert answer.status_code == 422 and box.run is None
    page = answer.content.decode()
    assert re.search(r'class="field wrong">\s*<label for="id_confirm_within"', page)
    assert form_values(answer)["comment"] == "kept" and form_values(answer)["confirm_within"] == value


def test_the_impact_in_numbers(client):
    """The sample's shop has 25 connections on one server."""
    client.post("/services/1/delete/", form_values(client.get("/services/1/delete/")))
    text = words(client.get("/changes/"))
    assert "25 connections of 1 service are closed, 109 are kept." in text
    assert "25 connections through it are closed." in text
    assert "Service closed kept new ones shop 25 0 –" in text


def test_the_impact_of_another_scheduler(client):
    client.post("/services/1/", form_values(client.get("/services/1/")) | {"scheduler": "lc"})
    text = words(client.get("/changes/"))
    assert "No connection is closed" in text and "1 service may refuse new connections for a moment." in text
    assert "New connections may be refused for a moment. 25 connections are kept." in text


# --- the page that waits ------------------------------------------------------------------------------


def test_the_page_counts_down_and_keeps_nothing_over_an_old_connection(client, box, gateway):
    path = apply(client)
    ago(box)
    for extra in ({}, new_connection(31), new_connection(29.0), {"HTTP_X_CONNECTION_AGE": "nan"}):
        page = client.get(live(path), **HERE, **extra)
        assert "Everything runs. Keep it?" in words(page), extra
        assert 'hx-trigger="load"' not in page.content.decode()
    page = client.get(path, **HERE)
    assert "every 1s" in page.content.decode() and '<meta http-equiv="refresh"' in page.content.decode()
    assert form_values(page)["apply"] == box.run.id


def test_a_new_connection_is_the_proof_and_the_page_confirms_by_itself(client, box, gateway):
    path = apply(client)
    ago(box)
    page = client.get(live(path), **HERE, **new_connection(27.9))
    assert "You reach the box as it is now" in words(page)
    assert 'hx-trigger="load"' in page.content.decode()
    answer = confirm(client, box, **new_connection())
    assert answer.headers["Location"] == path
    assert "The changes run" in words(client.get(path, **HERE))
    assert Revision.objects.get(number=4).outcome == "confirmed"
    confirm(client, box, **new_connection())  # the page may ask twice
    assert "wait to be confirmed any more" not in words(client.get(path, **HERE))


def test_a_get_confirms_nothing(client, box, gateway):
    path = apply(client)
    ago(box)
    for url in (path, live(path), "/changes/confirm/"):
        client.get(url, **HERE, **new_connection())
    assert client.get("/changes/take-back/").status_code == 405
    assert box.run.state == "waiting"


def test_a_click_over_an_old_connection_is_asked_for_once_more(client, box, gateway):
    path = apply(client)
    ago(box)
    confirm(client, box, **new_connection(40))
    assert box.run.state == "waiting"
    assert "please try once more" in words(client.get(path, **HERE))
    assert confirm(client, box, HTTP_HX_REQUEST="true", **new_connection(40)).status_code == 204
    confirm(client, box, **new_connection())
    assert box.run.state == "done"


def test_where_nobody_knows_the_age_a_click_is_believed(client, box, gateway):
    apply(client)
    confirm(client, box)
    assert box.run.state == "done"


def test_who_wants_to_look_first_decides_by_a_click(client, box, gateway):
    path = apply(client, decide="on")
    ago(box)
    page = client.get(live(path), **HERE, **new_connection())
    assert "Keep these changes" in words(page) and 'hx-trigger="load"' not in page.content.decode()
    assert "You need not click" not in words(page)


def test_back_at_once(client, box, gateway):
    path = apply(client)
    client.post("/changes/take-back/", {"apply": box.run.id}, **HERE)
    text = words(client.get(path, **HERE))
    assert "The box went back to what it ran before" in text
    assert "admin took the changes back" in text and "Your draft is kept." in text
    assert "not confirmed" in words(client.get("/history/"))
    assert "not confirmed" in words(client.get("/history/4/"))


def test_nobody_confirms_and_the_page_says_so(client, box, gateway):
    path = apply(client)
    box.expire()
    text = words(client.get(live(path), **HERE))
    assert "The box went back to what it ran before" in text
    assert "Nobody confirmed the changes within 90 seconds" in text
    assert "It runs generation 3, as before the change." in text
    assert "every 1s" not in client.get(live(path), **HERE).content.decode()
    late = confirm(client, box, **new_connection())
    assert late.status_code == 302
    assert "No changes wait to be confirmed any more." in words(client.get(path, **HERE))


def test_what_waits_is_not_in_the_history_yet(client, box, gateway):
    apply(client)
    client.get("/history/")
    assert not Revision.objects.filter(number=4).exists()


def test_the_history_shows_what_waits(client, alice, box, gateway):
    path = apply(client)
    for reader in (client, alice):
        answer = reader.get("/history/")
        assert "4 now admin – waits to be confirmed" in words(answer)
        assert answer.content.decode().count(f'href="{path}"') >= 2
    ago(box)
    confirm(client, box, **new_connection())
    assert "waits to be confirmed" not in words(client.get("/history/"))


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        ("confirmed", "These changes were applied"),
        ("not confirmed", "These changes were not confirmed Nobody confirmed them in time."),
        ("interrupted", "These changes were interrupted"),
    ],
)
def test_after_a_reboot_the_page_tells_the_outcome(client, box, gateway, outcome, said):
    path = apply(client)
    box.generations[0]["outcome"] = outcome
    box.run = None  # the applier that has started anew knows of no apply
    for one in (path, live(path)):
        answer = client.get(one, **HERE)
        assert said in words(answer) and 'href="/history/4/"' in answer.content.decode()
    assert "This apply is over" in words(client.get("/changes/progress/apply-77/"))
    assert "This apply is over" in words(client.get("/changes/progress/<apply>/"))


def test_other_changes_wait_by_now(client, box, gateway):
    apply(client)
    client.post("/changes/confirm/", {"apply": "apply-99"}, **HERE)
    assert box.run.state == "waiting"
    client.post("/changes/take-back/", {"apply": "apply-99"}, **HERE)
    assert box.run.state == "waiting"


# --- a second admin -----------------------------------------------------------------------------------


def test_a_second_admin_sees_whose_it_is_on_every_page(client, alice, box, gateway):
    apply(client)
    for url in ("/", "/network/", "/history/", "/system/"):
        text = words(alice.get(url))
        assert "The changes of admin wait to be confirmed:" in text and "seconds, then the box goes back" in text, url


def test_a_second_admin_may_go_back_and_may_keep_after_a_question(client, alice, box, gateway):
    path = apply(client)
    ago(box)
    page = alice.get(path, **new_connection())
    assert "The changes of admin wait to be confirmed" in words(page)
    assert 'hx-trigger="load"' not in page.content.decode()
    assert "Keep the changes of admin?" in words(alice.get("/changes/confirm/"))
    assert box.run.state == "waiting"
    alice.post("/changes/confirm/", {"apply": box.run.id}, **new_connection())
    assert box.run.state == "done"
    client.post("/network/", form_values(client.get("/network/")) | {"gateway": "192.168.10.253"})
    apply(client)
    alice.post("/changes/take-back/", {"apply": box.run.id})
    assert box.run.state == "not confirmed" and "alice took the changes back" in box.run.message


def test_while_it_waits_nobody_else_applies(client, alice, box, gateway):
    apply(client)
    alice.post("/services/1/", form_values(alice.get("/services/1/")) | {"scheduler": "lc"})
    page = alice.get("/changes/")
    assert "<button disabled>Apply</button>" in page.content.decode()
    answer = alice.post("/changes/apply/", form_values(page))
    assert answer.status_code == 409 and "wait to be confirmed" in words(answer)


# --- the new address ------------------------------------------------------------------------------------


def at_port(port: int) -> Snapshot:
    return Snapshot(management=Management(("192.168.0.0/16",), port))


def follow(client, path) -> str:
    page = client.get(path, secure=True, **HERE)
    return re.search(r'data-follow="([^"]+)"', page.content.decode())[1]


def test_the_page_follows_the_box_to_its_new_address(client, stranger, box, moved):
    path = apply(client)
    ago(box)
    url = follow(client, path)
    assert url == f"https://{NEW}{reverse('arrive', args=[box.change.secret])}"
    page = client.get(path, secure=True, **HERE)
    assert page.headers["Content-Security-Policy"].count("connect-src") == 1
    assert f"connect-src 'self' https://{NEW} https://{NEW}:44443;" in page.headers["Content-Security-Policy"]
    there = url.removeprefix(f"https://{NEW}")
    text = words(stranger.get(there, **THERE))
    assert "You have reached the box" in text and "admin" not in text
    assert box.run.state == "waiting"
    text = words(stranger.post(there, {"keep": "1"}, **THERE, **new_connection()))
    assert "The changes are kept" in text and "Log in here" in text
    assert box.run.state == "done"
    again = stranger.post(there, {"keep": "1"}, **THERE, **new_connection())
    assert again.status_code == 409 and "Nothing was confirmed" in words(again)


def test_the_page_follows_the_box_to_its_new_port(client, box):
    client.post("/access/", form_values(client.get("/access/")) | {"port": "8443"})
    review = words(client.get("/changes/", secure=True, **HERE))
    assert "The web page moves to port 8443." in review and f"This page goes on at https://{OLD}:8443/" in review
    path = apply(client, secure=True)
    ago(box)
    url = follow(client, path)
    assert url == f"https://{OLD}:8443{reverse('arrive', args=[box.change.secret])}"
    page = client.get(path, secure=True, **HERE)
    assert f"connect-src 'self' https://{OLD}:8443 https://{OLD}:44443;" in page.headers["Content-Security-Policy"]
    there = {"HTTP_HOST": f"{OLD}:8443", "REMOTE_ADDR": "192.168.10.50", "secure": True}
    path = url.removeprefix(f"https://{OLD}:8443")
    assert "not logged in here" not in words(client.get(path, **there))  # a cookie is for all ports of its host
    text = words(client.post(path, {"keep": "1"}, **there, **new_connection()))
    assert "The changes are kept" in text and "Go on" in text and "Log in here" not in text
    assert box.run.state == "done" and box.snapshot.management.port == 8443


def test_the_page_follows_to_another_address_and_port_at_once(client, box, moved):
    client.post("/access/", form_values(client.get("/access/")) | {"port": "8443"})
    assert follow(client, apply(client, secure=True)).startswith(f"https://{NEW}:8443/confirm/")


def test_one_arrives_before_the_box_is_through(client, stranger, box, moved):
    apply(client)
    box.run.state = "running"
    page = stranger.post(reverse("arrive", args=[box.change.secret]), {"keep": "1"}, **THERE, **new_connection())
    assert "not through with the changes yet" in words(page) and 'data-send data-after="1000"' in page.content.decode()


def test_an_old_connection_to_the_new_address_tries_again(client, stranger, box, moved):
    apply(client)
    ago(box)
    url = reverse("arrive", args=[box.change.secret])
    page = stranger.post(url, {"keep": "1"}, **THERE, **new_connection(50))
    assert "old connection" in words(page) and "data-send" in page.content.decode()
    assert box.run.state == "waiting"


def test_who_wants_to_look_first_clicks_at_the_new_address(client, stranger, box, moved):
    path = apply(client, decide="on")
    url = follow(client, path)
    assert url.endswith("?decide=1")
    page = stranger.get(url.removeprefix(f"https://{NEW}"), **THERE)
    assert "data-send" not in page.content.decode()
    stranger.post(reverse("arrive", args=[box.change.secret]), {"back": "1"}, **THERE)
    assert box.run.state == "not confirmed"


@pytest.mark.parametrize("secret", ["%00", "é" * 8, "<b>", "a b", "x/y"])
def test_what_is_no_secret_is_no_page(client, stranger, box, moved, secret):
    apply(client)
    assert stranger.post(f"/confirm/{secret}/", {"keep": "1"}).status_code == 404
    assert box.run.state == "waiting"


@pytest.mark.parametrize("secret", ["x", "x" * 32, "x" * 65])
def test_nobody_else_confirms_there(client, stranger, box, moved, secret):
    apply(client)
    ago(box)
    url = reverse("arrive", args=[secret])
    assert "192.168" not in words(stranger.get(url, **THERE))
    answer = stranger.post(url, {"keep": "1"}, **THERE, **new_connection())
    assert answer.status_code == 409 and box.run.state == "waiting"


def test_the_applier_is_away_when_one_arrives(client, stranger, box, moved):
    apply(client)
    box.reachable = False
    answer = stranger.post(reverse("arrive", args=[box.change.secret]), {"keep": "1"}, **THERE)
    assert answer.status_code == 503 and "Try again" in words(answer)


def test_nobody_but_the_one_who_applied_gets_the_link(client, alice, box, moved):
    path = apply(client)
    page = alice.get(path, **HERE).content.decode()
    assert "data-follow" not in page and box.change.secret not in page
    assert box.change.secret not in client.get("/", **HERE).content.decode()


def test_an_address_that_dhcp_will_bring(client, box):
    page = form_values(client.get("/network/"))
    client.post("/network/", page | {"interfaces-0-addresses": "", "interfaces-0-dhcp": "on", "gateway": ""})
    assert "the new one comes from DHCP" in words(client.get("/changes/", **HERE))
    shown = client.get(apply(client), **HERE)
    assert "Its new address comes from DHCP." in words(shown) and "data-follow" not in shown.content.decode()


@pytest.mark.parametrize(
    ("host", "name", "place"),
    [
        ("192.168.10.2", "192.168.10.2", "192.168.10.7:8443"),
        ("192.168.10.2:443", "192.168.10.2", "192.168.10.7:8443"),
        ("192.168.10.2:4433", "192.168.10.2", "192.168.10.7:4433"),  # somebody forwards it, wherever it leads
        ("[2001:db8::2]", "2001:db8::2", "192.168.10.7:8443"),
        ("box.example", "box.example", "192.168.10.7:8443"),
    ],
)
def test_the_place_of_the_box(rf, host, name, place):
    request, now, moved = rf.get("/", HTTP_HOST=host, secure=True), at_port(443), at_port(8443)
    assert arrival.used(request) == name
    assert arrival.place(request, NEW, now, moved) == place
    assert arrival.place(request, "2001:db8::7", now, now) == f"[2001:db8::7]{':4433' if '4433' in place else ''}"


def test_the_place_of_the_box_back_at_the_usual_port(rf):
    request = rf.get("/", HTTP_HOST="192.168.10.2:8443", secure=True)
    assert arrival.place(request, NEW, at_port(8443), at_port(443)) == NEW
    assert arrival.place(request, NEW, at_port(8443), at_port(8443)) == f"{NEW}:8443"
    assert arrival.place(request, NEW, at_port(443), at_port(9443)) == f"{NEW}:8443"


def test_the_policy_of_a_page_that_looks_at_an_address_of_ipv6(rf):
    request = rf.get("/", secure=True)
    assert arrival.sources(request, "[2001:db8::7]:8443") == "https:"
    assert arrival.sources(request, "box.example:8443") == "https://box.example:8443 https://box.example:44443"
    assert arrival.sources(request, "x; script-src *") == ""
