"""The admin's own firewall rules: part of the snapshot. What they mean in words: rule_words.py."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from lbconfig.model import ports as port_lists
from lbconfig.model.addresses import IPNetwork, collapsed, parse_network, version
from lbconfig.model.network import INTERFACE


class Action(StrEnum):
    ALLOW = "allow"
    DENY = "deny"  # dropped, and the sender is told nothing
    REJECT = "reject"  # the sender is told


class Where(StrEnum):
    """Which packets a rule is asked about."""

    BOX = "box"  # for the box itself, at any of its addresses
    SERVICES = "services"  # for the address, protocol and port of an enabled virtual service
    THROUGH = "through"  # routed through the box, and no answer of a real server to a client


class RuleProtocol(StrEnum):
    ANY = "any"
    TCP = "tcp"
    UDP = "udp"
    TCP_UDP = "tcp+udp"
    SCTP = "sctp"
    PING = "ping"
    ICMP = "icmp"
    GRE = "gre"
    ESP = "esp"
    OSPF = "ospf"
    VRRP = "vrrp"

    @property
    def has_ports(self) -> bool:
        return self in WITH_PORTS

    @property
    def parts(self) -> tuple[RuleProtocol, ...]:
        """What one packet can be of."""
        return (RuleProtocol.TCP, RuleProtocol.UDP) if self is RuleProtocol.TCP_UDP else (self,)


WITH_PORTS = frozenset({RuleProtocol.TCP, RuleProtocol.UDP, RuleProtocol.TCP_UDP, RuleProtocol.SCTP})


class Per(StrEnum):
    SECOND = "second"
    MINUTE = "minute"


@dataclass(frozen=True, slots=True)
class RateLimit:
    """Of new connections; what is above it is dropped."""

    rate: int = 0  # 0: no limit
    per: Per = Per.SECOND
    burst: int = 20  # so many may come at once
    each_source: bool = False  # counted for each address that they come from, and not together


@dataclass(frozen=True, slots=True)
class Rule:
    """The first rule that matches decides. An empty field matches everything."""

    id: int  # unique within the snapshot, stable while the rule is edited
    name: str
    action: Action = Action.ALLOW
    where: Where = Where.BOX
    sources: tuple[str, ...] = ()  # networks: "10.0.0.0/8", "2001:db8::7/128"
    destinations: tuple[str, ...] = ()
    protocol: RuleProtocol = RuleProtocol.ANY
    ports: str = field(default="", metadata=port_lists.PORTS)  # of the destination, as lbconfig.model.ports writes them
    interface: str = field(default="", metadata=INTERFACE)  # by which the packet comes in
    limit: RateLimit = RateLimit()  # of ALLOW only
    masquerade: bool = False  # of ALLOW and THROUGH only: the box's own address becomes the source
    log: bool = False
    enabled: bool = True
    note: str = ""

    @property
    def port_ranges(self) -> tuple[port_lists.Range, ...]:
        """First and last port of each; () for all. The field must be valid."""
        return port_lists.parse(self.ports)

    def networks(self, field: str, kind: int) -> list[IPNetwork]:
        """Of `sources` or `destinations`, those of IPv4 or IPv6 (`kind`: 4 or 6), none inside another."""
        return joined(text for text in getattr(self, field) if version(text) == kind)

    def families(self) -> tuple[int, ...]:
        """Of which packets it can match: (4, 6), one of them, or () where its fields exclude each other."""
        return tuple(
            kind
            for kind in (4, 6)
            if all(not texts or any(version(text) == kind for text in texts) for texts in self._places)
        )

    @property
    def any_family(self) -> bool:
        return not any(self._places)

    @property
    def _places(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return self.sources, self.destinations


def joined(texts: Iterable[str]) -> list[IPNetwork]:
    """Networks of one kind in order; an interval set of nft refuses overlaps."""
    return collapsed(parse_network(text) for text in texts)


@dataclass(frozen=True, slots=True)
class Firewall:
    rules: tuple[Rule, ...] = ()

    def of(self, where: Where) -> list[Rule]:
        """Those that count there, in order."""
        return [rule for rule in self.rules if rule.enabled and rule.where is where]


NO_RULES = Firewall()


class Packet(NamedTuple):
    """The first packet of a connection, as the firewall sees it when it arrives."""

    source: str
    destination: str
    protocol: RuleProtocol  # not ANY or TCP_UDP
    port: int = 0  # of the destination; 0 where the protocol has none
    interface: str = ""  # by which it comes in
    source_port: int = 40000
    icmp: int = 0  # of ICMP: the type of the message; of IPv6 where the addresses are. An echo request is a PING
