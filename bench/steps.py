"""What each step from the stock set-up to ours saves, and what others would: instructions for each connection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench.counted import COUNT, ONE_INTERFACE, OUR_WORDS, ROUNDS, Cost, CountedStage, counted_stage
from bench.neighbours import SERVERS
from bench.result import Measured, Result, Table
from bench.settings import Settings
from bench.stage import PORT, vip

WAYS = ("DR", "NAT")
LARGE = 1_000_000  # bytes of a page that comes in many packets
# Without the box's own rules: what meets connection tracking in neither direction.
UNTRACKED = """table ip untracked {{
	chain prerouting {{
		type filter hook prerouting priority raw;
		ip daddr {{ {vips} }} tcp dport {port} notrack
		ip saddr {{ {servers} }} tcp sport {port} fib daddr type unicast notrack
	}}
}}
""".format(vips=", ".join(vip(way, COUNT) for way in WAYS), port=PORT, servers=", ".join(SERVERS[:COUNT]))
# ETHTOOL_SGRO of linux/ethtool.h; ethtool itself is not in every image.
GRO = """
import array, fcntl, socket, struct
for card in (b"eth1", b"eth2"):
    data = array.array("B", struct.pack("II", 0x2C, {on}))
    with socket.socket() as one:
        fcntl.ioctl(one, 0x8946, struct.pack("16sP8x", card, data.buffer_info()[0]))
"""


@dataclass(frozen=True)
class Step:
    name: str
    do: Callable[[CountedStage], None]
    undo: Callable[[CountedStage], None] = lambda _: None


def sets(stage: CountedStage, *keys: str, value: int) -> None:
    stage.director.succeed(["sysctl", "-qw", *(f"{key}={value}" for key in keys)])


def gro(stage: CountedStage, on: int) -> None:
    stage.director.succeed(["python3", "-c", GRO.format(on=on)])


def queue(stage: CountedStage, kind: str) -> None:
    stage.director.succeed(f"for card in eth1 eth2; do tc qdisc replace dev $card root {kind}; done")


def stock_rules_untracked(stage: CountedStage) -> None:
    stage.become("stock")
    stage.rules(UNTRACKED)


def our_rules(stage: CountedStage) -> None:
    stage.become("ours")
    stage.director.succeed("sysctl -qp /run/bench/stock.sysctl")


EARLY, REROUTE = "net.ipv4.ip_early_demux", "net.ipv4.vs.snat_reroute"
# One on top of the other.
TAKEN = (
    Step("stock", lambda stage: stage.become("stock")),
    Step("no connection tracking for what IPVS handles", stock_rules_untracked),
    Step("no tracking at all, and one look at each packet instead of a walk through rules", our_rules),
    Step("no look for a program that waits for it (early demux)", lambda stage: sets(stage, EARLY, value=0)),
    Step("no second route for answers (snat_reroute)", lambda stage: sets(stage, REROUTE, value=0)),
)
LAST = "memory is not cleared before use: ours"
# Each by itself, beside ours.
OTHERS = (
    Step("ours", lambda stage: stage.become("ours")),
    Step("GRO off", lambda stage: gro(stage, 0), lambda stage: gro(stage, 1)),
    Step("plain queue (pfifo_fast)", lambda stage: queue(stage, "pfifo_fast"), lambda stage: queue(stage, "fq_codel")),
    Step(
        "no check for forged senders (rp_filter): ours with one interface",
        lambda stage: stage.become(ONE_INTERFACE),
        lambda stage: stage.become("ours"),
    ),
)
# Words for the kernel, which take another boot.
BOOTED = {"mitigations=off": "no mitigations"}
Found = dict[tuple[str, str], list[Cost]]  # step, way (or "large") -> each round


def run(settings: Settings) -> Result:
    taken: Found = {}
    others: Found = {}
    with counted_stage(settings) as stage:
        walk(stage, settings, taken, TAKEN)
    with counted_stage(settings, OUR_WORDS) as stage:
        walk(stage, settings, others, OTHERS)
    for way in WAYS:
        taken[LAST, way] = others[OTHERS[0].name, way]
    for words, name in BOOTED.items():
        with counted_stage(settings, f"{OUR_WORDS} {words}") as stage:
            walk(stage, settings, others, (Step(name, lambda stage: stage.become("ours")),))
    return result(taken, others)


def walk(stage: CountedStage, settings: Settings, found: Found, steps: tuple[Step, ...]) -> None:
    for _ in range(ROUNDS):
        for step in steps:
            step.do(stage)
            measure(stage, settings, found, step.name, large=steps is not TAKEN)
            step.undo(stage)


def measure(stage: CountedStage, settings: Settings, found: Found, name: str, large: bool) -> None:
    seconds = settings.pick(4.0, 8.0)
    for way in WAYS:
        cost = stage.connections(f"{vip(way, COUNT)}:{PORT}", seconds=seconds)
        found.setdefault((name, way), []).append(cost)
        settings.say(f"{name}, {way}: {cost.said()}")
    if large:
        cost = stage.connections(f"{vip('NAT', COUNT)}:{PORT}", seconds=seconds, size=LARGE, at_once=8)
        found.setdefault((name, "large"), []).append(cost)
        settings.say(f"{name}, NAT, a page of {LARGE:,} bytes: {cost.said()}")


def measured(found: Found, name: str, way: str) -> Measured | None:
    costs = found.get((name, way))
    return Measured(tuple(round(one.all) for one in costs)) if costs else None


def share(one: Measured | None, base: Measured | None) -> str | None:
    """How much less than `base`, in per cent of it."""
    if not (one and base):
        return None
    return f"{(one.median / base.median - 1) * 100:+.1f} %"


def rows(found: Found, ways: tuple[str, ...]) -> Iterator[tuple]:
    """Each step with what it is of the first one."""
    names = list(dict.fromkeys(name for name, _ in found))
    for name in names:
        cells = []
        for way in ways:
            one = measured(found, name, way)
            cells += [one, None if name == names[0] else share(one, measured(found, names[0], way))]
        yield name, *cells


def result(taken: Found, others: Found) -> Result:
    return Result(
        name="steps",
        title="What makes the data path cheaper",
        source="The steps from a stock set-up to ours, and what we judged and left.",
        method="Instructions of the director for each connection, counted as in the part before.",
        tables=(
            Table(
                "Steps that the box takes, one on top of the other",
                ("step", "direct routing", "beside stock", "NAT", "beside stock"),
                tuple(rows(taken, WAYS)),
            ),
            Table(
                "Each by itself, beside ours",
                ("change", "direct routing", "beside ours", "NAT", "beside ours", "NAT, page of 1 MB", "beside ours"),
                tuple(rows(others, (*WAYS, "large"))),
            ),
        ),
    )
