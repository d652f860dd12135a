"""The network's part of the snapshot: interfaces of every kind, routes, names and time."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from lbconfig.model.writing import SPARSE

INTERFACE = {"interface": True}  # of a field that names an interface; where its card is another one, so is the name


class BondMode(StrEnum):
    """The kernel's names (bonding.ko)."""

    ACTIVE_BACKUP = "active-backup"
    LACP = "802.3ad"
    XOR = "balance-xor"
    ALB = "balance-alb"
    TLB = "balance-tlb"
    RR = "balance-rr"
    BROADCAST = "broadcast"


ONE_SPEAKS = frozenset({BondMode.ACTIVE_BACKUP, BondMode.ALB, BondMode.TLB})  # those with a `primary`
BY_HASH = frozenset({BondMode.LACP, BondMode.XOR, BondMode.TLB})  # those with a `hash_policy`


class HashPolicy(StrEnum):
    """What decides which member of a bond a packet leaves by."""

    LAYER2 = "layer2"
    LAYER23 = "layer2+3"
    LAYER34 = "layer3+4"


class LacpRate(StrEnum):
    SLOW = "slow"
    FAST = "fast"


@dataclass(frozen=True, slots=True)
class Vlan:
    """What makes an interface a VLAN."""

    parent: str = field(metadata=INTERFACE)
    id: int


@dataclass(frozen=True, slots=True)
class Bond:
    """What makes an interface a bond."""

    members: tuple[str, ...] = field(default=(), metadata=INTERFACE)
    mode: BondMode = BondMode.ACTIVE_BACKUP
    miimon: int = 100  # milliseconds between two looks at the members' cables
    lacp_rate: LacpRate = LacpRate.SLOW  # of LACP
    hash_policy: HashPolicy = HashPolicy.LAYER23  # of BY_HASH
    # Of ONE_SPEAKS: the member that speaks whenever it can; empty: any.
    primary: str = field(default="", metadata=INTERFACE)


@dataclass(frozen=True, slots=True)
class Bridge:
    """What makes an interface a bridge."""

    members: tuple[str, ...] = field(default=(), metadata=INTERFACE)
    stp: bool = False


@dataclass(frozen=True, slots=True)
class Interface:
    """A network card, or what is made of others: at most one of `vlan`, `bond` and `bridge` is set."""

    name: str = field(metadata=INTERFACE)
    dhcp: bool = False
    addresses: tuple[str, ...] = ()  # "10.1.0.2/24"; VIPs are not listed here, they come from the services
    on: bool = True  # False: switched off, and without its addresses
    mtu: int = 0  # bytes; 0: as it is (a VLAN: as its parent, a member: as its bond or bridge)
    note: str = ""
    vlan: Vlan | None = None
    bond: Bond | None = None
    bridge: Bridge | None = None
    # In a pair, held by the box that leads, beside the VIPs: "10.2.0.254/24". Both boxes name the same ones.
    floating: tuple[str, ...] = field(default=(), metadata=SPARSE)

    @property
    def members(self) -> tuple[str, ...]:
        group = self.bond or self.bridge
        return group.members if group else ()

    @property
    def made(self) -> bool:
        """Whether the box makes it, and no hardware."""
        return bool(self.vlan or self.bond or self.bridge)


@dataclass(frozen=True, slots=True)
class StaticRoute:
    destination: str  # "10.9.0.0/16"
    via: str = ""  # a router; empty: the network is on the interface itself
    interface: str = field(default="", metadata=INTERFACE)  # empty: the one whose network contains the router
    metric: int = 0  # of routes to the same network the lowest counts; 0: the kernel's own


@dataclass(frozen=True, slots=True)
class PolicyRoute:
    """What is sent from this address leaves by this router, whatever the default gateway is.

    With NAT there must be one anyway: an answer of a real server has to be routed before IPVS sees it (seen; it
    translates in the hook of what is forwarded) and only then leaves by this router.
    """

    source: str  # a VIP or an address of the box itself
    via: str
    interface: str = field(default="", metadata=INTERFACE)  # empty: the one whose network contains the router


@dataclass(frozen=True, slots=True)
class Network:
    hostname: str = "fairlead"
    gateway: str = ""  # the default gateway; empty: none, or the one that DHCP brings
    interfaces: tuple[Interface, ...] = ()
    gateway6: str = ""  # the default gateway of IPv6; empty: none
    routes: tuple[StaticRoute, ...] = ()
    policies: tuple[PolicyRoute, ...] = ()
    dns: tuple[str, ...] = ()  # name servers; empty: those that DHCP brings
    search: tuple[str, ...] = ()  # domains that a short name is looked for in
    ntp: tuple[str, ...] = ()  # time servers, addresses or names; empty: those that DHCP brings

    @property
    def entrances(self) -> tuple[str, ...]:
        """Interfaces where packets come in: what a member gets comes in by its bond or bridge."""
        members = {member for one in self.interfaces for member in one.members}
        return tuple(one.name for one in self.interfaces if one.on and one.name not in members)
