"""Two ports of the box that a cable joins, lent to the program that measures between them (cable.py).

Only ports that nothing uses are lent. They come back when the program has ended, by the kernel's own doing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any, Protocol

from applier.base.paths import Paths
from applier.capacity import record as capacity_record
from applier.hardware import tune as hardware
from applier.host.host import Host, HostError, run, wait_until
from applier.parts.network import act as network
from lbconfig.capacity import cable
from lbconfig.capacity.cable import Trial
from lbconfig.capacity.figures import Cpus, Limit, Rates
from lbconfig.model.network import Network
from lbconfig.target import Target
from lbconfig.validate.cards import of_status

MODULE = "pktgen"
BETWEEN_LINES = 60.0  # seconds: a trial takes six, and until the first one cards may take a while to see each other
BACK = 20.0  # seconds until the kernel has given the ports back
NO_SENDER = "This kernel has no packet generator (pktgen) or no network namespaces."


class NotMeasured(Exception):
    """The text is a sentence for an admin."""


class Core(Protocol):
    paths: Paths
    host: Host
    running: Target


def uses(host: Host, wanted: Network) -> dict[str, str]:
    """Each network card, and what stands against lending it; "": nothing."""
    named = {
        name for one in wanted.interfaces for name in (one.name, *one.members, one.vlan.parent if one.vlan else "")
    }
    found = {}
    for link in network.describe(host):
        name = link["name"]
        if not capacity_record.driver(host, name):
            continue
        found[name] = ""
        if name in named:
            found[name] = "is part of the configuration; remove it there first"
        elif link["addresses"] or link["master"]:
            found[name] = "is in use"
    return found


def free(host: Host, wanted: Network) -> list[str]:
    return sorted(name for name, why in uses(host, wanted).items() if not why)


class Rig:
    """HostError where the program cannot be started."""

    def __init__(self, core: Core, sender: str, receiver: str) -> None:
        self._core = core
        self._host = core.host
        self._sender, self._receiver = sender, receiver
        self._found: dict[str, list[Trial]] = {}
        if self._host.command(["modprobe", "-q", MODULE]).exit != 0:
            raise HostError(f"modprobe {MODULE}", None, NO_SENDER.removesuffix("."))
        links = [one for one in network.describe(self._host) if one["name"] in (sender, receiver)]
        self.cards = of_status(links)  # of the two ports, which nobody sees while they are lent
        macs = {one["name"]: one["mac"] for one in links}
        self._program = self._host.start(
            [sys.executable, "-m", "applier.capacity.between", receiver, sender, macs[receiver], macs[sender]]
        )

    def trials(self) -> Iterator[Trial]:
        """Each when it has ended. HostError or NotMeasured where it cannot go on."""
        lines = self._program.lines(BETWEEN_LINES)
        holders = self._told(next(lines, ""))
        for port, holder in ((self._receiver, "balancer"), (self._sender, "sender")):
            run(self._host, ["ip", "link", "set", "dev", port, "netns", str(holders[holder])])
        self._program.say("the ports are yours")
        for line in lines:
            told = self._told(line)
            one = told["trial"]
            trial = Trial(one["asked"], one["seconds"], one["sent"], Rates(**one["rates"]), Cpus(**one["cpus"]))
            self._found.setdefault(told["traffic"], []).append(trial)
            yield trial

    def _told(self, line: str) -> dict[str, Any]:
        try:
            told: dict[str, Any] = json.loads(line)
        except ValueError:
            raise NotMeasured(f"The program that measures has ended ({line[:80] or 'without a word'}).") from None
        if "error" in told:
            raise NotMeasured(told["error"])
        return told

    def words(self, trial: Trial) -> str:
        """For an admin, after this trial."""
        lost = f"{trial.lost:,} of {trial.sent:,} packets lost" if trial.lost else "nothing lost"
        return f"{self._sender} to {self._receiver}: {trial.rates.packets:,.0f} packets a second, {lost}"

    def found(self) -> list[tuple[str, Limit, int]]:
        """Of each traffic: its words, its limit, and the packets that were lost on the way to it."""
        limits = ((name, cable.limit(trials), sum(one.lost for one in trials)) for name, trials in self._found.items())
        return [(f"{self._sender} to {self._receiver}: {name}", limit, lost) for name, limit, lost in limits if limit]

    def end(self) -> None:
        """Take the ports back and set them up as before; HostError if they do not reappear."""
        self._program.end()
        wait_until(self._host, "the ports", BACK, self._missing)
        for port in (self._receiver, self._sender):
            hardware.tune(self._host, self._core.paths, self._core.running.own.tuning, port)
        self._host.command(["modprobe", "-q", "-r", MODULE])  # its threads wait for work on each CPU

    def _missing(self) -> str | None:
        there = {link.name for link in network.links(self._host)}
        return (
            " and ".join(sorted({self._receiver, self._sender} - there)) + " not there"
            if not ({self._receiver, self._sender} <= there)
            else None
        )
