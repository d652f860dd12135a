"""A pair ends: what the box that leaves becomes, and what the one that goes on alone."""

from __future__ import annotations

from dataclasses import replace

from lbconfig.model.network import Interface
from lbconfig.model.snapshot import Snapshot
from lbconfig.pair import view


def staying(snapshot: Snapshot, box: int) -> Snapshot:
    """Of the box that goes on alone: what floated is its own from now on, beside its own addresses.

    Those come first, as they do now: what stays is not touched by the change.
    """
    own = view(snapshot, box)
    interfaces = tuple(
        replace(one, addresses=(*one.addresses, *one.floating), floating=()) for one in own.network.interfaces
    )
    return replace(own, pair=None, network=replace(own.network, interfaces=interfaces))


def leaving(snapshot: Snapshot, box: int) -> Snapshot:
    """Of the box that leaves: its network stays, and its services are off.

    Addresses that floated are the other box's, and so is what leaves from them.
    """
    own = view(snapshot, box)
    gone = {text.partition("/")[0] for one in own.network.interfaces for text in one.floating}
    network = replace(
        own.network,
        interfaces=tuple(_without_floating(one) for one in own.network.interfaces),
        policies=tuple(one for one in own.network.policies if one.source not in gone),
    )
    services = tuple(replace(one, enabled=False) if one.enabled else one for one in own.services)
    return replace(own, pair=None, network=network, services=services)


def _without_floating(interface: Interface) -> Interface:
    return replace(interface, floating=()) if interface.floating else interface
