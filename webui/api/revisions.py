"""The history: what was applied, two states beside each other, and back into the draft."""

from __future__ import annotations

import logging
from typing import Literal, TypedDict, cast

from django.db import transaction

from api.bodies import CommentRequest
from api.drafts import shown
from api.errors import ApiError, not_found, wrong_field
from api.routes import Answer, Call, tag_of
from applier.wire.client import ApplierDown, ApplierRefused
from applier.wire.shapes import Outcome, StepStatus
from changes import actions, replacing, revisions
from changes.models import Revision
from changes.revisions import Unreadable
from draft import store as draft
from draft import what_runs
from lbconfig.model.snapshot import to_data

log = logging.getLogger(__name__)

MAX_COMMENT = 200  # characters
PAGE = 50


class RevisionEntry(TypedDict):
    number: int
    user: str
    comment: str
    created: str
    outcome: Outcome
    seconds: float | None


class WholeRevision(RevisionEntry):
    steps: list[StepStatus]
    snapshot: dict | None  # null: it could not be read any more


class ChangedObject(TypedDict):
    kind: Literal["added", "changed", "removed"]
    object: str
    sentences: list[str]


class Compared(TypedDict):
    """From `old` to `new`: in words by object, and as a unified diff by rendered file."""

    old: str
    new: str
    changes: list[ChangedObject]
    diff: dict[str, str]  # only the files that differ
    unrendered: str  # why there are no files; empty: there are


def listed(call: Call) -> Answer:
    keep_history()
    rows = Revision.objects.defer("snapshot", "steps")
    if "before" in call.query:
        rows = rows.filter(number__lt=call.query["before"])
    return Answer([_entry(row) for row in rows[: call.query.get("limit", PAGE)]])


def get(call: Call) -> Answer:
    row = _revision(call)
    try:
        snapshot = shown(revisions.of_revision(row).snapshot, call)
    except Unreadable:
        snapshot = None
    whole: WholeRevision = {**_entry(row), "steps": row.steps, "snapshot": snapshot}
    return Answer(whole)


def compare(call: Call) -> Answer:
    keep_history()
    keys = [call.query.get("old", revisions.RUNNING), call.query.get("new", revisions.DRAFT)]
    running = what_runs.current() if revisions.RUNNING in keys else None
    try:
        old, new = (revisions.side(key, running) for key in keys)
    except Unreadable as error:
        raise ApiError(404, "not-found", str(error)) from None
    found = revisions.compare(old, new)
    answer: Compared = {
        "old": old.title,
        "new": new.title,
        "changes": [
            {"kind": one.kind, "object": one.object, "sentences": list(one.sentences)} for one in found.changes
        ],
        "diff": {file.path: "".join(f"{line.text}\n" for line in file.lines) for file in found.files},
        "unrendered": found.unrendered,
    }
    return Answer(answer)


def comment(call: Call) -> Answer:
    """A comment that was forgotten, or wrong."""
    wanted: CommentRequest = call.body
    if len(wanted.comment) > MAX_COMMENT:
        raise wrong_field("request", "comment", f"must not be longer than {MAX_COMMENT} characters")
    row = _revision(call)
    if wanted.comment != row.comment:
        revisions.correct(row, wanted.comment, call.caller.name)
    return Answer(_entry(row))


def restore(call: Call) -> Answer:
    """Into the draft; nothing runs until it is applied."""
    try:
        new = revisions.of_revision(_revision(call)).snapshot
    except Unreadable as error:
        raise ApiError(409, "unreadable", str(error)) from None
    with transaction.atomic():
        call.match(tag_of(to_data(draft.current())))
        replacing.replace(new, draft.counter(), call.caller.name)
        data = to_data(draft.current())
    return Answer(data, headers={"ETag": tag_of(data)})


def keep_history() -> None:
    try:
        actions.keep_history()
    except (ApplierDown, ApplierRefused) as error:  # what is stored can be told anyway
        log.warning("the newest revisions are not in the history yet: %s", error)


def _revision(call: Call) -> Revision:
    keep_history()
    row = Revision.objects.filter(number=call.values["number"]).first()
    if row is None:
        raise not_found(f"revision {call.values['number']}")
    return row


def _entry(row: Revision) -> RevisionEntry:
    return {
        "number": row.number,
        "user": row.user,
        "comment": row.comment,
        "created": row.created.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "outcome": cast(Outcome, row.outcome),  # as the applier had it
        "seconds": row.seconds,
    }
