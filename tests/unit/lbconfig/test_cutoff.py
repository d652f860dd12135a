"""Which changes ask to be confirmed, and where the browser finds the box after them."""

import dataclasses

import pytest
from lbconfig_pairs import KEYS, PAIR, with_both, with_box, with_interface, with_network, with_pair

from lbconfig.diff import cutoff as module
from lbconfig.diff.cutoff import NETWORK_WORDS, cutoff, follow
from lbconfig.model.firewall import Action, Firewall, Rule
from lbconfig.model.snapshot import FACTORY, Interface, Management, Network, Policy, Snapshot, SorryPage, VirtualService

NETWORK = Network(
    hostname="one",
    gateway="192.168.10.1",
    interfaces=(
        Interface("eth0", addresses=("192.168.10.2/24", "2001:db8:1::2/64")),
        Interface("eth1", addresses=("10.2.0.1/24",)),
    ),
    gateway6="2001:db8:1::1",
)
ONE = Snapshot(network=NETWORK, management=Management(("192.168.0.0/16", "10.0.0.0/8")))


def network(**fields) -> Snapshot:
    return dataclasses.replace(ONE, network=dataclasses.replace(NETWORK, **fields))


def interfaces(*changed: Interface) -> Snapshot:
    named = {one.name: one for one in NETWORK.interfaces} | {one.name: one for one in changed}
    return network(interfaces=tuple(named.values()))


def allow(*networks: str) -> Snapshot:
    return dataclasses.replace(ONE, management=Management(networks))


def on(*names: str, base: Snapshot = ONE) -> Snapshot:
    return dataclasses.replace(base, management=dataclasses.replace(base.management, interfaces=names))


def at_port(port: int) -> Snapshot:
    return dataclasses.replace(ONE, management=dataclasses.replace(ONE.management, port=port))


@pytest.mark.parametrize(
    "new",
    [
        ONE,
        network(hostname="other"),
        dataclasses.replace(ONE, services=(VirtualService(1, "web", "192.168.10.80", 80),)),
        dataclasses.replace(ONE, policy=Policy(udp_timeout=9), sorry=SorryPage("Later")),
        allow("10.0.0.0/8", "192.168.0.0/16"),
        allow("192.168.0.0/16", "10.0.0.0/8", "172.16.0.0/12"),
        allow("0.0.0.0/0"),
    ],
)
def test_what_cuts_nobody_off(new):
    assert not cutoff(ONE, new).asks


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        (network(gateway="192.168.10.9"), NETWORK_WORDS["gateway"]),
        (network(gateway6=""), NETWORK_WORDS["gateway6"]),
        (interfaces(Interface("eth0", addresses=("192.168.10.3/24",))), "The addresses of eth0 change."),
        (
            interfaces(Interface("eth1", dhcp=True, addresses=("10.2.0.1/24",))),
            "DHCP on eth1 is switched on.",
        ),
        (interfaces(Interface("eth2")), "Interface eth2 is added."),
        (network(interfaces=NETWORK.interfaces[:1]), "Interface eth1 is removed."),
        (network(interfaces=NETWORK.interfaces[::-1]), "The order of the interfaces changes"),
        (allow("192.168.0.0/16"), "The web page can no longer be reached from 10.0.0.0/8."),
        (allow("192.168.0.0/17", "10.0.0.0/8"), "no longer be reached from 192.168.0.0/16."),
        (at_port(8443), "The web page moves to port 8443."),
        (allow("::/0", "10.0.0.0/8"), "no longer be reached from 192.168.0.0/16."),
    ],
)
def test_what_may_cut_the_admin_off(new, reason):
    found = cutoff(ONE, new)
    assert found.asks
    assert len(found.reasons) == 1 and reason in found.reasons[0]


def test_a_new_field_of_the_network_asks_by_itself(monkeypatch):
    @dataclasses.dataclass(frozen=True)
    class Wider(Network):
        static_routes: tuple[str, ...] = ()

    monkeypatch.setattr(module, "Network", Wider)
    fields = {field.name: getattr(NETWORK, field.name) for field in dataclasses.fields(NETWORK)}
    old = dataclasses.replace(ONE, network=Wider(**fields))
    new = dataclasses.replace(old, network=dataclasses.replace(old.network, static_routes=("10.9.0.0/16",)))
    assert cutoff(old, new).reasons == ("The network changes: static routes.",)


