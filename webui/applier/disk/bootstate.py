"""Which slot the boot loader starts next: the environment block of GRUB on the partition "boot-state".

    python3 -m applier.disk.bootstate show|get-primary|get-current
    python3 -m applier.disk.bootstate set-primary SLOT | get-state SLOT | set-state SLOT good|bad
    python3 -m applier.disk.bootstate new FILE           what a freshly built disk has there

GRUB (board/pc/grub/grub.cfg) takes the first slot of ORDER that may boot and has been tried fewer than three
times, counts the try, and saves the block. What boots well is marked good here, which takes the count back.
The command line is what RAUC asks of a custom boot loader, see "Custom" in RAUC's integration manual.

The partition holds a tar archive with one file, because GRUB writes only to files whose place it can look up. The
block never moves: 1024 bytes behind the archive's first header, of which the first disk sector says everything and
is all that is ever written. So a power cut leaves the old state or the new one.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypedDict, Unpack

SLOTS = ("A", "B")
TRIES = 3  # boots that a slot gets; grub.cfg counts to the same number
DEVICE = Path("/run/fairlead/disk/boot-state")
RUNNING = Path("/run/fairlead/slot")  # which slot the box runs
PLACE = 512  # bytes: the header of the archive comes before the block
BLOCK = 1024  # bytes, GRUB's fixed size
SECTOR = 512  # bytes that a disk writes in one piece
SIGNATURE = b"# GRUB Environment Block\n"


class BootStateError(Exception):
    """The block cannot be read or written, or a slot is unknown; the text says which."""


@dataclass(frozen=True, slots=True)
class Slot:
    ok: bool = True  # may boot; not so while something is being written to it
    tries: int = 0  # boots begun since it was last marked good
    good: bool = False  # has been marked good since something was written to it


class _Changes(TypedDict, total=False):
    """Fields of a slot."""

    ok: bool
    tries: int
    good: bool


@dataclass(frozen=True, slots=True)
class BootState:
    """`order` names the slot that is wanted first; both slots are always in it."""

    order: tuple[str, str] = SLOTS
    slots: dict[str, Slot] = field(default_factory=lambda: {name: Slot() for name in SLOTS})

    def slot(self, name: str) -> Slot:
        try:
            return self.slots[name]
        except KeyError:
            raise BootStateError(f"there is no slot {name!r}") from None

    def changed(self, name: str, **values: Unpack[_Changes]) -> BootState:
        return replace(self, slots={**self.slots, name: replace(self.slot(name), **values)})

    def can_boot(self, name: str) -> bool:
        slot = self.slot(name)
        return slot.ok and slot.tries < TRIES

    def on_trial(self, name: str) -> bool:
        """Whether it was written and has not been marked good yet."""
        return not self.slot(name).good


# --- pure ---


def parse(block: bytes) -> BootState:
    """The state in a block. What is missing has the value of a new block; raises BootStateError for no block at all."""
    if len(block) < SECTOR or not block.startswith(SIGNATURE):
        raise BootStateError("the boot state is damaged: there is no environment block of GRUB")
    values = {}
    for line in block[len(SIGNATURE) :].decode("ascii", errors="replace").splitlines():
        name, assigned, value = line.partition("=")
        if assigned:
            values[name] = value
    wanted = [name for name in values.get("ORDER", "").split() if name in SLOTS]
    first, second = dict.fromkeys([*wanted, *SLOTS])
    return BootState((first, second), {name: _slot(name, values) for name in SLOTS})


def _slot(name: str, values: dict[str, str]) -> Slot:
    tries = values.get(f"{name}_TRY", "")
    return Slot(
        ok=values.get(f"{name}_OK") == "1",
        tries=int(tries) if tries in ("1", "2", "3") else 0,
        good=values.get(f"{name}_GOOD") == "1",
    )


def render(state: BootState) -> bytes:
    """The whole block."""
    lines = [f"ORDER={' '.join(state.order)}"]
    for name, slot in sorted(state.slots.items()):
        tries = str(slot.tries) if slot.tries else ""
        lines += [f"{name}_OK={slot.ok:d}", f"{name}_TRY={tries}", f"{name}_GOOD={slot.good:d}"]
    text = SIGNATURE + "".join(f"{line}\n" for line in lines).encode()
    if len(text) > SECTOR:
        raise BootStateError("the boot state does not fit into one sector")
    return text.ljust(BLOCK, b"#")


def archive(state: BootState) -> bytes:
    """What the partition begins with: a tar archive (POSIX "ustar") of one file, and the mark of its end."""
    name, numbers = b"grubenv".ljust(100, b"\0"), b"0000644\0" + b"0000000\0" * 2 + b"%011o\0%011o\0" % (BLOCK, 0)
    rest = (b"0" + b"\0" * 100 + b"ustar\0" + b"00").ljust(356, b"\0")
    checksum = sum(name + numbers + b" " * 8 + rest)
    return name + numbers + b"%06o\0 " % checksum + rest + render(state) + b"\0" * 1024


def choose(state: BootState) -> str:
    """The slot that GRUB starts next. A box never stops in GRUB: something is always chosen."""
    able = [name for name in state.order if state.can_boot(name)]
    good = [name for name in state.order if state.slot(name).good]
    return [*able, *good, *state.order][0]


def with_good(state: BootState, name: str) -> BootState:
    return state.changed(name, ok=True, tries=0, good=True)


def with_bad(state: BootState, name: str) -> BootState:
    """Never to be booted: it is about to be overwritten, or has shown that it does not work."""
    return state.changed(name, ok=False, tries=0, good=False)


def with_primary(state: BootState, name: str) -> BootState:
    """To be booted first, with all its tries before it. Whether it was ever good stays as it is."""
    other = next(one for one in state.order if one != name)
    return replace(state.changed(name, ok=True, tries=0), order=(name, other))


# --- the partition ---


def read(device: Path | None = None) -> BootState:
    """Raises BootStateError, also where the box has no such partition (the layered developer image)."""
    with _opened(device, os.O_RDONLY) as handle:
        return parse(os.pread(handle, BLOCK, PLACE))


def mark_good(slot: str, device: Path | None = None) -> BootState:
    """`slot` has come up and does its work."""
    return _change(lambda state: with_good(state, slot), device)


def set_primary(slot: str, device: Path | None = None) -> BootState:
    return _change(lambda state: with_primary(state, slot), device)


def set_state(slot: str, state: str, device: Path | None = None) -> BootState:
    """`state` is "good" or "bad"."""
    try:
        change = {"good": with_good, "bad": with_bad}[state]
    except KeyError:
        raise BootStateError(f"a slot is good or bad, not {state!r}") from None
    return _change(lambda old: change(old, slot), device)


def make(path: Path) -> None:
    """What a freshly built disk has on the partition: slot A, and nothing yet in slot B."""
    path.write_bytes(archive(with_bad(BootState(), "B")))


def running(path: Path | None = None) -> str:
    """The slot that the box runs."""
    try:
        return (path or RUNNING).read_text().strip()
    except OSError as error:
        raise BootStateError(f"nothing says which slot runs: {error}") from None


def _change(change: Callable[[BootState], BootState], device: Path | None) -> BootState:
    with _opened(device, os.O_RDWR | os.O_DSYNC) as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        try:
            old = parse(os.pread(handle, BLOCK, PLACE))
        except BootStateError:
            old = None  # GRUB cannot count in a damaged block: a whole new one is better
        new = change(old or BootState())
        if old is None:
            _write(handle, archive(new), 0)
        elif new != old:
            _write(handle, render(new)[:SECTOR], PLACE)
        return new


def _write(handle: int, data: bytes, place: int) -> None:
    if os.pwrite(handle, data, place) != len(data):
        raise BootStateError("the boot state could not be written")


@contextmanager
def _opened(device: Path | None, flags: int) -> Iterator[int]:
    try:
        handle = os.open(device or DEVICE, flags | os.O_CLOEXEC)
        try:
            yield handle
        finally:
            os.close(handle)
    except OSError as error:
        raise BootStateError(f"the boot state cannot be used: {error}") from None


# --- the command line ---


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bootstate", description="Which slot starts next.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("show", "get-primary", "get-current"):
        verbs.add_parser(verb)
    for verb in ("set-primary", "get-state", "set-state"):
        verbs.add_parser(verb).add_argument("slot", choices=SLOTS)
    verbs.add_parser("new").add_argument("file", type=Path)
    verbs.choices["set-state"].add_argument("state", choices=("good", "bad"))
    asked = parser.parse_args(arguments)
    try:
        answer = ANSWERS[asked.verb](asked)
    except BootStateError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if answer:
        print(answer)
    return 0


def _show(_: argparse.Namespace) -> str:
    return render(read()).decode().rstrip("#\n")


def _get_state(asked: argparse.Namespace) -> str:
    return "good" if read().can_boot(asked.slot) else "bad"


def _set_primary(asked: argparse.Namespace) -> None:
    set_primary(asked.slot)


def _set_state(asked: argparse.Namespace) -> None:
    set_state(asked.slot, asked.state)


ANSWERS: dict[str, Callable[[argparse.Namespace], str | None]] = {
    "show": _show,
    "get-primary": lambda _: choose(read()),
    "get-current": lambda _: running(),
    "get-state": _get_state,
    "new": lambda asked: make(asked.file),
    "set-primary": _set_primary,
    "set-state": _set_state,
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
