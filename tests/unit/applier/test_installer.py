"""From the running stick onto another disk: what ends up there, what a power cut leaves, and what goes wrong."""

import hashlib
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from disk_box import EDGE, MIB, OFFSETS, SECTOR, TABLE, DiskBox, is_installed, piece, system, table

from applier.disk import bootstate, data_copy, installer
from applier.disk.installer import InstallFailed
from applier.host.host import HostError, Live, Output, run


class PowerCut(BaseException):
    """Nothing of the program runs after it."""


@pytest.fixture
def box(tmp_path, monkeypatch):
    box = DiskBox(tmp_path, monkeypatch)
    box.start_from("sda")
    box.add("sdb")
    set_up(box.places.data)
    return box


def set_up(data: Path) -> None:
    """What a box keeps, in miniature."""
    (data / "applier/generations/000003").mkdir(parents=True)
    (data / "applier/generations/000003/snapshot.json").write_text("{}")
    (data / "applier/confirmed").symlink_to("generations/000003")
    (data / "applier/last-number").write_text("3\n")
    (data / "applier/set-up").write_text("yes\n")
    (data / "applier/reserve").write_bytes(bytes(MIB))
    (data / "tls").mkdir()
    (data / "tls/key.pem").write_text("secret")
    (data / "tls/key.pem").chmod(0o640)
    (data / "web").mkdir()
    with closing(sqlite3.connect(data / "web/fairlead.sqlite3")) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE draft (name)")
        database.execute("INSERT INTO draft VALUES ('site')")
        database.commit()


def source_of(box):
    return installer.look(box, box.places)


def steps(box, with_configuration=False, name="sdb"):
    return installer.install(box, box.places, source_of(box), name, with_configuration)


def files(box, name="sdb", source="sda"):
    return box.places.dev / name, box.places.dev / source


def copied(box):
    return box.places.run / "install/A"


def test_the_other_disk_gets_everything(box):
    target, source = files(box)
    before = hashlib.sha256(source.read_bytes()).digest()
    percents = [step.percent for step in steps(box)]
    assert percents == sorted(percents) and percents[0] == 0 and percents[-1] == 100 and len(percents) > 10
    assert is_installed(target, source) == []
    assert piece(target, 0, 440) == piece(source, 0, 440)
    assert hashlib.sha256(source.read_bytes()).digest() == before, "the stick was changed"


def test_the_table_is_the_same_but_for_its_numbers_and_the_data_partition_fills_the_disk(box):
    target, source = files(box)
    list(steps(box))
    assert table(target) == table(source)
    assert "No errors detected" in said_by_sfdisk(target, "--verify")
    assert f"size={(255 * MIB) // SECTOR - OFFSETS['data']}," in said_by_sfdisk(target, "--dump").replace(" ", "")
    assert len(identities(target)) == 7
    assert not identities(target) & identities(source)


def said_by_sfdisk(disk, question):
    return run(Live(), ["sfdisk", question, str(disk)]).stdout


def identities(disk):
    text = said_by_sfdisk(disk, "--dump").replace("label-id: ", "uuid=")
    return {word.rstrip(",").partition("=")[2] for word in text.split() if word.startswith("uuid=")}


def test_the_boot_state_is_that_of_a_new_box(box):
    target, _ = files(box)
    list(steps(box))
    data = piece(target, OFFSETS["boot-state"] * SECTOR, MIB)
    state = bootstate.parse(data[bootstate.PLACE :])
    assert bootstate.choose(state) == "A"
    assert state.slots["A"] == bootstate.Slot(ok=True, tries=0, good=False)
    assert not state.can_boot("B")
    assert not data[len(bootstate.archive(state)) :].strip(b"\0")


def test_a_box_that_runs_slot_b_installs_it_as_slot_a(tmp_path, monkeypatch):
    box = DiskBox(tmp_path, monkeypatch)
    source = box.start_from("sda", "B")
    target = box.add("sdb")
    list(steps(box))
    assert is_installed(target, source, "B") == []


def test_a_system_of_an_earlier_installation_is_gone_from_slot_b(box):
    target, source = files(box)
    with target.open("r+b") as disk:
        disk.seek(OFFSETS["slot-b"] * SECTOR)
        disk.write(system(4096, b"old"))
    list(steps(box))
    assert is_installed(target, source) == []


def test_the_configuration_comes_along(box):
    list(steps(box, with_configuration=True))
    new = copied(box)
    assert (new / "applier/confirmed/snapshot.json").read_text() == "{}"
    assert (new / "applier/set-up").exists()
    assert (new / "tls/key.pem").stat().st_mode & 0o777 == 0o640
    assert not (new / "applier/reserve").exists()
    assert os.listdir(new / "web") == ["fairlead.sqlite3"]
    with closing(sqlite3.connect(new / "web/fairlead.sqlite3")) as database:
        assert database.execute("SELECT name FROM draft").fetchall() == [("site",)]


