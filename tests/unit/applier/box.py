"""A whole applier over a model host: what the tests of steps, start and power cuts begin with."""

import dataclasses
import threading
import time
from pathlib import Path

from model_host import BACKLOG, ModelHost

from applier.base.paths import Paths
from applier.daemon import Applier
from applier.wire.shapes import ENDED, RunStatus
from lbconfig.model.snapshot import (
    Bond,
    Bridge,
    CheckKind,
    HealthCheck,
    Interface,
    Management,
    Network,
    Policy,
    PolicyRoute,
    Protocol,
    RealServer,
    Scheduler,
    SettingChoice,
    Snapshot,
    SorryPage,
    StaticRoute,
    Tuning,
    VirtualService,
    Vlan,
    to_data,
)
from lbconfig.validate.services import validate


def service(number, port, servers, **fields) -> VirtualService:
    reals = tuple(RealServer(10 * number + i, address, port) for i, address in enumerate(servers))
    return VirtualService(number, f"service {number}", "192.168.10.80", port, real_servers=reals, **fields)


WEB = service(1, 80, ("10.2.0.11", "10.2.0.12"))
DNS = service(2, 53, ("10.2.0.31",), protocol=Protocol.UDP, check=HealthCheck(CheckKind.OFF))

ONE = Snapshot(
    services=(WEB, DNS),
    network=Network(
        hostname="one",
        gateway="192.168.10.1",
        interfaces=(
            Interface("eth0", addresses=("192.168.10.2/24", "2001:db8:1::2/64")),
            Interface("eth1", addresses=("10.2.0.1/24", "2001:db8:2::1/64")),
        ),
        gateway6="2001:db8:1::1",
    ),
    management=Management(allow=("192.168.0.0/16",)),
)
# It changes something in every step: rules, the page's port, links, settings, addresses both ways, DHCP, IPv6, …
TWO = Snapshot(
    services=(
        dataclasses.replace(WEB, scheduler=Scheduler.RR, real_servers=WEB.real_servers[:1]),
        dataclasses.replace(service(3, 8080, ("10.2.0.13", "10.2.0.12")), address="192.168.10.81"),
    ),
    network=Network(
        hostname="two",
        gateway="192.168.10.254",
        interfaces=(
            Interface("eth0", dhcp=True, addresses=("192.168.10.3/24",)),
            Interface("eth1", addresses=("10.2.0.1/24",)),
            Interface("eth2", addresses=("172.20.0.1/24",)),
            Interface("v20", vlan=Vlan("eth2", 20)),
        ),
        dns=("192.168.10.9",),
        search=("example.org",),
        ntp=("time.example.org",),
    ),
    management=Management(allow=("192.168.0.0/16", "10.0.0.0/8"), port=8443),
    sorry=SorryPage("Back tomorrow"),
    policy=Policy(udp_timeout=60, adopt=True),
    tuning=Tuning((SettingChoice(BACKLOG, "512"),)),
)
# The same services over a bond, a bridge and a VLAN, with routes of every kind; the addresses move there.
KINDS = dataclasses.replace(
    ONE,
    network=Network(
        hostname="one",
        gateway="192.168.10.1",
        interfaces=(
            Interface("bond0", addresses=("192.168.10.2/24", "2001:db8:1::2/64"), bond=Bond(("eth0",), primary="eth0")),
            Interface("br0", mtu=1400, addresses=("10.2.0.1/24", "2001:db8:2::1/64"), bridge=Bridge(("eth1", "eth2"))),
            Interface("office", addresses=("172.20.0.1/24",), vlan=Vlan("bond0", 20)),
        ),
        gateway6="2001:db8:1::1",
        routes=(StaticRoute("172.30.0.0/16", "172.20.0.254"),),
        policies=(PolicyRoute("192.168.10.80", "172.20.0.253"),),
    ),
)
for one in (ONE, TWO, KINDS):
    assert not validate(one), validate(one)


class Box:
    def __init__(self, folder: Path) -> None:
        run = folder / "run"
        self.paths = Paths(
            folder / "state", None, run, folder / "service", Path("/usr/share/dhcp"), shared=folder / "shared"
        )
        self.host = ModelHost(self.paths)
        self.boottime = 5000.0  # what the timer of a confirmation counts on
        self.secret = ""  # that the last apply gave out
        self.applier = self._daemon()

    def _daemon(self) -> Applier:
        return Applier(self.paths, self.host, lambda: self.boottime)

    def start(self) -> "Box":
        self.applier.start()
        return self

    def restart_daemon(self) -> "Box":
        self.applier = self._daemon()
        return self.start()

    def power_cut(self) -> "Box":
        """The kernel's state is gone and so is what lies in memory; the disk stays."""
        self.host = ModelHost(self.paths)
        return self.restart_daemon()

    def begin(self, snapshot: Snapshot, **fields) -> str:
        data = to_data(snapshot)  # as clients send it: with lists, by which the applier knows it again
        review = self.applier.check(data)
        assert not review["problems"], review["problems"]
        wanted = {"digest": review["digest"], "base": review["base"], "user": "ann", "comment": "", "client": ""}
        wanted["confirm_within"] = None
        answer = self.applier.applies.apply(data, **(wanted | fields))
        self.secret = answer["secret"]
        return answer["apply"]

    def apply(self, snapshot: Snapshot, **fields) -> RunStatus:
        """To its end; where it asks for a confirmation, that is given."""
        self.begin(snapshot, **fields)
        if self.until("waiting", *ENDED)["state"] != "waiting":
            return self.until(*ENDED)
        # In a pair it answers after a beat of the agreement, which comes from here.
        confirms = threading.Thread(target=self.applier.applies.confirm, args=("", self.secret, ""))
        confirms.start()
        ended = self.until(*ENDED)
        confirms.join()
        return ended

    def until(self, *states: str) -> RunStatus:
        """The run, once it is in one of these states."""
        end = time.monotonic() + 20
        while (run := self.applier.applies.record.to_data())["state"] not in states:
            assert time.monotonic() < end, run
            self.applier.both.tick()  # as the daemon does in a pair, where no apply ends without the agreement
            time.sleep(0.001)
        return run

    def states(self) -> dict[str, str]:
        return {step["name"]: step["state"] for step in self.applier.status()["apply"]["steps"]}

    def faults(self) -> dict[str, str]:
        return {fault["code"]: fault["message"] for fault in self.applier.status()["faults"]}


def running_one(folder: Path) -> Box:
    """A box on which ONE was applied, with one dead server."""
    folder.mkdir(exist_ok=True)
    box = Box(folder).start()
    box.host.dead.add(("10.2.0.12", 80))
    assert box.apply(ONE)["state"] == "done", box.applier.status()["apply"]
    box.host.sleep(60)
    box.host.changes, box.host.log = 0, []
    return box
