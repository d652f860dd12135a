"""Valid networks of every kind, over the same few cards."""

from hypothesis import strategies as st

from lbconfig.model.snapshot import (
    Bond,
    BondMode,
    Bridge,
    HashPolicy,
    Interface,
    LacpRate,
    Network,
    PolicyRoute,
    Snapshot,
    StaticRoute,
    Vlan,
)
from lbconfig.validate.network import network_problems

CARDS = ("c0", "c1", "c2", "c3")
MADE = ("bond0", "br0", "x0", "v10", "office")  # names that can be anything
NETS = (1, 2, 3, 4)  # 10.N.0.0/24 and 2001:db8:N::/64
ALL_KINDS = frozenset({"vlan", "bond", "bridge"})


@st.composite
def networks(draw, kinds=ALL_KINDS) -> Network:
    free = list(draw(st.permutations(CARDS)))
    mtus = st.sampled_from([0, 0, 0, 1400, 1500, 9000])
    found: list[Interface] = []
    carriers: list[str] = []
    for name in draw(st.lists(st.sampled_from(MADE), unique=True, max_size=3)):
        kind = draw(st.sampled_from(sorted(kinds))) if kinds else ""
        mtu = draw(mtus)
        if kind == "vlan":
            parent = draw(st.sampled_from([*free, *carriers])) if free or carriers else ""
            tag = draw(st.sampled_from([10, 20]))
            if parent and all(one.vlan != Vlan(parent, tag) for one in found):
                found.append(Interface(name, mtu=_fitting(mtu, parent, found), vlan=Vlan(parent, tag)))
                free = [card for card in free if card != parent]
                carriers += [name, parent] if parent in CARDS and parent not in carriers else [name]
        elif kind:
            count = draw(st.integers(0, min(2, len(free))))
            members, free = tuple(free[:count]), free[count:]
            found.append(_group(draw, name, kind, members, mtu))
            carriers.append(name)
    for card in free:
        if draw(st.booleans()):
            found.append(Interface(card, on=draw(st.sampled_from([True, True, True, False])), mtu=draw(mtus)))
            carriers.append(card)
    for parent in [name for name in carriers if name in CARDS and name not in free]:
        found.append(Interface(parent))
    return _with_addresses(draw, found)


def _fitting(mtu: int, parent: str, found: list[Interface]) -> int:
    over = next((one.mtu for one in found if one.name == parent), 0)
    return 0 if mtu > (over or 1400) else mtu


def _group(draw, name: str, kind: str, members: tuple[str, ...], mtu: int) -> Interface:
    if kind == "bridge":
        return Interface(name, mtu=mtu, bridge=Bridge(members, draw(st.booleans())))
    mode = draw(st.sampled_from(BondMode))
    one_speaks = mode in ("active-backup", "balance-tlb", "balance-alb")
    primary = draw(st.sampled_from(["", *members])) if one_speaks else ""
    bond = Bond(members, mode, draw(st.sampled_from([50, 100])), draw(st.sampled_from(LacpRate)))
    bond = Bond(bond.members, mode, bond.miimon, bond.lacp_rate, draw(st.sampled_from(HashPolicy)), primary)
    return Interface(name, mtu=mtu, bond=bond)


def _with_addresses(draw, found: list[Interface]) -> Network:
    """Each network on one interface at most, gateways and routes in them."""
    used = [one for one in found if one.on]
    placed: dict[str, list[str]] = {}
    homes: dict[int, int] = {}
    for net in NETS:
        if used and draw(st.booleans()):
            host = draw(st.integers(1, 2))
            place = draw(st.sampled_from(used)).name
            length = draw(st.sampled_from([24, 24, 25]))
            placed.setdefault(place, []).append(f"10.{net}.0.{host}/{length}")
            placed[place].append(f"2001:db8:{net}::{host}/{draw(st.sampled_from([64, 64, 80]))}")
            homes[net] = host
    interfaces = tuple(
        Interface(one.name, False, tuple(placed.get(one.name, ())), one.on, one.mtu, "", one.vlan, one.bond, one.bridge)
        for one in found
    )
    routers = [(f"10.{net}.0.{n}", f"2001:db8:{net}::{n}") for net in homes for n in (8, 9)]
    router = st.sampled_from(routers) if routers else None
    gateway, gateway6 = draw(router) if routers and draw(st.booleans()) else ("", "")
    routes, policies = [], []
    for number in range(3):
        if routers and draw(st.booleans()):
            four, six = draw(router)
            routes.append(StaticRoute(f"10.{100 + number}.0.0/16", four, metric=draw(st.sampled_from([0, 0, 7]))))
            routes.append(StaticRoute(f"2001:db8:{100 + number}::/48", six))
    for net, host in homes.items():
        if routers and draw(st.booleans()):
            four, six = draw(router)
            policies.append(PolicyRoute(f"10.{net}.0.{host}", four))
            policies.append(PolicyRoute(f"2001:db8:{net}::{host}", six))
    return Network("lb", gateway, interfaces, gateway6, tuple(routes), tuple(policies))


def snapshot_of(network: Network) -> Snapshot:
    """Only what says that it has no address at all may be wrong with it."""
    problems = [problem for problem in network_problems(network) if problem.field != "interfaces"]
    assert not problems, problems
    return Snapshot(network=network)
