"""How near the box is to what it can forward: the page, the bar on the overview, and the same by the API."""

import pytest
from api_robot import error, fields, robot
from forms_on_page import words
from tests import texts
from tests.fake import capacity as fake_capacity

from applier.capacity.verbs import not_free
from system import capacity


@pytest.fixture
def measured(box):
    box.capacity.measured = [fake_capacity.sample()]
    return box


# --- the page ---


def test_a_box_that_was_never_measured_says_so(client, box):
    text = words(client.get("/system/capacity/"))
    assert texts.NEVER_MEASURED in text and texts.START_COUNTING in text
    assert "New connections now 4,000/s" in text
    assert 'class="load"' not in client.get("/").content.decode()


def test_now_against_the_limit(client, measured):
    text = words(client.get("/system/capacity/"))
    assert "25 % of the limit" in text  # packets: 60,000 of 240,000
    assert "Packets 25 % 60,000/s of 240,000/s" in text
    assert "20 % 4,000/s of 20,000/s" in text and "of at least" not in text
    assert "The box was at its limit" in text and "busiest CPU 97 % busy" in text


def test_clients_that_asked_for_no_more_show_no_limit(client, box):
    box.capacity.measured = [fake_capacity.sample("sender")]
    text = words(client.get("/system/capacity/"))
    assert "25 % of the most that was seen" in text and "of at least 240,000/s" in text


def test_measurements_of_another_box_are_shown_and_do_not_count(client, box):
    box.capacity.measured = [fake_capacity.sample() | {"same": False}]
    text = words(client.get("/system/capacity/"))
    assert texts.NEVER_MEASURED in text and "On other hardware" in text
    assert 'class="load"' not in client.get("/").content.decode()


def test_more_than_the_limit_is_told_and_drawn_as_full(client, measured):
    measured.capacity.now = {"connections": 1.0, "packets": 300_000.0, "bytes": 5.0}
    page = client.get("/system/capacity/")
    assert "125 % of the limit" in words(page) and "more than the measured limit" in words(page)
    assert 'value="100"' in page.content.decode() and 'value="125"' not in page.content.decode()


def test_the_bar_on_the_overview_moves_with_it(client, measured):
    for url in ("/", "/live/overview/"):
        assert "25 % of what this box was measured to forward" in words(client.get(url))
    measured.capacity.now = {"connections": 1.0, "packets": 216_000.0, "bytes": 5.0}
    assert "! 90 % of what this box was measured to forward" in words(client.get("/live/overview/"))
    measured.capacity.now = None
    assert "counting…" in words(client.get("/"))


def test_measuring_from_the_start_to_the_end(client, box):
    box.instant = False
    assert client.post("/system/capacity/watch/", {"seconds": 30}).status_code == 302
    assert (box.capacity.job.wanted, box.capacity.job.user) == (30, "admin")
    text = words(client.get("/live/capacity/"))
    assert "Counting…" in text and "50 %, started by admin" in text and "Packets: 60,000/s" in text
    box.capacity.end()
    text = words(client.get("/live/capacity/"))
    assert "Measured for 15 seconds, and kept." in text and "the most that was seen" in text


def test_stopping(client, box):
    box.instant = False
    client.post("/system/capacity/watch/", {"seconds": 30})
    client.post("/system/capacity/stop/")
    assert box.capacity.job.state == "stopped"
    assert "Nothing is being measured at the moment." in words(client.post("/system/capacity/stop/", follow=True))


def test_two_at_once_are_refused_with_the_name(client, alice, box):
    box.instant = False
    client.post("/system/capacity/watch/", {"seconds": 30})
    answer = alice.post("/system/capacity/watch/", {"seconds": 10}, follow=True)
    assert "Nothing was started. admin is measuring at the moment" in words(answer)
    assert box.capacity.job.wanted == 30


def test_between_two_ports(client, box):
    box.instant = False
    page = client.get("/system/capacity/").content.decode()
    assert '<option value="eth4" selected>' in page and '<option value="eth5" selected>' in page
    assert client.post("/system/capacity/between/", {"sender": "eth4", "receiver": "eth5"}).status_code == 302
    assert (box.capacity.job.between, box.capacity.job.user) == (True, "admin")
    text = words(client.get("/live/capacity/"))
    assert "eth4 to eth5" in text and "Send as much as you can" not in text
    box.capacity.end()
    text = words(client.get("/live/capacity/"))
    assert "at least 60,000/s" in text and "Sent by the box itself, eth4 to eth5: small packets" in text
    assert "or the box was the sender as well" in text


@pytest.mark.parametrize("ports", [[], ["eth4"]])
def test_without_two_free_ports_it_says_what_is_missing(client, box, ports):
    box.capacity.ports = ports
    page = client.get("/system/capacity/")
    assert f"this box has {'one, eth4' if ports else 'none'}." in words(page)
    assert 'id="between"' not in page.content.decode()


@pytest.mark.parametrize(
    ("sender", "receiver", "field"),
    [
        ("eth4", "eth4", "receiver"),
        ("eth9", "eth5", "sender"),
        ("", "eth5", "sender"),
        ("eth4", "eth5;reboot", "receiver"),
        ("eth4", "x" * 5000, "receiver"),
        ("\0", "eth5", "sender"),
    ],
)
def test_ports_that_cannot_be_are_told_beside_the_field(client, box, sender, receiver, field):
    answer = client.post("/system/capacity/between/", {"sender": sender, "receiver": receiver})
    assert answer.status_code == 422
    assert f'id="id_{field}_error"' in answer.content.decode()
    assert box.capacity.job is None


