"""The program that measures between two ports of the box: `python3 -m applier.cable PORT OTHER OTHERS-ADDRESS`.

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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

from applier import capacity_meter
from applier.host import Host, HostError, Live, run
from applier.network_present import links
from lbconfig.hardware import cable
from lbconfig.hardware.cable import Traffic, Trial
from lbconfig.hardware.capacity import rates, read_cpus, use
from lbconfig.render import ipvs, nftables, sysctl

PKTGEN = Path("/proc/net/pktgen")
CONTROL = PKTGEN / "pgctrl"
LINK_SECONDS = 15.0  # until the ports see each other; a card of 10 Gbit/s takes its time
ARRIVES = 0.5  # seconds that a packet takes at most from one port to the other
NAMESPACED = ("net/ipv4/", "net/ipv6/conf/")  # settings that each network namespace has of its own
NO_CABLE = "{port} sees no cable within {seconds:g} seconds."
NOT_JOINED = "Nothing that {other} sends arrives at {port}: is the cable between these two?"


class Unmeasurable(Exception):
    """The text is a sentence for an admin."""


# --- the sender -------------------------------------------------------------------------------------


@dataclass
class Sender:
    """The other process, as the balancer's sees it."""

    pid: int
    orders: TextIO
    answers: TextIO

    def send(self, traffic: Traffic, rate: float, seconds: float) -> int:
        """Packets that were sent; Unmeasurable where that cannot be said."""
        print(json.dumps([traffic.name, rate, seconds]), file=self.orders, flush=True)
        answer = json.loads(self.answers.readline() or '{"error": "the sender has ended"}')
        if "error" in answer:
            raise Unmeasurable(f"The sender failed: {answer['error']}.")
        return answer["sent"]


def started(host: Host, port: str, target: str) -> Sender:
    """A process in a network namespace of its own that sends by `port` to the hardware address `target`."""
    order_in, order_out = os.pipe()
    answer_in, answer_out = os.pipe()
    ready_in, ready_out = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            for one in (order_out, answer_in, ready_in):
                os.close(one)
            os.unshare(os.CLONE_NEWNET)
            os.close(ready_out)
            _serve(host, port, target, os.fdopen(order_in), os.fdopen(answer_out, "w"))
        finally:  # whatever happened, what a forked process inherited is not its own to tidy
            os._exit(0)
    for one in (order_in, answer_out, ready_out):
        os.close(one)
    os.read(ready_in, 1)  # it ends when that process has its namespace, or is gone
    os.close(ready_in)
    return Sender(pid, os.fdopen(order_out, "w"), os.fdopen(answer_in))


def _serve(host: Host, port: str, target: str, orders: TextIO, answers: TextIO) -> None:
    by_name = {one.name: one for one in cable.TRAFFICS}
    for line in orders:
        name, rate, seconds = json.loads(line)
        try:
            answer = {"sent": _send(host, port, target, by_name[name], rate, seconds)}
        except (HostError, ValueError) as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), file=answers, flush=True)


def _send(host: Host, port: str, target: str, traffic: Traffic, rate: float, seconds: float) -> int:
    run(host, ["ip", "link", "set", "dev", port, "up"])
    thread = _thread(host)
    host.tell(thread, "rem_device_all\n")
    host.tell(thread, f"add_device {port}\n")
    for order in cable.orders(traffic, target, rate):
        host.tell(PKTGEN / port, f"{order}\n")
    # "start" does not return before it has ended.
    sending = threading.Thread(target=host.tell, args=(CONTROL, "start\n"), daemon=True)
    sending.start()
    sending.join(seconds)
    host.tell(CONTROL, "stop\n")
    sending.join()
    return cable.read_sent(host.read(PKTGEN / port) or "")


def _thread(host: Host) -> Path:
    """Of the last CPU: the first ones have most of the interrupts."""
    names = [name for name in host.names(PKTGEN) if name.startswith("kpktgend_")]
    if not names:
        raise HostError("pktgen", None, "this kernel has no packet generator")
    return PKTGEN / max(names, key=lambda name: int(name.rpartition("_")[2]))


# --- the balancer -----------------------------------------------------------------------------------


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


# --- both -------------------------------------------------------------------------------------------


def say(**what: object) -> None:
    print(json.dumps(what), flush=True)


def end_with_the_input(sender: Sender) -> None:
    """Who started this is gone, or wants it to end."""
    sys.stdin.read()
    os.kill(sender.pid, 9)
    os._exit(0)


def main(port: str, other: str, own_address: str, other_end: str) -> int:
    host = Live()
    os.unshare(os.CLONE_NEWNET)
    sender = started(host, other, own_address)
    say(balancer=os.getpid(), sender=sender.pid)
    sys.stdin.readline()  # the ports are there now
    threading.Thread(target=end_with_the_input, args=(sender,), daemon=True).start()
    try:
        prepare(host, port, other_end)
        wait_for_cable(host, port)
        for traffic in cable.TRAFFICS:
            for trial in trials(host, sender, traffic):
                if not trial.rates.packets:
                    raise Unmeasurable(NOT_JOINED.format(other=other, port=port))
                say(traffic=traffic.name, trial=asdict(trial))
    except Unmeasurable as error:
        say(error=str(error))
        return 1
    except HostError as error:
        say(error=f"{error}.")
        return 1
    finally:
        os.kill(sender.pid, 9)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
