"""Which slot starts next: what GRUB leaves in its block, what is written back, and what RAUC is told."""

import io
import tarfile

import pytest

from applier.disk import bootstate
from applier.disk.bootstate import BootState, BootStateError, Slot

NEW = BootState(slots={"A": Slot(), "B": Slot(ok=False)})


@pytest.fixture
def partition(tmp_path):
    path = tmp_path / "boot-state"
    bootstate.make(path)
    return path


def state(order="AB", a=(True, 0, True), b=(True, 0, True)):
    return BootState(tuple(order), {"A": Slot(*a), "B": Slot(*b)})


@pytest.mark.parametrize(
    ("given", "chosen"),
    [
        (state(), "A"),
        (state("BA"), "B"),
        (state(a=(True, 2, True)), "A"),
        (state(a=(True, 3, True)), "B"),  # tried three times
        (state(a=(False, 0, True)), "B"),
        (state("BA", b=(True, 3, False)), "A"),  # an update that never came up
        (state("BA", a=(True, 3, True), b=(True, 3, False)), "A"),  # none left: what was good once
        (state("BA", a=(False, 0, False), b=(False, 0, False)), "B"),  # none was ever: the first, anyway
    ],
)
def test_the_slot_that_starts_next(given, chosen):
    assert bootstate.choose(given) == chosen


@pytest.mark.parametrize("given", [NEW, state(), state("BA", (True, 3, True), (True, 1, False))])
def test_a_block_says_what_was_rendered(given):
    block = bootstate.render(given)
    assert len(block) == 1024
    assert bootstate.parse(block) == given
    assert block[512:] == b"#" * 512  # one sector says it all


def test_a_block_as_grub_leaves_it():
    block = b"# GRUB Environment Block\nB_OK=1\nA_OK=1\nORDER=B A\nA_TRY=\nB_TRY=2\nA_GOOD=1\nother=x\n".ljust(
        1024, b"#"
    )
    assert bootstate.parse(block) == state("BA", (True, 0, True), (True, 2, False))


@pytest.mark.parametrize("order", ["", "ORDER=", "ORDER=A", "ORDER=A A", "ORDER=X A"])
def test_both_slots_are_always_in_the_order(order):
    block = f"# GRUB Environment Block\n{order}\n".encode().ljust(1024, b"#")
    assert bootstate.parse(block).order == ("A", "B")


@pytest.mark.parametrize("block", [b"", b"\0" * 1024, b"# GRUB Environment Block\n"])
def test_something_else_is_no_block(block):
    with pytest.raises(BootStateError, match="damaged"):
        bootstate.parse(block)


def test_the_partition_is_an_archive_of_one_file(partition):
    with tarfile.open(fileobj=io.BytesIO(partition.read_bytes())) as archive:
        (member,) = archive.getmembers()
        assert (member.name, member.size, member.offset_data) == ("grubenv", 1024, bootstate.PLACE)
        assert archive.extractfile(member).read() == bootstate.render(NEW)


def test_an_update_is_tried_and_then_marked_good(partition):
    bootstate.mark_good("A", partition)
    bootstate.set_state("B", "bad", partition)  # while it is written
    assert not bootstate.read(partition).can_boot("B")
    bootstate.set_primary("B", partition)
    now = bootstate.read(partition)
    assert bootstate.choose(now) == "B"
    assert now.on_trial("B")
    bootstate.mark_good("B", partition)
    assert bootstate.read(partition) == state("BA")


def test_going_back_needs_no_second_trial(partition):
    for slot in "AB":
        bootstate.mark_good(slot, partition)
    bootstate.set_primary("B", partition)
    assert not bootstate.read(partition).on_trial("B")


def test_only_the_sector_of_the_block_is_written(partition):
    partition.write_bytes(partition.read_bytes()[:1024] + b"x" * 4096)
    before = partition.read_bytes()
    bootstate.mark_good("B", partition)
    after = partition.read_bytes()
    assert len(after) == len(before)
    assert {at // 512 for at, (old, new) in enumerate(zip(before, after, strict=True)) if old != new} == {1}


def test_a_damaged_block_is_replaced_by_a_whole_archive(partition):
    partition.write_bytes(b"\xff" * 8192)
    with pytest.raises(BootStateError):
        bootstate.read(partition)
    bootstate.mark_good("B", partition)
    assert bootstate.read(partition) == state("AB", (True, 0, False), (True, 0, True))
    with tarfile.open(fileobj=io.BytesIO(partition.read_bytes())) as archive:
        assert archive.getnames() == ["grubenv"]


def test_a_box_without_slots_says_so(tmp_path):
    with pytest.raises(BootStateError, match="cannot be used"):
        bootstate.read(tmp_path / "missing")


def test_an_unknown_slot_is_refused(partition):
    with pytest.raises(BootStateError, match="no slot 'C'"):
        bootstate.mark_good("C", partition)


def test_what_rauc_asks(partition, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(bootstate, "DEVICE", partition)
    running = tmp_path / "slot"
    running.write_text("A\n")
    monkeypatch.setattr(bootstate, "RUNNING", running)

    def ask(*words):
        assert bootstate.main(list(words)) == 0
        return capsys.readouterr().out.strip()

    assert ask("get-primary") == ask("get-current") == "A"
    assert (ask("get-state", "A"), ask("get-state", "B")) == ("good", "bad")
    ask("set-primary", "B")
    assert (ask("get-primary"), ask("get-state", "B")) == ("B", "good")
    ask("set-state", "B", "bad")
    assert ask("get-primary") == "A"
    ask("set-state", "B", "good")
    assert "B_GOOD=1" in ask("show")


def test_a_failure_is_an_exit_code_and_a_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(bootstate, "DEVICE", tmp_path / "missing")
    assert bootstate.main(["get-primary"]) == 1
    assert "error: the boot state cannot be used" in capsys.readouterr().err
