"""Making a pair by pages and API: this box with the real protocol to another one that is invented."""

import re
import socket
import time

import pytest
from api_robot import robot
from board.machines.wait import PATIENCE
from forms_on_page import words
from tests.fake.joining import JoiningBox, joining_box

from draft import store as draft
from lbconfig.model.snapshot import Interface, Network, Snapshot
from lbconfig.validate.cards import Card
from lbconfig.validate.services import validate

CARDS = tuple(Card(f"eth{number}", mac=f"52:54:00:00:00:0{number}") for number in range(4))
OTHER = Snapshot(network=Network("lb2", interfaces=(Interface("eth0", addresses=("192.168.10.9/24",)),)))


@pytest.fixture
def other(box):
    """Another box; both look for each other at this port."""
    with socket.create_server(("", 0)) as free:
        box.joining.port = free.getsockname()[1]
    other = JoiningBox(lambda: OTHER, lambda: CARDS, box.joining.port)
    yield other
    other.verbs.pair_forget("test")
    box.joining.close()


@pytest.fixture
def known(client, other):
    """The other one has joined this box."""
    client.post("/system/pair/make/code/")
    code = re.search(r'<code class="big">([A-Z2-7-]{19})</code>', client.get("/system/pair/make/").content.decode())[1]
    other.verbs.pair_join("127.0.0.2", code, "admin")
    until_known(client)
    return other


def until_known(client):
    end = time.monotonic() + PATIENCE
    while "HX-Redirect" not in client.get("/live/pair/code/").headers:
        assert time.monotonic() < end
        time.sleep(0.01)


def fields(client) -> dict[str, str]:
    form = client.get("/system/pair/make/").context["form"]
    lines = lambda value: "\n".join(value) if isinstance(value, tuple) else value  # noqa: E731
    return {name: lines(form[name].value()) or "" for name in form.fields}


def test_a_code_is_shown_until_the_other_box_has_come(client, other):
    assert "Show a code" in words(client.get("/system/pair/make/"))
    page = words(client.post("/system/pair/make/code/", follow=True))
    assert "10 minutes, once; 3 tries are left." in page and "192.168.10.2" in page
    assert "HX-Redirect" not in client.get("/live/pair/code/").headers
    assert "Show a code" in words(client.post("/system/pair/forget/", follow=True))


def test_two_boxes_become_a_draft_of_a_pair(client, known, box):
    page = words(client.get("/system/pair/make/"))
    assert "lb2" in page and "Floating: 192.168.10.2/24" in page
    answer = client.post("/system/pair/make/", fields(client))
    assert answer.headers["Location"] == "/changes/", words(answer)
    pair = draft.current()
    assert validate(pair) == [] and pair.pair.boxes[1].network.hostname == "lb2"
    assert "become one director" in words(client.get("/changes/"))
    assert "The draft has this pair already" in words(client.get("/system/pair/make/"))


def test_the_pages_say_whether_the_joined_box_is_heard(client, known, box):
    """Until both are a pair, on the page of the pair and on those that make it."""
    for page in ("/system/pair/", "/system/pair/make/", "/system/pair/join/", "/live/pair/joined/"):
        assert "lb2 is heard: the link to it has been up for 1 min." in words(client.get(page)), page
    box.joining.box.link = {"heard": False, "lasts": 700.0}
    said = "lb2 has not been heard for 11 min. Check that it is on, and that UDP port 51820 passes between this box and"
    for page in ("/system/pair/", "/live/pair/joined/"):
        assert f"{said} 127.0.0.1." in words(client.get(page)), page
    box.joining.box.link = {"heard": True, "lasts": 3.0}
    page = words(client.get("/system/pair/"))
    assert "has been up for less than a minute." in page and "This box is alone" not in page
    assert "See what both boxes become" in page
    client.post("/system/pair/forget/")
    assert client.get("/live/pair/joined/").headers["HX-Refresh"] == "true"
    assert "This box is alone" in words(client.get("/system/pair/"))


def test_a_first_box_that_does_not_hear_the_other_one_shows_the_code_once_more_or_a_new_one(client, other, box):
    """The other box may have joined by half: its last answer was lost."""
    client.post("/system/pair/make/code/")
    joining_box(box).link = {"heard": False, "lasts": 5.0}
    code = box.joining.box.verbs.pair_joining()["invitation"]["code"]
    other.verbs.pair_join("127.0.0.2", code, "admin")
    until_known(client)
    for page in ("/system/pair/", "/system/pair/make/", "/system/pair/join/"):
        said = words(client.get(page))
        assert f"enter the code {code} there once more; it is good for 10 more minutes." in said, page
    assert "lb2 is not heard" in words(client.get("/system/pair/"))
    box.joining.box.verbs._end_invitation()
    page = client.get("/system/pair/make/")
    assert "If lb2 does not show that it has joined this box, show a new code and enter it there." in words(page)
    assert 'id="invite-again"' in page.content.decode()
    page = words(client.post("/system/pair/make/code/", follow=True))
    assert "10 minutes, once; 3 tries are left." in page and code not in page


