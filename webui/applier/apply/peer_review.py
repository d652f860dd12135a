"""What the other box of a pair says to a change before it is applied: it checks its own part with its own cards.

With a review of one box alone, what only the other one refuses is found in the middle of an apply.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from applier.apply.review import parse, problems
from applier.pair.errands import Errands
from applier.wire.errors import ApplierRefused
from applier.wire.shapes import Problem, Review
from lbconfig.agreement_lines import DIGEST
from lbconfig.model import canonical
from lbconfig.model.snapshot import Snapshot
from lbconfig.pair import sides
from lbconfig.render import files_digest, render
from lbconfig.target import Target
from lbconfig.validate.cards import Card

WITHIN = 30.0  # seconds that it may take; a thousand services take some on a small box
MOST = 100  # problems that are taken
LONGEST = 1000  # characters of a text
FIELDS = ("object", "field", "message", "path")


class Core(Protocol):
    """What of the daemon it needs."""

    running: Target
    errands: Errands

    def leases(self) -> Mapping[str, str]: ...

    def cards(self) -> Sequence[Card]: ...

    def key(self) -> str: ...


class PeerReview:
    def __init__(self, core: Core) -> None:
        self._core = core

    def peer_check(self, snapshot: dict[str, object], services: Sequence[object] = ()) -> dict[str, object]:
        """What this box says to a configuration that the other one reviews."""
        core, new = self._core, parse(snapshot, services)
        found = problems(new, core.running.snapshot, core.leases(), core.cards(), core.key())
        return {"problems": found[:MOST], "files": "" if found else files_digest(render(new))}

    def both(self, new: Snapshot, found: Review) -> Review:
        """The review of this box, with what the other one says. One that this box refuses is not shown to that one."""
        running = self._core.running
        here = sides(running.own) if running.in_pair else None
        if here is None or new.pair is None or found["problems"]:
            return found
        name, own = here.peer.name, here.own.name
        return asked(found, name, own, lambda: self._ask(new))

    def _ask(self, new: Snapshot) -> dict[str, Any]:
        """The services that both boxes run are told by their names, unless the other one does not know them."""
        core = self._core
        for known in (core.running.snapshot, None):
            named, services = canonical.parted(new, known)
            try:
                return core.errands.ask("peer_check", {"snapshot": named, "services": services}, WITHIN)
            except ApplierRefused as refused:
                if refused.code != "unknown-snapshot" or known is None:
                    raise
        raise AssertionError


def asked(found: Review, name: str, own: str, ask: Callable[[], dict[str, Any]]) -> Review:
    """A review with the other box's answer in it."""
    try:
        there, files = _read(ask())
    except ApplierRefused as refused:
        return found | {"other_box": f"{name} was not asked: {refused.message}"}
    except ValueError as error:
        return found | {"other_box": f"{name} was not asked: its answer is wrong ({error})."}
    if not there and files != found["digest"]:
        message = f"makes other files of this configuration than {own}; update both boxes to the same version"
        there = [{"object": f"the software of {name}", "field": "version", "message": message, "path": ""}]
    elif there:
        there = [one | {"object": f"{one['object']} ({name})"} for one in there]
    else:
        return found
    return found | {"problems": there, "digest": "", "diff": {}, "changes": [], "reach": None, "impact": None}


def _read(answer: Mapping[str, Any]) -> tuple[list[Problem], str]:
    """Its problems, and the digest of the files that it makes. ValueError where it is nothing of the kind."""
    there, files = answer.get("problems"), answer.get("files")
    if not isinstance(there, list) or len(there) > MOST:
        raise ValueError(f"problems: must be a list of at most {MOST}")
    if not isinstance(files, str) or not (files == "" or DIGEST.fullmatch(files)):
        raise ValueError("files: must be 64 hexadecimal digits, or empty")
    return [_problem(one) for one in there], files


def _problem(data: object) -> Problem:
    if not isinstance(data, dict) or set(data) != set(FIELDS):
        raise ValueError(f"problems: each must have {', '.join(FIELDS)}")
    for field in FIELDS:
        text = data[field]
        if not isinstance(text, str) or len(text) > LONGEST or not text.isprintable():
            raise ValueError(f"problems: {field}: must be a text of at most {LONGEST} characters")
    return {"object": data["object"], "field": data["field"], "message": data["message"], "path": data["path"]}
