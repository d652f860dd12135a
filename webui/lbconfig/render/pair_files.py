"""What the boxes of a pair hold and how they reach each other: the files of the floater and of WireGuard."""

from __future__ import annotations

import json
from collections.abc import Iterable

from lbconfig.model.addresses import endpoint
from lbconfig.model.snapshot import Snapshot
from lbconfig.pair import LEASE, floating, sides
from lbconfig.wanted.netstate import Address
from lbconfig.wanted.pair_link import ADDRESSES, KEEPALIVE, LINK_PORT, SYNC_GROUPS

VERSION = 1  # of floating.json


def render_floating(snapshot: Snapshot) -> str:
    """JSON with an address a line, for the floater; of a box that is alone it is empty."""
    both = sides(snapshot)
    if both is None:
        return ""
    return _floating_text(floating(snapshot, both.number))


def with_those_of(text: str, other: str) -> str:
    """A file of the floater's that has the addresses of another one as well. The other may be damaged."""
    own = _read_floating(text)
    try:
        more = [one for one in _read_floating(other) if one not in own]
    except (ValueError, TypeError, KeyError):
        more = []
    return _floating_text([*own, *more])


def _floating_text(addresses: Iterable[Address]) -> str:
    lines = ",\n".join(json.dumps(one) for one in addresses)
    inside = f"\n{lines}\n" if lines else ""
    return f'{{"version": {VERSION}, "lease": {LEASE}, "addresses": [{inside}]}}\n'


def _read_floating(text: str) -> list[Address]:
    return [(str(name), str(address)) for name, address in json.loads(text)["addresses"]]


def render_link(snapshot: Snapshot) -> str:
    """In wg(8)'s syntax, of the peer alone: the box's private key is no part of any file that is rendered."""
    both = sides(snapshot)
    if both is None:
        return ""
    return link_text(both.number, both.peer.key, both.peer.cable_address.partition("/")[0])


def link_text(own: int, key: str, place: str) -> str:
    """The same of any two boxes. `own`: which of them this one is; `key`, `place`: the other one's, and its address."""
    address = ADDRESSES[1 - own].partition("/")[0]
    lines = [
        "[Interface]",
        f"ListenPort = {LINK_PORT}",
        "",
        "[Peer]",
        f"PublicKey = {key}",
        f"AllowedIPs = {', '.join((f'{address}/32', *SYNC_GROUPS))}",
        f"Endpoint = {endpoint(place, LINK_PORT)}",
        f"PersistentKeepalive = {KEEPALIVE}",
    ]
    return "".join(f"{line}\n" for line in lines)
