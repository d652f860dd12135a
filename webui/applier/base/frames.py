"""Ethernet frames that tell everybody on a link where an address is now, or ask for that.

Over IPv4 a gratuitous ARP request (RFC 5227, section 3), over IPv6 an unsolicited neighbour advertisement (RFC 4861,
section 7.2.6). Questions are ARP requests and neighbour solicitations.
"""

from __future__ import annotations

import ipaddress

_ARP, _IPV6 = b"\x08\x06", b"\x86\xdd"
_ARP_REQUEST, _ARP_REPLY = 1, 2
_SOLICITATION, _ADVERTISEMENT = 135, 136  # of ICMPv6
_OF_SENDER, _OF_TARGET = 1, 2  # its options with a MAC
_ICMP6, _HOPS = 58, 255
_ROUTER_OVERRIDE = 0xA0000000  # we forward, and what the neighbours know gives way


def announcement(mac: str, address: str) -> bytes:
    """A whole frame, to everybody on the link of the card with this MAC."""
    own, parsed = bytes.fromhex(mac.replace(":", "")), ipaddress.ip_address(address)
    if parsed.version == 4:
        return _arp(own, parsed.packed, parsed.packed)
    body = _ROUTER_OVERRIDE.to_bytes(4, "big") + parsed.packed + bytes([_OF_TARGET, 1]) + own
    return _icmp6(own, parsed.packed, ipaddress.ip_address("ff02::1").packed, _ADVERTISEMENT, body)


def question(mac: str, own: str, address: str) -> bytes:
    """A whole frame that asks who has an address, from the card with this MAC and an address of its own."""
    card, sender, target = bytes.fromhex(mac.replace(":", "")), ipaddress.ip_address(own), ipaddress.ip_address(address)
    if target.version == 4:
        return _arp(card, sender.packed, target.packed)
    everybody = ipaddress.ip_address("ff02::1:ff00:0").packed[:13] + target.packed[13:]
    body = bytes(4) + target.packed + bytes([_OF_SENDER, 1]) + card
    return _icmp6(card, sender.packed, everybody, _SOLICITATION, body)


def answer(frame: bytes) -> str | None:
    """The address that a frame says somebody has, where it is the answer to a question; None for any other."""
    kind = frame[12:14]
    if kind == _ARP and len(frame) >= 42 and frame[20:22] == _ARP_REPLY.to_bytes(2, "big"):
        return str(ipaddress.ip_address(frame[28:32]))
    if kind == _IPV6 and len(frame) >= 78 and (frame[20], frame[21], frame[54]) == (_ICMP6, _HOPS, _ADVERTISEMENT):
        return str(ipaddress.ip_address(frame[62:78]))
    return None


def _arp(card: bytes, sender: bytes, target: bytes) -> bytes:
    request = b"\x00\x01\x08\x00\x06\x04" + _ARP_REQUEST.to_bytes(2, "big")
    return b"\xff" * 6 + card + _ARP + request + card + sender + bytes(6) + target


def _icmp6(card: bytes, sender: bytes, group: bytes, kind: int, body: bytes) -> bytes:
    """A message to a group of the link."""
    unchecked = bytes([kind, 0, 0, 0]) + body
    pseudo = sender + group + len(unchecked).to_bytes(4, "big") + bytes([0, 0, 0, _ICMP6])
    message = bytes([kind, 0]) + _checksum(pseudo + unchecked) + body
    header = b"\x60\x00\x00\x00" + len(message).to_bytes(2, "big") + bytes([_ICMP6, _HOPS])
    return b"\x33\x33" + group[12:] + card + _IPV6 + header + sender + group + message


def _checksum(data: bytes) -> bytes:
    """Of an even number of bytes (RFC 1071)."""
    total = sum(int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return (~total & 0xFFFF).to_bytes(2, "big")
