"""Services of every kind over the world's servers, and idle connections over them: what a pair has to keep."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from board.machines.director import by_six, service
from board.machines.wait import until
from board.machines.world import SERVERS, SERVERS6, World

from balancing import server_setup
from lbconfig.model.snapshot import CheckKind, Forwarding, HealthCheck, Protocol, Snapshot, VirtualService

FILE, PROGRAM = "/run/world/idle", "/run/world/idle.py"
PORT, ROUTED_UDP = 7000, 7001  # on all addresses of a server; and on the virtual ones alone
EACH = 10  # connections of each kind
SOON = 240.0  # seconds
NAT, ROUTED, TUNNEL, MARK, MARK2, STICKY, SNAT = (f"10.1.0.{number}" for number in range(100, 107))
NAT6, ROUTED6, TUNNEL6, SNAT6 = (f"2001:db8:1::{number}" for number in (100, 101, 102, 106))
OFF = HealthCheck(CheckKind.OFF)
KINDS = {  # of connections: where the client goes
    "TCP4": ("tcp", NAT, PORT),
    "TCP6": ("tcp", NAT6, PORT),
    "UDP4": ("udp", NAT, PORT),
    "routed": ("tcp", ROUTED, PORT),
    "routed6": ("tcp", ROUTED6, PORT),
    "routedU": ("udp", ROUTED, ROUTED_UDP),
    "tunnel": ("tcp", TUNNEL, PORT),
    "tunnel6": ("tcp", TUNNEL6, PORT),
    "tunnelU": ("udp", TUNNEL, ROUTED_UDP),
    "snat": ("tcp", SNAT, PORT),
    "snat6": ("tcp", SNAT6, PORT),
    "mark": ("tcp", MARK, PORT),
    "mark2": ("tcp", MARK2, PORT),
    "sticky": ("tcp", STICKY, PORT),
}
TOTAL = EACH * len(KINDS)


def _one(number: int, address: str, forwarding: Forwarding = Forwarding.NAT, port: int = PORT) -> VirtualService:
    plain = service(number, f"mix{number}", port, check=OFF, address=address)
    return dataclasses.replace(plain, forwarding=forwarding)


def _datagrams(plain: VirtualService) -> VirtualService:
    return dataclasses.replace(plain, protocol=Protocol.UDP)


def _marked(plain: VirtualService) -> VirtualService:
    """At two addresses: the port stays the one that the client asked for."""
    servers = tuple(dataclasses.replace(one, port=0) for one in plain.real_servers)
    return dataclasses.replace(plain, more_addresses=(MARK2,), persistence=600, real_servers=servers)


SERVICES = (
    _one(11, NAT),
    by_six(_one(12, NAT), NAT6),
    _datagrams(_one(13, NAT)),
    _one(14, ROUTED, Forwarding.DIRECT),
    by_six(_one(15, ROUTED, Forwarding.DIRECT), ROUTED6),
    _datagrams(_one(16, ROUTED, Forwarding.DIRECT, ROUTED_UDP)),
    _one(17, TUNNEL, Forwarding.TUNNEL),
    by_six(_one(18, TUNNEL, Forwarding.TUNNEL), TUNNEL6),
    _datagrams(_one(19, TUNNEL, Forwarding.TUNNEL, ROUTED_UDP)),
    _one(20, SNAT, Forwarding.SNAT),
    by_six(_one(21, SNAT, Forwarding.SNAT), SNAT6),
    _marked(_one(22, MARK)),
    dataclasses.replace(_one(23, STICKY), persistence=500),
)


def set_up_servers(world: World, snapshot: Snapshot) -> None:
    """With the script that the box offers; what reached them past the box goes back past it."""
    world.give_servers_a_router()
    world.write(PROGRAM, (Path(__file__).parent / "idle.py").read_text())
    for name in SERVERS:
        inside = f"ip netns exec {name}"
        # The script ends by looking whether something listens.
        world.succeed(
            f"{inside} python3 {PROGRAM} serve {name} {ROUTED_UDP} {ROUTED} {TUNNEL} >/run/world/{name}.idle 2>&1 &"
        )
        for address in (SERVERS[name], SERVERS6[name]):
            world.write(f"/run/world/{name}.sh", server_setup.script(server_setup.setup_of(snapshot, address)))
            world.succeed(f"{inside} sh /run/world/{name}.sh")
        world.succeed(
            f"set -e; at='ip -n {name}'; $at route replace default via 10.2.0.1; "
            "$at -6 route replace default via 2001:db8:2::1; "
            "$at rule add from 10.1.0.0/24 lookup 100; $at route add default via 10.2.0.254 table 100; "
            "$at -6 rule add from 2001:db8:1::/64 lookup 100; $at -6 route add default via 2001:db8:2::254 table 100"
        )


class Idle:
    """EACH connections of every kind, which nobody speaks over but `talk`."""

    def __init__(self, world: World) -> None:
        self._world = world
        kinds = json.dumps([[kind, *where, EACH] for kind, where in KINDS.items()])
        world.succeed(
            f"ip netns exec client python3 {PROGRAM} hold {FILE} '{kinds}' >{FILE}.log 2>&1 & echo $! >{FILE}.pid"
        )
        self.opened = self._report()

    def talk(self) -> dict[str, int]:
        """How many of each kind were answered by the server that they had."""
        self._world.succeed(f"rm {FILE}; kill -USR1 $(cat {FILE}.pid)")
        return self._report()

    def complaints(self) -> str:
        """A line for each that was not kept, with the reason."""
        return self._world.succeed(f"cat {FILE}.log")

    def _report(self) -> dict[str, int]:
        def there() -> str:
            self._world.succeed(f"kill -0 $(cat {FILE}.pid) || {{ cat {FILE}.log; exit 1; }}")
            return self._world.execute(["cat", FILE]).output

        return json.loads(until("the report of the idle connections", there, SOON, 1.0))
