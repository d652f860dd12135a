"""One run through the steps, what it remembers for the way back, and what a step is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from applier.base.paths import Paths
from applier.host.host import Host, HostError
from applier.host.ipvs_netlink import Daemon
from applier.kept.generations import Generations
from applier.pair.election import Files
from applier.parts.network import act as network
from lbconfig.agreement import Lineage
from lbconfig.hardware.actions import Ethtool, Write
from lbconfig.model.snapshot import Snapshot
from lbconfig.render import nftables
from lbconfig.target import Target
from lbconfig.wanted import table as ipvs
from lbconfig.wanted.netstate import NOTHING, Address, NetworkState
from lbconfig.wanted.table import Checked, ServiceKey, Table

FEW = 20  # services that are read one by one; a quarter of all: the whole table is as quick


# What every run through the steps works with.
Tools = tuple[Host, Paths, Generations]


class Unsafe(HostError):
    """To go on would leave the box open."""


@dataclass
class Saved:
    """What undo needs to know of the time before."""

    rules: str | None = None
    rules_loaded: bool = False
    rules_removed: bool = False
    settings: dict[str, str] = field(default_factory=dict)
    timeouts: tuple[int, int, int] | None = None
    network: NetworkState | None = None  # all of it, before the first change
    places: dict[Address, str] = field(default_factory=dict)  # which MAC each address had then
    removed: NetworkState | None = None  # all of it, before something was taken away
    told: dict[Path, str] = field(default_factory=dict)  # names and times from DHCP, where it ended
    names: str | None = None
    time: str | None = None
    director_ran: bool = False
    sorry_page: str | None = None
    web: str | None = None
    checks: str | None = None
    table: Table | None = None
    tuned: list[Write | Ethtool] = field(default_factory=list)  # each puts one thing back, the last change first
    pair: str | None = None  # what the link to the other box was made of; "": there was none
    pair_daemons: tuple[Daemon, ...] | None = None  # that ran over it
    daemons: tuple[Daemon, ...] | None = None  # that ran when the table was changed
    ended: Files | None = None  # what keepalived and the floater ran with, in a pair that was left
    floating: str | None = None  # what the floater held when addresses came
    floating_meanwhile: str | None = None  # and until some went
    keepalived: str | None = None  # what keepalived ran with when it was told otherwise; "": it did not run
    own: NetworkState | None = None  # all of the network, before the floater took over what floats in a new pair
    cards: tuple[Ethtool, ...] | None = None  # what all cards were told; None: nobody looked at them


@dataclass
class Job:
    """One run through the steps."""

    host: Host
    paths: Paths
    generations: Generations
    new: Target
    before: Target | None = None  # what ran until now; None: nothing did
    old: NetworkState = NOTHING  # what may be there from before and is to go, if it is not configured any more
    leaving: tuple[Snapshot, ...] = ()  # views whose services IPVS may have until its step
    confirmed: int | None = None  # the number to go back to
    lenient: bool = False  # at boot: what fails is noted, and the rest is brought up anyway
    number: int | None = None  # of the generation being applied
    lineage: Lineage = ()  # in a pair: with which it is confirmed
    seconds: Callable[[], float] = lambda: 0.0
    troubles: list[Exception] = field(default_factory=list)
    saved: Saved = field(default_factory=Saved)
    relieved: bool = False  # whether the other box of the pair can lead while this one cannot
    doubted: bool = True  # whether the kernel may hold something else than `before`, so that all of it is looked at

    @property
    def stored(self) -> int:
        """The number of the generation being applied. ValueError in a run that applies none."""
        if self.number is None:
            raise ValueError("this run applies no generation")
        return self.number

    @cached_property
    def keys(self) -> frozenset[ServiceKey] | None:
        """The services of IPVS that this run is about; None: all that there are."""
        if self.doubted or self.before is None:
            return None
        found = ipvs.touched(self.before.snapshot, self.new.snapshot)
        return found if len(found) <= max(FEW, len(self.new.snapshot.services) // 4) else None

    @cached_property
    def table(self) -> Table:
        """What is wanted of them."""
        return self.new.table if self.keys is None else ipvs.table_of(ipvs.some(self.new.snapshot, self.keys))

    @cached_property
    def checked(self) -> Checked:
        return self.new.checked if self.keys is None else ipvs.checked_of(ipvs.some(self.new.snapshot, self.keys))

    @cached_property
    def network(self) -> NetworkState:
        """The configured network, without cards that are gone and that the change is not about.

        Drift tells of those; were they a reason to refuse, nobody could put anything right until they are back.
        """
        if self.lenient or self.before is None:
            return self.new.network
        return network.without_lost(self.host, self.new.network, self.before.network)

    @cached_property
    def rules_meanwhile(self) -> str:
        """The new rules, and those for what leaves: IPVS has it until its step, and on the way back again."""
        return nftables.render(self.new.own, *self.leaving)

    def trouble(self, error: HostError) -> None:
        if not self.lenient:
            raise error
        self.troubles.append(error)


class Step:
    name: str
    why: str  # why it stands at its place

    def concerns(self, job: Job) -> bool:
        """Whether it is about this box at all; if not, nobody is told of it."""
        return True

    def due(self, job: Job) -> bool:
        """Whether there is anything to do."""
        return True

    def do(self, job: Job) -> str:
        """Returns what was done, for the log."""
        raise NotImplementedError

    def undo(self, job: Job) -> None:
        """Put back what `do` changed, as far as it came."""
