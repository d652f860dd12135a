"""The program that measures between two ports of the box.

    python3 -m applier.capacity.between PORT OTHER OTHERS-ADDRESS

It makes two network namespaces, one for the balancer with PORT and one for the sender with OTHER, and says which
processes hold them: {"balancer": pid, "sender": pid}. Who started it moves the ports there and writes a line; then it
says a line of JSON for each trial, {"trial": {…}}, and ends. {"error": "…"} says why it does not.

The namespaces are held by these two processes alone. When they end, however that happens, the kernel gives the ports
back (net/core/dev.c, default_device_exit_net): so nothing is to be tidied after a kill. They end by themselves when
their input ends, which it does when who started them is no more. os.unshare: Python 3.12.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from applier.capacity import meter as capacity_meter
from applier.host.host import Host, HostError, Live, run
from applier.parts.network.present import links
from lbconfig.capacity import cable
from lbconfig.capacity.cable import Traffic, Trial
from lbconfig.capacity.figures import rates, read_cpus, use
from lbconfig.render import nftables
from lbconfig.wanted import settings as sysctl
from lbconfig.wanted import table as ipvs

ANSWERS = 60.0  # seconds within which the sender has sent
LINK_SECONDS = 15.0  # until the ports see each other; a card of 10 Gbit/s takes its time
ARRIVES = 0.5  # seconds that a packet takes at most from one port to the other
NAMESPACED = ("net/ipv4/", "net/ipv6/conf/")  # settings that each network namespace has of its own
NO_CABLE = "{port} sees no cable within {seconds:g} seconds."
NOT_JOINED = "Nothing that {other} sends arrives at {port}: is the cable between these two?"


class Unmeasurable(Exception):
    """The text is a sentence for an admin."""


class Sender:
    """The program that sends (sender.py). HostError where it does not answer, Unmeasurable where it cannot."""

    def __init__(self, host: Host, port: str, target: str) -> None:
        self._program = host.start([sys.executable, "-m", "applier.capacity.sender", port, target])
        self.pid: int = self._answer()["pid"]

    def send(self, traffic: Traffic, rate: float, seconds: float) -> int:
        """Packets that were sent."""
        self._program.say(json.dumps([traffic.name, rate, seconds]))
        sent: int = self._answer()["sent"]
        return sent

    def _answer(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(next(self._program.lines(ANSWERS), '{"error": "it has ended"}'))
        if "error" in answer:
            raise Unmeasurable(f"The sender failed: {answer['error']}.")
        return answer


def prepare(host: Host, port: str, other_end: str) -> None:
    """HostError where it cannot be set up; Unmeasurable where the port sees no cable."""
    snapshot = cable.snapshot(port)
    for one in sysctl.settings(snapshot):
        if one.key.startswith(NAMESPACED) and host.setting(one.key) is not None:
            host.set(one.key, one.value)
    run(host, ["ip", "-batch", "-"], cable.addresses(port, other_end))
    run(host, ["nft", "-f", "-"], nftables.render(snapshot))
    services = ipvs.difference(ipvs.Table(), ipvs.wanted(snapshot), ipvs.checked(snapshot))
    run(host, ["ipvsadm", "-R"], "".join(f"{line}\n" for line in services))
    run(host, ["ipvsadm", "--set", "0", "0", str(cable.FORGET)])


def wait_for_cable(host: Host, port: str) -> None:
    """By netlink: /sys shows the cards of the namespace in which it was mounted."""
    deadline = host.now() + LINK_SECONDS
    while not any(link.name == port and link.up for link in links(host)):
        if host.now() > deadline:
            raise Unmeasurable(NO_CABLE.format(port=port, seconds=LINK_SECONDS))
        host.sleep(0.5)


def trials(host: Host, sender: Sender, traffic: Traffic) -> Iterator[Trial]:
    """Until the highest rate is found that loses nothing."""
    done: list[Trial] = []
    while (wanted := cable.following(done)) is not None:
        done.append(_try(host, sender, traffic, *wanted))
        yield done[-1]


def _try(host: Host, sender: Sender, traffic: Traffic, rate: float, seconds: float) -> Trial:
    before, cpus = capacity_meter.totals(host), read_cpus(host.read(capacity_meter.CPUS) or "")
    began = host.now()
    sent = sender.send(traffic, rate, seconds)
    took = host.now() - began
    cpus_after = read_cpus(host.read(capacity_meter.CPUS) or "")
    host.sleep(ARRIVES)
    return Trial(rate, took, sent, rates(before, capacity_meter.totals(host), took), use(cpus, cpus_after))


def say(**what: object) -> None:
    print(json.dumps(what), flush=True)


def end_with_the_input(host: Host, sender: Sender) -> None:
    """Who started this is gone, or wants it to end."""
    sys.stdin.read()
    host.end(sender.pid)
    os._exit(0)


def main(port: str, other: str, own_address: str, other_end: str) -> int:
    host = Live()
    os.unshare(os.CLONE_NEWNET)  # type: ignore[attr-defined] # Python 3.12, which the box has; we check for 3.11
    try:
        sender = Sender(host, other, own_address)
        try:
            measure(host, sender, port, other, other_end)
        finally:
            host.end(sender.pid)
    except Unmeasurable as error:
        say(error=str(error))
        return 1
    except HostError as error:
        say(error=f"{error}.")
        return 1
    return 0


def measure(host: Host, sender: Sender, port: str, other: str, other_end: str) -> None:
    """Ask for the ports and say each trial."""
    say(balancer=os.getpid(), sender=sender.pid)
    sys.stdin.readline()  # the ports are there now
    threading.Thread(target=end_with_the_input, args=(host, sender), daemon=True).start()
    prepare(host, port, other_end)
    wait_for_cable(host, port)
    for traffic in cable.TRAFFICS:
        for trial in trials(host, sender, traffic):
            if not trial.rates.packets:
                raise Unmeasurable(NOT_JOINED.format(other=other, port=port))
            say(traffic=traffic.name, trial=asdict(trial))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
