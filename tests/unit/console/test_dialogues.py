"""What a person at the serial line or the screen goes through, on real (pseudo) terminals."""

import importlib
import os
import pty
import sys
import time
import tty
from pathlib import Path

import pytest

from applier.errors import ApplierRefused
from applier.fake_updates import stick_bundle

REPO = Path(__file__).parents[3]
MODULES = ("actions", "dialogue", "disk_box", "installation", "loop", "screen", "state", "updates")


class Person:
    """At the other end of a terminal of the console."""

    def __init__(self, dialogue) -> None:
        self.end, other = pty.openpty()
        tty.setraw(self.end)
        self.terminal = dialogue.Terminal(os.ttyname(other))
        os.close(other)
        self.seen = ""

    def type(self, line: str) -> None:
        """Answer the question that was asked; a work that follows goes on to the next question or to its end."""
        assert self.terminal.asked, self.look()
        self.terminal.answer(line)
        self.work()

    def work(self) -> None:
        while self.terminal.working:
            time.sleep(max(0.0, self.terminal.resume - time.monotonic()))
            self.terminal.go_on()
            self.seen += self.take()  # a terminal that nobody reads fills up

    def look(self) -> str:
        """Everything that came since the last look."""
        seen, self.seen = self.seen + self.take(), ""
        return seen.replace("\r\n", "\n")

    def take(self) -> str:
        os.set_blocking(self.end, False)
        text = ""
        try:
            while part := os.read(self.end, 65536):
                text += part.decode()
        except BlockingIOError:
            pass
        return text


@pytest.fixture
def load(monkeypatch):
    """Import a module of the console; its programs lie in overlay/, not in webui/."""
    monkeypatch.syspath_prepend(str(REPO / "overlay/usr/lib/fairlead/console"))
    monkeypatch.syspath_prepend(str(REPO / "tests/unit/applier"))
    kept = {name: sys.modules.pop(name) for name in MODULES if name in sys.modules}
    yield importlib.import_module
    for name in MODULES:
        sys.modules.pop(name, None)
    sys.modules.update(kept)


@pytest.fixture
def person(load):
    return Person(load("dialogue"))


# --- dialogues in general ------------------------------------------------------------------------------


def talk(dialogue):
    """Two questions, and some work between them."""

    def lines():
        name = yield dialogue.Ask("Your name? ")
        yield f"Hello {name}.\n"
        colour = yield dialogue.Ask("Colour? [red] ", "red")
        yield f"{colour}.\n"
        raise dialogue.Cancelled

    return lines()


def test_questions_answers_and_a_default(load, person):
    person.terminal.begin(talk(load("dialogue")), True)
    assert person.look() == "Your name? "
    person.type("kim")
    assert person.look() == "Hello kim.\nColour? [red] "
    person.type("")
    assert person.look() == "red.\nNothing was done.\n"
    assert person.terminal.dialogue is None


def test_an_empty_line_ends_it_where_there_is_no_default(load, person):
    person.terminal.begin(talk(load("dialogue")), True)
    person.type("")
    assert person.look() == "Your name? Nothing was done.\n"
    assert person.terminal.dialogue is None and not person.terminal.asked


def test_a_disk_that_breaks_does_not_take_the_console_away(load, person):
    def lines():
        yield "looking\n"
        raise OSError(5, "Input/output error")

    person.terminal.begin(lines(), True)
    person.work()
    assert person.look() == "looking\n\nIt did not work: [Errno 5] Input/output error\n"
    assert person.terminal.dialogue is None


def test_what_was_typed_while_it_worked_is_no_answer(load):
    dialogue = load("dialogue")
    person = Person(dialogue)

    def lines():
        yield "working\n"
        answer = yield dialogue.Ask("Go on? ")
        yield f"{answer}!\n"

    person.terminal.begin(lines(), True)
    os.write(person.end, b"yes\n")
    person.work()
    os.write(person.end, b"no\n")
    assert person.terminal.read() == "no"


def test_the_state_of_the_box_pushes_no_question_away(load, person):
    person.terminal.begin(talk(load("dialogue")), True)
    person.terminal.show_screen("A FAULT\n")
    assert person.look() == "Your name? A FAULT\nYour name? "


