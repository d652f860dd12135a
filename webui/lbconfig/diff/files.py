"""What changes from one set of files to the next, line by line."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

CONTEXT = 3  # lines around a change


def unified(old_files: Mapping[str, str], new_files: Mapping[str, str]) -> dict[str, str]:
    """The unified diff of every file that differs, in the order of the names."""
    changed = {}
    for name in sorted({*old_files, *new_files}):
        old, new = old_files.get(name, ""), new_files.get(name, "")
        if old != new or (name in old_files) != (name in new_files):
            changed[name] = "".join(line_diff(old.splitlines(keepends=True), new.splitlines(keepends=True), name))
    return changed


def line_diff(old: list[str], new: list[str], name: str) -> Iterator[str]:
    """As difflib.unified_diff has it, which would look at every line of files that differ in few of very many."""
    begin = _alike(old, new)
    end = min(_alike(old[::-1], new[::-1]), len(old) - begin, len(new) - begin)
    old_end, new_end = len(old) - end, len(new) - end
    between = difflib.SequenceMatcher(None, old[begin:old_end], new[begin:new_end]).get_opcodes()
    whole = difflib.SequenceMatcher(None, "", "")
    # get_opcodes keeps what it found there, and finds it there; the type stubs know only what is documented.
    whole.opcodes = [  # type: ignore[attr-defined]
        *([("equal", 0, begin, 0, begin)] if begin else []),
        *((tag, *(place + begin for place in places)) for tag, *places in between),
        *([("equal", old_end, len(old), new_end, len(new))] if end else []),
    ]
    yield from (f"--- running/{name}\n", f"+++ new/{name}\n")
    for group in whole.get_grouped_opcodes(CONTEXT):
        (_, old_from, _, new_from, _), (_, _, old_to, _, new_to) = group[0], group[-1]
        yield f"@@ -{_range(old_from, old_to)} +{_range(new_from, new_to)} @@\n"
        for tag, old_from, old_to, new_from, new_to in group:
            if tag == "equal":
                yield from (f" {line}" for line in old[old_from:old_to])
            else:
                yield from (f"-{line}" for line in old[old_from:old_to])
                yield from (f"+{line}" for line in new[new_from:new_to])


def _alike(one: list[str], other: list[str]) -> int:
    """How many lines both begin with."""
    for count, (here, there) in enumerate(zip(one, other, strict=False)):
        if here != there:
            return count
    return min(len(one), len(other))


def _range(begin: int, end: int) -> str:
    """Lines as a diff counts them: from 1, and where there are none, the one before."""
    length = end - begin
    return str(begin + 1) if length == 1 else f"{begin + bool(length)},{length}"
