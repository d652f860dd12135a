"""How a pair stands, out of what both boxes say of themselves: in one sentence, and in faults. Pure."""

from __future__ import annotations

from typing import NamedTuple

from applier.pair.beat import Beat
from applier.pair.roles import FAULTY, HELD, LEADS, STANDS_BY, hands_over, why
from applier.wire.errors import ApplierRefused
from applier.wire.shapes_pair import PairStep, PathStatus

AWAY = 3.0  # seconds without a beat, of which two a second come
CLOCKS = 2.0  # seconds that the clocks may differ
# How long something has to last before it is a fault. An apply is on one of the boxes first, and each word of the
# other box is half a second old. That the two were changed apart is apply/both.py's to say.
LASTS = {
    "pair-away": 5.0,
    "pair-both": 1.0,
    "pair-none": 10.0,
    "pair-step": 60.0,
    "pair-clocks": 10.0,
    "pair-path": 5.0,
}
MINOR = frozenset({"pair-path"})  # the other box can take over anyway


class Pair(NamedTuple):
    """Both boxes, as one of them sees them."""

    own: Beat
    name: str  # of the peer
    peer: Beat | None  # its newest word; None: nothing was ever heard
    silent: float | None  # seconds since that; None: nothing was ever heard
    last: str  # when that was, for people; "": nothing was ever heard
    clock: float | None  # how many seconds the peer's clock is ahead
    paths: tuple[PathStatus, ...] = ()  # between the boxes
    working: bool = False  # this box is changing something right now, as both do during an apply

    @property
    def heard(self) -> Beat | None:
        """The peer's word, unless it is too old to be true."""
        return self.peer if self.silent is not None and self.silent <= AWAY else None


def step(pair: Pair) -> PairStep:
    """Whether the peer runs the same configuration, an older one, a newer one, or one that was made apart."""
    own, peer = pair.own, pair.heard
    if peer is None:
        return ""
    if peer.digest == own.digest:
        return "in step"
    if own.digest in peer.lineage:
        return "ahead"
    return "behind" if peer.digest in own.lineage else "forked"


def sentence(pair: Pair) -> str:
    """The one line on every page."""
    own, peer = pair.own, pair.heard
    wrong = troubles(pair)
    for code in ("pair-both", "pair-away"):
        if code in wrong:
            return wrong[code]
    if peer is not None and step(pair) == "forked":
        return f"{own.hostname} and {peer.hostname} run configurations that were made apart."
    if peer is None:  # away for no longer than a moment
        return f"{_does(own)}. {pair.name} has not been heard for a moment."
    first, second = (peer, own) if peer.role == LEADS else (own, peer)
    if first.role != LEADS:
        return f"Neither box leads: {_does(own)}, {_does(peer)}."
    versions = f"; {peer.hostname} runs {peer.version}, {own.hostname} {own.version}"
    also = _in_step(pair, of_peer=second is peer) + _knows(pair, first, second)
    return f"{_does(first)}, {_does(second)}{also}{versions if peer.version != own.version else ''}."


def good(pair: Pair) -> bool:
    """Whether one box leads, and the other one can take over."""
    peer = pair.heard
    both = {pair.own.role, peer.role if peer else ""}
    return both == {LEADS, STANDS_BY} and step(pair) == "in step" and not troubles(pair).keys() - MINOR


def is_edited_there(pair: Pair) -> bool:
    """Whether the configuration of the pair is edited at the other box: it alone leads."""
    return pair.own.role != LEADS and pair.heard is not None and pair.heard.role == LEADS


def troubles(pair: Pair) -> dict[str, str]:
    """What may be a fault once it has lasted (LASTS); code -> a sentence."""
    own, peer = pair.own, pair.heard
    if peer is None:
        return {"pair-away": f"{away(pair.name, pair.last)}; {_without_word(pair)}."}
    found = {}
    if own.role == peer.role == LEADS:
        # They hear each other over the link, so what is cut is what keepalived says on the networks and the cable.
        found["pair-both"] = "Both lead: neither box hears the VRRP of the other one (protocol 112)."
    elif LEADS not in (own.role, peer.role):
        found["pair-none"] = f"Neither box of the pair leads: {_does(own)}, {_does(peer)}."
    found |= {
        "behind": {"pair-step": f"{peer.hostname} is not in step: it runs an older configuration."},
        "ahead": {"pair-step": f"{own.hostname} is not in step: it runs an older configuration."},
    }.get(step(pair), {})
    silent = [path for path in pair.paths if not path["alive"]]
    if silent and len(silent) < len(pair.paths):
        names = " and ".join(_path(path) for path in silent)
        found["pair-path"] = f"{peer.hostname} does not answer on {names}: {_SILENT_PATH}"
    if pair.clock is not None and abs(pair.clock) > CLOCKS:
        found["pair-clocks"] = (
            f"The clocks of the pair differ: that of {peer.hostname} is {abs(pair.clock):.0f} seconds "
            f"{'ahead' if pair.clock > 0 else 'behind'}. Set time servers on both boxes."
        )
    return found


