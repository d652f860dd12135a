"""Several terminals at once, and the menu on each."""

import os
import time

from console import actions, dialogue, loop


def test_three_terminals_at_once(people, talk, monkeypatch):
    """One works, the other is asked something, a third looks at the menu."""
    monkeypatch.setattr(loop, "screen", lambda state, titles: "THE MENU\n")
    monkeypatch.setattr(loop, "gather", lambda: None)

    def work():
        for number in range(3):
            yield f"{number}\n"
        yield dialogue.Pause(0.05)

    persons = people(3)
    terminals = [one.terminal for one in persons]
    terminals[0].begin(work(), True)
    terminals[1].begin(talk(), True)
    os.write(persons[1].end, b"kim\n")
    os.write(persons[2].end, b"what?\n")
    readable = [terminals[1].descriptor, terminals[2].descriptor]
    console = loop.Console(terminals)
    console.next_look = deadline = time.monotonic() + 5
    console.advance(readable)
    while terminals[0].dialogue and time.monotonic() < deadline:
        assert console.idle() < 1
        console.advance([])
    assert persons[0].look() == "0\n1\n2\nTHE MENU\n"
    assert persons[1].look() == "Your name? Hello kim.\nColour? [red] "
    assert persons[2].look() == "THE MENU\n"


def test_who_types_does_not_wait_for_a_look_at_a_slow_box(person, monkeypatch):
    looks = []
    monkeypatch.setattr(loop, "screen", lambda state, titles: f"THE MENU {state}\n")
    monkeypatch.setattr(loop, "gather", lambda: looks.append(1) or len(looks))
    console = loop.Console([person.terminal])
    console.look()
    assert person.look() == "THE MENU 1\n"
    console.next_look = 0.0  # long overdue
    for line in (b"what?\n", b"hallo?\n"):
        os.write(person.end, line)
        console.step()
    assert person.look() == "THE MENU 1\n" * 2
    assert len(looks) == 1
    console.step()
    assert person.look() == "THE MENU 2\n"


def test_the_menu_takes_numbers_and_a_yes(person, monkeypatch):
    ran = []

    def act():
        ran.append(True)
        yield "done\n"

    monkeypatch.setattr(loop, "ACTIONS", [actions.Action("Reboot", act, "It breaks things.")])
    console = loop.Console([person.terminal])
    console.take(person.terminal, "1")
    assert person.look() == "Reboot: It breaks things.\nType yes to go on: "
    person.type("no")
    assert person.look() == dialogue.NOTHING_DONE and not ran
    console.take(person.terminal, "1")
    console.take(person.terminal, "yes")
    person.work()
    assert person.look().endswith("Type yes to go on: Reboot …\ndone\n") and ran
