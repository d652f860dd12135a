"""Tell the neighbours where an address is now: those that remember another card would send there for minutes."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

from applier.base.frames import announcement
from applier.host.host import Host, HostError
from applier.parts.network.present import links
from lbconfig.wanted.netstate import Address

log = logging.getLogger("applier")

ROUNDS = 3  # a frame may be lost
PAUSE = 0.1  # seconds between them

Places = Mapping[Address, str]  # (interface, "10.1.0.2/24") -> the interface's MAC


def places(host: Host) -> dict[Address, str]:
    """Of all addresses on interfaces that are switched on."""
    return {(link.name, address): link.mac for link in links(host) if link.on for address in link.addresses}


def changed(before: Places, now: Places, ours: Collection[Address]) -> dict[Address, str]:
    """Of our addresses those that came, moved, or have another MAC. What DHCP brought announces itself."""
    return {place: mac for place, mac in now.items() if place in ours and before.get(place) != mac and _ethernet(mac)}


def announce(host: Host, moved: Places) -> None:
    """Nobody's work depends on it, so a failure is only noted."""
    for attempt in range(ROUNDS if moved else 0):
        if attempt:
            host.sleep(PAUSE)
        for (name, address), mac in moved.items():
            try:
                host.send(name, announcement(mac, address.partition("/")[0]))
            except HostError as error:
                log.warning("%s was not announced: %s", address, error)


def _ethernet(mac: str) -> bool:
    return len(mac) == 17 and mac != "00:00:00:00:00:00"
