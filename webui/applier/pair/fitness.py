"""Which of two boxes is fitter to lead, and when that is reason enough to hand over. Pure.

What a box lacks is compared, so that the boxes need not have the same cards. A network that comes and goes must not
move the roles with it: the peer has to be fitter for a while, without a break, and the leading box must have led for
minutes. Only a box that cannot serve at all hands over at once (decision 96).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

EVERY = 2.0  # seconds between two looks
SHOWN = 3  # names in a sentence


class Lacks(NamedTuple):
    """What a box lacks; compared from the first to the last, and less is fitter."""

    able: int = 0  # 1: it cannot serve at all
    links: int = 0
    gateways: int = 0
    services: int = 0


@dataclass(frozen=True, slots=True)
class Observed:
    """What a box has seen of itself. Where nothing is wrong, all is empty."""

    unable: str = ""  # why it cannot serve at all
    links: tuple[str, ...] = ()  # interfaces without a carrier
    gateways: tuple[str, ...] = ()  # addresses that do not answer
    services: tuple[str, ...] = ()  # names of those without a live server

    @property
    def lacks(self) -> Lacks:
        return Lacks(int(bool(self.unable)), len(self.links), len(self.gateways), len(self.services))


class Limits(NamedTuple):
    """All in seconds."""

    steady: float = 8.0  # so long the peer is fitter before the box hands over
    links: float = 2.0  # the same where a link makes the difference
    apart: float = 300.0  # so long a box leads before it hands over for less than being unable
    gap: float = 6.0  # between two looks: after more, nobody knows what was in between


USUAL = Limits()


@dataclass(frozen=True, slots=True)
class Course:
    """What was so without a break, and since when; on CLOCK_BOOTTIME. None: it is not so."""

    seen: float = 0.0
    fitter: float | None = None  # the peer is fitter
    linked: float | None = None  # … by its links, or because this box is unable
    able: float | None = None  # the peer is able


def after(course: Course, now: float, own: Lacks, peer: Lacks | None, limits: Limits = USUAL) -> Course:
    """The course once these were seen, too. `peer`: None unless it is ready to lead."""
    if peer is None:
        return Course(now)
    known = course if now - course.seen <= limits.gap else Course()

    def since(so: bool, before: float | None) -> float | None:
        return None if not so else now if before is None else before

    return Course(
        now,
        since(peer < own, known.fitter),
        since(peer[:2] < own[:2], known.linked),
        since(not peer.able, known.able),
    )


def due(course: Course, own: Lacks, leads_since: float, limits: Limits = USUAL) -> bool:
    """Whether the box hands over, which has led since then."""
    now = course.seen

    def for_long(since: float | None, seconds: float) -> bool:
        return since is not None and now - since >= seconds

    if own.able:
        # A peer that was unable as well a moment ago would hand back at once.
        return for_long(course.able, limits.steady)
    if now - leads_since < limits.apart:
        return False
    return for_long(course.fitter, limits.steady) or for_long(course.linked, limits.links)


def reason(own: Lacks, peer: Lacks) -> str:
    """Why the peer is the fitter one."""
    level = next((name for name in Lacks._fields if getattr(peer, name) != getattr(own, name)), "")
    return _MORE.get(level, "")


_MORE = {
    "able": "this box cannot serve",
    "links": "the other box has more links",
    "gateways": "the other box reaches more gateways",
    "services": "the other box reaches servers of more services",
}


def sentences(observed: Observed) -> list[str]:
    """What the box lacks, for people; empty: nothing."""
    return [
        *([f"It cannot serve: {observed.unable}."] if observed.unable else []),
        *_about(observed.links, lambda names, _: f"No link: {names}."),
        *_about(observed.gateways, lambda names, many: f"No answer from the gateway{'s' * many} {names}."),
        *_about(observed.services, lambda names, _: f"No live server: {names}."),
    ]


def counted(lacks: Lacks) -> list[str]:
    """The same of the peer, which tells numbers only."""
    found = [
        (lacks.links, "interface has no link", "interfaces have no link"),
        (lacks.gateways, "gateway does not answer", "gateways do not answer"),
        (lacks.services, "service has no live server", "services have no live server"),
    ]
    able = ["It cannot serve."] if lacks.able else []
    return able + [f"{count} {one if count == 1 else many}." for count, one, many in found if count]


def _about(names: tuple[str, ...], sentence: Callable[[str, bool], str]) -> list[str]:
    if not names:
        return []
    rest = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return [sentence(", ".join(names[:SHOWN]) + rest, len(names) > 1)]