def test_rules_of_the_admins_own_names_and_notes_cut_nobody_off():
    noted = tuple(dataclasses.replace(one, note="by the window") for one in NETWORK.interfaces)
    network = dataclasses.replace(NETWORK, interfaces=noted, dns=("192.0.2.53",), search=("example.org",), ntp=("a.b",))
    new = dataclasses.replace(ONE, network=network, firewall=Firewall((Rule(1, "none", Action.DENY),)))
    assert not cutoff(ONE, new).asks


def test_an_interface_that_is_made_in_another_way_or_switched_off_asks():
    first, *others = NETWORK.interfaces
    for changed in (dataclasses.replace(first, mtu=1400), dataclasses.replace(first, on=False)):
        new = dataclasses.replace(ONE, network=dataclasses.replace(NETWORK, interfaces=(changed, *others)))
        assert cutoff(ONE, new).reasons == (f"Interface {first.name} changes its settings.",)
    gone = {text.partition("/")[0] for text in first.addresses}
    assert not gone & set(cutoff(ONE, new).addresses)


def test_where_the_box_is_reached_afterwards():
    found = cutoff(FACTORY, ONE)
    assert found.addresses == ("192.168.10.2", "2001:db8:1::2", "10.2.0.1") and found.dhcp == ()
    assert cutoff(ONE, FACTORY).addresses == () and cutoff(ONE, FACTORY).dhcp == ("eth0",)


ASKS = interfaces(Interface("eth0", dhcp=True))
MOVED = interfaces(Interface("eth0", addresses=("172.20.0.2/24", "192.168.10.7/24", "2001:db8:1::7/64")))


@pytest.mark.parametrize(
    ("new", "used", "client", "expected"),
    [
        (ONE, "192.168.10.2", "192.168.10.50", "192.168.10.2"),
        (MOVED, "10.2.0.1", "10.2.0.9", "10.2.0.1"),
        (MOVED, "192.168.10.2", "192.168.10.50", "192.168.10.7"),  # the client's own network
        (MOVED, "192.168.10.2", "172.20.0.50", "172.20.0.2"),
        (MOVED, "192.168.10.2", "198.51.100.9", "172.20.0.2"),  # the same interface, the first new one
        (MOVED, "2001:db8:1::2", "2001:db8:1::50", "2001:db8:1::7"),  # the same kind of address
        (MOVED, "2001:db8:1::2", "", "2001:db8:1::7"),
        (MOVED, "192.168.10.2", "no address", "172.20.0.2"),
        (MOVED, "box.example", "192.168.10.50", "box.example"),  # a name: unknown
        (MOVED, "127.0.0.1", "127.0.0.1", "127.0.0.1"),
        (ASKS, "192.168.10.2", "192.168.10.50", ""),  # not by the other interface
        (ASKS, "192.168.10.2", "10.2.0.50", "10.2.0.1"),
        (FACTORY, "192.168.10.2", "192.168.10.50", ""),  # from DHCP alone: not known
    ],
)
def test_where_the_browser_goes_on(new, used, client, expected):
    assert follow(ONE, new, used, client, {}) == expected


LEASE = {"10.0.2.15": "eth0", "192.168.10.100": "eth0", "10.2.0.1": "eth1"}


@pytest.mark.parametrize(
    ("new", "used", "expected"),
    [
        (ONE, "10.0.2.15", "192.168.10.2"),  # from DHCP to an address of its own
        (MOVED, "10.0.2.15", "172.20.0.2"),
        (FACTORY, "10.0.2.15", "10.0.2.15"),  # DHCP is asked as before
        (ONE, "10.0.2.99", "10.0.2.99"),  # not the box's
    ],
)
def test_where_the_browser_goes_on_from_an_address_of_dhcp(new, used, expected):
    assert follow(FACTORY, new, used, "10.0.2.2", LEASE) == expected


