"""One box of a pair whose other box is away: it leads by itself, and an apply and a boot leave it so."""

import dataclasses
import json
import re

import pytest
from board.machines.director import QUICK, VIP, service, wish
from board.machines.paired import key_of, paired
from board.machines.wait import until
from board.machines.world import SERVERS, until_answer
from tests.lab.fixtures import thorough

from applier.pair import standing
from balancing import server_setup
from lbconfig.model.snapshot import Forwarding

pytestmark = [pytest.mark.timeout(1200), pytest.mark.usefixtures("balanced")]

ROUTED, MORE = "10.1.0.102", "10.1.0.103"  # VIPs, beside the usual one
FLOATING = ("10.1.0.1", "10.2.0.1", VIP, ROUTED)  # the first two are what the box had for itself while it was alone

SITE = service(1, "site", check=QUICK, servers=("rs1", "rs2"))
STRAIGHT = dataclasses.replace(
    service(2, "straight", check=QUICK, servers=("rs3",), address=ROUTED), forwarding=Forwarding.DIRECT
)
UNHEARD = f"{standing.away('lb2', '')}; if it is running, both lead; it follows when it is back.\n"
NEW = service(3, "new", check=QUICK, servers=("rs1",), address=MORE)


@pytest.fixture
def key(director) -> str:
    """The public one of the box."""
    return key_of(director)


def role(director) -> dict:
    return json.loads(director.read("/run/fairlead/role"))


def leads(director) -> None:
    until("the box to lead", lambda: role(director)["role"] == "leads")


def leased(director) -> set[str]:
    """The floating addresses that the box holds."""
    entries = json.loads(director.succeed(["ip", "-json", "address", "show"]))
    found = [info for entry in entries for info in entry["addr_info"] if info.get("dynamic")]
    return {info["local"] for info in found if info["prefixlen"] == 32}


def routed_server(world) -> None:
    """rs3 has the VIP of direct routing and its own way to clients; the others answer by the director."""
    world.give_servers_a_router()
    for name in ("rs1", "rs2"):
        world.succeed(["ip", "-n", name, "route", "replace", "default", "via", "10.2.0.1"])
    script = server_setup.script(server_setup.setup_of(wish(STRAIGHT), SERVERS["rs3"]))
    world.write("/run/world/rs3.sh", script)
    world.succeed("ip netns exec rs3 sh /run/world/rs3.sh")


def answers(director, world) -> None:
    """NAT over the floating gateway, and direct routing."""
    director.wait_until_healthy(*SERVERS)
    until("balanced answers", lambda: world.count(f"{VIP}:80/", 4) == {"rs1": 2, "rs2": 2})
    until_answer(world, f"{ROUTED}:80/", "rs3")


def test_a_box_whose_peer_is_away_leads_changes_nothing_of_that_by_an_apply_and_leaves(director, world, key):
    routed_server(world)
    director.apply(paired(key, SITE, STRAIGHT))
    leads(director)
    until("the floating addresses", lambda: leased(director) == {*FLOATING})
    answers(director, world)
    assert "1 packets received" in world.in_client("busybox ping -c 1 -W 20 10.1.0.1"), "the floating gateway"

    before, elects = role(director), director.supervised("vrrp")
    fewer = dataclasses.replace(SITE, real_servers=SITE.real_servers[:1])
    director.apply(paired(key, fewer, STRAIGHT, NEW))
    until_answer(world, f"{MORE}:80/", "rs1")
    director.apply(paired(key, SITE, STRAIGHT))
    assert (role(director), director.supervised("vrrp")) == (before, elects)
    assert leased(director) == {*FLOATING}
    until("that alone to be told", lambda: director.faults() == UNHEARD)

    director.succeed(f"ip address del {VIP}/32 dev eth2")
    until("the lease of the address", lambda: leased(director) == {*FLOATING})

    director.apply(wish(SITE, STRAIGHT))
    assert not leased(director)
    until("nothing to be told any more", lambda: not director.faults())
    answers(director, world)
    assert director.execute("ls /run/fairlead/keepalived.conf /run/fairlead/floating.json").exit != 0


@thorough
def test_a_restarted_box_of_a_pair_leads_again(director, world, key):
    routed_server(world)
    director.apply(paired(key, SITE, STRAIGHT))
    leads(director)
    director.kill()
    director.start()
    director.wait_until_up()
    leads(director)
    answers(director, world)
    log = director.log()
    # The boot scripts bring up the pair as well, and somebody silent is not waited for by way of the applier.
    assert "runs before the applier is loaded" in log
    assert log.index("the other box is silent") < log.index("floater: leads: 4 addresses") < log.index("applier: INFO")
    steps = set(re.findall(r"applier: INFO step ([a-z-]+):", log))
    assert steps and not steps & {"pair-link", "floating-add", "connections", "floating-remove"}, steps
    assert log.count("floater: leads") == 1
    assert director.supervised("pair"), "what talks with the other box was not started"
    newest = json.loads(director.read("/disk/shared/lead-changes").splitlines()[-1])
    assert (newest["leads"], newest["reason"]) == ("lb1", "lb2 was not heard")
    until("the floating addresses", lambda: leased(director) == {*FLOATING})
    assert director.faults() in ("", UNHEARD)