def test_two_terminals_at_once(load, monkeypatch):
    """One works, the other is asked something, a third looks at the menu."""
    dialogue, main = load("dialogue"), load("loop")
    monkeypatch.setattr(main, "screen", lambda state, titles: "THE MENU\n")
    monkeypatch.setattr(main, "gather", lambda: None)

    def work():
        for number in range(3):
            yield f"{number}\n"
        yield dialogue.Pause(0.05)

    people = [Person(dialogue) for _ in range(3)]
    terminals = [one.terminal for one in people]
    terminals[0].begin(work(), True)
    terminals[1].begin(talk(dialogue), True)
    os.write(people[1].end, b"kim\n")
    os.write(people[2].end, b"what?\n")
    readable = [terminals[1].descriptor, terminals[2].descriptor]
    console = main.Console(terminals)
    console.next_look = deadline = time.monotonic() + 5
    console.advance(readable)
    while terminals[0].dialogue and time.monotonic() < deadline:
        assert console.idle() < 1
        console.advance([])
    assert people[0].look() == "0\n1\n2\nTHE MENU\n"
    assert people[1].look() == "Your name? Hello kim.\nColour? [red] "
    assert people[2].look() == "THE MENU\n"


def test_who_types_does_not_wait_for_a_look_at_a_slow_box(load, person, monkeypatch):
    main = load("loop")
    looks = []
    monkeypatch.setattr(main, "screen", lambda state, titles: f"THE MENU {state}\n")
    monkeypatch.setattr(main, "gather", lambda: looks.append(1) or len(looks))
    console = main.Console([person.terminal])
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


def test_the_menu_takes_numbers_and_a_yes(load, person, monkeypatch):
    main, actions = load("loop"), load("actions")
    ran = []

    def act():
        ran.append(True)
        yield "done\n"

    monkeypatch.setattr(main, "ACTIONS", [actions.Action("Reboot", act, "It breaks things.")])
    console = main.Console([person.terminal])
    console.take(person.terminal, "1")
    assert person.look() == "Reboot: It breaks things.\nType yes to go on: "
    person.type("no")
    assert person.look() == "Nothing was done.\n" and not ran
    console.take(person.terminal, "1")
    console.take(person.terminal, "yes")
    person.work()
    assert person.look().endswith("Type yes to go on: Reboot …\ndone\n") and ran


# --- the installation ----------------------------------------------------------------------------------


@pytest.fixture
def box(load, tmp_path, monkeypatch):
    disk_box = load("disk_box")
    box = disk_box.DiskBox(tmp_path, monkeypatch)
    box.start_from("sda")
    (box.places.data / "applier").mkdir()
    (box.places.data / "applier/set-up").write_text("yes\n")
    return box


def begin(load, person, box):
    person.terminal.begin(load("installation").install_on_a_disk(box, box.places), True)
    person.work()
    return person.look()


def test_an_installation(load, person, box):
    target = box.add("nvme0n1", device__model="Fast One")
    shown = begin(load, person, box)
    assert "This box runs from sda, slot A. Its other disks:" in shown
    assert "  1  nvme0n1  268 MB  Fast One\n       on it: empty\n" in shown
    assert shown.endswith("Number of the disk to install on; an empty line ends this: ")
    person.type("7")
    assert "There is no such number in the list" in person.look()
    person.type("1")
    assert person.look() == "Take the configuration of this box along, yes or no? [yes] "
    person.type("")
    assert person.look() == (
        "Everything on nvme0n1 will be lost: nvme0n1  268 MB  Fast One, empty.\n"
        "Type nvme0n1 to begin; an empty line ends this: "
    )
    person.type("nvme0n1")
    shown = person.look()
    assert "Writing the system … 3" in shown and "Reading it back … 9" in shown and "100 %" in shown
    assert "Fairlead is on nvme0n1. Choose Power off, remove the stick, and turn the box on again." in shown
    assert "The stick keeps the same configuration" in shown
    assert load("disk_box").is_installed(target, box.places.dev / "sda") == []
    assert (box.places.run / "install/A/applier/set-up").exists()


@pytest.mark.parametrize("last", ["", "yes", "sda", "nvme0n2"])
def test_nothing_is_written_before_the_name_was_typed(load, person, box, last):
    target = box.add("nvme0n1")
    before = target.read_bytes()
    begin(load, person, box)
    person.type("1")
    person.type("no")
    person.type(last)
    assert person.look().endswith("Nothing was done.\n")
    assert target.read_bytes() == before


def test_a_disk_that_was_exchanged_meanwhile(load, person, box):
    target = box.add("sdb")
    begin(load, person, box)
    person.type("1")
    person.type("no")
    (box.places.sys / "block/sdb/device/model").write_text("Another")
    person.type("sdb")
    assert "It is not installed: sdb is not the disk any more" in person.look()
    assert not target.read_bytes().strip(b"\0")


def test_disks_that_cannot_be_used_have_no_number(load, person, box):
    box.add("sdb", 32 << 20)
    shown = begin(load, person, box)
    assert "  -  sdb  34 MB  DISK\n       on it: empty\n       it cannot be used: too small:" in shown
    assert "There is no disk to install on" in shown
    assert person.terminal.dialogue is None


