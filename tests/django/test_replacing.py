"""A dead box of the pair is replaced by pages and API: with the real protocol to a new box that is invented."""

import dataclasses
import re
import socket
import time

import pytest
from api_robot import robot
from board.machines.wait import PATIENCE
from forms_on_page import words
from lbconfig_pairs import PAIR
from tests.fake.joining import JoiningBox
from tests.fake.pair import sample

from applier.pair.joining import record
from applier.wire.errors import ApplierRefused
from draft import store as draft
from lbconfig.model.snapshot import Interface, Management, Network, Snapshot
from lbconfig.validate.cards import Card
from lbconfig.validate.services import validate
from system import pairing

OURS = dataclasses.replace(PAIR, management=Management(("127.0.0.0/8", "10.0.2.0/24", "2001:db8::/32")))
CARDS = tuple(Card(name, mac=f"52:54:00:00:01:0{number}") for number, name in enumerate(("eth0", "eth1", "ens5")))
NEW = Snapshot(network=Network("new", interfaces=(Interface("eth0", addresses=("10.0.2.77/24",)),)))


@pytest.fixture
def half(client, box):
    """The box runs the pair, and the other one is dead."""
    box.snapshot, box.pair = OURS, sample()
    box.pair.silent = 900.0
    draft.replace(OURS, "admin")
    return client


@pytest.fixture
def new(half, box):
    with socket.create_server(("", 0)) as free:
        box.joining.port = free.getsockname()[1]
    new = JoiningBox(lambda: NEW, lambda: CARDS, box.joining.port)
    yield new
    new.verbs.pair_forget("test")
    box.joining.close()


def code(client) -> str:
    client.post("/system/pair/replace/code/")
    page = client.get("/system/pair/replace/").content.decode()
    return re.search(r'<code class="big">([A-Z2-7-]{19})</code>', page)[1]


@pytest.fixture
def joined(half, new):
    new.verbs.pair_join("127.0.0.2", code(half), "admin")
    end = time.monotonic() + PATIENCE
    while "HX-Redirect" not in half.get("/live/pair/replace/").headers:
        assert time.monotonic() < end
        time.sleep(0.01)
    return new


def test_the_new_box_gets_the_part_of_the_dead_one(half, joined, box):
    page = half.get("/system/pair/replace/")
    assert "It gets the name, the addresses and the settings of lb2" in words(page)
    form = page.context["form"]
    assert {name: form[name].value() for name in form.fields} == {
        "card_0": "eth0", "card_1": "eth1", "card_2": "ens5",
    }  # fmt: skip
    answer = half.post("/system/pair/replace/", {"card_0": "eth0", "card_1": "eth1", "card_2": "ens5"})
    assert answer.headers["Location"] == "/changes/", words(answer)
    found, known = draft.current(), record.load(joined.paths)
    assert validate(found) == [] and found.pair.boxes[0] == OURS.pair.boxes[0] and found.pair.id == OURS.pair.id
    lb2 = found.pair.boxes[1]
    assert (lb2.name, lb2.cable, lb2.cable_address) == ("lb2", "ens5", OURS.pair.boxes[1].cable_address)
    assert [one.name for one in lb2.network.interfaces] == ["eth0", "eth1", "ens5"]
    assert lb2.key == known.keys[1] != OURS.pair.boxes[1].key and known.keys[0] == OURS.pair.boxes[0].key
    assert (known.id, known.box, known.other) == (OURS.pair.id, 1, "lb1")
    # Once more, with other cards: the old box is still what it is made of.
    again = half.get("/system/pair/replace/").context["form"]
    assert again["card_2"].value() == "ens5"
    answer = half.post("/system/pair/replace/", {"card_0": "eth1", "card_1": "eth0", "card_2": "ens5"})
    assert answer.status_code == 302 and draft.current().pair.boxes[1].network.interfaces[0].name == "eth1"
    box.snapshot = draft.current()  # it is applied
    assert "Show a code" in words(half.get("/system/pair/replace/"))


