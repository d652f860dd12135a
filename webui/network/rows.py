"""Between the rows of the network and the snapshot."""

from __future__ import annotations

import dataclasses
from typing import Any

from lbconfig.model import snapshot as wish
from network.models import Interface, Network

PLAIN = ("hostname", "gateway", "gateway6")
ENTRIES = ("routes", "policies")
TEXTS = ("dns", "search", "ntp")


def network_wish(row: Network) -> wish.Network:
    """Of the stored network with all of its interfaces."""
    texts: dict[str, Any] = {name: tuple(getattr(row, name)) for name in TEXTS}
    return wish.Network(
        **{name: getattr(row, name) for name in PLAIN},
        interfaces=tuple(map(_interface_wish, Interface.objects.all())),
        routes=tuple(wish.StaticRoute(**one) for one in row.routes),
        policies=tuple(wish.PolicyRoute(**one) for one in row.policies),
        **texts,
    )


def _interface_wish(row: Interface) -> wish.Interface:
    bond, bridge = row.bond, row.bridge
    return wish.Interface(
        row.name,
        row.dhcp,
        tuple(row.addresses),
        row.on,
        row.mtu,
        row.note,
        wish.Vlan(**row.vlan) if row.vlan else None,
        bond_wish(**bond) if bond else None,
        wish.Bridge(tuple(bridge["members"]), bridge["stp"]) if bridge else None,
    )


def bond_wish(members, mode: str, miimon: int, lacp_rate: str, hash_policy: str, primary: str) -> wish.Bond:
    return wish.Bond(
        tuple(members), wish.BondMode(mode), miimon, wish.LacpRate(lacp_rate), wish.HashPolicy(hash_policy), primary
    )


def store(row: Network, network: wish.Network) -> None:
    """Into the row, which the caller stamps, and into the rows of its interfaces."""
    for name in PLAIN:
        setattr(row, name, getattr(network, name))
    for name in ENTRIES:
        setattr(row, name, [dataclasses.asdict(one) for one in getattr(network, name)])
    for name in TEXTS:
        setattr(row, name, list(getattr(network, name)))
    Interface.objects.all().delete()
    Interface.objects.bulk_create(
        Interface(position=place, **{name: _plain(getattr(entry, name)) for name in INTERFACE_FIELDS})
        for place, entry in enumerate(network.interfaces)
    )


INTERFACE_FIELDS = tuple(field.name for field in dataclasses.fields(wish.Interface))


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return list(value) if isinstance(value, tuple) else value