def of_the_box(box) -> None:
    """What no slot owns, in miniature."""
    (box.places.shared / "web").mkdir(parents=True)
    (box.places.shared / "least-version").write_text("1.5\n")
    (box.places.shared / "web/ledger.json").write_text('{"retired": ["an old password"]}')
    (box.places.shared / "web/ledger.json").chmod(0o600)
    (box.places.shared / "slots.json").write_text("of this disk")


def shared(box) -> dict[str, str]:
    folder = copied(box).with_name("shared")
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_what_was_revoked_comes_along_with_the_users(box):
    """Or an old backup file would bring it back on the installed box."""
    of_the_box(box)
    list(steps(box, with_configuration=True))
    assert shared(box) == {"least-version": "1.5\n", "web/ledger.json": '{"retired": ["an old password"]}'}
    assert (copied(box).with_name("shared") / "web/ledger.json").stat().st_mode & 0o777 == 0o600


def test_the_least_version_comes_along_with_the_system(box):
    of_the_box(box)
    list(steps(box))
    assert shared(box) == {"least-version": "1.5\n"} and not copied(box).exists()


def test_a_ledger_that_cannot_be_read_back_is_found_out(box, monkeypatch):
    of_the_box(box)

    def mount(argv, stdin):
        if any(word.startswith("ro,") for word in argv):
            (copied(box).with_name("shared") / "web/ledger.json").write_text("{}")
        return Output(0, "", "")

    monkeypatch.setattr(box, "_mount", mount)
    with pytest.raises(InstallFailed, match="another configuration than was written"):
        list(steps(box, with_configuration=True))


def test_without_it_the_new_box_is_a_new_one(box):
    list(steps(box))
    assert not copied(box).exists()
    assert not [words for words in box.log if words[0] == "mount"]


def test_a_database_in_the_middle_of_a_write_is_copied_whole(box):
    with closing(sqlite3.connect(box.places.data / "web/fairlead.sqlite3")) as writer:
        writer.execute("INSERT INTO draft VALUES ('half')")  # not committed, perhaps in the file already
        list(steps(box, with_configuration=True))
    with closing(sqlite3.connect(copied(box) / "web/fairlead.sqlite3")) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert database.execute("SELECT name FROM draft").fetchall() == [("site",)]


def test_an_apply_in_the_middle_of_the_copy_makes_another_try(box, monkeypatch):
    def copy(argv, stdin):
        box.applies += 1
        if box.applies < 3:
            (box.places.data / "applier/last-number").write_text(f"{3 + box.applies}\n")
        for folder in ("applier", "web"):
            os.makedirs(f"{argv[-1]}/{folder}")
        return Output(0, "", "")

    box.applies = 0
    monkeypatch.setattr(box, "_cp", copy, raising=False)
    data_copy.copy(box, box.places.data, copied(box))
    assert box.applies == 3

    box.applies = -9
    with pytest.raises(data_copy.CopyFailed, match="it changed all the time"):
        data_copy.copy(box, box.places.data, copied(box))


def test_a_damaged_database_is_told(box):
    (box.places.data / "web/fairlead.sqlite3").write_bytes(b"x" * 8192)
    with pytest.raises(InstallFailed, match=r"The database fairlead\.sqlite3 cannot be copied: .*Restore it first"):
        list(steps(box, with_configuration=True))
    assert piece(files(box)[0], 0, 440) == bytes(440)


# --- a power cut, at every single write ----------------------------------------------------------------


def starts(target: Path) -> bool:
    """Whether a firmware may start from it: without a valid first sector there is neither boot code nor a GPT."""
    return bool(piece(target, 0, SECTOR).strip(b"\0"))