def test_a_new_box_is_asked_without_a_push(load, person, box):
    (box.places.data / "applier/set-up").unlink()
    (box.places.data / "applier/last-number").write_text("1\n")
    box.add("sdb")
    begin(load, person, box)
    person.type("1")
    assert person.look().endswith("[no] ")
    person.type("perhaps")
    person.type("")
    person.type("sdb")
    assert "The box will start from there as a new one" in person.look()
    assert not (box.places.run / "install/A").exists()


def test_a_failure_is_told_in_words(load, person, box):
    box.add("sdb")
    begin(load, person, box)
    person.type("1")
    person.type("no")
    box._mke2fs = lambda argv, stdin: load("disk_box").Output(1, "", "no such luck")
    person.type("sdb")
    assert "It is not installed: mke2fs" in person.look()


def test_the_terminal_gets_no_control_character_of_a_disk(load, person, box):
    box.add("sdb", device__model="\033[2Jevil", device__vendor="\x07")
    box.partition("sdb", 1, "\033]0;evil\x07")
    shown = begin(load, person, box)
    assert "evil" in shown and not set(shown) & set(map(chr, [*range(10), *range(11, 13), *range(14, 32), 127, 155]))


def test_without_a_disk_of_its_own(load, person, tmp_path, monkeypatch):
    box = load("disk_box").DiskBox(tmp_path, monkeypatch)
    assert "It is not installed: This box was not started from a Fairlead disk" in begin(load, person, box)


# --- updates -------------------------------------------------------------------------------------------


@pytest.fixture
def fake(monkeypatch):
    from applier import fake

    monkeypatch.setenv("FAIRLEAD_APPLIER", "fake")
    fake.reset(instant=True)
    yield fake
    fake.reset()


def test_an_update_from_a_stick(load, person, fake):
    fake.box.update.sticks = [
        stick_bundle("9.9.9", "The signature is of somebody else.\033[2J", 1),
        stick_bundle("0.2.0", number=2) | {"name": "fair\033lead.raucb"},
    ]
    person.terminal.begin(load("updates").install_from_stick(), True)
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
def test_an_update_waits_for_a_yes(load, person, fake, last):
    person.terminal.begin(load("updates").install_from_stick(), True)
    person.work()
    person.type("1")
    person.type(last)
    assert person.look().endswith("Nothing was done.\n")
    assert fake.box.update.job is None


def test_an_update_is_counted(load, person, fake, monkeypatch):
    fake.box.instant = False
    monkeypatch.setattr("applier.fake_updates.INSTALL_SECONDS", 0.2)
    monkeypatch.setattr(load("updates"), "POLL", 0.01)
    person.terminal.begin(load("updates").install_from_stick(), True)
    person.work()
    person.type("1")
    person.type("yes")
    shown = person.look()
    assert "\rChecking the whole bundle; nothing is written yet … 0 %" in shown
    assert "\rWriting to slot B … " in shown


def test_what_the_applier_refuses_is_told(load, person, fake):
    fake.box.update.refuse = ApplierRefused("bundle-signature", "The signature is wrong.")
    person.terminal.begin(load("updates").install_from_stick(), True)
    person.work()
    person.type("1")
    assert "The signature is wrong." in person.look()
    assert person.terminal.dialogue is None
    fake.box.reachable = False
    for begin in (load("updates").install_from_stick, load("updates").go_back):
        person.terminal.begin(begin(), True)
        person.work()
        assert "applier" in person.look()


def test_without_a_stick_and_without_slots(load, person, fake):
    fake.box.update.sticks = []
    person.terminal.begin(load("updates").install_from_stick(), True)
    person.work()
    assert "There is no update on any USB stick" in person.look()
    fake.box.update.present = False
    for begin in (load("updates").install_from_stick, load("updates").go_back):
        person.terminal.begin(begin(), True)
        person.work()
        assert person.look() == "This box does not run from a disk with two slots, so it cannot be updated.\n"


def test_back_to_the_other_version(load, person, fake):
    person.terminal.begin(load("updates").go_back(), True)
    person.work()
    assert person.look() == "Slot B holds nothing that can be started.\n"
    fake.box.update.other = "0.0.9"
    fake.box.update.other_configuration = {"number": 2, "created": "2026-01-01T00:00:00Z", "comment": "a\033b"}
    person.terminal.begin(load("updates").go_back(), True)
    person.work()
    shown = person.look()
    assert "Slot B holds version 0.0.9." in shown
    assert "It has a configuration of its own: generation 2 of 2026-01-01T00:00:00Z, a?b." in shown
    person.type("yes")
    assert fake.box.update.restarts == ["B"]
