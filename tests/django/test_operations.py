"""Drain, halt and resume: at once, beside an admin's draft. The doctor, and a check that is tried."""

import pytest
import stored
from forms_on_page import form_values, words
from tests import texts
from tests.fake import appliance

from draft import store as draft
from draft.models import Service
from lbconfig.model.snapshot import RealServer, Scheduler, ServerState, VirtualService, from_data

DRAIN = {"address": "10.2.0.11", "server": "1", "state": "quiesced"}


def states() -> dict[int, str]:
    """Of the real servers that the box runs."""
    snapshot = from_data(appliance.Fake().status()["snapshot"])
    return {server.id: str(server.state) for service in snapshot.services for server in service.real_servers}


def operate(client, **fields):
    return client.post("/servers/operate/", DRAIN | fields, follow=True)


@pytest.fixture
def everywhere(client, box):
    """10.2.0.11 serves two services, and the box runs it so."""
    service = stored.named("mail")
    stored.change(service.pk, real_servers=(*service.wish.real_servers, RealServer(90, "10.2.0.11", 25)))
    found = appliance.Fake().check(draft.current())
    appliance.Fake().apply(draft.current(), found["digest"], found["base"], user="admin")
    assert draft.same(from_data(appliance.Fake().status()["snapshot"]), draft.current())
    return service


@pytest.mark.parametrize("state", ServerState)
def test_in_one_service(client, box, state):
    before = states()
    server = (
        {"server": "2", "address": "10.2.0.12"}
        if state is not ServerState.ENABLED
        else {"server": "3", "address": "10.2.0.13"}
    )
    answer = operate(client, state=state, **server)
    assert answer.redirect_chain[-1][0].startswith("/changes/progress/")
    assert f"{server['address']}: only this is applied, not the draft." in words(answer)
    assert states() == before | {int(server["server"]): state}
    assert texts.NOT_APPLIED not in words(client.get("/"))  # the draft knows of it
    assert stored.server(int(server["server"])).state == state


def test_in_all_services_at_once(client, everywhere):
    page = words(client.get("/servers/10.2.0.11/"))
    assert "shop" in page
    assert "mail" in page
    operate(client, server="", state="disabled")
    ids = [one.id for service in draft.current().services for one in service.real_servers if one.address == "10.2.0.11"]
    assert len(ids) == 2
    assert {states()[one] for one in ids} == {"disabled"}
    assert [states()[one] for one in (2, 3, 4)] == ["enabled", "disabled", "enabled"]


def test_a_draft_of_somebody_is_not_shipped_and_not_lost(client, box):
    stored.change(1, scheduler=Scheduler.RR)
    stored.change_server(2, weight=7)
    operate(client)
    running = from_data(appliance.Fake().status()["snapshot"])
    assert running.services[0].scheduler == "wrr"
    assert running.services[0].real_servers[1].weight == 1
    assert draft.current().services[0].scheduler == "rr"
    assert draft.current().services[0].real_servers[0].state == "quiesced"
    assert "1 change is not applied" in words(client.get("/"))


def test_what_the_draft_has_elsewhere_is_left_alone(client, box):
    """Another server at that place, another address for that server, no such server any more."""
    stored.change_server(1, address="10.2.0.99")
    operate(client)
    assert states()[1] == "quiesced"
    assert stored.server(1).state == "enabled"
    stored.change_server(2)
    operate(client, server="2", address="10.2.0.12")
    assert states()[2] == "quiesced"
    assert stored.server(2) is None


def test_an_open_form_notices(client, alice, box):
    version = stored.named("shop").version
    operate(alice)
    assert stored.named("shop").version > version
    assert stored.named("shop").changed_by == "alice"


def test_what_cannot_be_done_is_said_and_changes_nothing(client, box):
    before = states()
    number = appliance.Fake().status()["generation"]
    assert "in that state already" in words(operate(client, server="3", address="10.2.0.13", state="disabled"))
    assert "no service with the real server 10.2.0.77" in words(operate(client, server="", address="10.2.0.77"))
    assert "no service with the real server" in words(operate(client, server="2"))  # it is another one
    box.reachable = False
    assert "Drain 10.2.0.11:" in words(operate(client))
    box.reachable = True
    assert states() == before
    assert appliance.Fake().status()["generation"] == number