def away(name: str, last: str) -> str:
    """Of a box that is not heard. `last`: when it was, as a person reads it; empty: not since this box started."""
    return (
        f"{name} has been away since {last}"
        if last
        else f"{name} is away: it has not been heard since this box started"
    )


def _without_word(pair: Pair) -> str:
    """What is known of a peer that says nothing."""
    alive = [_path(path) for path in pair.paths if path["alive"] and path["ever"]]
    if pair.own.role == LEADS and alive:
        return f"it answers on {' and '.join(alive)}, so it is on, and follows once it is heard again"
    if pair.own.role == LEADS:
        return "if it is running, both lead; it follows when it is back"
    if pair.own.role == STANDS_BY:
        return f"{pair.own.hostname} stands by, so {pair.name} still leads, and only the link between the boxes is down"
    return "it follows when it is back"


_SILENT_PATH = "fewer paths are left by which the boxes know who leads."


def _path(path: PathStatus) -> str:
    return f"the pair cable ({path['interface']})" if path["cable"] else path["interface"]


def _does(box: Beat) -> str:
    words = {LEADS: "leads", STANDS_BY: "stands by", HELD: "is held", FAULTY: "cannot lead"}[box.role]
    reason = box.reason if box.role in (HELD, FAULTY) else ""
    if hands_over(reason):
        words, reason = "is handing over", reason.partition(": ")[2]
    return f"{box.hostname} {words} ({reason})" if reason else f"{box.hostname} {words}"


def _in_step(pair: Pair, of_peer: bool) -> str:
    """About the box that does not lead."""
    older = {"behind": True, "ahead": False}.get(step(pair))
    if older is None:
        return " and is in step"
    if older == of_peer:
        return " and is behind"
    if pair.working:  # the box that stands by goes first
        return " and runs the new configuration already"
    return "; the one that leads is behind"


def _knows(pair: Pair, leads: Beat, other: Beat) -> str:
    """How many of the connections would go on. Both numbers are some seconds old, so the second may be larger."""
    if other.role != STANDS_BY or step(pair) != "in step":
        return ""
    return f"; it knows {min(other.connections, leads.connections):,} of {leads.connections:,} connections"


def refusal(pair: Pair) -> ApplierRefused | None:
    """Why this box, which leads, cannot let the other one lead; None: it can."""
    own, peer = pair.own, pair.heard
    if peer is None:
        text = f"{pair.name} is not heard, so nobody would lead."
        return ApplierRefused("peer-away", text)
    if peer.role == LEADS:
        return ApplierRefused("both-lead", f"{pair.name} believes that it leads as well; wait until that is settled.")
    if peer.role in (HELD, FAULTY):
        return ApplierRefused("peer-not-ready", f"{_does(peer)}, so nobody would lead.")
    if not peer.ready:
        why = peer.reason or "its first checks are not over"
        return ApplierRefused("peer-not-ready", f"{peer.hostname} is not ready: {why}.")
    if step(pair) != "in step":
        text = f"{peer.hostname} is not in step: it runs revision {peer.revision}, {own.hostname} {own.revision}."
        return ApplierRefused("not-in-step", text)
    return None


def not_leading(pair: Pair) -> ApplierRefused:
    """Why a box that does not lead hands nothing over."""
    there = f" Hand over at {pair.name}." if is_edited_there(pair) else ""
    return ApplierRefused("not-leading", f"{_does(pair.own)}, so it has nothing to hand over.{there}")


def why_leads(pair: Pair, told: str) -> str:
    """Why this box leads from now on. `told`: why the other one was held or could not lead a moment ago; "": neither.

    For the list of changes.
    """
    if told:
        return why(told)
    return f"{pair.name} was not heard" if pair.heard is None else f"{pair.name} let go"


def why_not(pair: Pair, asked: str) -> str:
    """Why this box, which led, leads no more. `asked`: why it was told a moment ago to hand over; "": it was not."""
    return asked or why(pair.own.reason) or f"{pair.name} took over"
