"""The scripts for real servers on machines with the systems that they are for: for good, and taken back."""

import contextlib
import dataclasses
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from board.lab import systems
from board.machines.director import by_six, service, wish6
from board.machines.wait import WaitedInVain, until
from board.machines.world import SERVERS, SERVERS6
from tests.systems.server import BOOT, KEPT, Server

from balancing import server_setup
from balancing.server_systems import SYSTEMS, System
from lbconfig.model.addresses import version
from lbconfig.model.snapshot import THROUGH_THE_BOX, TUNNELS, Agent, AgentKind, Forwarding, Scheduler, Snapshot

pytestmark = pytest.mark.timeout(1800)
SCRIPT = 300.0  # seconds that it may take on a busy host
ADDRESSES = (SERVERS["rs1"], SERVERS6["rs1"])
METHODS = [method for method in Forwarding if method not in THROUGH_THE_BOX]


@pytest.fixture(scope="module")
def installed() -> systems.Installed:
    return systems.build()


@pytest.fixture
def server(installed, name) -> Iterator[Server]:
    folder = Path(tempfile.mkdtemp(prefix="fairlead-"))
    try:
        with Server(folder, installed, name) as server:
            server.wait_for_agent(BOOT)
            server.keep_network()
            server.wait_until_up()
            yield server
    finally:
        shutil.rmtree(folder)


def balanced_on(system: System) -> Snapshot:
    """A service by each method that the system can have, over IPv4 and IPv6; all of them ask an agent."""
    services = []
    for number, method in enumerate(METHODS, 1):
        if method not in TUNNELS - system.tunnels:
            one = service(number, f"s{number}", 80, ("rs1",), address=f"10.1.0.{100 + number}")
            one = dataclasses.replace(one, forwarding=method, scheduler=Scheduler.WRR, agent=Agent(AgentKind.TEXT))
            services += [one, by_six(dataclasses.replace(one, id=number + 10), f"2001:db8:1::{100 + number}")]
    return wish6(*services)


@pytest.mark.parametrize("name", KEPT)
def test_for_good_and_taken_back(server, name):
    system = SYSTEMS[name]
    snapshot = balanced_on(system)
    vips = [one.address for one in snapshot.services]

    def run(verb: str = "") -> str:
        said = ""
        for address in ADDRESSES:
            server.write("/root/script", server_setup.script(server_setup.setup_of(snapshot, address), system))
            said += server.succeed(f"sh /root/script {verb}", SCRIPT)
        return said

    def reached() -> dict[str, str]:
        server.balance(snapshot)
        return {vip: server.answer(vip) for vip in vips}

    def agents_answer() -> None:
        for address in ADDRESSES:
            until("a share", lambda address=address: re.fullmatch(r"ready \d+%", server.agent_says(address)), 60)
        assert [server.agent_says(address, "client") for address in ADDRESSES] == ["", ""]

    before = server.state()
    wanted = dict.fromkeys(vips, "HTTP/1.0 200 OK")
    assert "missing" not in run()
    assert reached() == wanted
    assert "missing" not in run()  # twice does no harm
    agents_answer()
    # From its own side, at one of its addresses.
    server.succeed(f"touch /run/fairlead-agent-{ADDRESSES[0]}/drain")
    assert server.agent_says(ADDRESSES[0]) == "drain"
    assert server.agent_says(ADDRESSES[1]) != "drain"
    # One of systemd's dynamic users, for both addresses.
    [user] = server.succeed("ps -eo uid,args | awk '/agent watch$/ { print $1 }' | sort -u").split()
    assert 61184 <= int(user) <= 65519
    assert server.succeed("systemctl list-units --failed --no-legend 'fairlead*'") == ""

    server.restart()
    said = run("verify")
    assert "missing" not in said
    assert all(f"ok       {vip} is on " in said for vip in vips)
    assert reached() == wanted
    agents_answer()
    assert [vip for vip in vips if version(vip) == 4 and server.answers_arp(vip)] == []

    run("undo")
    assert [server.agent_says(address) for address in ADDRESSES] == ["", ""]
    with contextlib.suppress(WaitedInVain):  # a comparison says more
        until("everything as before", lambda: server.state() == before, 30)
    assert server.state() == before
