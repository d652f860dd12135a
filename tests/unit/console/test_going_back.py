"""What a person goes through at the console who wants an earlier configuration back."""

import dataclasses

import pytest

from applier.apply.runs import confirmed_sentence
from applier.wire.errors import ApplierRefused
from console import going_back
from console.dialogue import NOTHING_DONE
from lbconfig.model.canonical import text


def begin(person):
    person.terminal.begin(going_back.go_back_to_a_configuration(), True)
    person.work()
    return person.look()


@pytest.fixture
def changed(fake):
    """The box runs revision 3; 2 was another one, 1 was put back, and somebody's comment is hostile."""
    box = fake.box
    other = dataclasses.replace(box.snapshot, services=box.snapshot.services[:1])
    box.generations[1] |= {"text": text(other), "comment": "before\033[2J the mail"}
    box.generations[2]["outcome"] = "rolled back"
    return other


def test_back_to_one_that_was_good(person, fake, changed):
    shown = begin(person)
    assert "  1  revision 2  2026-01-03T09:30:00Z  admin  before?[2J the mail\n" in shown
    assert "revision 3" not in shown and "revision 1" not in shown
    person.type("1")
    shown = person.look()
    assert "The draft on the web page stays as it is." in shown and "virtual service 'mail'" in shown
    person.type("yes")
    assert confirmed_sentence(4) in person.look()
    assert fake.box.snapshot == changed
    assert fake.box.generations[0]["comment"] == "back to revision 2, at the console"
    assert fake.box.generations[0]["user"] == "console"


@pytest.mark.parametrize("last", ["", "no"])
def test_nothing_changes_before_a_yes(person, fake, changed, last):
    before = fake.box.snapshot
    begin(person)
    person.type("1")
    person.type(last)
    assert person.look().endswith(NOTHING_DONE) and fake.box.snapshot == before


def test_where_there_is_none(person, fake):
    fake.reset(instant=True, confirmed=1)
    assert begin(person) == "There is no earlier configuration that was confirmed.\n"


def test_what_the_applier_refuses(person, fake, changed):
    begin(person)
    fake.box.refuse = ApplierRefused("busy", "Right now the changes of kim are being applied.")
    person.type("1")
    assert "the changes of kim are being applied" in person.look()
    assert person.terminal.dialogue is None


def test_the_same_configuration_again(person, fake):
    begin(person)
    person.type("1")
    assert person.look().endswith("The box runs this already.\n")
