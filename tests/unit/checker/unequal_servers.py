"""Unequal servers behind the kernel's weighted round robin, in a time of their own: what weights make of them.

Each server works for WORKERS clients at a time; the others wait. Clients ask again as soon as they are answered. The
figures are those of bench/schedulers.py; what an agent says is a mean of MEMORY seconds, as with the agents there are.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

PACES = (0.2, 0.44)  # seconds for one answer
WORKERS = 4
LOOK = 0.25  # seconds between two looks of an agent, and of the checks
BETWEEN = 0.03  # seconds between an answer and the next question of the same client, on average
Agent = Callable[[float], float]  # clients that are worked for or wait, in parts of WORKERS -> per cent


def queue(load: float) -> float:
    """What the agent of the lab's servers says: 100 until clients wait."""
    return 100 / max(1, load)


def idle(load: float) -> float:
    """What most agents say, that of the scripts as well: how many of the processors are idle."""
    return 100 * (1 - min(1, load))


class RoundRobin:
    """net/netfilter/ipvs/ip_vs_wrr.c: the heaviest first, and once more for each step that it is ahead."""

    def __init__(self, weights: Sequence[int]) -> None:
        self._current = 0
        self.change(weights)

    def change(self, weights: Sequence[int]) -> None:
        self.weights = tuple(weights)
        self._step = math.gcd(*self.weights)
        self._most = max(self.weights) - self._step + 1
        self._last = -1
        if not 0 < self._current <= self._most:
            self._current = self._most
        elif self._step > 1:
            self._current = self._current // self._step * self._step + 1

    def next(self) -> int:
        while True:
            for number in range(self._last + 1, len(self.weights)):
                if self.weights[number] >= self._current:
                    self._last = number
                    return number
            self._last = -1
            self._current -= self._step
            if self._current <= 0:
                self._current = self._most


@dataclass
class Server:
    pace: float
    memory: float  # seconds that its agent makes a mean of
    working: int = 0
    waiting: int = 0
    answers: int = 0
    looks: deque[float] = field(init=False)

    def __post_init__(self) -> None:
        self.looks = deque([0], round(self.memory / LOOK))

    def look(self, agent: Agent) -> float:
        """What its agent would say now."""
        self.looks.append((self.working + self.waiting) / WORKERS)
        busy = [min(1, load) for load in self.looks] if agent is idle else self.looks
        return agent(sum(busy) / len(busy))


def serve(
    turns: RoundRobin, agent: Agent, clients: int, memory: float
) -> Iterator[tuple[float, list[Server], list[float]]]:
    """Every LOOK seconds, without an end: the time, the servers, and what each agent would say."""
    chance = random.Random(1)
    servers = [Server(pace, memory) for pace in PACES]
    numbers = itertools.count()
    due: list[tuple[float, int, Server | None]] = []  # an answer of this server, or a question

    def later(seconds: float, server: Server | None = None) -> None:
        heapq.heappush(due, (now + seconds, next(numbers), server))

    def work(server: Server) -> None:
        server.working += 1
        later(server.pace * chance.uniform(1, 1.02), server)

    now = 0.0
    for client in range(clients):
        later(client / 100)
    for looks in itertools.count(1):
        while due[0][0] < looks * LOOK:
            now, _, answered = heapq.heappop(due)
            if answered:
                answered.working -= 1
                answered.answers += 1
                if answered.waiting:
                    answered.waiting -= 1
                    work(answered)
                later(BETWEEN * chance.uniform(0.5, 1.5))
                continue
            asked = servers[turns.next()]
            if asked.working < WORKERS:
                work(asked)
            else:
                asked.waiting += 1
        now = looks * LOOK
        yield now, servers, [one.look(agent) for one in servers]
