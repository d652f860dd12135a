"""Users, draft and history of a pair: what one box has goes along to the other one, so that the desk may move.

The web process owns the database and the applier talks with the other box, so this thread stands between: it tells
the applier stamps of what is here, gives it the documents that the other box wants, and takes those that are newer
there (docs/decisions/0108). Nothing older ever replaces anything newer.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from django.db import DatabaseError, connection, transaction

from accounts import along, ledger
from applier.wire.client import ApplierDown, ApplierRefused, Client, connect
from applier.wire.shapes_pair import AlongState
from changes import actions, copies
from changes.models import Revision, SetAside
from draft import copies as drafts
from draft import store as draft
from draft import what_runs
from draft.copies import Stamp
from lbconfig import migrate
from lbconfig.model.snapshot import SCHEMA, Snapshot, SnapshotError
from system.models import Together

log = logging.getLogger(__name__)

ONLY_ROW = 1
EVERY = 2.0  # seconds
ALONE = 10.0  # the same, as long as the box is in no pair
FORMAT = f"1:{SCHEMA}"  # of these documents, and of what a draft is made of
USERS, DRAFT, HISTORY, REVISION = "users", "draft", "history", "revision"
AT_ONCE = 4  # revisions that are brought in one round: each may have megabytes
LATELY = 10  # revisions among which a draft is looked for that nobody has edited
AGAIN = 60.0  # seconds until a document that could not be taken is asked for once more: it may have megabytes


@dataclass(frozen=True)
class Unfit:
    """A document of the other box that could not be taken."""

    stamp: str
    why: str
    at: float  # time.monotonic()


@dataclass
class Seen:
    """What this process knows of the rounds before."""

    paired: bool = False
    desk: bool | None = None  # whether this box was the desk
    revision: int | None = None  # that ran when the history was written last
    history: str = ""  # the stamp of the other box's that was read last
    users: str = ""
    unfit: dict[str, Unfit] = field(default_factory=dict)  # by the document's name
    trouble: str = ""
    told: str = ""  # in the log


def watch() -> None:
    """For ever; in a thread of its own."""
    seen = Seen()
    while True:
        try:
            seen = turn(connect(), seen)
        except (ApplierDown, ApplierRefused) as error:
            log.debug("the pair: %s", error)  # every page says so
        # The next round may work; nobody else would start this thread again.
        except Exception:
            log.exception("nothing went along in the pair")
        finally:
            connection.close()
        time.sleep(EVERY if seen.paired else ALONE)


def turn(applier: Client, seen: Seen) -> Seen:
    """One round. Raises ApplierDown, ApplierRefused."""
    try:
        state = applier.pair_along(_stamps() if seen.paired else {}, seen.trouble)
        seen.paired = bool(state["pair"])
        if not seen.paired:
            _part()
            return Seen()
        for name in state["wanted"]:
            if (found := _text(name)) is not None:
                applier.pair_offer(name, found)
        if state["revision"] != seen.revision:  # also where nobody opens a page: the other box may ask for it
            actions.keep_history()
            seen.revision = state["revision"]
        trouble = _take(applier, state, state["theirs"], seen) if state["theirs"] is not None else ""
        seen.desk, seen.trouble = state["desk"], trouble or _set_aside()
    except (DatabaseError, OSError, ValueError) as error:
        words = " ".join(str(error).split())
        seen.trouble = f"Users, draft and history of the pair do not go along: {words}"[:400]
    if seen.trouble != seen.told:
        log.warning("the pair: %s", seen.trouble or "all goes along again")
        seen.told = seen.trouble
    return seen


# --- what is here ------------------------------------------------------------------------------------------


def _stamps() -> dict[str, str]:
    found = ledger.load() or ledger.Ledger()
    row = Together.objects.filter(pk=ONLY_ROW).first()
    return {
        "format": FORMAT,
        "pair": row.pair if row else "",
        USERS: f"{found.number}:{copies.stamp(found.to_json())}",
        DRAFT: str(drafts.stamp()) if draft.is_filled() else "",
        HISTORY: copies.stamp(copies.text()),
    }


def _users() -> str:
    return (ledger.load() or ledger.Ledger()).to_json()


def _text(name: str) -> str | None:
    """A document that the other box wants; None: there is none of that name."""
    kind, _, number = name.partition(" ")
    if kind == REVISION and number:
        return copies.whole(int(number))
    texts: dict[str, Callable[[], str]] = {
        USERS: _users,
        DRAFT: drafts.text,
        HISTORY: copies.text,
    }
    return texts[name]() if name in texts else None


# --- what is there -----------------------------------------------------------------------------------------


def _take(applier: Client, state: AlongState, theirs: dict[str, str], seen: Seen) -> str:
    """What is newer at the other box; why nothing goes along, "": it does."""
    other = state["other"]
    if "format" not in theirs:  # its web pages are being started
        return ""
    if theirs["format"] != FORMAT:
        return (
            f"Users, draft and history do not go along with {other}, which has another version of the software. "
            "Update both boxes to the same version."
        )
    row, _ = Together.objects.get_or_create(pk=ONLY_ROW, defaults={"pair": ""})
    here, there = row.pair == state["pair"], theirs.get("pair") == state["pair"]
    if not here and not there and state["box"] == 0:
        Together.objects.filter(pk=ONLY_ROW).update(pair=state["pair"], draft="")
        return ""
    if not there:  # it has to take what is here first
        return ""
    agreed = Stamp.read(row.draft) if here else None
    try:
        has_users = _is_taken(USERS, theirs, seen, lambda: _take_users(applier, theirs, seen, whole=not here))
        has_draft = _is_taken(
            DRAFT, theirs, seen, lambda: _take_draft(applier, state, theirs, seen, agreed, first=not here)
        )
        if has_users and has_draft and not here:
            Together.objects.filter(pk=ONLY_ROW).update(pair=state["pair"])
        _is_taken(HISTORY, theirs, seen, lambda: _take_history(applier, theirs, seen))
    except ApplierRefused as error:
        if error.code != "peer-away":
            return f"Users, draft and history do not go along with {other}: {error}"
    return ""


def _is_taken(name: str, theirs: dict[str, str], seen: Seen, take: Callable[[], None]) -> bool:
    """False: the other box has still to put the document there, which it does by the next round.

    Raises ValueError where it cannot be taken, in the rounds after that without asking for it.
    """
    stamp, known = theirs.get(name, ""), seen.unfit.get(name)
    if known is not None and known.stamp != stamp:
        known = None
    if known is not None and time.monotonic() - known.at < AGAIN:
        raise ValueError(known.why)
    try:
        take()
    except ApplierRefused as error:
        if error.code != "not-offered":
            raise
        if known is not None:
            raise ValueError(known.why) from None
        return False
    except ValueError as error:
        seen.unfit[name] = Unfit(stamp, str(error), time.monotonic())
        raise
    seen.unfit.pop(name, None)
    return True


def _take_users(applier: Client, theirs: dict[str, str], seen: Seen, whole: bool) -> None:
    if theirs.get(USERS) == seen.users and not whole:
        return
    text = applier.pair_bring(USERS)["text"]
    found = ledger.read(text)
    if any(one.active for one in found.users):
        join = along.instead if whole else along.together
        if ledger.become(lambda mine: join(mine, found)):
            log.info("users and tokens of the other box of the pair were brought here")
    elif any(one.active for one in (ledger.load() or ledger.Ledger()).users):  # else nobody has set up either box
        raise SnapshotError("users", "has nobody who may log in")
    seen.users = f"{found.number}:{copies.stamp(text)}"


def _take_draft(
    applier: Client, state: AlongState, stamps: dict[str, str], seen: Seen, agreed: Stamp | None, first: bool
) -> None:
    """`first`: this box has just come into the pair, so what was edited here before belongs to no draft of it."""
    theirs = Stamp.read(stamps.get(DRAFT, ""))
    if theirs is None or not draft.is_filled():
        return
    mine = drafts.stamp()
    step = drafts.step(mine, theirs, agreed, desk=state["desk"] and not first)
    if step == "same":
        _agree(mine, theirs, agreed)
    elif step == "wait":
        # What was edited here is newer, whatever the counters of two boxes say.
        if agreed is not None and mine.digest != agreed.digest and mine.counter <= theirs.counter:
            drafts.move_counter(theirs.counter + 1)
    elif step == "take":
        _become(drafts.read(applier.pair_bring(DRAFT)["text"]), mine, state["other"])
    elif not first and state["desk"] != seen.desk:
        pass  # the lead is moving; the two must not give way to each other
    elif step == "set aside mine":
        document = drafts.read(applier.pair_bring(DRAFT)["text"])
        if not _in_history(draft.current()):
            copies.set_aside(mine.digest, state["own"], draft.current())
        _become(document, mine, state["other"])
    elif not SetAside.objects.filter(digest=theirs.digest).exists():
        document = drafts.read(applier.pair_bring(DRAFT)["text"])
        copies.set_aside(theirs.digest, state["other"], drafts.snapshot_of(document))


def _become(document: drafts.Document, mine: Stamp, other: str) -> None:
    if drafts.take(document, mine):
        taken = drafts.stamp()
        _agree(taken, taken, None)
        log.info("the draft of %s was brought here", other)


def _agree(mine: Stamp, theirs: Stamp, agreed: Stamp | None) -> None:
    """Both have it."""
    both = Stamp(max(mine.counter, theirs.counter), mine.digest)
    if mine.counter < both.counter:
        drafts.move_counter(both.counter)
    if both != agreed:
        Together.objects.filter(pk=ONLY_ROW).update(draft=str(both))


def _take_history(applier: Client, theirs: dict[str, str], seen: Seen) -> None:
    if theirs.get(HISTORY) == seen.history:
        return
    text = applier.pair_bring(HISTORY)["text"]
    missing = copies.take(text)
    for number in missing[:AT_ONCE]:
        copies.put(applier.pair_bring(f"{REVISION} {number}")["text"])
    if len(missing) <= AT_ONCE:
        seen.history = copies.stamp(text)


def _part() -> None:
    """The box is in no pair any more: its draft has none either. Raises ApplierDown, ApplierRefused, ValueError."""
    if not Together.objects.exists() or not draft.is_filled():
        return
    running, now = what_runs.current(), draft.current()
    with transaction.atomic():
        if running.pair is None and now.pair is not None:
            if not _in_history(now):
                copies.set_aside(drafts.stamp().digest, running.network.hostname, now)
            draft.replace(running, "pair")
        Together.objects.all().delete()


def _in_history(snapshot: Snapshot) -> bool:
    """Whether it was applied lately, so that nothing is lost with it."""
    for row in Revision.objects.filter(outcome="confirmed").exclude(snapshot="")[:LATELY]:
        try:
            if draft.same(migrate.read(row.snapshot), snapshot):
                return True
        except SnapshotError:
            continue
    return False


def _set_aside() -> str:
    """A sentence where a draft waits for an admin to look at it."""
    found = SetAside.objects.exclude(snapshot="").first()
    if found is None:
        return ""
    return (
        f"The draft was edited on both boxes while they were apart. The one of {found.hostname} was not taken; "
        "it is kept on the page Pair."
    )
