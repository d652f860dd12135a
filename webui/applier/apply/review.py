"""What a snapshot would change, and whether it may be applied. The daemon and the fake share it: no I/O but a clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from applier.kept.page_key import changed_problems
from applier.wire import shapes
from applier.wire.errors import ApplierRefused
from applier.wire.shapes import (
    FallbackStatus,
    FreeCard,
    Impact,
    MissingCard,
    Reach,
    RealServerStatus,
    Review,
    RunningStatus,
    ServiceImpact,
)
from lbconfig.diff import impact
from lbconfig.diff import services as diff
from lbconfig.diff.cutoff import cutoff
from lbconfig.diff.files import unified
from lbconfig.model import canonical
from lbconfig.model.kept import Reading, Unknown
from lbconfig.model.problem import Problem
from lbconfig.model.snapshot import Snapshot, SnapshotError
from lbconfig.pair import keyed, view
from lbconfig.render import files_digest, render
from lbconfig.validate import cards
from lbconfig.validate.cards import Card
from lbconfig.validate.pair import membership_problems
from lbconfig.validate.reach import access_problem
from lbconfig.validate.services import lease_problems, validate

NO_LEASES: Mapping[str, str] = {}


_reading = Reading()


def missing(names: list[str]) -> list[str]:
    """The services that have to be sent whole: none of these names is that of one that was read a moment ago."""
    return _reading.missing(names)


def parse(data: object, services: Sequence[object] = ()) -> Snapshot:
    """The snapshot of a request, or the digest of one that was read a moment ago.

    Instead of a service it may have its name, with the service itself in `services` where it is `missing`.
    One of a wrong shape is refused, naming the path of what is wrong.
    """
    if isinstance(data, str):
        found = next((one for one in _reading.recent if canonical.digest(one) == data), None)
        if found is None:
            raise ApplierRefused("unknown-snapshot", "The applier does not know this snapshot; send all of it.")
        return found
    try:
        return _reading(data, services)
    except Unknown:
        raise ApplierRefused(
            "unknown-snapshot", "The applier does not know a service of this snapshot; send all of it."
        ) from None
    except SnapshotError as error:
        field = error.path.rpartition(".")[2]
        problem = Problem("snapshot", field, error.message, error.path)
        words = f"The snapshot cannot be read: {error}."
        raise ApplierRefused("bad-snapshot", words, [shapes.of_problem(problem)]) from None


def review(
    new: Snapshot,
    running: Snapshot,
    base: int | None,
    leases: Mapping[str, str] = NO_LEASES,
    seen: RunningStatus | None = None,
    present: Sequence[Card] = (),
    key: str = "",
) -> Review:
    """What the change does.

    `leases`: interface to the address that DHCP brought; `seen`: what the kernel's table says; None: unreadable.
    `present`: the interfaces that the box has; none where they cannot be read. `key`: by which a pair knows the box.
    """
    found = problems(new, running, leases, present, key)
    own = _own(new, key)
    lacking = cards.missing(own.network, present) if present else ()
    missing_cards: list[MissingCard] = [{"name": one.name, "sentence": one.sentence} for one in lacking]
    spare = cards.free(own, present) if lacking else ()
    free_cards: list[FreeCard] = [{"name": card.name, "about": card.about} for card in spare]
    if found:
        return {
            "problems": found,
            "digest": "",
            "snapshot": canonical.digest(new),
            "diff": {},
            "changes": [],
            "base": base,
            "reach": None,
            "impact": None,
            "missing_cards": missing_cards,
            "free_cards": free_cards,
            "other_box": "",
        }
    files = render(new)
    hit = impact.impact(running, new, _live(running, seen)) if seen is not None else None
    return {
        "problems": [],
        "digest": files_digest(files),
        "snapshot": canonical.digest(new),
        "diff": dict(unified(render(running), files)),
        "changes": [_change(change, hit) for change in diff.summary(running, new)],
        "base": base,
        "reach": _reach(running, new),
        "impact": _impact(hit) if hit else None,
        "missing_cards": missing_cards,
        "free_cards": free_cards,
        "other_box": "",
    }


def _change(change: diff.Change, hit: impact.Impact | None) -> shapes.Change:
    """What is counted is told in numbers."""
    counted: dict[int | None, str] = {service.id: service.sentence for service in hit.services} if hit else {}
    return {
        "kind": change.kind,
        "object": change.object,
        "sentences": list(change.sentences),
        "impact": counted.get(change.service) or change.impact or None,
    }


def _live(running: Snapshot, seen: RunningStatus) -> impact.Live:
    """The kernel calls every exchange of UDP inactive; of TCP, those that are being opened or closed.

    Of a service by both nobody can tell them apart, so all of them count: rather some too many than none of UDP's.
    """
    by_udp = {service.id for service in running.services if "udp" in service.protocol.parts}
    live = {}
    for service in seen["services"]:
        entries: dict[int, RealServerStatus | FallbackStatus] = {one["id"]: one for one in service["real_servers"]}
        if service["fallback"]:
            entries[impact.FALLBACK] = service["fallback"]
        both = service["id"] in by_udp
        live[service["id"]] = {
            key: entry["active"] + (entry["inactive"] if both else 0) for key, entry in entries.items()
        }
    return live


def _impact(hit: impact.Impact) -> Impact:
    services: list[ServiceImpact] = [
        {
            "id": one.id,
            "name": one.name,
            "kept": one.kept,
            "closed": one.closed,
            "refused": one.refused,
            "sentence": one.sentence,
        }
        for one in hit.services
    ]
    return {"kept": hit.kept, "closed": hit.closed, "sentence": hit.sentence, "services": services}


def _reach(running: Snapshot, new: Snapshot) -> Reach:
    found = cutoff(running, new)
    return {"reasons": list(found.reasons), "addresses": list(found.addresses), "dhcp": list(found.dhcp)}


def admit(
    new: Snapshot,
    running: Snapshot,
    digest: str,
    base: int | None,
    confirmed: int | None,
    client: str,
    leases: Mapping[str, str] = NO_LEASES,
    present: Sequence[Card] = (),
    key: str = "",
) -> dict[str, str]:
    """The files of a snapshot that may be applied, of a pair those of both boxes; or ApplierRefused with the reason."""
    found = problems(new, running, leases, present, key)
    if found:
        raise ApplierRefused("problems", f"The configuration has {_count(found)}.", found)
    if base != confirmed:
        raise ApplierRefused(
            "base-moved",
            f"Meanwhile {_generation(confirmed)} was applied; the changes were reviewed against "
            f"{_generation(base)}. Review them again.",
        )
    files = render(new)
    if files_digest(files) != digest:
        raise ApplierRefused(
            "digest-mismatch", "The files to apply are not those that were reviewed. Review the changes again."
        )
    # A way to him that is lost is no reason: such a change waits to be confirmed, and goes back by itself.
    problem = access_problem(new, client) if client else None
    if problem is not None:
        raise ApplierRefused(
            "lock-out",
            f"You could no longer reach this page: {problem}.",
            [shapes.of_problem(problem)],
        )
    return files


def problems(
    new: Snapshot, running: Snapshot, leases: Mapping[str, str], present: Sequence[Card], key: str
) -> list[shapes.Problem]:
    """Why this box would not apply it; empty: nothing is wrong with it."""
    found = validate(new) or [
        *membership_problems(new, key),
        *lease_problems(new, leases),
        *changed_problems(new, running),
        *(cards.problems(_own(new, key), _own(running, key), present) if present else ()),
    ]
    return [shapes.of_problem(problem) for problem in found]


def _own(snapshot: Snapshot, key: str) -> Snapshot:
    """As the box with this key has it; without a network where it is that of a pair which the box is not in."""
    box = keyed(snapshot, key)
    return snapshot if box is None else view(snapshot, box)


def _count(problems: Sequence[shapes.Problem]) -> str:
    return "one problem" if len(problems) == 1 else f"{len(problems)} problems"


def _generation(number: int | None) -> str:
    return "the factory configuration" if number is None else f"revision {number}"
