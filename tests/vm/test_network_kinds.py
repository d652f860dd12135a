"""Each kind of network carries balanced traffic: after its apply, after one that is put back, after a boot."""

import dataclasses
from collections.abc import Callable, Iterable
from typing import NamedTuple

import pytest
from board.machines.director import NETWORK, QUICK, VIP, VIP6, by_six, service, wish, wish6
from board.machines.wait import PATIENCE, until
from board.machines.world import SERVERS
from tests.lab.fixtures import thorough

from lbconfig.model.snapshot import (
    Bond,
    BondMode,
    Bridge,
    CheckKind,
    HealthCheck,
    Interface,
    LacpRate,
    Network,
    PolicyRoute,
    Snapshot,
    StaticRoute,
    Vlan,
)

pytestmark = [pytest.mark.timeout(1800), pytest.mark.usefixtures("balanced")]

MANAGEMENT, INSIDE, OUTSIDE = NETWORK.interfaces
SITE = service(1, "site", check=QUICK)
SITE6 = by_six(service(2, "six", check=QUICK))
HTTP = HealthCheck(CheckKind.HTTP, path="/health", expect="ok", interval=1, timeout=3, failures=1)
OWN6 = "2001:db8:1::1/64"
STRANGER = "198.51.100.10"  # a client in no network of the director


def to_clients(*interfaces: Interface, **fields) -> Snapshot:
    """The lab's network with these on the clients' side instead of the plain card; both families."""
    network = dataclasses.replace(wish6().network.interfaces[1])
    whole = Network(interfaces=(MANAGEMENT, network, *interfaces), **fields)
    return dataclasses.replace(wish6(SITE, SITE6), network=whole)


ADDRESSES = (*OUTSIDE.addresses, OWN6)
CARD = "set -e; ip link set eth1 nomaster; "


class Kind(NamedTuple):
    snapshot: Snapshot
    world: str = ""  # what the clients' switch needs: a line for sh
    seen: str = ""  # in what `ip -details link` of the director shows


KINDS = {
    "vlan": Kind(
        to_clients(Interface("office", addresses=ADDRESSES, vlan=Vlan("eth2", 20))),
        CARD + "ip link add link eth1 name tagged type vlan id 20; ip link set tagged master clients up",
        "vlan protocol 802.1Q id 20",
    ),
    "bond that one member speaks for": Kind(
        to_clients(
            Interface("bond0", addresses=ADDRESSES, bond=Bond(("eth2",), BondMode.ACTIVE_BACKUP, primary="eth2"))
        ),
        "",
        "bond mode active-backup",
    ),
    "bond by LACP": Kind(
        to_clients(
            Interface("bond0", addresses=ADDRESSES, bond=Bond(("eth2",), BondMode.LACP, lacp_rate=LacpRate.FAST))
        ),
        CARD
        + "ip link add lag type bond mode 802.3ad miimon 100 lacp_rate fast; ip link set eth1 down; "
        + "ip link set eth1 master lag; ip link set lag master clients up",
        "bond mode 802.3ad",
    ),
    "vlan on a bond": Kind(
        to_clients(
            Interface("bond0", bond=Bond(("eth2",))),
            Interface("bond0.20", addresses=ADDRESSES, vlan=Vlan("bond0", 20)),
        ),
        CARD + "ip link add link eth1 name tagged type vlan id 20; ip link set tagged master clients up",
        "vlan protocol 802.1Q id 20",
    ),
    "bridge": Kind(to_clients(Interface("br0", addresses=ADDRESSES, bridge=Bridge(("eth2",)))), "", "bridge"),
    "smaller frames": Kind(
        to_clients(Interface("eth2", addresses=ADDRESSES, mtu=1400)),
        "",
        "mtu 1400",
    ),
}


ROUNDS = "/usr/lib/fairlead/perl/Fairlead/Rounds.pm"


def carries(director, world) -> None:
    director.wait_until_healthy(*SERVERS)
    # A switch that has just heard of a card may need a moment; whoever asks then gets an answer from each server.
    until("answers over IPv4", lambda: world.count(f"{VIP}:80/", 6) == {"rs1": 2, "rs2": 2, "rs3": 2})
    until("answers over IPv6", lambda: world.count(f"[{VIP6}]:80/", 6) == {"rs1": 2, "rs2": 2, "rs3": 2})