def test_a_second_box_that_does_not_hear_the_other_one_takes_its_code_once_more(client, other, box):
    code = other.verbs.pair_invite("admin")["invitation"]["code"]
    joining_box(box).link = other.link = {"heard": False, "lasts": 5.0}
    for _ in range(2):
        page = words(client.post("/system/pair/join/", {"address": "127.0.0.2", "code": code}, follow=True))
        assert "lb2 is not heard" in page and "Joined lb2" not in page
        assert "If lb2 does not show that this box has joined it, enter the code that it shows, or a new one." in page
    assert client.get("/live/pair/joined/?heard=False").status_code == 200
    wrong = client.post("/system/pair/join/", {"address": "127.0.0.2", "code": "AAAA-AAAA-AAAA-AAAA"})
    assert wrong.status_code == 422 and "lb2 is not heard" in words(wrong)
    box.joining.box.link = {"heard": True, "lasts": 1.0}
    assert client.get("/live/pair/joined/?heard=False").headers["HX-Refresh"] == "true"
    page = client.get("/system/pair/join/")
    assert "Joined lb2" in words(page) and 'id="join"' not in page.content.decode()


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("hostname", "", "Fill this in."),
        ("own_0_1", "192.168.10.3/24", "192.168.10.3 is also an address of"),
        ("own_0_1", "nonsense", "nonsense"),
        ("own_0_1", "", "for each box"),
        ("card_0", "eth9", "is not in the second box"),
        ("cable_1", "eth9", "is not in the second box"),
        ("cable_address_1", "10.99.0.1/24", "pair cable"),
        ("own_0_0", "192.168.10.77/24", "is taken"),
    ],
)
def test_each_bad_input_is_a_sentence_beside_its_field(client, known, box, field, value, said):
    box.joining.answering.add("192.168.10.77")
    answer = client.post("/system/pair/make/", fields(client) | {field: value})
    assert answer.status_code == 422 and draft.current().pair is None
    form = answer.context["form"]
    assert said in " ".join(form.errors.get(field, [])), form.errors


def test_this_box_joins_another_one(client, other, box):
    code = other.verbs.pair_invite("admin")["invitation"]["code"]
    wrong = client.post("/system/pair/join/", {"address": "127.0.0.2", "code": "AAAA-AAAA-AAAA-AAAA"})
    assert wrong.status_code == 422 and "2 tries are left" in str(wrong.context["form"].errors["code"])
    page = words(client.post("/system/pair/join/", {"address": "127.0.0.2", "code": code}, follow=True))
    assert "Joined lb2" in page and "Go on at the web page of lb2" in page
    assert "waits for it" in words(client.get("/system/pair/make/"))
    assert "Show a code" in words(client.post("/system/pair/forget/", follow=True))


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({"address": "", "code": "AAAA-AAAA-AAAA-AAAA"}, "address"),
        ({"address": "192.168.10.2", "code": "AAAA-AAAA-AAAA-AAAA"}, "address"),
        ({"address": "127.0.0.2", "code": "AAAA-AAAA-AAAA-AAAA"}, "address"),
        ({"address": "a b", "code": "AAAA-AAAA-AAAA-AAAA"}, "address"),
        ({"address": "127.0.0.2", "code": "AAAA"}, "code"),
        ({"address": "127.0.0.2", "code": ""}, "code"),
    ],
)
def test_what_cannot_be_joined_is_told_beside_the_field(client, other, sent, field):
    answer = client.post("/system/pair/join/", sent)
    assert answer.status_code == 422 and answer.context["form"].errors[field]


def test_by_the_api(client, admin, other):
    program = robot(admin)
    made = program.post("/pair/code")
    assert made.status_code == 201
    other.verbs.pair_join("127.0.0.2", made.json()["invitation"]["code"], "admin")
    until_known(client)
    assert program.get("/pair/joining").json()["joined"]["other"] == "lb2"
    assert program.post("/pair/proposal").json() == {"hostname": "lb2", "problems": []}
    assert draft.current().pair is not None
    assert program.delete("/pair/joining").json()["joined"] is None
    assert program.post("/pair/proposal").status_code == 409


def test_joining_by_the_api(admin, client, other):
    code = other.verbs.pair_invite("admin")["invitation"]["code"]
    program = robot(admin)
    wrong = program.post("/pair/join", {"address": "127.0.0.2", "code": "AAAA"})
    assert wrong.status_code == 422 and wrong.json()["error"]["problems"][0]["field"] == "code"
    assert program.post("/pair/join", {"address": "127.0.0.2", "code": code}).json()["joined"]["box"] == 1


def test_a_new_box_can_be_set_up_to_join_another_one(stranger, db, box):
    box.setup_done = False
    assert 'href="?join"' in stranger.get("/set-up/").content.decode()
    data = {"code": box.setup_code, "username": "admin", "password": "a good password", "again": "a good password"}
    assert stranger.post("/set-up/?join", data).headers["Location"] == "/system/pair/join/"
