"""Review, apply, discard, and the history that follows from it."""

from __future__ import annotations

import logging
from datetime import datetime

from django.db import transaction
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from applier.wire.client import ApplierRefused, connect
from applier.wire.shapes import UNDER_WAY, ApplyStarted, GenerationEntry, Review
from changes import revisions
from changes.models import Revision
from draft import store as draft
from draft import what_runs
from lbconfig.model.snapshot import Snapshot
from web import backups

log = logging.getLogger(__name__)


def fill_if_empty() -> bool:
    """At the first start the draft becomes what the box runs. Whether it is filled now.

    Raises ApplierDown, ApplierRefused, SnapshotError.
    """
    if not draft.is_filled():
        snapshot = what_runs.current()
        with transaction.atomic():
            if not draft.is_filled():
                draft.replace(snapshot, "")
                log.info("the draft was filled with what the box runs")
    return True


def review(snapshot: Snapshot) -> Review:
    """What the snapshot would change. Raises ApplierDown, ApplierRefused."""
    return connect().check(snapshot)


def apply(
    snapshot: Snapshot, digest: str, base: int | None, user: str, comment: str, client: str,
    confirm_within: int | None = None,
) -> ApplyStarted:  # fmt: skip
    """Start the apply; its id and the secret of its confirmation, as the applier gives them.

    Raises ApplierDown, ApplierRefused.
    """
    what_runs.remember(snapshot)
    answer = connect().apply(snapshot, digest, base, user, comment, client, confirm_within)
    log.info("user %s started to apply a draft with digest %s", user, digest)
    return answer


def discard(user: str) -> None:
    """Back to what runs. Raises ApplierDown, ApplierRefused, SnapshotError."""
    draft.replace(what_runs.current(), user)
    log.info("user %s discarded the draft", user)


def keep_history() -> int:
    """Store every ended generation that is not stored yet; how many these were.

    The applier's own list is the truth; this copy outlives its clean-up and is what a later restore reads.
    Raises ApplierDown, ApplierRefused.
    """
    applier = connect()
    entries = applier.generations()
    stored = set(Revision.objects.values_list("number", flat=True))
    wanted = revisions.wanted(stored | {entry["number"] for entry in entries}) - stored
    added = 0
    for entry in entries:
        if entry["number"] not in wanted or entry["outcome"] in UNDER_WAY:
            continue
        try:
            whole = applier.generation(entry["number"])
        except ApplierRefused as refusal:  # a damaged one is kept in the history without its configuration
            if refusal.code != "damaged-generation":
                raise
            whole = entry | {"text": ""}
        Revision.objects.get_or_create(number=entry["number"], defaults=_columns(whole))
        added += 1
    if added:
        revisions.prune(applier.status()["generation"])
        backups.make()
    return added


def _columns(entry: GenerationEntry) -> dict:
    return {
        "user": entry["user"][:150],
        "comment": entry["comment"][:500],
        "created": _moment(entry["created"]),
        "outcome": entry["outcome"],
        "seconds": entry["seconds"],
        "snapshot": entry["text"],
        "steps": entry["steps"],
    }


def _moment(text: str) -> datetime:
    try:
        return parse_datetime(text) or timezone.now()
    except ValueError:
        return timezone.now()
