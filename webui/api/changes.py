"""Review, apply, follow, confirm."""

from __future__ import annotations

from typing import TypedDict

from api.bodies import ApplyRequest
from api.drafts import read_snapshot
from api.errors import ApiError, not_found, wrong_field
from api.revisions import MAX_COMMENT, keep_history
from api.routes import Answer, Call
from applier.wire.client import connect
from applier.wire.shapes import ENDED, RunStatus
from changes import actions, arrival, diffs
from draft import store as draft
from lbconfig.diff.cutoff import LONGEST, SHORTEST
from lbconfig.model.snapshot import Snapshot

NOT_SHOWN = ("snapshot",)  # of a review: a name for it that the applier alone knows


class ApplyStarted(TypedDict):
    apply: str  # follow it at /applies/{apply}


class ApplyBegun(ApplyStarted):
    secret: str  # opens /confirm/{secret}/ for a browser without a log-in; "": nothing has to be confirmed
    confirm_within: int  # seconds; 0: nothing has to be confirmed


def review(call: Call) -> Answer:
    return _review(draft.current())


def check(call: Call) -> Answer:
    return _review(read_snapshot(call.body))


def _review(snapshot: Snapshot) -> Answer:
    found = actions.review(snapshot)
    shown = {name: value for name, value in found.items() if name not in NOT_SHOWN}
    return Answer(shown | {"diff": {path: diffs.SECRET.sub(r'\1="…"', text) for path, text in found["diff"].items()}})


def apply(call: Call) -> Answer:
    wanted: ApplyRequest = call.body
    if len(wanted.comment) > MAX_COMMENT:
        raise wrong_field("request", "comment", f"must not be longer than {MAX_COMMENT} characters")
    if len(wanted.digest) != 64:
        raise wrong_field("request", "digest", "must be the digest that the review gave, 64 characters")
    if wanted.base is not None and not 1 <= wanted.base <= 10**9:
        raise wrong_field("request", "base", "must be the base that the review gave")
    if wanted.confirm_within is not None and not SHORTEST <= wanted.confirm_within <= LONGEST:
        raise wrong_field("request", "confirm_within", f"must be {SHORTEST} to {LONGEST} seconds, or null")
    begun: ApplyBegun = actions.apply(
        draft.current(), wanted.digest, wanted.base, call.caller.name, wanted.comment, call.caller.address,
        wanted.confirm_within,
    )  # fmt: skip
    return Answer(begun, 202, {"Location": f"/api/v1/applies/{begun['apply']}"})


def started(apply: str) -> Answer:
    answer: ApplyStarted = {"apply": apply}
    return Answer(answer, 202, {"Location": f"/api/v1/applies/{apply}"})


def progress(call: Call) -> Answer:
    run = _run(call)
    if run["state"] in ENDED:
        keep_history()
    return Answer(run)


def confirm(call: Call) -> Answer:
    """Only a connection that is younger than the change proves that the box can be reached as it is now."""
    run = _run(call)
    if run["state"] == "waiting" and arrival.must_wait(call.request, run):
        text = "This connection is not younger than the change, and proves nothing: make a new one, and ask again."
        raise ApiError(409, "old-connection", text)
    return Answer(connect().confirm(run["id"], "", call.caller.name))


def roll_back(call: Call) -> Answer:
    return Answer(connect().roll_back(_run(call)["id"], "", call.caller.name))


def _run(call: Call) -> RunStatus:
    run = connect().progress()
    if run is None or run["id"] != call.values["apply"]:
        raise not_found("such apply any more: the box remembers the last one, the history has the others")
    return run