def test_the_new_box_knows_that_it_is_not_heard_until_it_is_taken_in(joined):
    found = joined.verbs.pair_joining()["joined"]
    assert found["replaces"]
    told = {"joined": found, "link": {"heard": False, "lasts": 700.0}, "invitation": None, "said": ""}
    link = pairing.known_of(told)["link"]
    assert link["words"] == "lb1 takes this box into its pair once that is applied there. Until then it is not heard."
    assert link["enter"] and not link["doubtful"]


@pytest.mark.parametrize(
    ("cards", "field", "said"),
    [
        ({"card_0": "eth9"}, "card_0", "is not in the new box"),
        ({"card_1": "eth0"}, "card_1", "stands for another card already"),
        ({"card_2": ""}, "card_2", "Fill this in."),
    ],
)
def test_each_bad_input_is_a_sentence_beside_its_field(half, joined, cards, field, said):
    answer = half.post("/system/pair/replace/", {"card_0": "eth0", "card_1": "eth1", "card_2": "ens5"} | cards)
    assert answer.status_code == 422 and draft.current() == OURS
    assert said in " ".join(answer.context["form"].errors[field])


def test_a_box_that_is_heard_is_not_dead(half, box):
    page = words(half.get("/system/pair/replace/"))
    assert "Switch lb2 off first, and keep it off." in page and "Replace lb2" in words(half.get("/system/pair/"))
    box.pair.silent = 0.2
    answer = half.post("/system/pair/replace/code/", follow=True)
    assert "There is no code: lb2 is there." in words(answer)
    assert "Replace lb2" not in words(half.get("/system/pair/"))
    box.pair = None
    assert half.get("/system/pair/replace/").headers["Location"] == "/system/pair/"


def test_an_address_that_somebody_answers_for_is_told_on_both(half, new, box):
    box.joining.answering.add("10.0.2.22")
    with pytest.raises(ApplierRefused, match=r"10\.0\.2\.22, an address of 'lb2', is still in use\. Switch 'lb2' off"):
        new.verbs.pair_join("127.0.0.2", code(half), "admin")
    end = time.monotonic() + PATIENCE
    while "still in use" not in words(half.get("/system/pair/replace/")):
        assert time.monotonic() < end
        time.sleep(0.01)
    assert record.load(new.paths) is None


def test_who_lives_may_be_the_second_box(half, new, box):
    """Then the new one becomes the first."""
    from tests.fake.joining import joining_box

    living = joining_box(box)
    living.number = 1
    new.verbs.pair_join("127.0.0.2", code(half), "admin")
    assert (record.load(new.paths).box, record.load(new.paths).keys[1]) == (0, OURS.pair.boxes[1].key)
    end = time.monotonic() + PATIENCE
    while living.verbs.pair_joining()["joined"] is None:
        assert time.monotonic() < end
        time.sleep(0.01)
    answer = half.post("/system/pair/replace/", {"card_0": "eth0", "card_1": "eth1", "card_2": "ens5"})
    assert answer.status_code == 302
    boxes = draft.current().pair.boxes
    assert boxes[1] == OURS.pair.boxes[1] and boxes[0].name == "lb1" and boxes[0].cable == "ens5"
    assert boxes[0].key == record.load(new.paths).keys[0]


def test_a_box_is_replaced_by_the_api(half, new, admin, box):
    api = robot(admin)
    assert api.post("/pair/replacement").json()["error"]["code"] == "not-joined"
    answer = api.post("/pair/replace")
    assert answer.status_code == 201
    new.verbs.pair_join("127.0.0.2", answer.json()["invitation"]["code"], "admin")
    end = time.monotonic() + PATIENCE
    while (found := api.post("/pair/replacement")).status_code == 409:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert found.json() == {"hostname": "lb2", "problems": []}
    assert draft.current().pair.boxes[1].cable == "ens5"
    box.pair.silent = 0.2
    assert api.post("/pair/replace").json()["error"]["code"] == "peer-there"
