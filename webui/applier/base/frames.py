"""Ethernet frames that tell everybody on a link where an address is now.

Over IPv4 a gratuitous ARP request (RFC 5227, section 3), over IPv6 an unsolicited neighbour advertisement (RFC 4861,
section 7.2.6).
"""

from __future__ import annotations

import ipaddress

_ARP, _IPV6 = b"\x08\x06", b"\x86\xdd"
_ADVERTISEMENT, _LINK_ADDRESS = 136, 2  # of ICMPv6, and its option
_ROUTER_OVERRIDE = 0xA0000000  # we forward, and what the neighbours know gives way


def announcement(mac: str, address: str) -> bytes:
    """A whole frame, to everybody on the link of the card with this MAC."""
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
