"""A change that moves the box: its page follows to the new address or port, and is confirmed there."""

import re

import confirm_on_page
import pytest
from confirm_on_page import HERE, NEW, OLD, ago, apply, new_connection
from django.urls import reverse
from forms_on_page import form_values, words
from tests import texts

from changes import arrival
from lbconfig.model.snapshot import Management, Snapshot

moved = confirm_on_page.moved

THERE = {"HTTP_HOST": NEW, "REMOTE_ADDR": "192.168.10.50"}


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
    assert texts.KEPT in text and texts.LOG_IN_HERE in text
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
    assert texts.KEPT in text and "Go on" in text and texts.LOG_IN_HERE not in text
    assert box.run.state == "done" and box.snapshot.management.port == 8443


def test_the_page_follows_to_another_address_and_port_at_once(client, box, moved):
    client.post("/access/", form_values(client.get("/access/")) | {"port": "8443"})
    assert follow(client, apply(client, secure=True)).startswith(f"https://{NEW}:8443/confirm/")


def test_one_arrives_before_the_box_is_through(client, stranger, box, moved):
    apply(client)
    box.run.state = "running"
    page = stranger.post(reverse("arrive", args=[box.change.secret]), {"keep": "1"}, **THERE, **new_connection())
    assert "still applying the changes" in words(page) and 'data-send data-after="1000"' in page.content.decode()


def test_an_old_connection_to_the_new_address_tries_again(client, stranger, box, moved):
    apply(client)
    ago(box)
    url = reverse("arrive", args=[box.change.secret])
    page = stranger.post(url, {"keep": "1"}, **THERE, **new_connection(50))
    assert texts.OLD_CONNECTION in words(page) and "data-send" in page.content.decode()
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
