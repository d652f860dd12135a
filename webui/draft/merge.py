"""Two admins, one object: what each of them changed, field by field.

Values are flat: {"scheduler": "lc", "server 7 weight": "2"}; as text, the way a form shows them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from django.utils import timezone
from django.utils.formats import date_format, time_format

Values = Mapping[str, str]


@dataclass
class Merged:
    values: dict[str, str]  # what the form shows now
    taken: dict[str, str] = field(default_factory=dict)  # theirs; this admin had not touched them
    clashes: dict[str, str] = field(default_factory=dict)  # theirs; this admin entered something else


def merge(base: Values, mine: Values, theirs: Values) -> Merged:
    """Keep what this admin entered; take over what only the other one changed."""
    merged = Merged(dict(mine))
    for name, value in theirs.items():
        if value == mine.get(name) or value == base.get(name):
            continue
        if mine.get(name) == base.get(name):
            merged.values[name] = value
            merged.taken[name] = value
        else:
            merged.clashes[name] = value
    return merged


def pack(values: Values) -> str:
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


def unpack(text: str) -> dict[str, str]:
    """What pack() made; a form that was tampered with only loses the comparison."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(data, dict):
        return {}
    return {name: value for name, value in data.items() if isinstance(value, str)}


def changed_to(who: str) -> str:
    """How the sentence beside a field begins that somebody else has changed meanwhile."""
    return f"{who} changed this to"


def saved_meanwhile(who: str, what: str, when: str) -> str:
    """Above a form that somebody else was quicker to save."""
    return f"{who} saved this {what} {when}, after you had opened it. Nothing of yours is saved yet."


def who_and_when(row, user: str) -> tuple[str, str]:
    """("alice", "at 22:41 UTC") or ("You", "in another window at 22:41 UTC")."""
    moment = ""
    if row.changed_at:
        same_day = row.changed_at.date() == timezone.now().date()
        at = time_format(row.changed_at, "TIME_FORMAT")
        moment = f"at {at} UTC" if same_day else f"on {date_format(row.changed_at, 'DATE_FORMAT')} at {at} UTC"
    if row.changed_by == user:
        return "You", f"in another window {moment}".strip()
    return row.changed_by or "Somebody", moment