def test_a_port_that_was_taken_meanwhile_is_told(client, box, monkeypatch):
    monkeypatch.setattr(
        fake_capacity.FakeCapacity,
        "capacity_between",
        lambda *_args: (_ for _ in ()).throw(not_free("eth1", "eth2", {"sender": "is in use"})),
    )
    answer = client.post("/system/capacity/between/", {"sender": "eth4", "receiver": "eth5"})
    assert answer.status_code == 422 and "This port is in use." in words(answer)


def test_between_ports_while_another_measures(client, alice, box):
    box.instant = False
    client.post("/system/capacity/watch/", {"seconds": 30})
    ports = {"sender": "eth4", "receiver": "eth5"}
    answer = alice.post("/system/capacity/between/", ports, follow=True)
    assert "Nothing was started. admin is measuring at the moment" in words(answer)
    box.reachable = False
    assert "Nothing was started." in words(alice.post("/system/capacity/between/", ports, follow=True))


@pytest.mark.parametrize("seconds", ["", "9", "601", "-5", "1e9", "9" * 5000, "30;reboot", "٣x", "\0", "30.5"])
def test_seconds_that_cannot_be_are_told_beside_the_field(client, box, seconds):
    answer = client.post("/system/capacity/watch/", {"seconds": seconds})
    assert answer.status_code == 422
    assert 'id="id_seconds_error"' in answer.content.decode()
    assert box.capacity.job is None


def test_names_of_others_are_text_and_no_markup(client, measured):
    measured.capacity.measured[0]["user"] = "<script>x</script>"
    measured.capacity.measured[0]["hardware"]["processor"] = "<b>CPU</b>"
    measured.capacity.measured[0]["same"] = False
    page = client.get("/system/capacity/").content.decode()
    assert "<script>x" not in page and "<b>CPU" not in page


def test_a_box_that_does_not_answer(client, measured):
    measured.reachable = False
    for url in ("/system/capacity/", "/live/capacity/", "/"):
        assert client.get(url).status_code == 200
    assert "Not known at the moment" in words(client.get("/system/capacity/"))
    assert client.post("/system/capacity/watch/", {"seconds": 30}).status_code == 302


def test_nobody_who_is_not_logged_in(stranger, box):
    for url in ("/system/capacity/", "/live/capacity/"):
        assert stranger.get(url).status_code in (302, 403)
    for url in ("/system/capacity/watch/", "/system/capacity/between/", "/system/capacity/stop/"):
        assert stranger.post(url, {"seconds": 30}).status_code in (302, 403)
    assert box.capacity.job is None


def test_looking_starts_nothing(client, box):
    for url in ("/system/capacity/watch/", "/system/capacity/between/", "/system/capacity/stop/"):
        assert client.get(url).status_code == 405
    assert box.capacity.job is None


@pytest.mark.parametrize(
    ("figure", "rate", "said"),
    [
        ("packets", 240_000.0, "240,000/s"),
        ("packets", 0.0, "0/s"),
        ("connections", 3.25, "3.2/s"),
        ("packets", 8.0, "8/s"),
    ],
)
def test_rates_in_words(figure, rate, said):
    assert capacity.rate_words(figure, rate) == said


# --- the API ---


def test_the_state_by_the_api(client, admin, measured):
    found = robot(admin, "read").get("/capacity").json()
    assert found["load"]["share"] == 0.25 and found["load"]["figure"] == "packets"
    assert robot(admin, "read").get("/status").json()["load"] == found["load"]


def test_measuring_by_the_api(client, admin, box):
    box.instant = False
    one = robot(admin)
    assert one.post("/capacity/watch", {"seconds": 20}).status_code == 202
    assert one.get("/capacity").json()["job"]["state"] == "running"
    assert error(one.post("/capacity/watch", {}))["code"] == "busy"
    assert one.post("/capacity/stop").json()["job"]["state"] == "stopped"
    refused = one.post("/capacity/stop")
    assert (refused.status_code, error(refused)["code"]) == (409, "not-measuring")


@pytest.mark.parametrize("seconds", [9, 601, -1, 10**30, "30", 30.5, True, None, [], {"a": 1}, "$(reboot)"])
def test_bad_seconds_by_the_api(client, admin, box, seconds):
    answer = robot(admin).post("/capacity/watch", {"seconds": seconds})
    assert answer.status_code == 422 and fields(answer) == [("request", "seconds")]
    assert box.capacity.job is None


def test_between_two_ports_by_the_api(client, admin, box):
    box.instant = False
    one, ports = robot(admin), {"sender": "eth4", "receiver": "eth5"}
    assert one.get("/capacity").json()["ports"] == ["eth4", "eth5"]
    answer = one.post("/capacity/between", ports | {"sender": "eth9"})
    assert answer.status_code == 422 and fields(answer) == [("measurement", "sender")]
    for wrong in ({}, {"sender": "eth4"}, ports | {"sender": 7}, ports | {"more": 1}, [], "eth4"):
        assert one.post("/capacity/between", wrong).status_code == 422
    assert box.capacity.job is None
    assert one.post("/capacity/between", ports).status_code == 202
    assert one.get("/capacity").json()["job"]["between"] is True
    assert error(one.post("/capacity/between", ports))["code"] == "busy"


def test_who_may(client, admin, measured):
    reader = robot(admin, "read")
    assert reader.get("/capacity").status_code == 200
    ports = {"sender": "eth4", "receiver": "eth5"}
    for path, body in (("/capacity/watch", {"seconds": 20}), ("/capacity/between", ports), ("/capacity/stop", None)):
        assert reader.post(path, body).status_code == 403
    assert robot(admin, "update").get("/capacity").status_code == 403
    assert measured.capacity.job is None