@pytest.mark.parametrize(
    "wrong",
    [
        {"state": "dead"},
        {"state": ""},
        {"address": ""},
        {"address": "1" * 99},
        {"server": "x"},
        {"server": "-1"},
        {"server": "9" * 30},
    ],
    ids=str,
)
def test_a_wrong_request_does_nothing(client, box, wrong):
    before = states()
    assert "nothing was done" in words(operate(client, **wrong))
    assert states() == before


def test_it_is_no_link_and_for_nobody_without_a_name(client, stranger):
    assert client.get("/servers/operate/").status_code == 405
    before = states()
    assert stranger.post("/servers/operate/", DRAIN).status_code in (302, 403)
    assert states() == before
    assert client.get("/servers/10.9.9.9/").status_code == 404


def test_the_overview_offers_what_fits(client, box):
    page = client.get("/").content.decode()
    assert 'aria-label="Drain 10.2.0.11"' in page
    assert 'aria-label="Resume 10.2.0.13"' in page
    assert 'aria-label="Halt 10.2.0.11"' not in page
    operate(client)
    page = client.get("/").content.decode()
    assert 'aria-label="Resume 10.2.0.11"' in page
    assert 'aria-label="Halt 10.2.0.11"' in page


def test_the_doctor_says_what_is_wrong_and_what_to_do(client, box):
    page = words(client.get("/services/1/doctor/"))
    assert "10.2.0.12 refuses connections to port 80. Start the program there" in page
    assert "whether anybody else answers ARP for 192.168.10.80" in page
    box.down.clear()
    assert "Nothing was found." in words(client.get("/services/1/doctor/"))


def test_the_doctor_of_a_service_that_does_not_run(client, box):
    draft.write_service(VirtualService(9, "new", "192.168.10.99", 80), Service(pk=9), "admin")
    assert "The box does not run this service. Apply the draft first." in words(client.get("/services/9/doctor/"))
    assert client.get("/services/99/doctor/").status_code == 404
    box.reachable = False
    assert "cannot be reached" in words(client.get("/services/1/doctor/"))


def test_a_check_is_tried_as_it_stands_in_the_form(client, box):
    filled = form_values(client.get("/services/1/"))
    before = draft.current()
    page = words(client.post("/services/1/try/", filled | {"servers-0-address": "10.2.0.99"}))
    assert "up 10.2.0.99:80 after 0.012 s" in page
    assert "down 10.2.0.12:80 after 0.012 s: 500 Can't connect (Connection refused)" in page
    assert "What was sent, what came back" in page
    assert draft.current() == before
    assert "up 10.2.0.41:80" in words(
        client.post("/services/try/", filled | {"name": "new", "port": "81", "servers-0-address": "10.2.0.41"})
    )


def test_the_fallback_server_is_tried_as_it_stands_in_the_form(client, box):
    server = {"fallback_kind": "server", "fallback_address": "10.2.0.99", "fallback_check": "connect"}
    filled = form_values(client.get("/services/1/")) | server
    assert "up Fallback server 10.2.0.99:80 after 0.012 s" in words(client.post("/services/1/try/", filled))
    box.down.add(("10.2.0.99", 80))
    assert "down Fallback server 10.2.0.99:80" in words(client.post("/services/1/try/", filled))
    assert "10.2.0.99" not in words(client.post("/services/1/try/", filled | {"fallback_check": "off"}))


def test_a_check_that_cannot_be_tried_says_why(client, box):
    filled = form_values(client.get("/services/1/"))
    assert "Some fields are not filled in" in words(client.post("/services/1/try/", filled | {"port": ""}))
    box.reachable = False
    assert "cannot be reached" in words(client.post("/services/1/try/", filled))
    assert client.get("/services/1/try/").status_code == 405