def breaks_later(director) -> None:
    """From now on ldirectord dies as soon as it checks over HTTP, which an apply notices at its very end only."""
    dies = "sub gather {\n\texit 1 if grep { $_->{checktype} eq 'negotiate' } @main::VIRTUAL;"
    director.write("/run/Rounds.pm", director.read(ROUNDS).replace("sub gather {", dies))
    director.succeed(["mount", "--bind", "/run/Rounds.pm", ROUNDS])
    director.succeed("sv restart /run/service/ldirectord")


def shape(director) -> str:
    """What must be as it was after a return, without what counts or ages."""
    links = director.succeed("ip -oneline link | sed 's/ qdisc .*//; s/[0-9]*: //'")
    addresses = "\n".join(map(_in_order, director.succeed("ip -brief address | sort").splitlines()))
    routes = director.succeed("ip route show table all | sort; ip -6 route show table all | grep -v fe80 | sort")
    return "\n".join(
        [links, addresses, routes, director.succeed("ip rule; ip -6 rule; cat /run/fairlead/names.conf 2>&1; true")]
    )


def _in_order(line: str) -> str:
    """IPv6 has no first address of an interface; the kernel lists the newest one first."""
    words = line.split()
    return " ".join([*(one for one in words if ":" not in one), *sorted(one for one in words if ":" in one)])


def is_as_before(director, before: str) -> None:
    """The kernel makes link-local addresses and their routes some time after a link is up."""
    until(f"what was there before:\n{before}", lambda: shape(director) == before)


def restarted(director) -> None:
    director.kill()
    director.start()
    director.wait_until_started()
    assert director.faults() == ""


def often(names: Iterable[str], daily: str) -> pytest.MarkDecorator:
    """All of them where many minutes do not matter; else the one that has most of the others in it."""
    return pytest.mark.parametrize(
        "name", [one if one == daily else pytest.param(one, marks=thorough) for one in names]
    )


@often(KINDS, daily="vlan on a bond")
def test_it_carries_traffic_after_apply_return_and_boot(director, world, name):
    kind = KINDS[name]
    if kind.world:
        world.succeed(kind.world)
    director.apply(kind.snapshot)
    assert kind.seen in director.succeed("ip -details link")
    carries(director, world)

    before = shape(director)
    breaks_later(director)
    failing = wish(dataclasses.replace(SITE, check=HTTP))
    assert "Everything was put back" in director.refuses(failing)
    is_as_before(director, before)
    assert director.faults() == ""
    carries(director, world)

    restarted(director)
    assert kind.seen in director.succeed("ip -details link")
    carries(director, world)


@thorough
@often(["vlan", "bond that one member speaks for", "bridge"], daily="bridge")
def test_a_kind_that_fails_leaves_the_plain_card_as_it_was(director, world, name):
    """The way back from it, not the way back to it: nothing of it stays."""
    director.apply(wish6(SITE, SITE6))
    carries(director, world)
    before = shape(director)
    breaks_later(director)
    failing = dataclasses.replace(KINDS[name].snapshot, services=(dataclasses.replace(SITE, check=HTTP), SITE6))
    assert "Everything was put back" in director.refuses(failing)
    is_as_before(director, before)
    carries(director, world)


@thorough
def test_an_address_moves_onto_a_bond_and_open_connections_of_others_live(director, world):
    """The servers' side stays; what clients hold open over the clients' side goes on after the move."""
    director.apply(wish6(SITE, SITE6, service(3, "lines", 7000)))
    director.wait_until_healthy(*SERVERS)
    held = world.hold(f"{VIP}:7000", 9)
    bonded = KINDS["bond that one member speaks for"].snapshot
    director.apply(dataclasses.replace(bonded, services=(SITE, SITE6, service(3, "lines", 7000))))
    report = held.next_round(60)
    assert (report["open"], report["broken"]) == (9, [])
    held.end()


# --- routes --------------------------------------------------------------------------------------


def with_a_stranger(world) -> None:
    """A client whose address the director knows no way to: its router is the client machine at 10.1.0.10."""
    world.in_client(f"ip address add {STRANGER}/32 dev lo")


def answers_stranger(world) -> bool:
    answers = set(world.get(f"{VIP}:80/", 6, STRANGER, timeout=120))
    assert answers == set(SERVERS) or not answers & set(SERVERS), answers  # all, or none
    return answers == set(SERVERS)


def by(**fields) -> Snapshot:
    """With a default gateway that nobody is: with NAT an answer takes the default route as far as to IPVS."""
    return dataclasses.replace(wish(SITE), network=dataclasses.replace(NETWORK, gateway="10.2.0.200", **fields))


WAYS: dict[str, Snapshot] = {
    "a way out of the VIP": by(policies=(PolicyRoute(VIP, "10.1.0.10"),)),
    "a static route": by(routes=(StaticRoute("198.51.100.0/24", "10.1.0.10"),)),
}