def cut_at(monkeypatch, box, count):
    """Power goes at the `count`-th change to the disk, which is done half, to the end of a sector."""
    real_write, real_command = os.pwrite, box.command
    changes = iter(range(1, 1000))

    def pwrite(handle, data, offset):
        if next(changes) == count:
            real_write(handle, bytes(data)[: len(data) // 2 // SECTOR * SECTOR], offset)
            raise PowerCut
        return real_write(handle, data, offset)

    def command(argv, stdin="", timeout=20.0):
        if argv[0] == "mke2fs" and next(changes) == count:
            raise PowerCut
        return real_command(argv, stdin, timeout)

    monkeypatch.setattr(os, "pwrite", pwrite)
    monkeypatch.setattr(box, "command", command)


@pytest.mark.parametrize("count", range(1, 14))
def test_a_power_cut_leaves_no_disk_that_starts_half_an_installation(box, monkeypatch, count):
    target, source = box.add("sdb", table=TABLE), box.places.dev / "sda"  # another Fairlead was there before
    with target.open("r+b") as disk:
        disk.write(b"boot code of another".ljust(440, b"\x90"))
    before = hashlib.sha256(source.read_bytes()).digest()
    with monkeypatch.context() as patch:
        cut_at(patch, box, count)
        try:
            list(steps(box))
        except PowerCut:
            whole = False
        else:
            whole = True
    assert hashlib.sha256(source.read_bytes()).digest() == before
    # The very first write may be cut before it has taken anything away.
    if count > 1 and starts(target):
        assert is_installed(target, source) == []
        assert table(target) == table(source)
    assert whole == (count == 13), "count every write: the range of this test is too short or too long"


@pytest.mark.parametrize("count", [1, 3, 6, 20])
def test_closed_in_the_middle_it_leaves_nothing_mounted_and_nothing_that_starts(box, count):
    going = steps(box, with_configuration=True)
    for _ in range(count):
        next(going, None)
    going.close()
    mounts = [words[0] for words in box.log if words[0] in ("mount", "umount")]
    assert mounts.count("mount") == mounts.count("umount")
    if starts(files(box)[0]):
        assert is_installed(*files(box)) == []


# --- what goes wrong -----------------------------------------------------------------------------------


def test_a_disk_that_forgets_is_found_out(box, monkeypatch):
    target, _ = files(box)
    real = os.pwrite
    place = OFFSETS["slot-a"] * SECTOR + 4 * MIB

    def pwrite(handle, data, offset):
        return len(data) if offset == place else real(handle, data, offset)

    monkeypatch.setattr(os, "pwrite", pwrite)
    with pytest.raises(InstallFailed, match=r"returns other data than was written to it \(writing the system\)"):
        list(steps(box))
    assert not starts(target)


def test_a_configuration_that_cannot_be_read_back_is_found_out(box, monkeypatch):
    def mount(argv, stdin):
        if any(word.startswith("ro,") for word in argv):
            (copied(box) / "tls/key.pem").write_text("damaged")
        return Output(0, "", "")

    monkeypatch.setattr(box, "_mount", mount)
    with pytest.raises(InstallFailed, match="another configuration than was written"):
        list(steps(box, with_configuration=True))
    assert not starts(files(box)[0])


@pytest.mark.parametrize("tool", ["mke2fs", "e2fsck"])
def test_a_tool_that_fails_is_named_with_its_words(box, monkeypatch, tool):
    going = steps(box)  # the stick's own table was read before
    monkeypatch.setattr(box, f"_{tool}", lambda argv, stdin: Output(1, "", "no such luck"))
    with pytest.raises((InstallFailed, HostError), match=f"{tool}.* ended with 1: no such luck"):
        list(going)


def test_a_disk_that_breaks_is_named(box, monkeypatch):
    def pwrite(handle, data, offset):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "pwrite", pwrite)
    with pytest.raises(InstallFailed, match=r"sdb: Input/output error\.$"):
        list(steps(box))


def test_only_one_terminal_installs_onto_a_disk(box):
    one, other = steps(box), steps(box)
    next(one)
    with pytest.raises(InstallFailed, match="sdb is being installed already"):
        next(other)
    one.close()
    next(steps(box))


def test_a_box_that_was_started_in_another_way_has_nothing_to_install_from(tmp_path, monkeypatch):
    with pytest.raises(InstallFailed, match="not started from a Fairlead disk"):
        source_of(DiskBox(tmp_path, monkeypatch))


def test_a_disk_that_is_not_fairlead_s_is_no_source(box):
    file = box.places.dev / "sda"
    with file.open("r+b") as disk:
        disk.seek(OFFSETS["slot-a"] * SECTOR)
        disk.write(bytes(4096))
    with pytest.raises(InstallFailed, match="There is no system in slot-a"):
        source_of(box)
    run(Live(), ["sfdisk", "--quiet", str(file)], stdin="label: gpt\nsize=4096, name=efi\n")
    with pytest.raises(InstallFailed, match="the table names no partition 'bios'"):
        source_of(box)
    file.write_bytes(bytes(4 * EDGE))
    with pytest.raises(InstallFailed, match="there is no GPT"):
        source_of(box)


def test_disks_that_are_too_small_for_it(box):
    box.add("sdc", 87 * MIB)
    box.add("sdd", 89 * MIB)
    reasons = {disk.name: disk.reason for disk in installer.choices(box, box.places, source_of(box))}
    assert reasons == {"sdb": "", "sdc": "too small: 92 MB are needed", "sdd": ""}
    list(steps(box, True, "sdd"))
    assert is_installed(*files(box, "sdd")) == []
