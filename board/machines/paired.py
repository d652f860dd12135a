"""One box of a pair whose other box is away: its configuration, for tests and benchmarks of a single machine."""

from __future__ import annotations

import base64
import dataclasses

from board.machines.director import NETWORK, Director, wish

from lbconfig.model.snapshot import Interface, Network, Pair, PairBox, Snapshot, Tuning, VirtualService, Vlan

AWAY = base64.b64encode(bytes([7]) * 32).decode()  # the key of the other box
MAKE_KEY = """
from applier.base.paths import Paths; from applier.host.host import Live; from applier.kept import pair_key
print(pair_key.make(Live(), Paths()))
"""


def key_of(director: Director) -> str:
    """The public key of the box, made if it has none."""
    return director.python(MAKE_KEY)


def paired(key: str, *services: VirtualService, advert: int = 250) -> Snapshot:
    """The box with this key is the first one, and what it had for itself floats. `advert` in milliseconds."""
    pair = Pair("0123456789abcdef" * 2, (_box(0, key), _box(1, AWAY)), advert)
    return dataclasses.replace(wish(*services), network=Network(), pair=pair)


def _box(number: int, key: str) -> PairBox:
    """The cable is a VLAN of the clients' network, where nobody is."""
    _, back, front = (dataclasses.replace(one, floating=one.addresses) for one in NETWORK.interfaces)
    moved = [
        dataclasses.replace(one, addresses=(one.addresses[0].replace(".1/24", f".{2 + number}/24"),))
        for one in (back, front)
    ]
    cable = Interface("eth2.9", addresses=(f"192.0.2.{number + 1}/30",), vlan=Vlan("eth2", 9))
    network = Network(hostname=f"lb{number + 1}", interfaces=(NETWORK.interfaces[0], *moved, cable))
    return PairBox(network, Tuning(), cable.name, cable.addresses[0], key)