@pytest.mark.parametrize(
    ("before", "after", "reasons"),
    [
        ((), ("eth0",), ("The web page can be reached on eth0 only.",)),
        (("eth0", "eth1"), ("eth1",), ("The web page can no longer be reached on eth0.",)),
        (("eth0",), ("eth1",), ("The web page can no longer be reached on eth0.",)),
        (("eth0",), ("eth1", "eth0"), ()),
        (("eth0",), (), ()),
    ],
)
def test_fewer_interfaces_of_the_web_page_ask(before, after, reasons):
    assert cutoff(on(*before), on(*after)).reasons == reasons


def test_the_browser_goes_on_where_the_web_page_answers():
    assert cutoff(ONE, on("eth1")).addresses == ("10.2.0.1",)
    assert cutoff(ONE, on("eth0", base=ASKS)).dhcp == ("eth0",) and cutoff(ONE, on("eth1", base=ASKS)).dhcp == ()
    # Where the old address answers anyway (the routes decide where a packet arrives), the page stays there.
    assert follow(ONE, on("eth1"), "192.168.10.2", "10.2.0.9", {}) == "10.2.0.1"
    assert follow(ONE, on("eth0"), "192.168.10.2", "192.168.10.9", {}) == "192.168.10.2"


# --- pairs ---

MADE = dataclasses.replace(PAIR, services=())
BEFORE = dataclasses.replace(
    MADE,
    network=Network(
        "lb1",
        "10.0.2.2",
        (
            Interface("eth0", addresses=("10.0.2.15/24", "2001:db8:1::15/64")),
            Interface("eth1", addresses=("10.2.0.1/24",)),
        ),
    ),
    pair=None,
)


def test_a_pair_is_confirmed_at_an_address_that_floats():
    """The admin keeps his URL: the former address of the box is held by whichever leads."""
    assert cutoff(BEFORE, MADE).reasons == ("The box becomes one of a pair.",)
    assert cutoff(MADE, BEFORE).reasons == ("The box leaves the pair.",)
    live = {"10.0.2.15": "eth0", "10.0.2.21": "eth0"}
    assert follow(BEFORE, MADE, "10.0.2.15", "10.0.2.77", live) == "10.0.2.15"
    assert follow(MADE, MADE, "10.0.2.15", "10.0.2.77", live) == "10.0.2.15"
    assert cutoff(BEFORE, MADE).addresses[:2] == ("10.0.2.15", "2001:db8:1::15")
    assert {"10.0.2.21", "10.0.2.22", "192.0.2.2"} <= {*cutoff(BEFORE, MADE).addresses}


def test_who_came_by_a_box_of_its_own_goes_on_at_a_floating_address_when_that_goes():
    new = with_interface(0, "eth0", addresses=("10.0.2.31/24", "2001:db8:1::31/64"))
    assert follow(PAIR, new, "10.0.2.21", "10.0.2.77", {}) in ("10.0.2.15", "10.0.2.31", "10.0.2.22")
    assert cutoff(PAIR, new).reasons == ("lb1: The addresses of eth0 change.",)


@pytest.mark.parametrize(
    ("new", "reasons"),
    [
        (PAIR, ()),
        (dataclasses.replace(PAIR, services=()), ()),
        (with_pair(advert=100, hand_over_by_itself=False), ()),
        (with_both("eth1", floating=("10.2.0.1/24", "10.2.0.2/24")), ()),
        (
            with_both("eth1", floating=()),
            ("lb1: A floating address of eth1 is removed.", "lb2: A floating address of eth1 is removed."),
        ),
        (with_network(1, gateway=""), (f"lb2: {NETWORK_WORDS['gateway']}",)),
        (
            with_box(1, key=KEYS[0]),
            ("lb2: The pair cable changes, and the boxes have to find each other again.",),
        ),
        (with_pair(id="f" * 32), ("The box becomes one of another pair.",)),
    ],
)
def test_what_of_a_pair_asks_to_be_confirmed(new, reasons):
    assert cutoff(PAIR, new).reasons == reasons
