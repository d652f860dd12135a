"""What the box keeps of the configuration that runs, so that the next boot need not wait for Python.

    /data/applier/early         what it was kept for, line by line, and files in the words of ip, nft and ipvsadm
    /data/applier/early.sha256  its digest

/etc/init.d/S30early brings this up by plain programs, where all that it was kept for is still so: the version, the
confirmed generation and its snapshot, the memory, each network card at its name, and in a pair the box's key. The
applier finds it running when it has been loaded, compares it as at every start, and repairs what differs (decision 72).

The order in which the files are used is that of the steps (steps.py): at whatever line it ends, the box is as if the
applier had been killed there.
"""

from __future__ import annotations

import functools
import hashlib
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from applier.apply.job import Job
from applier.base import durable
from applier.base.paths import Paths
from applier.hardware.verbs import BALANCER, module_options
from applier.host.host import Host
from applier.kept.generations import Generations
from applier.pair import ready, roles
from applier.parts.network import act as network
from applier.parts.network.plan import plan
from applier.parts.pair import daemons, link
from lbconfig.hardware.actions import Ethtool
from lbconfig.model.pair import PairBox
from lbconfig.target import Target
from lbconfig.wanted import table as ipvs
from lbconfig.wanted.netstate import NOTHING, Link, NetworkState

log = logging.getLogger("applier")

MEMORY = Path("/proc/meminfo")
BLOCK = 65536  # KiB: two boots of one machine may differ a little in what the kernel calls its memory


@dataclass(frozen=True, slots=True)
class Kept:
    """What it is kept for. At a boot where any of this is something else it is not used."""

    version: str
    generation: int
    snapshot: str  # the digest of the file
    memory: int  # in blocks; the size of the balancer's table depends on it
    cards: tuple[Link, ...]  # that the configuration uses
    key: str = ""  # by which the other box of a pair knows this one; empty: it is in none


def text(kept: Kept, files: Mapping[str, str]) -> str:
    """The whole file: what it is kept for, then each file behind a line with its name and how many lines it has."""
    lines = [
        f"version {kept.version}",
        f"confirmed generations/{kept.generation:06}",
        f"snapshot {kept.snapshot}",
        f"memory {kept.memory}",
        *(f"card {card.name} {card.mac}" for card in kept.cards),
        *([f"pair {kept.key}"] if kept.key else []),
    ]
    parts = [_lines(lines)]
    for name, one in files.items():
        if one and not one.endswith("\n"):
            raise ValueError(f"the last line of {name} does not end")
        count = one.count("\n")  # as awk counts them
        parts.append(f"file {count} {name}\n{one}")
    return "".join(parts)


def files(target: Target, cards: tuple[Link, ...], tuned: tuple[Ethtool, ...]) -> dict[str, str]:
    """What does not depend on the kernel, by the names that S30early has for it.

    Servers that are checked begin with weight 0, as at every start: no client is sent to a dead one.
    """
    create, change = _network(cards, target.network)
    six = [line for line in change if line.startswith("rule ") and ":" in line]
    found = {
        "nftables.conf": target.rules,
        "links": _lines(create),
        "cards": _lines(" ".join(one.arguments) for one in tuned),
        "settings": _lines(f"{one.key} {one.value}" for one in target.settings),
        "timeouts": _lines([" ".join(map(str, target.timeouts))]),
        "network": _lines(line for line in change if line not in six),
        "network6": _lines(six),
        "names.conf": target.names,
        "sorry.html": target.sorry_page,
        "table": ipvs.at_start(target.snapshot),
    }
    return found | ({"ldirectord.cf": target.checks} if target.has_checks else {}) | _of_pair(target)


def _of_pair(target: Target) -> dict[str, str]:
    """The link to the other box, the kernel's threads, and the election. The box begins held, as at every start."""
    own = _own_box(target)
    if own is None:
        return {}
    wish = link.wanted(target.pair_conf)
    return {
        "pair.conf": target.pair_conf,
        "pair-link": _lines([link.MAKE]),
        "pair-link-on": _lines(link.switch_on(wish.address)),
        "daemons": _lines(" ".join(daemons.arguments(one)) for one in daemons.wanted(wish)),
        "keepalived.conf": target.keepalived,
        "floating.json": target.floating,
        "hold": roles.hold_text(ready.NOT_YET),
        "may-lead": _lines([own.cable]),
    }


def _own_box(target: Target) -> PairBox | None:
    """None: the box takes part in no pair."""
    pair = target.snapshot.pair
    return None if pair is None or target.box is None else pair.boxes[target.box]


@functools.lru_cache(1)  # few changes are about the network, and a thousand addresses take their time
def _network(cards: tuple[Link, ...], wanted: NetworkState) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Lines that make links, and lines that bring about the rest of the network, where there are bare cards."""
    bare = tuple(Link(card.name, on=False, largest=card.largest, mac=card.mac) for card in cards)
    create = plan(NetworkState(links=bare), NetworkState(links=wanted.links), NOTHING).create
    made = tuple(_made(link) for link in wanted.links if link.kind)
    return create, plan(NetworkState(links=(*bare, *made)), wanted, NOTHING).change


def _made(link: Link) -> Link:
    """As the kernel has it when it was just made; a primary member is told once it is one."""
    options = tuple(one for one in link.options if one[0] != "primary")
    return replace(link, on=False, mtu=0, master="", options=options)


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


class Early:
    """Keeps it, each time that a generation was seen to run and is the confirmed one."""

    def __init__(self, paths: Paths, host: Host, generations: Generations) -> None:
        self._paths = paths
        self._host = host
        self._generations = generations
        self._tuned: tuple[Ethtool, ...] | None = None  # how cards are tuned; None: nobody has looked yet

    def keep(self, job: Job) -> None:
        """Of what this run has brought up. What prevents it is told in the log: the next boot is as it was without."""
        self._tuned = self._tuned if job.saved.cards is None else job.saved.cards
        try:
            self._keep(job.new)
        # The configuration runs and is confirmed: that must not fail by what only makes the next boot quicker.
        except Exception as error:  # noqa: BLE001
            log.warning("nothing is kept for a quicker start: %s", error)

    def _keep(self, target: Target) -> None:
        memory = (self._host.read(MEMORY) or "").split()
        if memory[:1] != ["MemTotal:"] or self._tuned is None:
            return
        there = {link.name: link for link in network.present(self._host).links if link.mac}
        names = [link.name for link in target.network.links if not link.kind]
        if not there.keys() >= {*names}:
            return  # every boot has to tell that a card is missing
        cards = tuple(there[name] for name in names)
        more = {
            "options": module_options(self._host, target.own.tuning),
            "modules": _lines([" ".join(BALANCER)]),
            "nftables.seen": self._host.read(self._paths.rules_seen) or "",
        }
        digest = self._generations.snapshot_digest(target.stored)
        own = _own_box(target)
        key = "" if own is None else own.key
        kept = Kept(self._paths.version, target.stored, digest, int(memory[1]) // BLOCK, cards, key)
        whole = text(kept, more | files(target, cards, self._tuned)).encode()
        said = f"{hashlib.sha256(whole).hexdigest()}  {self._paths.early.name}\n".encode()
        if not (_holds(self._paths.early, whole) and _holds(self._paths.early_digest, said)):
            durable.replace(self._paths.early, whole)
            durable.replace(self._paths.early_digest, said)


def _holds(path: Path, data: bytes) -> bool:
    try:
        return path.read_bytes() == data
    except OSError:
        return False
