"""Two slots take turns: one that does not come up loses its turn, and the box is back by itself."""

import itertools
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from board.machines.machine import PANIC, flash
from board.pc import layout
from tests.lab.fixtures import thorough

from applier.disk import bootstate

pytestmark = pytest.mark.timeout(1800)

TRIED = 300.0  # seconds for three boots that end in a panic and one that does not
CHECKED = 200.0  # seconds until a slot that came up is marked good


@pytest.fixture(scope="module")
def panicking(flashed) -> Iterator[Path]:
    """A slot with a kernel and nothing for it to start, so that it panics; a second later the box starts again."""
    with tempfile.TemporaryDirectory() as folder:
        tree, packed = Path(folder, "tree"), Path(folder, "packed")
        offset = str(layout.offset("slot-a"))
        subprocess.run(["unsquashfs", "-q", "-n", "-o", offset, "-d", tree, flashed, "boot"], check=True)
        slot_cfg = tree / "boot/slot.cfg"
        slot_cfg.write_text(slot_cfg.read_text().replace("panic=10", "panic=1"))
        subprocess.run(["mksquashfs", tree, packed, "-comp", "gzip", "-quiet", "-no-progress", "-all-root"], check=True)
        yield packed


def flash_on_trial(image: Path, disk: Path, slot: Path) -> None:
    """The disk after an update, to be started for the first time: slot B is on trial, slot A was good."""
    state = bootstate.with_good(bootstate.BootState(), "A")
    state = bootstate.with_primary(bootstate.with_bad(state, "B"), "B")
    updated = disk.with_suffix(".raw")
    subprocess.run(["cp", "--sparse=always", image, updated], check=True)
    with updated.open("r+b") as file:
        for name, data in (("boot-state", bootstate.archive(state)), ("slot-b", slot.read_bytes())):
            file.seek(layout.offset(name))
            file.write(data)
    disk.unlink()
    flash(updated, disk)


@thorough  # the update that panics (test_update.py) goes the same way, and is run at every change
def test_a_version_that_panics_is_tried_three_times(box, flashed, panicking):
    flash_on_trial(flashed, box.data, panicking)
    box.may_panic = True
    box.start()
    box.wait_for_console("Fairlead: slot A", TRIED)
    # Where UEFI writes to the serial line as well, GRUB's words come twice.
    tries = [words for words, _ in itertools.groupby(re.findall(r"Fairlead: slot (., try \d+)", box.console))]
    assert tries == ["B, try 1", "B, try 2", "B, try 3", "A, try 1"]
    assert box.console.count(PANIC) == 3
    box.wait_until_started()
    assert box.read("/run/fairlead/slot") == "A\n"
    box.wait_until_succeeds("/usr/lib/fairlead/boot-choice show | grep -qx A_TRY=", CHECKED)
    shown = box.succeed("/usr/lib/fairlead/boot-choice show").splitlines()
    assert {"ORDER=B A", "B_TRY=3", "A_GOOD=1", "B_GOOD=0"} <= set(shown)