@thorough
@often(WAYS, daily="a way out of the VIP")
def test_answers_take_it_after_apply_return_and_boot(director, world, name):
    with_a_stranger(world)
    director.apply(by())
    director.wait_until_healthy(*SERVERS)
    assert not answers_stranger(world), "without it there is no way"
    director.apply(WAYS[name])
    assert answers_stranger(world)
    assert world.count(f"{VIP}:80/", 6) == {"rs1": 2, "rs2": 2, "rs3": 2}, "clients beside the box as ever"

    before = shape(director)
    breaks_later(director)
    director.refuses(wish(dataclasses.replace(SITE, check=HTTP)))
    is_as_before(director, before)
    assert answers_stranger(world)

    restarted(director)
    director.wait_until_healthy(*SERVERS)
    assert answers_stranger(world)


@thorough
def test_without_the_way_out_answers_leave_as_before(director, world):
    with_a_stranger(world)
    director.apply(WAYS["a way out of the VIP"])
    director.wait_until_healthy(*SERVERS)
    assert answers_stranger(world)
    director.apply(by())
    assert not answers_stranger(world)
    assert VIP not in director.succeed("ip rule")


# --- DHCP, names and time ------------------------------------------------------------------------


LEASED = "10.1.0.60/24"
DHCP_SERVER = """
interface eth0
start 10.1.0.60
end 10.1.0.60
max_leases 1
lease_file /run/world/leases
option subnet 255.255.255.0
option dns 10.1.0.10
option ntpsrv 10.1.0.12
"""


def page_answers(director) -> Callable[[], bool]:
    return lambda: director.page()[0] == 200


@thorough
def test_dhcp_on_a_bridge_keeps_the_web_page(director, world):
    """The first card becomes a member of the bridge that asks DHCP in its place."""
    bridge = Interface("br0", dhcp=True, bridge=Bridge(("eth0",)))
    snapshot = dataclasses.replace(wish(SITE), network=Network(interfaces=(bridge, INSIDE, OUTSIDE)))
    director.apply(snapshot)
    until("the web page", page_answers(director), PATIENCE, 1, (OSError,))
    assert "10.0.2.15" in director.succeed(["ip", "address", "show", "dev", "br0"])
    breaks_later(director)
    director.refuses(wish(dataclasses.replace(SITE, check=HTTP)))
    until("the web page after the return", page_answers(director), PATIENCE, 1, (OSError,))
    restarted(director)
    until("the web page after the boot", page_answers(director), PATIENCE, 1, (OSError,))


def serve_dhcp(world) -> None:
    """Among the clients; it has one address to give."""
    world.write("/run/world/udhcpd.conf", DHCP_SERVER)
    world.succeed("touch /run/world/leases; ip netns exec client busybox udhcpd -S /run/world/udhcpd.conf")


@thorough
def test_dhcp_brings_address_names_and_time_and_what_is_named_counts_alone(director, world):
    serve_dhcp(world)
    # The first card asks DHCP no more: the virtual address is to live where the clients are.
    interfaces = (Interface("eth0", addresses=("10.0.2.15/24",)), INSIDE, Interface("eth2", dhcp=True))
    asks = dataclasses.replace(wish(SITE), network=Network(interfaces=interfaces))

    def works() -> None:
        until("the lease", lambda: LEASED in director.succeed("ip -brief address show dev eth2"))
        director.wait_until_healthy(*SERVERS)
        until("answers", lambda: world.count(f"{VIP}:80/", 6) == {"rs1": 2, "rs2": 2, "rs3": 2})
        assert director.read("/etc/resolv.conf") == "nameserver 10.1.0.10\n"
        assert "server 10.1.0.12 iburst" in director.succeed("cat /run/fairlead/dhcp/*.sources")
        until("chronyd", lambda: director.execute("sv status /run/service/time").output.startswith("run"))

    director.apply(asks)
    works()
    listening = director.succeed("ss -Hlnup")
    assert "chronyd" not in listening and ":123" not in listening and ":323" not in listening
    breaks_later(director)
    assert "Everything was put back" in director.refuses(wish(dataclasses.replace(SITE, check=HTTP)))
    works()
    restarted(director)
    works()

    named = dataclasses.replace(asks.network, dns=("10.1.0.11",), search=("example.org",), ntp=("10.1.0.13",))
    director.apply(dataclasses.replace(asks, network=named))
    assert director.read("/etc/resolv.conf") == "nameserver 10.1.0.11\nsearch example.org\n"
    director.apply(asks)
    works()
