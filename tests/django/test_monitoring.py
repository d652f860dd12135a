"""The overview: what runs, what waits, what is wrong."""

import dataclasses

import pytest
from forms_on_page import form_values, words
from tests import texts

from changes import actions
from lbconfig.model.snapshot import RealServer, ServerState, VirtualService


def test_states_by_word_and_sign(client):
    text = words(client.get("/"))
    for state in ("▲ up", "▼ down", "■ disabled", "◇ not checked"):
        assert state in text
    assert "1 of 2 up" in text


def test_a_server_that_is_down_leads_to_the_doctor(client):
    page = client.get("/")
    assert "▼ down since" in words(page) and words(page).count("Ask the doctor") == 1
    assert 'href="/services/1/doctor/"' in page.content.decode()


def test_the_live_part_is_a_part(client):
    page = client.get("/live/overview/").content.decode()
    assert "<html" not in page
    assert 'hx-swap-oob="true"' in page
    assert "10.2.0.12:80" in page


def test_a_new_service_and_a_removed_one_are_marked(client):
    values = form_values(client.get("/services/1/"))
    client.post("/services/1/", values | {"servers-0-weight": "5"})
    client.post("/services/2/delete/", form_values(client.get("/services/2/delete/")))
    text = words(client.get("/"))
    assert "2 changes are not applied" in text
    assert "changes not applied" in text
    assert texts.REMOVAL_WAITS in text


def test_faults_and_a_silent_applier_are_on_every_page(client, box):
    box.fault("data-full", "The data partition is full.")
    for url in ("/", "/network/", "/system/", "/live/overview/"):
        assert "The data partition is full." in words(client.get(url))
    box.reachable = False
    for url in ("/", "/network/", "/access/", "/services/1/", "/history/", "/system/", "/live/overview/"):
        answer = client.get(url)
        assert answer.status_code == 200
        assert "does not answer" in words(answer)
    assert client.get("/changes/").status_code == 503


def test_the_draft_can_be_edited_while_the_applier_is_silent(client, box):
    box.reachable = False
    values = form_values(client.get("/services/1/"))
    assert client.post("/services/1/", values | {"name": "night shop"}).status_code == 302
    assert "night shop" in words(client.get("/"))


def test_nothing_is_claimed_of_a_box_that_is_silent(client, box):
    box.reachable = False
    text = words(client.get("/"))
    assert "? not known" in text
    assert texts.NOT_APPLIED not in text


@pytest.fixture
def many(client, box):
    """60 services; of site 7 a server is down, of site 8 one is disabled."""
    services = [
        VirtualService(
            number,
            f"site {number}",
            f"192.168.10.{100 + number}",
            80,
            note="the shop" if number == 33 else "",
            real_servers=(RealServer(number, f"10.2.0.{number}", 8000),),
        )
        for number in range(1, 61)
    ]
    halted = (*services[7].real_servers, RealServer(99, "10.2.0.99", 8000, state=ServerState.DISABLED))
    services[7] = dataclasses.replace(services[7], real_servers=halted)
    box.snapshot, box.down = dataclasses.replace(box.snapshot, services=tuple(services)), {("10.2.0.7", 8000)}
    actions.discard("admin")
    return client


def names(answer) -> list[str]:
    return [one["name"] for one in answer.context["listing"].page]


def sites(*numbers: int) -> list[str]:
    return [f"site {number}" for number in numbers]


def test_few_services_have_nothing_to_look_for(client):
    page = client.get("/").content.decode()
    assert 'name="find"' not in page and "with trouble" not in page


def test_many_services_are_shown_by_page(many):
    first = many.get("/")
    assert names(first) == sites(*range(1, 26))
    assert "60 virtual services, ▼ 1 with trouble" in words(first) and "Page 1 of 3" in words(first)
    assert names(many.get("/?page=3")) == sites(*range(51, 61))
    for wrong, number in (("0", 3), ("99", 3), ("-1", 3), ("x", 1), ("", 1), ("9" * 400, 3), ("٣", 3)):
        assert many.get("/", {"page": wrong}).context["listing"].page.number == number, wrong


def test_the_live_part_stays_on_its_page(many):
    page = many.get("/?find=site&page=2").content.decode()
    assert 'hx-get="/live/overview/?find=site&amp;page=2"' in page
    assert names(many.get("/live/overview/?find=site&page=2")) == sites(*range(26, 51))


@pytest.mark.parametrize(
    ("find", "expected"),
    [
        ("SITE 12", [12]),
        ("shop", [33]),
        ("10.2.0.44:8000", [44]),
        ("192.168.10.159", [59]),
        ("  site   60 ", [60]),
        ("nothing", []),
        ("<script>", []),
        ("x" * 5000, []),
    ],
)
def test_found_by_name_note_address_or_real_server(many, find, expected):
    answer = many.get("/", {"find": find})
    assert names(answer) == sites(*expected)
    assert ("Nothing found" in words(answer)) == (not expected)
    assert "<script>" not in answer.content.decode().replace("<script src", "")


def test_why_a_server_is_down(many):
    """On the overview, on its own page, in the API."""
    told = "since 2026-01-31T02:14:00Z : 503 Service Unavailable"
    assert told in words(many.get("/?troubled=1"))
    page = words(many.get("/servers/10.2.0.7/"))
    assert "2026-01-31T02:14:00Z site 7, port 8000 down 503 Service Unavailable" in page


def test_only_those_with_trouble(many, box):
    assert names(many.get("/?troubled=1")) == sites(7)
    assert names(many.get("/?troubled=1&find=site 8")) == []
    box.down = set()
    assert "No trouble" in words(many.get("/?troubled=1"))
