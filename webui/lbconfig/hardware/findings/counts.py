"""What the kernel and the cards have counted since the start: packets that were lost before anybody looked at them."""

from __future__ import annotations

from collections.abc import Iterator

from lbconfig.hardware.facts import Card, Machine
from lbconfig.hardware.findings.finding import BOX, COSTS, LOOK, Finding, listed, number, percent
from lbconfig.hardware.plan.cards import FAST, RING, RING_FAST

# One packet in ten thousand is where TCP begins to feel it: at 100 ms and long frames its throughput is held to some
# 14 Mbit/s a connection (Mathis and others, 1997: MSS / RTT × 1.22 / √loss). Fewer than a hundred may be one moment,
# such as the start of the box.
LOST, FEWEST_LOST = 1e-4, 100
# The budget running out in one of a hundred rounds is a box with peaks; more often the box is at its end.
SQUEEZED, FEWEST_SQUEEZED = 0.01, 1000
USUAL_BACKLOG = 1000  # net.core.netdev_max_backlog, as the kernel has it
USUAL_BUDGET = 300  # net.core.netdev_budget
LOSS = (
    "Each of them is lost, and a TCP sender notices after 200 ms at the earliest. At one loss in 10,000 a connection "
    "over 100 ms gets some 14 Mbit/s."
)
MATHIS = "Mathis and others, The macroscopic behavior of the TCP congestion avoidance algorithm, 1997"
OVERRUN = ("rx_missed_errors", "rx_fifo_errors", "rx_over_errors")  # one loss is counted in several of them


def backlog(machine: Machine) -> Iterator[Finding]:
    """Packets for which there was no room in a CPU's queue (RPS, tunnels, veth)."""
    lost = sum(one.dropped for one in machine.softnet)
    whole = sum(one.processed for one in machine.softnet) + lost
    if lost < FEWEST_LOST or lost < LOST * whole:
        return
    where = [f"CPU {one.cpu}" for one in machine.softnet if one.dropped >= lost / 10]
    short = _setting(machine, "net/core/netdev_max_backlog", USUAL_BACKLOG) <= USUAL_BACKLOG
    yield Finding(
        "backlog-drops",
        COSTS,
        BOX,
        f"{number(lost)} of {number(whole)} packets ({percent(lost / whole)}) found the queue of {listed(where)} full "
        "since the start.",
        LOSS,
        f"{MATHIS}; Linux, Documentation/admin-guide/sysctl/net.rst (netdev_max_backlog)",
        "Makes the queue longer, which carries it over peaks."
        if short
        else "The queue is long enough already: the CPU is too slow for what comes. Spread the work over more CPUs, or "
        "use a faster processor.",
        button=short,
    )


def squeezed(machine: Machine) -> Iterator[Finding]:
    """The time of a round of receiving ran out, and packets were left for the next one."""
    many = sum(one.squeezed for one in machine.softnet)
    rounds = sum(one.net_rx for one in machine.softnet)
    if many < FEWEST_SQUEEZED or many < SQUEEZED * rounds:
        return
    short = _setting(machine, "net/core/netdev_budget", USUAL_BUDGET) <= USUAL_BUDGET
    yield Finding(
        "squeezed",
        COSTS,
        BOX,
        f"In {number(many)} of {number(rounds)} rounds of receiving the budget ran out before the packets did "
        f"({percent(many / max(rounds, many))}).",
        "What is left waits for the next round, in the card's ring; when that is full, packets are lost.",
        "Linux, Documentation/admin-guide/sysctl/net.rst (netdev_budget, netdev_budget_usecs)",
        "Allows longer rounds."
        if short
        else "The rounds are long already: these CPUs are at their end. Spread the work over more of them, or use a "
        "faster processor.",
        button=short,
    )


def overrun(machine: Machine) -> Iterator[Finding]:
    """Packets that the card had to drop, because nobody had taken the earlier ones out of its ring."""
    for card in machine.cards:
        lost = max(card.counters.get(name, 0) for name in OVERRUN)
        whole = card.counters.get("rx_packets", 0) + lost
        if lost >= FEWEST_LOST and lost >= LOST * whole:
            yield _overrun(card, lost, whole)


def _overrun(card: Card, lost: int, whole: int) -> Finding:
    share = f"{number(lost)} of {number(whole)} packets ({percent(lost / whole)})"
    what = f"{card.name} had no room for {share} since the start"
    source = f"{MATHIS}; Linux, Documentation/networking/statistics.rst (rx_missed_errors)"
    ring = card.ring
    if 0 < ring.rx < ring.most_rx:
        usual = ring.rx < min(RING_FAST if card.speed >= FAST else RING, ring.most_rx)
        what += f"; its ring has {number(ring.rx)} places of {number(ring.most_rx)} possible ones."
        mend = (
            "Makes the ring larger. The link of the card is down for a moment."
            if usual
            else "Choose a larger ring for it in the settings below."
        )
        return Finding("ring-small", COSTS, card.name, what, LOSS, source, mend, button=usual)
    mend = (
        "The ring is no help any more: the CPUs took packets too slowly. If the figure still grows, give the card more "
        "queues, use a faster processor, or put a second box beside this one."
    )
    return Finding("overrun", LOOK, card.name, f"{what}; its ring is as large as it gets.", LOSS, source, mend)


CHECKS = (backlog, squeezed, overrun)


def _setting(machine: Machine, key: str, usual: int) -> int:
    text = machine.settings.get(key, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else usual
