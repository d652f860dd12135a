"""What each scheduler makes of two unequal servers: answers per second, and how many times those of round robin.

    make bench-schedulers

"agents": weights 1 and 1, which the servers' agents change by the clients that wait there.

Both servers work for four clients at a time; rs2 takes 2.2 times as long for an answer. Twelve clients ask again as
soon as they are answered, so that the one who gives both servers the same waits for the slower one. What they ask
from some seconds after the load began (BEFORE, WARM with agents) counts: in a pause before it both agents would say
that there is no load. The servers sleep and compute nothing, so the emulated processors matter little; the schedulers
take turns, ROUNDS times.
"""

from __future__ import annotations

import statistics
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from board.lab.build import Image, build
from board.machines.director import QUICK, VIP, wish
from board.machines.lab import boot, make_lab
from board.machines.world import SERVERS

from lbconfig.model.snapshot import Agent, AgentKind, CheckKind, HealthCheck, RealServer, Scheduler, VirtualService

PACES = {"rs1": 0.2, "rs2": 0.44}  # seconds for one answer
WEIGHTED = (2, 1)  # for the schedulers that look at weights: what an admin who knows the servers would set
SCHEDULERS = {
    "rr": (1, 1),
    "wrr": WEIGHTED,
    "wrr, agents": (1, 1),
    "lc": (1, 1),
    "wlc": (1, 1),
    "wlc, agents": (1, 1),
    "wlc, weights 2 and 1": WEIGHTED,
    "sed": (1, 1),
    "sed, weights 2 and 1": WEIGHTED,
    "nq": (1, 1),
    "sh": (1, 1),
}
CLIENTS = 12
SECONDS = 10
ROUNDS = 3
BEFORE = 3  # seconds until as many clients wait at each server as will go on waiting there
WARM = 30  # seconds until agents have been heard and the weights have settled
AGENT = Agent(AgentKind.TEXT, interval=2)


def service(number: int, name: str, weights: tuple[int, ...]) -> VirtualService:
    servers = tuple(
        RealServer(number * 10 + place, SERVERS[server], 80, weight)
        for place, (server, weight) in enumerate(zip(PACES, weights, strict=True))
    )
    scheduler = Scheduler(name.partition(",")[0])
    if name.endswith("agents"):
        return VirtualService(
            number, f"s{number}", VIP, 100 + number, scheduler=scheduler, check=QUICK, real_servers=servers, agent=AGENT
        )
    return VirtualService(
        number, f"s{number}", VIP, 100 + number, scheduler=scheduler, check=HealthCheck(CheckKind.OFF),
        real_servers=servers,
    )  # fmt: skip


def measure(
    image: Image, names: Iterable[str] = SCHEDULERS, rounds: int = ROUNDS, seconds: int = SECONDS
) -> dict[str, list[Counter[str]]]:
    """What each of these gave in each round: how many answers came from each server."""
    wanted = {name: SCHEDULERS[name] for name in names}
    services = {name: service(number, name, weights) for number, (name, weights) in enumerate(wanted.items(), 1)}
    counted: dict[str, list[Counter[str]]] = {name: [] for name in services}
    with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
        lab = make_lab(Path(folder), image)
        with lab.world, lab.director:
            boot(lab)
            lab.director.apply(wish(*services.values()))
            for name, pace in PACES.items():
                lab.world.pace(name, pace)
            for _ in range(rounds):
                for name, one in services.items():
                    before = WARM if one.weighed else BEFORE
                    counted[name].append(lab.world.load(f"{VIP}:{one.port}/work", CLIENTS, seconds, before))
    return counted


def main() -> None:
    counted = measure(build())
    base = statistics.median(sum(one.values()) for one in counted["rr"])
    print("scheduler              answers/s   rs1 of all   times round robin")
    for name, rounds in counted.items():
        total = statistics.median(sum(one.values()) for one in rounds)
        first = sum(one["rs1"] for one in rounds) / sum(sum(one.values()) for one in rounds)
        print(f"{name:22} {total / SECONDS:9.1f} {first:12.0%} {total / base:19.2f}")


if __name__ == "__main__":
    main()
