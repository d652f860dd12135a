"""What a person goes through who installs a new version, or goes back to the old one."""

import pytest
from tests.fake.updates import stick_bundle

from applier.wire.errors import ApplierRefused
from console import updates
from console.dialogue import NOTHING_DONE


def test_an_update_from_a_stick(person, fake):
    fake.box.update.sticks = [
        stick_bundle("9.9.9", "The signature is of somebody else.\033[2J", 1),
        stick_bundle("0.2.0", number=2) | {"name": "fair\033lead.raucb"},
    ]
    person.terminal.begin(updates.install_from_stick(), True)
    person.work()
    shown = person.look()
    assert "  -  fairlead-9.9.9.raucb on sdb1\n       it cannot be installed: The signature is of somebody" in shown
    assert "  2  version 0.2.0, 58 MB, fair?lead.raucb on sdb1\n" in shown
    assert "\033" not in shown
    person.type("1")
    assert "There is no such number in the list." in person.look()
    person.type("2")
    assert "Version 0.2.0 goes into slot B." in person.look()
    person.type("yes")
    shown = person.look()
    assert "Version 0.2.0 is in slot B." in shown
    assert shown.endswith("Restart into it now, yes or no? [yes] ")
    assert fake.box.update.restarts == []
    person.type("")
    assert person.look() == "The box restarts.\n"
    assert fake.box.update.restarts == ["B"]


@pytest.mark.parametrize("last", ["", "no"])
def test_an_update_waits_for_a_yes(person, fake, last):
    person.terminal.begin(updates.install_from_stick(), True)
    person.work()
    person.type("1")
    person.type(last)
    assert person.look().endswith(NOTHING_DONE)
    assert fake.box.update.job is None


def test_an_update_is_counted(person, fake, monkeypatch):
    fake.box.instant = False
    monkeypatch.setattr("tests.fake.updates.INSTALL_SECONDS", 0.2)
    monkeypatch.setattr(updates, "POLL", 0.01)
    person.terminal.begin(updates.install_from_stick(), True)
    person.work()
    person.type("1")
    person.type("yes")
    shown = person.look()
    assert "\rChecking the whole bundle; nothing is written yet … 0 %" in shown
    assert "\rWriting to slot B … " in shown


def test_an_applier_that_starts_anew_ends_the_installation(person, fake, monkeypatch):
    slots = fake.Fake.slots
    monkeypatch.setattr(fake.Fake, "slots", lambda self: slots(self) | {"job": None})
    person.terminal.begin(updates.install_from_stick(), True)
    person.work()
    person.type("1")
    person.type("yes")
    assert "The applier restarted, and the installation ended with it." in person.look()
    assert person.terminal.dialogue is None


def test_what_the_applier_refuses_is_told(person, fake):
    fake.box.update.refuse = ApplierRefused("bundle-signature", "The signature is wrong.")
    person.terminal.begin(updates.install_from_stick(), True)
    person.work()
    person.type("1")
    assert "The signature is wrong." in person.look()
    assert person.terminal.dialogue is None
    fake.box.reachable = False
    for begin in (updates.install_from_stick, updates.go_back):
        person.terminal.begin(begin(), True)
        person.work()
        assert "applier" in person.look()


def test_without_a_stick_and_without_slots(person, fake):
    fake.box.update.sticks = []
    person.terminal.begin(updates.install_from_stick(), True)
    person.work()
    assert "There is no update on any USB stick" in person.look()
    fake.box.update.present = False
    for begin in (updates.install_from_stick, updates.go_back):
        person.terminal.begin(begin(), True)
        person.work()
        assert person.look() == "This box does not run from a disk with two slots, so it cannot be updated.\n"


def test_back_to_the_other_version(person, fake):
    person.terminal.begin(updates.go_back(), True)
    person.work()
    assert person.look() == "Slot B holds nothing that can be started.\n"
    fake.box.update.other = "0.0.9"
    fake.box.update.other_configuration = {"number": 2, "created": "2026-01-01T00:00:00Z", "comment": "a\033b"}
    person.terminal.begin(updates.go_back(), True)
    person.work()
    shown = person.look()
    assert "Slot B holds version 0.0.9." in shown
    assert "It has a configuration of its own: revision 2 of 2026-01-01T00:00:00Z, a?b." in shown
    person.type("yes")
    assert fake.box.update.restarts == ["B"]
