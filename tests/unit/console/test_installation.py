"""What a person goes through who puts Fairlead on a disk."""

import disk_box
import pytest

from console import installation
from console.dialogue import NOTHING_DONE


@pytest.fixture
def box(tmp_path, monkeypatch):
    box = disk_box.DiskBox(tmp_path, monkeypatch)
    box.start_from("sda")
    (box.places.data / "applier").mkdir()
    (box.places.data / "applier/set-up").write_text("yes\n")
    return box


def begin(person, box):
    person.terminal.begin(installation.install_on_a_disk(box, box.places), True)
    person.work()
    return person.look()


def test_an_installation(person, box):
    target = box.add("nvme0n1", device__model="Fast One")
    shown = begin(person, box)
    assert "This box runs from sda, slot A. Its other disks:" in shown
    assert "  1  nvme0n1  268 MB  Fast One\n       on it: empty\n" in shown
    assert shown.endswith("Number of the disk to install on; an empty line cancels: ")
    person.type("7")
    assert "There is no such number in the list" in person.look()
    person.type("1")
    assert person.look() == "Copy the configuration of this box, yes or no? [yes] "
    person.type("")
    assert person.look() == (
        "Everything on nvme0n1 will be lost: nvme0n1  268 MB  Fast One, empty.\n"
        "Type nvme0n1 to begin; an empty line cancels: "
    )
    person.type("nvme0n1")
    shown = person.look()
    assert "Writing the system … 3" in shown and "Reading it back … 9" in shown and "100 %" in shown
    assert "Fairlead is installed on nvme0n1. Choose Power off, remove the stick, and turn the box on again." in shown
    assert "The stick keeps the same configuration" in shown
    assert disk_box.is_installed(target, box.places.dev / "sda") == []
    assert (box.places.run / "install/A/applier/set-up").exists()


@pytest.mark.parametrize("last", ["", "yes", "sda", "nvme0n2"])
def test_nothing_is_written_before_the_name_was_typed(person, box, last):
    target = box.add("nvme0n1")
    before = target.read_bytes()
    begin(person, box)
    person.type("1")
    person.type("no")
    person.type(last)
    assert person.look().endswith(NOTHING_DONE)
    assert target.read_bytes() == before


def test_a_disk_that_was_exchanged_meanwhile(person, box):
    target = box.add("sdb")
    begin(person, box)
    person.type("1")
    person.type("no")
    (box.places.sys / "block/sdb/device/model").write_text("Another")
    person.type("sdb")
    assert "Not installed: sdb is not the disk any more" in person.look()
    assert not target.read_bytes().strip(b"\0")


def test_disks_that_cannot_be_used_have_no_number(person, box):
    box.add("sdb", 32 << 20)
    shown = begin(person, box)
    assert "  -  sdb  34 MB  DISK\n       on it: empty\n       it cannot be used: too small:" in shown
    assert "There is no disk to install on" in shown
    assert person.terminal.dialogue is None


def test_a_new_box_is_asked_without_a_push(person, box):
    (box.places.data / "applier/set-up").unlink()
    (box.places.data / "applier/last-number").write_text("1\n")
    box.add("sdb")
    begin(person, box)
    person.type("1")
    assert person.look().endswith("[no] ")
    person.type("perhaps")
    person.type("")
    person.type("sdb")
    assert "The box starts from there as a new one" in person.look()
    assert not (box.places.run / "install/A").exists()


def test_a_failure_is_told_in_words(person, box):
    box.add("sdb")
    begin(person, box)
    person.type("1")
    person.type("no")
    box._mke2fs = lambda argv, stdin: disk_box.Output(1, "", "no such luck")
    person.type("sdb")
    assert "Not installed: mke2fs" in person.look()


def test_the_terminal_gets_no_control_character_of_a_disk(person, box):
    box.add("sdb", device__model="\033[2Jevil", device__vendor="\x07")
    box.partition("sdb", 1, "\033]0;evil\x07")
    shown = begin(person, box)
    assert "evil" in shown and not set(shown) & set(map(chr, [*range(10), *range(11, 13), *range(14, 32), 127, 155]))


def test_without_a_disk_of_its_own(person, tmp_path, monkeypatch):
    box = disk_box.DiskBox(tmp_path, monkeypatch)
    assert "Not installed: This box was not started from a Fairlead disk" in begin(person, box)
