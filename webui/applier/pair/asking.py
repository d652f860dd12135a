"""Asks at which moment floating addresses answer somewhere else, while a hand-over goes on.

The box that gives them up asks with ARP and neighbour discovery, every 5 ms, from its own address. It begins once it
holds them no more: before that it would have to answer itself.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from ipaddress import ip_address, ip_interface
from pathlib import Path

from applier.base.frames import question
from applier.base.paths import Paths
from applier.host.host import Host, HostError
from applier.pair import client, leases
from applier.pair.leases import Place, Wrong
from applier.pair.roles import LEADS
from lbconfig.model.network import Network

EACH = 0.005  # seconds between two questions
MOST = 16  # addresses that are asked for
CLASS = Path("/sys/class/net")
UNKNOWN = "0.0.0.0"  # noqa: S104 (nothing is bound to it)
LINK_LOCAL = Path("/proc/net/if_inet6")


def chosen(places: Iterable[Place]) -> tuple[Place, ...]:
    """The last one of each interface and IP version, and the first one of all.

    The other box takes them in the order of the file, so these are the first and the last that it has.
    """
    all_of_them = tuple(places)
    last = {(place.interface, ip_address(place.address).version): place for place in all_of_them}
    return tuple(dict.fromkeys((*all_of_them[:1], *last.values())))[:MOST]


def mac_of(host: Host, interface: str) -> str:
    """Empty where it is not there."""
    return (host.read(CLASS / interface / "address") or "").strip()


def places(host: Host, paths: Paths) -> tuple[Place, ...]:
    """Those to ask for. HostError where the floater's file cannot be read."""
    try:
        return chosen(leases.read(host.read(paths.floating) or "").places)
    except Wrong as error:
        raise HostError(paths.floating.name, None, str(error)) from None


class Asking(threading.Thread):
    """Begins to ask once this box does not lead any more, and ends when all have answered or `stop` was called."""

    def __init__(self, host: Host, paths: Paths, wanted: Sequence[Place], network: Network) -> None:
        super().__init__(name="drill-asks", daemon=True)
        self.released: float | None = None  # when this box had let go, on CLOCK_BOOTTIME
        self.answered: dict[Place, float] = {}
        self.trouble = ""
        self._host = host
        self._paths = paths
        self._wanted = tuple(wanted)
        self._network = network
        self._stopped = threading.Event()

    def stop(self) -> None:
        self._stopped.set()

    @property
    def missing(self) -> tuple[Place, ...]:
        return tuple(place for place in self._wanted if place not in self.answered)

    @property
    def silence(self) -> float | None:
        """Seconds from the moment at which this box let go until the last of them answered; None: one did not."""
        if self.released is None or self.missing or not self._wanted:
            return None
        return max(0.0, max(self.answered.values()) - self.released)

    @property
    def words(self) -> str:
        """Each address and when it answered, for the log."""
        begun = self.released or 0.0
        found = (f"{place} after {(when - begun) * 1000:.1f} ms" for place, when in self.answered.items())
        return ", ".join(found) or self.trouble or "no address has answered"

    def run(self) -> None:
        try:
            questions = [(place, self._question(place)) for place in self._wanted]
            neighbours = self._host.neighbours({place.interface for place in self._wanted})
        except (HostError, OSError, ValueError) as error:
            self.trouble = str(error)
            return
        try:
            while self.missing and not self._stopped.is_set():
                if self.released is None:
                    self._look()
                if self.released is not None:
                    for place, frame in questions:
                        if place not in self.answered:
                            neighbours.ask(place.interface, frame)
                for interface, address, when in neighbours.answers(EACH):
                    place = Place(interface, address)
                    if place in self._wanted:
                        self.answered.setdefault(place, when)
        finally:
            neighbours.close()

    def _look(self) -> None:
        role = client.role(self._host, self._paths)
        if role is not None and role.role != LEADS:
            self.released = role.since

    def _question(self, place: Place) -> bytes:
        return question(mac_of(self._host, place.interface), self._own(place), place.address)

    def _own(self, place: Place) -> str:
        """The address of this box there that asks. Without one, as whoever looks whether an address is free."""
        six = ":" in place.address
        for interface in self._network.interfaces:
            if interface.name == place.interface:
                own = [ip_interface(text).ip for text in interface.addresses if (":" in text) == six]
                if own:
                    return str(own[0])
        if not six:
            return UNKNOWN
        for line in (self._host.read(LINK_LOCAL) or "").splitlines():
            words = line.split()
            if len(words) == 6 and words[5] == place.interface and words[3] == "20":
                return str(ip_address(bytes.fromhex(words[0])))
        raise HostError(f"ask for {place}", None, "this box has no address of IPv6 there")
