"""What the box sees of itself, for `status` and the review; what cannot be seen, or is wrong, is a fault."""

from __future__ import annotations

import logging

from applier.base.paths import Paths
from applier.host.host import Host, HostError
from applier.host.ipvs_listing import Listing, ListingError
from applier.kept import storage
from applier.kept.events import Downs
from applier.kept.faults import Faults
from applier.parts import director, table
from applier.parts.network import act as network
from applier.service import health, memory, shares
from applier.wire.shapes import InterfaceStatus, RunningStatus
from lbconfig.target import Target
from lbconfig.validate import cards
from lbconfig.validate.cards import Card

log = logging.getLogger("applier")


class Sight:
    def __init__(self, paths: Paths, host: Host, faults: Faults) -> None:
        self._paths = paths
        self._host = host
        self._faults = faults
        self._listing, self._counting, self._told = Listing(), Listing(), health.Told()

    def storage(self) -> None:
        """Whether the data partition can be used."""
        at_boot = storage.at_boot(self._paths)
        for code, message in at_boot.items():
            self._faults.set(code, message)
        found = storage.trouble(self._paths)
        if found in (storage.MISSING, storage.READ_ONLY) and storage.BOOT_FAULT in at_boot:
            found = None  # the boot scripts know the reason
        self._faults.clear(*(code for code in storage.CODES if found is None or code != found[0]))
        if found is not None:
            self._faults.set(*found)

    def memory(self) -> None:
        """Whether the box has enough of it for what runs."""
        self._faults.set(memory.FAULT, memory.trouble(self._host))

    def services(self, running: Target, downs: Downs, calm: bool) -> RunningStatus:
        """The services and the health of their servers. `calm`: nothing is being changed, so the checks should run."""
        entries: health.Entries = {}
        said: shares.Shares = health.NOTHING
        checked_for = None
        try:
            said = shares.read(self._host, self._paths)
            entries = self._listing(table.listing(self._host))
            self._faults.clear("table")
        except (HostError, ListingError) as error:
            self._faults.set("table", f"The kernel's table of virtual services cannot be read: {error}.")
        try:
            state = director.state(self._host, self._paths)
        except HostError as error:
            state = director.Service(None, 0, str(error))
        if state.pid is not None:
            checked_for = float(state.seconds)
        lost = calm and running.has_checks and not state.pid
        text = f"The health checks do not run: a server that dies is not noticed. Seen last: {state.text}."
        self._faults.set("health-checks", text if lost else None)
        return self._told(running.snapshot, entries, checked_for, said, downs)

    def connections(self) -> tuple[int, int]:
        """How many the kernel knows, and how many of them are established; 0 where that cannot be read."""
        try:
            servers = self._counting(table.listing(self._host)).values()
        except (HostError, ListingError):
            return 0, 0
        here = [one for found in servers for one in found.values()]
        return sum(one.active + one.inactive for one in here), sum(one.active for one in here)

    def interfaces(self) -> list[InterfaceStatus]:
        try:
            found = network.describe(self._host)
        except HostError as error:
            self._faults.set("interfaces", f"The interfaces cannot be read: {error}.")
            return []
        self._faults.clear("interfaces")
        return found

    def cards(self) -> tuple[Card, ...]:
        """The interfaces that the box has; none where they cannot be read."""
        return cards.of_status(self.interfaces())

    def leases(self, running: Target) -> dict[str, str]:
        """Interface to the address that DHCP brought; none where they cannot be read."""
        try:
            return network.leases(self._host, running.network)
        except HostError as error:
            log.error("DHCP's addresses cannot be read: %s", error)
            return {}
