"""Whether a box of a pair may lead yet. Pure.

A box that leads before its table is loaded, or before its servers were checked, serves nobody; and one that has just
been started should know the other box's connections before it takes over.
"""

from __future__ import annotations

from typing import NamedTuple

NOT_YET = "not ready yet"  # why a box is held after its start
CHECKS = 10.0  # seconds after which a first round of checks is waited for no longer
SILENT = 3.0  # seconds without a word over the link, after which there is no other box
MUTE = 20.0  # seconds that a link may work without the other box saying what it runs


class Seen(NamedTuple):
    """What is known of this box and of the other one."""

    loaded: bool  # what runs is what was confirmed, and its rules are those of the firewall
    checked: bool  # every server was checked once, or none is
    daemons: bool  # connections are told and taken
    waited: float  # seconds since the box was held
    silent: float  # seconds since the link last brought anything
    told: bool  # the other box has said what it runs
    behind: bool  # the other box has confirmed more than this one


def missing(seen: Seen) -> str:
    """What the box waits for, in words; empty: it may lead."""
    if not seen.loaded:
        return "the confirmed configuration does not run yet"
    if not seen.daemons:
        return "connections are not synchronised yet"
    if not seen.checked and seen.waited < CHECKS:
        return "its servers have not been checked yet"
    if seen.silent >= SILENT:
        return ""
    if not seen.told:
        if seen.waited < SILENT:
            return "the other box may be about to speak"
        return "" if seen.waited >= MUTE else "the other box has not said what it runs"
    return "the other box has a newer configuration" if seen.behind else ""
