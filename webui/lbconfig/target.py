"""A configuration as the steps need it: the snapshot, its files, and what they say about each part."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from lbconfig.model import canonical
from lbconfig.model.snapshot import Snapshot, to_data
from lbconfig.pair import view
from lbconfig.render import ldirectord, render
from lbconfig.wanted import network as interfaces
from lbconfig.wanted import settings as sysctl
from lbconfig.wanted import table as ipvs
from lbconfig.wanted.netstate import NetworkState
from lbconfig.wanted.settings import Setting
from lbconfig.wanted.table import Checked, Table

One = TypeVar("One")

# Only in a pair.
PAIR_CONF = "pair.conf"
KEEPALIVED = "keepalived.conf"
FLOATING = "floating.json"


@dataclass(frozen=True)
class Target:
    number: int | None
    snapshot: Snapshot
    box: int | None = None  # of a pair: which of its boxes this is, by its key; None: it is none of them
    was: int | None = None  # which one it was when this was stored, where it is none of them any more

    @cached_property
    def own(self) -> Snapshot:
        """The snapshot as this box has it. ValueError for that of a pair which it was never in."""
        if self.snapshot.pair is None:
            return self.snapshot
        if self.place is None:
            raise ValueError("this is the snapshot of a pair that this box is not in")
        return view(self.snapshot, self.place)

    @property
    def place(self) -> int | None:
        """The box of the pair whose network this box has, whether it is still in the pair or not."""
        return self.was if self.box is None else self.box

    @property
    def known(self) -> bool:
        """Whether there is anything that this box has of it."""
        return self.snapshot.pair is None or self.place is not None

    @property
    def in_pair(self) -> bool:
        """Whether the box takes part in its pair at all."""
        return self.snapshot.pair is not None and self.box is not None

    @property
    def stored(self) -> int:
        """The number of its generation. ValueError where it is none: the factory configuration has no number."""
        if self.number is None:
            raise ValueError("the factory configuration is no generation")
        return self.number

    @cached_property
    def data(self) -> dict[str, object]:
        return to_data(self.snapshot)

    @property
    def text(self) -> str:
        return canonical.text(self.snapshot)

    @property
    def digest(self) -> str:
        return canonical.digest(self.snapshot)

    @cached_property
    def files(self) -> dict[str, str]:
        return render(self.own)

    @property
    def rules(self) -> str:
        return self.files["nftables.conf"]

    @property
    def checks(self) -> str:
        return self.files["ldirectord.cf"]

    @property
    def pair_conf(self) -> str:
        """WireGuard's part of the link to the other box of a pair; empty: the box is in none."""
        return self._of_pair(PAIR_CONF)

    @property
    def keepalived(self) -> str:
        """What elects which box of the pair leads; empty: the box is in none."""
        return self._of_pair(KEEPALIVED)

    @property
    def floating(self) -> str:
        """The addresses that the box holds while it leads; empty: it is in no pair."""
        return self._of_pair(FLOATING)

    def _of_pair(self, name: str) -> str:
        return self.files.get(name, "") if self.in_pair else ""

    @property
    def sorry_page(self) -> str:
        return self.files["sorry.html"]

    @property
    def web(self) -> str:
        return self.files["web.conf"]

    @property
    def page_key(self) -> str:
        """Certificate and private key of the web page; empty: the box's own."""
        return self.snapshot.management.page_key

    @property
    def names(self) -> str:
        return self.files["resolv.conf"]

    @property
    def time(self) -> str:
        return self.files["chrony.conf"]

    @cached_property
    def settings(self) -> tuple[Setting, ...]:
        return sysctl.settings(self.own)

    @property
    def timeouts(self) -> tuple[int, int, int]:
        return ipvs.timeouts(self.snapshot)

    @cached_property
    def network(self) -> NetworkState:
        return interfaces.wanted(self.own)

    @cached_property
    def table(self) -> Table:
        return ipvs.wanted(self.snapshot)

    @cached_property
    def checked(self) -> Checked:
        return ipvs.checked(self.snapshot)

    @cached_property
    def has_checks(self) -> bool:
        return ldirectord.has_checks(self.checks)


def joined(states: list[NetworkState]) -> NetworkState:
    """Everything that any of them brought about: what may have to be taken away."""
    return NetworkState(
        links=_all(state.links for state in states),
        addresses=_all(state.addresses for state in states),
        dhcp=_all(state.dhcp for state in states),
        routes=_all(state.routes for state in states),
        rules=_all(state.rules for state in states),
    )


def _all(parts: Iterable[tuple[One, ...]]) -> tuple[One, ...]:
    return tuple(dict.fromkeys(one for part in parts for one in part))
