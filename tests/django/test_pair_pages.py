"""The pages of a box that is one of a pair: each box's own network and hardware, and what both share."""

import dataclasses
import json

import pytest
from api_robot import robot
from django.urls import NoReverseMatch, reverse
from forms_on_page import form_values as sent
from forms_on_page import words
from lbconfig_pairs import KEYS, PAIR
from tests.fake import appliance
from tests.fake.pair import sample

from changes import actions
from changes.models import SetAside
from draft import store as draft
from fairlead.urls import urlpatterns
from lbconfig.leaving import leaving, staying
from lbconfig.model import redact
from lbconfig.model.snapshot import Management, from_json, to_json
from lbconfig.pair import own_box, with_network
from system import together
from system.models import Together
from system.together import Seen

OURS = dataclasses.replace(PAIR, management=Management(("127.0.0.0/8", "10.0.2.0/24", "2001:db8::/32")))


@pytest.fixture
def pair(client, box):
    """The box runs the pair, and the draft is that."""
    box.snapshot = OURS
    draft.replace(OURS, "admin")
    return client


def names_of_pages() -> list[str]:
    """Search keeps what it was made of once: other tests of this process would find the pair's interfaces in it."""
    return [one.name for one in urlpatterns if one.name and one.name != "search"]


def test_every_page_of_a_pair_can_be_shown(pair):
    seen = 0
    for name in names_of_pages():
        try:
            url = reverse(name)
        except NoReverseMatch:
            continue
        assert pair.get(url).status_code < 500, url
        seen += 1
    assert seen > 60


def test_the_network_of_each_box_is_shown_and_changed_by_itself(pair):
    page = pair.get("/network/")
    assert "lb1" in words(page) and "?box=1" in page.content.decode()
    other = pair.get("/network/?box=1")
    assert other.context["form"]["hostname"].value() == "lb2"
    assert "no such interface" not in words(other) and "Not known." in words(other)  # this box cannot tell
    answer = pair.post("/network/?box=1", sent(pair.get("/network/?box=1")) | {"hostname": "lb9"})
    assert answer.status_code == 302, words(answer)
    first, second = draft.current().pair.boxes
    assert (first, second.name) == (OURS.pair.boxes[0], "lb9") and draft.current().network == OURS.network
    assert second.network.interfaces == OURS.pair.boxes[1].network.interfaces


def test_what_floats_on_one_box_floats_on_the_other(pair):
    data = sent(pair.get("/network/?box=0"))
    key = next(name for name, value in data.items() if name.endswith("floating") and value == "10.2.0.1/24")
    assert pair.post("/network/?box=0", data | {key: "10.2.0.1/24\n10.2.0.99/24"}).status_code == 302
    floating = [box.network.interfaces[1].floating for box in draft.current().pair.boxes]
    assert floating == [("10.2.0.1/24", "10.2.0.99/24")] * 2


def test_a_bad_input_is_told_beside_the_field_of_that_box(pair):
    data = sent(pair.get("/network/?box=1"))
    key = next(name for name, value in data.items() if name.endswith("addresses") and value.startswith("10.2.0.22/24"))
    answer = pair.post("/network/?box=1", data | {key: "10.2.0.21/24"})
    assert answer.status_code == 422 and "10.2.0.21 is also an address of 'lb1'" in words(answer)
    assert draft.current() == OURS


def test_names_and_routes_and_hardware_are_each_boxs_own(pair):
    data = sent(pair.get("/network/names/?box=1"))
    assert pair.post("/network/names/?box=1", data | {"ntp": "10.0.2.3"}).status_code == 302
    assert [one.network.ntp for one in draft.current().pair.boxes] == [(), ("10.0.2.3",)]
    data = sent(pair.get("/network/routes/?box=1"))
    assert pair.post("/network/routes/?box=1", data).status_code == 302
    data = sent(pair.get("/system/hardware/settings/?box=1"))
    assert pair.post("/system/hardware/settings/?box=1", data | {"power": "latency"}).status_code == 302
    first, second = draft.current().pair.boxes
    assert str(second.tuning.power) == "latency" and first.tuning == OURS.pair.boxes[0].tuning
    assert second.network.policies == OURS.pair.boxes[1].network.policies


