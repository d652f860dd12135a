"""Pairs of boxes: one that uses everything, and valid ones of every kind."""

import base64
import dataclasses
import functools
import ipaddress

from lbconfig_strategies import drawn, examples

from lbconfig.model.firewall import Firewall, Rule, Where
from lbconfig.model.snapshot import (
    CheckKind,
    Forwarding,
    HealthCheck,
    Interface,
    Management,
    Network,
    Pair,
    PairBox,
    PolicyRoute,
    Protocol,
    RealServer,
    Snapshot,
    Tuning,
    VirtualService,
)
from lbconfig.validate.services import validate

KEYS = tuple(base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2))
ID = "0123456789abcdef" * 2


def network(number: int) -> Network:
    """Of the first box or the second; what the box that was alone had floats."""
    own = 21 + number
    return Network(
        f"lb{number + 1}",
        "10.0.2.2",
        (
            Interface(
                "eth0",
                addresses=(f"10.0.2.{own}/24", f"2001:db8:1::{own}/64"),
                floating=("10.0.2.15/24", "2001:db8:1::15/64"),
            ),
            Interface("eth1", addresses=(f"10.2.0.{own}/24", f"2001:db8:2::{own}/64"), floating=("10.2.0.1/24",)),
            Interface("eth2", addresses=(f"192.0.2.{number + 1}/30",)),
        ),
        policies=(PolicyRoute("10.0.2.15", "10.0.2.9"),),
    )


def box(number: int) -> PairBox:
    return PairBox(network(number), Tuning(), "eth2", f"192.0.2.{number + 1}/30", KEYS[number])


SERVICES = (
    VirtualService(
        1, "web", "10.0.2.100", 80, forwarding=Forwarding.SNAT, real_servers=(RealServer(1, "10.2.0.11", 80),)
    ),
    VirtualService(
        2,
        "several",
        "10.0.2.101",
        53,
        Protocol.TCP_UDP,
        check=HealthCheck(CheckKind.OFF),
        more_ports="7000-7001",
        real_servers=(RealServer(2, "10.2.0.11", 0), RealServer(3, "10.2.0.12", 0, forwarding=Forwarding.SNAT)),
    ),
    VirtualService(
        3,
        "six",
        "2001:db8:1::100",
        80,
        forwarding=Forwarding.SNAT,
        real_servers=(RealServer(4, "2001:db8:2::11", 80),),
    ),
    # At the address that the box had while it was alone.
    VirtualService(4, "mail", "10.0.2.15", 25, real_servers=(RealServer(5, "10.2.0.13", 25),)),
)
PAIR = Snapshot(
    SERVICES,
    management=Management(("10.0.2.0/24", "2001:db8::/32")),
    firewall=Firewall((Rule(1, "updates", where=Where.THROUGH, sources=("10.2.0.0/24",), masquerade=True),)),
    pair=Pair(ID, (box(0), box(1))),
)


def with_pair(**fields) -> Snapshot:
    return dataclasses.replace(PAIR, pair=dataclasses.replace(PAIR.pair, **fields))


def with_box(number: int, **fields) -> Snapshot:
    boxes = list(PAIR.pair.boxes)
    boxes[number] = dataclasses.replace(boxes[number], **fields)
    return with_pair(boxes=tuple(boxes))


def with_network(number: int, **fields) -> Snapshot:
    return with_box(number, network=dataclasses.replace(network(number), **fields))


def with_interface(number: int, name: str, **fields) -> Snapshot:
    interfaces = network(number).interfaces
    changed = (dataclasses.replace(one, **fields) if one.name == name else one for one in interfaces)
    return with_network(number, interfaces=tuple(changed))


def with_both(name: str, **fields) -> Snapshot:
    """An interface of both boxes."""
    boxes = [with_interface(number, name, **fields).pair.boxes[number] for number in (0, 1)]
    return with_pair(boxes=tuple(boxes))


def with_service(**fields) -> Snapshot:
    return dataclasses.replace(PAIR, services=(dataclasses.replace(SERVICES[0], **fields), *SERVICES[1:]))


def joined(alone: Snapshot, floats: bool, advert: int, by_itself: bool, tuning: Tuning) -> Snapshot:
    """Two boxes instead of the one: its addresses float or are given up, and each gets new ones."""
    boxes = []
    for number in (0, 1):
        interfaces = [
            dataclasses.replace(
                one,
                dhcp=False,
                addresses=tuple(moved(text, 40 + number) for text in one.addresses),
                floating=one.addresses if floats else (),
            )
            for one in alone.network.interfaces
        ]
        cable = Interface("cable", addresses=(f"192.0.2.{number + 1}/30",))
        own = dataclasses.replace(alone.network, hostname=f"lb{number}", interfaces=(*interfaces, cable))
        boxes.append(PairBox(own, (alone.tuning, tuning)[number], "cable", cable.addresses[0], KEYS[number]))
    pair = Pair(ID, (boxes[0], boxes[1]), advert, by_itself)
    found = dataclasses.replace(alone, services=(), network=Network(), tuning=Tuning(), pair=pair)
    assert validate(found) == []
    for service in alone.services:
        more = dataclasses.replace(found, services=(*found.services, service))
        found = found if validate(more) else more
    return found


def moved(text: str, by: int) -> str:
    one = ipaddress.ip_interface(text)
    return f"{one.ip + by}/{one.network.prefixlen}"


@functools.cache
def drawn_pairs() -> tuple[Snapshot, ...]:
    """Valid ones of every kind. To make one takes a second of a small machine, so all tests share them."""
    alone = drawn(examples(20))
    return tuple(
        joined(one, number % 2 == 0, (100, 250, 10_000)[number % 3], number % 4 < 2, other.tuning)
        for number, (one, other) in enumerate(zip(alone, reversed(alone), strict=True))
    )
