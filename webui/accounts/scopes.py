"""What a token may do, in words. Each scope stands for itself; those that change something need `read` with it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

Scope = Literal["read", "change", "apply", "update", "admin", "backup", "reset"]

SCOPES: dict[Scope, tuple[str, str]] = {
    "read": ("Read", "See the configuration, the state and the history; passwords in it are hidden."),
    "change": ("Change the draft", "Edit what an admin edits. Nothing runs until it is applied."),
    "apply": (
        "Apply and operate",
        "Make the box run the draft; drain, halt and resume real servers at once; install updates and restart.",
    ),
    "update": (
        "Install updates",
        "Install a version that the box's maker signed, no older one, and restart into it. Nothing else.",
    ),
    "admin": (
        "Administer",
        "Make and revoke tokens of your own; none may do more than this one. Go back to an older version. "
        "Together with “change”: bring programs for health checks, which run on the box.",
    ),
    "backup": ("Take backup files", "Take the whole box away in a file: users, keys, passwords of health checks."),
    "reset": ("Reset", "Make the box forget everything that was set up on it."),
}
WITH_READ: frozenset[Scope] = frozenset({"change", "apply", "admin"})


def completed(scopes: Iterable[str]) -> list[Scope]:
    """In the order of the table, with `read` where one of them needs it."""
    wanted = set(scopes)
    if wanted & WITH_READ:
        wanted.add("read")
    return [scope for scope in SCOPES if scope in wanted]
