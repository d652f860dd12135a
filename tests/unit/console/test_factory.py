"""What a person goes through at the console who makes the box a new one."""

import pytest

from console import factory
from console.dialogue import NOTHING_DONE


def begin(person):
    person.terminal.begin(factory.factory_reset(), True)
    person.work()
    return person.look()


def test_the_name_of_the_box_makes_it_a_new_one(person, fake):
    shown = begin(person)
    assert "configuration, users, tokens, certificates and history" in shown
    assert shown.endswith("Type sample to begin; an empty line cancels: ")
    person.type("sample")
    assert person.look() == "The box restarts.\n"
    assert fake.box.recovery.resets == ["console"]


@pytest.mark.parametrize("typed", ["", "yes", "fairlead"])
def test_nothing_else_does(person, fake, typed):
    begin(person)
    person.type(typed)
    assert person.look().endswith(NOTHING_DONE)
    assert fake.box.recovery.resets == []


def test_without_an_applier(person, fake):
    fake.box.reachable = False
    assert "cannot be reached" in begin(person)
