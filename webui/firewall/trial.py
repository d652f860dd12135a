"""The packet that is tried on the rules: what it may be, and which addresses of the box no configuration names."""

from __future__ import annotations

from collections.abc import Iterator

from applier.wire.shapes import Status
from lbconfig.model.addresses import version
from lbconfig.model.firewall import Packet, RuleProtocol
from lbconfig.model.icmp import MESSAGES
from lbconfig.model.problem import quote
from lbconfig.model.snapshot import Network, Snapshot
from lbconfig.validate import fields

ABSTRACT = (RuleProtocol.ANY, RuleProtocol.TCP_UDP)  # what no packet is of
OF_A_PACKET = tuple(one for one in RuleProtocol if one not in ABSTRACT)


def wrong(packet: Packet, network: Network) -> Iterator[tuple[str, str]]:
    """(field, what is wrong with it)."""
    places = {name: place(getattr(packet, name), packet.protocol, name) for name in ("source", "destination")}
    yield from ((name, sentence) for name, sentence in places.items() if sentence)
    if not any(places.values()) and version(packet.source) != version(packet.destination):
        yield "destination", f"must be an IPv{version(packet.source)} address, as the source is"
    if packet.interface not in network.entrances:
        yield "interface", f"{quote(packet.interface)} is not an interface that packets come in on"
    if packet.protocol in ABSTRACT:
        yield "protocol", f"must be one of {', '.join(OF_A_PACKET)}"
    elif packet.protocol is RuleProtocol.ICMP:
        known = [one.type for one in MESSAGES if one.version == _version(packet.source)]
        if known and packet.icmp not in known:
            numbers = ", ".join(map(str, known))
            yield "icmp", f"must be one of {numbers}; an echo request is the protocol {RuleProtocol.PING}"
    elif packet.protocol.has_ports:
        for name in ("port", "source_port"):
            if sentence := fields.in_range(getattr(packet, name), 1, 65535):
                yield name, sentence


def place(text: str, protocol: RuleProtocol | None, name: str) -> str | None:
    """What is wrong with the source or destination; messages of ICMPv6 may stay on the link."""
    on_link = text.startswith("fe80::" if name == "source" else "ff02::")
    return fields.ip_address(text) if on_link and protocol is RuleProtocol.ICMP else fields.host_address(text)


def _version(text: str) -> int:
    """0: it is no address."""
    return 0 if fields.ip_address(text) else version(text)


def leased(status: Status | None, running: Snapshot | None) -> set[str]:
    """What DHCP brought: all that the box has at the moment but VIPs and what it was told."""
    told = running.network.interfaces if running else ()
    fixed = {text for one in told for text in one.addresses}
    found = {text for one in (status["interfaces"] if status else ()) for text in one["addresses"]} - fixed
    return {text.partition("/")[0] for text in found if not text.endswith(("/32", "/128"))}
