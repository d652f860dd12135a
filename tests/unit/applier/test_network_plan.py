"""From any network to any other: over a model of the kernel, line by line."""

import dataclasses
import json
import os

import pytest
from hypothesis import given, settings
from kernel_model import KernelModel
from networks import CARDS, networks, snapshot_of

from applier.base.paths import Paths
from applier.host.host import HostError, Output
from applier.parts.network import act as network
from applier.parts.network import present as network_present
from applier.parts.network.plan import plan
from lbconfig.model.snapshot import Bond, BondMode, Bridge, Interface, Network, StaticRoute, Vlan
from lbconfig.wanted import network as interfaces
from lbconfig.wanted.netstate import MAIN, NOTHING, Link, NetworkState, Route


def examples(usual: int) -> int:
    return int(os.environ.get("FAIRLEAD_NETWORKS") or usual)


class ModelNetwork:
    """As much of the door to the system as the network needs."""

    def __init__(self, kernel: KernelModel) -> None:
        self.kernel = kernel
        self.settings = {"kernel/hostname": "lb"}
        self.watch = None
        self.lines: list[str] = []

    def command(self, argv, stdin="", timeout=0.0):
        match list(argv):
            case ["ip", "-json", "-details", "-batch", "-"]:
                return Output(0, self.kernel.several(stdin), "")
            case ["ip", "-json", *rest]:
                return Output(0, json.dumps(self.kernel.json(rest)), "")
            case ["ip", *options, "-batch", "-"]:
                self.lines += stdin.splitlines()
                code, said = self.kernel.batch(stdin.splitlines(), "-force" in options, self.watch)
                return Output(code, "", said)
        raise AssertionError(argv)

    def read(self, path):
        return None

    def setting(self, key):
        return self.settings.get(key)

    def set(self, key, value):
        self.settings[key] = value


def raising(error: HostError) -> None:
    raise error


def wish(wanted: Network) -> NetworkState:
    return interfaces.wanted(snapshot_of(wanted))


def go(host: ModelNetwork, old: NetworkState, new: NetworkState) -> None:
    """As the steps do it."""
    network.make_links(host, new, old, raising)
    network.add(host, Paths(), new, raising, old)
    network.remove(host, Paths(), old, new)
    network.add(host, Paths(), new, raising, old)


def there(kernel: KernelModel) -> set:
    """Everything that somebody could miss."""
    found = {(name, address) for name, link in kernel.links.items() for address in link.addresses}
    found |= {("link", name) for name in kernel.links} | {("rule", *rule) for rule in kernel.rules}
    # A route that is replaced is never away: which router it names is not looked at.
    return found | {("route", one.destination, one.metric, one.table) for one in kernel.routes}


def taken_apart(kernel: KernelModel, old: NetworkState, new: NetworkState) -> set[str]:
    """Links that cannot be changed in place, with the VLANs on them: only what is on these may be away for a moment."""
    before = {link.name: link for link in old.links}
    found = set()
    for link in new.links:
        was = before.get(link.name)
        if was is None or not link.kind:
            continue
        same = (was.kind, was.parent, was.tag) == (link.kind, link.parent, link.tag)
        options, wanted = dict(was.options), dict(link.options)
        falls = any(options.get(word) != wanted.get(word) for word in ("mode", "lacp_rate"))
        unset = "primary" in options and "primary" not in wanted
        if not same or falls or unset:
            found.add(link.name)
    tags = {(link.parent, link.tag): link.name for link in new.links if link.kind == "vlan"}
    found |= {
        one.name for one in old.links if one.kind == "vlan" and tags.get((one.parent, one.tag)) not in (None, one.name)
    }
    for _ in range(4):
        found |= {link.name for link in (*old.links, *new.links) if link.parent in found}
        # A card that leaves a bond, or joins one, goes down.
        members = {(link.name, link.master) for link in old.links} ^ {(link.name, link.master) for link in new.links}
        found |= {name for name, _ in members}
    return found