def test_a_pair_is_exported_and_imported_with_its_public_keys_alone(pair, box):
    """The private ones are in no file but their own; nothing that Django writes can have them."""
    text = pair.get("/configuration/export/draft/").content.decode()
    assert from_json(text) == draft.current() and all(key in text for key in KEYS)
    assert from_json(to_json(redact.without_secrets(OURS))).pair == OURS.pair
    assert not [name for name in _keys(json.loads(text)["pair"]) if "private" in name or "secret" in name]


def _keys(data: object) -> set[str]:
    if isinstance(data, dict):
        return set(data) | {name for one in data.values() for name in _keys(one)}
    return {name for one in data for name in _keys(one)} if isinstance(data, list) else set()


def test_the_cable_follows_its_interface():
    network = OURS.pair.boxes[1].network
    *others, cable = network.interfaces
    moved = (*others, dataclasses.replace(cable, addresses=("192.0.2.6/30",)))
    after = with_network(OURS, 1, dataclasses.replace(network, interfaces=moved))
    assert after.pair.boxes[1].cable_address == "192.0.2.6/30" and after.pair.boxes[0] == OURS.pair.boxes[0]


def test_a_box_knows_itself_by_its_addresses():
    assert own_box(OURS.pair, ["10.0.2.22/24", "10.0.2.15/32"]) == 1
    assert own_box(OURS.pair, ["10.0.2.21/24"]) == own_box(OURS.pair, []) == 0


def test_a_draft_of_a_pair_is_discarded_as_any_other(client, box):
    before = draft.current()
    draft.replace(OURS, "admin")
    assert "that this box does not belong to" in words(client.get("/changes/"))
    actions.discard("admin")
    assert draft.current() == before and draft.part("pair") is None


@pytest.mark.parametrize("name", ["leave", "alone"])
def test_the_pair_ends_and_its_draft_with_it(pair, box, name):
    box.pair = sample()
    Together.objects.create(pair=OURS.pair.id)
    service = draft.service(OURS.services[0].id)
    draft.write_service(dataclasses.replace(service.wish, name="edited"), service, "admin")
    page = pair.get(f"/system/pair/{name}/")
    assert "goes on alone with all services" in words(page) and "lb2" in words(page)
    answer = pair.post(f"/system/pair/{name}/")
    assert answer.status_code == 302 and "/changes/progress/apply-" in answer["Location"]
    assert box.snapshot == (leaving if name == "leave" else staying)(OURS, 0)
    assert together.turn(appliance.Fake(), Seen(paired=True)) == Seen()
    assert draft.current() == box.snapshot and not Together.objects.exists()
    kept = SetAside.objects.get()
    assert "edited" in kept.snapshot and kept.hostname == "lb1"
    assert "This box is alone" in words(pair.get("/system/pair/"))


def test_what_the_pages_say_before_the_pair_ends(pair, box):
    box.pair = sample()
    both = words(pair.get("/system/pair/"))
    assert "Take lb1 out of the pair" in both and "Go on without lb2" in both
    assert "192.168.10.21" in words(pair.get("/system/pair/leave/"))
    assert "keeps its network: 192.168.10.22" in words(pair.get("/system/pair/alone/"))
    box.pair.silent = 900.0
    assert "Take lb1" not in words(pair.get("/system/pair/"))
    assert "Make sure that it is off, and that it stays off" in words(pair.get("/system/pair/alone/"))
    refused = pair.post("/system/pair/leave/", follow=True)
    assert "Nothing was done. lb2 is not heard" in words(refused) and box.snapshot == OURS


def test_the_pair_ends_by_the_api(pair, admin, box):
    api = robot(admin)
    assert api.ask("DELETE", "/pair").status_code == 409
    box.pair = sample()
    answer = api.ask("DELETE", "/pair")
    assert answer.status_code == 202 and answer.json()["apply"].startswith("apply-")
    box.pair = sample()
    assert api.post("/pair/alone").status_code == 202
