"""Tell the neighbours where an address is now: those that remember another card would send there for minutes.

Over IPv4 a gratuitous ARP request (RFC 5227, section 3), over IPv6 an unsolicited neighbour advertisement (RFC 4861,
section 7.2.6), each as a whole Ethernet frame.
"""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Collection, Mapping

from applier.host.host import Host, HostError
from applier.parts.network.present import links
from lbconfig.wanted.netstate import Address

log = logging.getLogger("applier")

ROUNDS = 3  # a frame may be lost
PAUSE = 0.1  # seconds between them
_ARP, _IPV6 = b"\x08\x06", b"\x86\xdd"
_ADVERTISEMENT, _LINK_ADDRESS = 136, 2  # of ICMPv6, and its option
_ROUTER_OVERRIDE = 0xA0000000  # we forward, and what the neighbours know gives way

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
                host.send(name, frame(mac, address.partition("/")[0]))
            except HostError as error:
                log.warning("%s was not announced: %s", address, error)


def frame(mac: str, address: str) -> bytes:
    """An Ethernet frame to everybody on the link."""
    own, parsed = bytes.fromhex(mac.replace(":", "")), ipaddress.ip_address(address)
    if parsed.version == 4:
        request = b"\x00\x01\x08\x00\x06\x04\x00\x01"
        return b"\xff" * 6 + own + _ARP + request + own + parsed.packed + bytes(6) + parsed.packed
    everybody = ipaddress.ip_address("ff02::1").packed
    body = _ROUTER_OVERRIDE.to_bytes(4, "big") + parsed.packed + bytes([_LINK_ADDRESS, 1]) + own
    unchecked = bytes([_ADVERTISEMENT, 0, 0, 0]) + body
    pseudo = parsed.packed + everybody + len(unchecked).to_bytes(4, "big") + bytes([0, 0, 0, 58])
    total = _checksum(pseudo + unchecked)
    message = bytes([_ADVERTISEMENT, 0]) + total + body
    header = b"\x60\x00\x00\x00" + len(message).to_bytes(2, "big") + bytes([58, 255])
    return b"\x33\x33\x00\x00\x00\x01" + own + _IPV6 + header + parsed.packed + everybody + message


def _checksum(data: bytes) -> bytes:
    """Of an even number of bytes (RFC 1071)."""
    total = sum(int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return (~total & 0xFFFF).to_bytes(2, "big")


def _ethernet(mac: str) -> bool:
    return len(mac) == 17 and mac != "00:00:00:00:00:00"