def missed(kernel: KernelModel, excused: set[str], before: set, old: NetworkState, new: NetworkState) -> set:
    """What is away that was there and must be there."""
    wanted = {*new.addresses} | {("link", link.name) for link in new.links}
    wanted |= {_route_key(one) for one in new.routes}
    spared = {_route_key(one) for one in (*old.routes, *new.routes) if one.device in excused}
    spared |= {("link", name) for name in excused}
    return {one for one in (before & wanted) - there(kernel) - spared if one[0] not in excused}


def _route_key(route: Route) -> tuple:
    return "route", route.destination, route.metric, "main" if route.table == MAIN else str(route.table)


@settings(max_examples=examples(100), deadline=None)
@given(networks(), networks(), networks())
def test_from_any_network_to_any_other_and_back(first, second, third):
    host = ModelNetwork(KernelModel(CARDS))
    old = NOTHING
    for wanted in (first, second, third):
        new = wish(wanted)
        lost = watch(host, old, new)
        go(host, old, new)
        assert not lost, (lost, host.lines)
        reached(host, old, new)
        host.lines = []
        go(host, old, new)
        assert host.lines == [], "the second time does nothing"
        old = new
    host.watch = None
    go(host, old, NOTHING)
    assert {name: link.kind for name, link in host.kernel.links.items()} == dict.fromkeys(CARDS, "")
    assert not host.kernel.routes and not host.kernel.rules
    assert not any(link.addresses or link.master for link in host.kernel.links.values())


def watch(host: ModelNetwork, old: NetworkState, new: NetworkState) -> list:
    """Fills with each line after which something is missed."""
    excused, before, lost = taken_apart(host.kernel, old, new), there(host.kernel), []
    host.watch = lambda line: lost.extend((line, one) for one in missed(host.kernel, excused, before, old, new))
    return lost


def reached(host: ModelNetwork, old: NetworkState, new: NetworkState) -> None:
    kernel = host.kernel
    assert not network.missing(host, new)
    assert {(name, one) for name, link in kernel.links.items() for one in link.addresses} == {*new.addresses}
    assert {name for name, link in kernel.links.items() if link.kind} == {link.name for link in new.links if link.kind}
    assert {(one.destination, one.via, one.device) for one in kernel.routes} == {
        (one.destination, one.via, one.device) for one in new.routes
    }
    assert len(kernel.rules) == len(new.rules)
    for link in new.links:
        real = kernel.links[link.name]
        assert (real.kind, real.master, real.parent, real.tag) == (link.kind, link.master, link.parent, link.tag)
        assert real.up == link.on
        assert not link.mtu or real.mtu == link.mtu, (link, real.mtu)
        assert {*link.options} <= {*real.options.items()}
    members = {name for name, link in kernel.links.items() if link.master}
    assert members == {link.name for link in new.links if link.master}


@settings(max_examples=examples(50), deadline=None)
@given(networks(), networks())
def test_what_others_brought_stays(first, second):
    kernel = KernelModel((*CARDS, "theirs"))
    kernel.batch(["link set dev theirs up", "address add 172.20.0.5/24 dev theirs", "link add name br9 type bridge"])
    kernel.batch(
        ["route replace 172.21.0.0/16 via 172.20.0.1 dev theirs", "rule add from 172.20.0.5 lookup 77 preference 5"]
    )
    host = ModelNetwork(kernel)
    go(host, NOTHING, wish(first))
    go(host, wish(first), wish(second))
    go(host, wish(second), NOTHING)
    assert kernel.links["theirs"].addresses == ["172.20.0.5/24"] and "br9" in kernel.links
    assert [route.destination for route in kernel.routes] == ["172.21.0.0/16"]
    assert [rule[0] for rule in kernel.rules] == ["172.20.0.5"]


@settings(max_examples=examples(50), deadline=None)
@given(networks(), networks())
def test_put_back_from_the_middle(first, second):
    """Whatever of the new state came, what was before comes back."""
    old, new = wish(first), wish(second)
    host = ModelNetwork(KernelModel(CARDS))
    go(host, NOTHING, old)
    before, state = host.kernel.state(), network.present(host)
    lines = [*(todo := plan(state, new, old)).create, *todo.change]
    for stop in {0, 1, len(lines) // 2, len(lines)}:
        host.kernel.batch(lines[:stop])
        network.put_back(host, Paths(), dataclasses.replace(state, hostname="lb"), new, raising, links_too=True)
        assert settled(host.kernel.state()) == settled(before), lines[:stop]


def settled(state: dict) -> dict:
    """Options that a mode has not are of no interest, nor is whether an empty, unused card is on."""
    for link in state["links"].values():
        link.options = {word: value for word, value in link.options.items() if word != "xmit_hash_policy"}
    return state


def lines_of(before: Network, after: Network) -> list[str]:
    host = ModelNetwork(KernelModel(CARDS))
    go(host, NOTHING, wish(before))
    host.lines = []
    go(host, wish(before), wish(after))
    return host.lines


HOME = Interface("c0", addresses=("10.0.0.1/24",))


def test_an_address_moves_from_a_card_to_the_bond_that_takes_it():
    before = Network(gateway="10.0.0.9", interfaces=(HOME,))
    bond = Interface("bond0", addresses=("10.0.0.1/24",), bond=Bond(("c0", "c1"), BondMode.LACP))
    assert lines_of(before, Network(gateway="10.0.0.9", interfaces=(bond,))) == [
        "link add name bond0 type bond mode 802.3ad miimon 100 lacp_rate slow xmit_hash_policy layer2+3",
        "link set dev bond0 up",
        "address add 10.0.0.1/24 dev bond0",
        "route replace 0.0.0.0/0 via 10.0.0.9 dev bond0",
        "link set dev c0 down",
        "link set dev c0 master bond0",
        "link set dev c1 master bond0",
        "address del 10.0.0.1/24 dev c0",
    ]


def test_members_come_and_go_in_place():
    one = Interface("bond0", addresses=("10.0.0.1/24",), bond=Bond(("c0", "c1")))
    two = dataclasses.replace(one, bond=Bond(("c0", "c2")))
    lines = lines_of(Network(interfaces=(one,)), Network(interfaces=(two,)))
    assert lines == ["link set dev c1 nomaster", "link set dev c2 master bond0"]


def test_a_bond_is_taken_apart_for_another_mode_and_gets_back_all_that_fell_with_it():
    one = Interface("bond0", bond=Bond(("c0",), BondMode.ACTIVE_BACKUP))
    vlan = Interface("v10", addresses=("10.0.0.1/24", "2001:db8::1/64"), vlan=Vlan("bond0", 10))
    other = dataclasses.replace(one, bond=Bond(("c0",), BondMode.LACP))
    lines = lines_of(
        Network(gateway="10.0.0.9", interfaces=(one, vlan)), Network(gateway="10.0.0.9", interfaces=(other, vlan))
    )
    assert lines == [
        "link set dev c0 nomaster",
        "link set dev bond0 down",
        "link set dev bond0 type bond mode 802.3ad miimon 100 lacp_rate slow xmit_hash_policy layer2+3",
        "link set dev bond0 up",
        "link set dev v10 up",
        "address add 2001:db8::1/64 dev v10",
        "route replace 0.0.0.0/0 via 10.0.0.9 dev v10",
        "link set dev c0 master bond0",
    ]


def test_mtus_grow_from_the_bottom_and_shrink_from_the_top():
    def stack(low: int, high: int) -> Network:
        return Network(
            interfaces=(
                Interface("v10", mtu=high, addresses=("10.0.0.1/24",), vlan=Vlan("c0", 10)),
                Interface("c0", mtu=low),
            )
        )

    assert lines_of(stack(1500, 1500), stack(9000, 9000)) == ["link set dev c0 mtu 9000", "link set dev v10 mtu 9000"]
    assert lines_of(stack(9000, 9000), stack(1500, 1400)) == ["link set dev v10 mtu 1400", "link set dev c0 mtu 1500"]


def test_an_mtu_that_nobody_wishes_any_more_goes_back_to_the_usual():
    large = Network(interfaces=(dataclasses.replace(HOME, mtu=9000),))
    assert lines_of(large, Network(interfaces=(HOME,))) == ["link set dev c0 mtu 1500"]


def test_a_vlan_with_another_name_is_made_anew():
    one = Interface("v10", addresses=("10.0.0.1/24",), vlan=Vlan("c0", 10))
    lines = lines_of(Network(interfaces=(one,)), Network(interfaces=(dataclasses.replace(one, name="office"),)))
    assert lines[:2] == ["link delete dev v10", "link add link c0 name office type vlan id 10"]


def test_a_route_that_stays_is_replaced_and_not_removed():
    one = Network(interfaces=(HOME,), routes=(StaticRoute("10.9.0.0/16", "10.0.0.8"),))
    two = Network(interfaces=(HOME,), routes=(StaticRoute("10.9.0.0/16", "10.0.0.9"),))
    assert lines_of(one, two) == ["route replace 10.9.0.0/16 via 10.0.0.9 dev c0"]


class AskingNetwork(ModelNetwork):
    """With interfaces that ask DHCP already."""

    def __init__(self, kernel: KernelModel) -> None:
        super().__init__(kernel)
        self.files: dict[str, str] = {}

    def read(self, path):
        return "it asks" if path.name == "run" else self.files.get(path.name)

    def put(self, path, text, mode=0o644):
        self.files[path.name] = text


@pytest.mark.parametrize("order", [("c0", "c1", "c2"), ("c2", "c0", "c1"), ("c1", "c2", "c0"), ("c2", "c1"), ("c1",)])
def test_routers_of_dhcp_follow_the_order_of_the_interfaces(order):
    """Whatever there was, each interface has its metric afterwards, and there was a default route all the time."""
    kernel = KernelModel(("c0", "c1", "c2"))
    for number, name in enumerate(("c0", "c1", "c2")):
        kernel.batch([f"link set dev {name} up", f"address add 10.{number}.0.7/24 dev {name}"])
        kernel.batch([f"route replace 0.0.0.0/0 via 10.{number}.0.1 dev {name} metric {100 + number}"])
    host = AskingNetwork(kernel)
    kept = []
    host.watch = lambda line: kept.append(any(one.destination == "0.0.0.0/0" for one in kernel.routes))
    state = wish(Network(interfaces=tuple(Interface(name, dhcp=True) for name in order)))
    network.add(host, Paths(), state, raising)
    found = {one.device: one.metric for one in kernel.routes if one.destination == "0.0.0.0/0"}
    assert {name: found.get(name) for name in order} == {name: 100 + at for at, name in enumerate(order)}
    assert host.files == {f"{name}.metric": f"{100 + at}\n" for at, name in enumerate(order)}
    assert all(kept)
    host.lines = []
    network.add(host, Paths(), state, raising)
    assert host.lines == [] and not network.lacks(host, state, NOTHING)
    extra = network.foreign(host, Paths(), network.present(host), state)
    assert not [route for route in extra.routes if route.device in order]


def bridge(*members: str, name: str = "br0") -> Interface:
    return Interface(name, addresses=("10.0.0.1/24",), bridge=Bridge(members))


def test_a_bridge_is_made_with_the_mac_of_its_first_port():
    """Otherwise its link-local address is made of a random one, before the first port joins."""
    assert lines_of(Network(), Network(interfaces=(bridge("c2", "c1"),)))[0] == (
        "link add name br0 address 52:54:00:00:00:02 type bridge stp_state 0"
    )


def test_a_bridge_of_a_bond_and_a_vlan_has_the_mac_of_the_first_card_below():
    """A bond has one of its own until its first member joins, and its members have the bond's from then on."""
    parts = (Interface("bond0", bond=Bond(("c3", "c1"))), Interface("v10", vlan=Vlan("c0", 10)))
    lines = lines_of(Network(), Network(interfaces=(bridge("bond0", "v10"), *parts)))
    assert "link add name br0 address 52:54:00:00:00:03 type bridge stp_state 0" in lines
    link = network_present._link(
        {"ifname": "c1", "address": "52:54:00:00:00:03", "permaddr": "52:54:00:00:00:01", "flags": []}
    )
    assert link.mac == "52:54:00:00:00:01"


def test_a_bridge_follows_its_first_port_in_place():
    lines = lines_of(Network(interfaces=(bridge("c1", "c2"),)), Network(interfaces=(bridge("c2"),)))
    assert lines == ["link set dev c1 nomaster", "link set dev br0 address 52:54:00:00:00:02"]


def test_a_bridge_whose_first_port_is_gone_has_the_mac_of_the_next_one():
    host, troubles = ModelNetwork(KernelModel(("c1",))), []
    network.make_links(host, wish(Network(interfaces=(bridge("c0", "c1"),))), NOTHING, troubles.append)
    assert host.lines[0] == "link add name br0 address 52:54:00:00:00:00 type bridge stp_state 0"


def test_a_bridge_that_comes_back_has_the_mac_that_it_had():
    """Whoever made it: the one that was there before an apply is what its undo makes again."""
    host = ModelNetwork(KernelModel(CARDS))
    host.kernel.batch(["link add name br0 address 02:00:00:00:00:aa type bridge stp_state 0"])
    before = network.present(host)
    new = wish(Network(interfaces=(Interface("br0", addresses=("10.0.0.1/24",), vlan=Vlan("c0", 10)),)))
    go(host, NOTHING, new)
    network.put_back(host, Paths(), dataclasses.replace(before, hostname="lb"), new, raising, links_too=True)
    assert (host.kernel.links["br0"].kind, host.kernel.links["br0"].mac) == ("bridge", "02:00:00:00:00:aa")


def test_a_bridge_cannot_have_the_name_of_a_card():
    host = ModelNetwork(KernelModel(CARDS))
    with pytest.raises(HostError, match="there is a network card of that name"):
        network.must_exist(host, wish(Network(interfaces=(HOME, Interface("c1", bridge=Bridge())))))


def test_at_boot_the_rest_comes_up_without_the_card_that_is_gone():
    host, troubles = ModelNetwork(KernelModel(("c0",))), []
    state = wish(Network(interfaces=(HOME, Interface("v10", addresses=("10.1.0.1/24",), vlan=Vlan("c7", 10)))))
    network.make_links(host, state, NOTHING, troubles.append)
    network.add(host, Paths(), state, troubles.append)
    assert host.kernel.links["c0"].addresses == ["10.0.0.1/24"]
    assert [str(error) for error in troubles] == ["interface c7: this box has no interface of that name (there is: c0)"]


def test_hand_made_links_are_adopted_where_they_are_what_is_wished():
    kernel = KernelModel(CARDS)
    kernel.batch(["link add name br0 type bridge stp_state 1"])
    host = ModelNetwork(kernel)
    go(host, NOTHING, wish(Network(interfaces=(HOME, Interface("br0", bridge=Bridge(("c1",)))))))
    assert kernel.links["br0"].options == {"stp_state": "0"} and kernel.links["c1"].master == "br0"


def test_a_loop_does_not_hang_it():
    state = NetworkState(links=(Link("a", "vlan", parent="b", tag=1), Link("b", "vlan", parent="a", tag=1)))
    assert plan(NOTHING, state, NOTHING).create


@pytest.mark.parametrize("text", ["", "[]\n[]\n", "[]\n[]\n[]\n[]\n", '[]\n[{"ifname": "c', "no such thing"])
def test_half_an_answer_of_ip_is_no_network(text):
    """Nor is none: everything would be made anew."""
    host = ModelNetwork(KernelModel(CARDS))
    host.kernel.several = lambda questions: text
    with pytest.raises(HostError, match="it printed something unreadable"):
        network.present(host)
