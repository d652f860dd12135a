"""What changes about the network, in plain words."""

from __future__ import annotations

from collections.abc import Iterator

from lbconfig.diff.change import Change, Kind, list_change
from lbconfig.model import names
from lbconfig.model.network import BY_HASH, ONE_SPEAKS, Bond, BondMode, Interface, Network, PolicyRoute, StaticRoute

NETWORK = "The box may be reached at another address, or not at all."
APART = "It is rebuilt: traffic over it stops for a moment."
JOINS = "Traffic over a card stops for a moment while the card joins."
PLACES = "Virtual addresses outside the networks of all interfaces may move to another interface."
OTHER_WAY = "Traffic takes the new route at once."


def network_changes(old: Network, new: Network) -> Iterator[Change]:
    yield from _whole(old, new)
    yield from _interfaces(old, new)
    yield from _routes(old, new)
    yield from _policies(old, new)


def _whole(old: Network, new: Network) -> Iterator[Change]:
    sentences = []
    if old.hostname != new.hostname:
        sentences.append(f"Host name changes from '{old.hostname}' to '{new.hostname}'.")
    gateways = {
        "Default gateway": (old.gateway, new.gateway),
        "IPv6 default gateway": (old.gateway6, new.gateway6),
    }
    moved = {name: pair for name, pair in gateways.items() if pair[0] != pair[1]}
    sentences += [f"{name} changes from {a or 'none'} to {b or 'none'}." for name, (a, b) in moved.items()]
    for words, field, nobody in (
        ("Name server", "dns", "Name servers from DHCP are used."),
        ("Search domain", "search", ""),
        ("Time server", "ntp", "Time servers from DHCP are used."),
    ):
        before, after = getattr(old, field), getattr(new, field)
        sentences += list_change(before, after, f"{words} {{}}".format)
        if before and not after and nobody:
            sentences.append(nobody)
    if sentences:
        yield Change("changed", "network", tuple(sentences), NETWORK if moved else None)


# --- interfaces ----------------------------------------------------------------------------------


def _interfaces(old: Network, new: Network) -> Iterator[Change]:
    before = {interface.name: interface for interface in old.interfaces}
    after = {interface.name: interface for interface in new.interfaces}
    for name, interface in after.items():
        if name not in before:
            yield Change("added", f"interface '{name}'", tuple(_description(interface)), _joining(None, interface))
        elif before[name] != interface:
            yield _interface_change(before[name], interface)
    for name, interface in before.items():
        if name not in after:
            gone = "It is deleted." if interface.made else "It loses its addresses."
            yield Change("removed", f"interface '{name}'", (gone,), NETWORK)
    if [name for name in before if name in after] != [name for name in after if name in before]:
        yield Change("changed", "order of the interfaces", (PLACES,))


def _description(interface: Interface) -> Iterator[str]:
    if kind := kind_words(interface):
        yield f"It is {kind}."
    yield f"It has {_address_words(interface)}."
    yield from (option for option in _options(interface).values() if option)


def kind_words(interface: Interface) -> str:
    """ "" for a card."""
    if interface.vlan:
        return f"VLAN {interface.vlan.id} on {interface.vlan.parent}"
    if interface.bond:
        mode = names.BOND_MODES[interface.bond.mode].long
        return f"a bond of {_members(interface)}; {mode}"
    if interface.bridge:
        return f"a bridge of {_members(interface)}"
    return ""


def _members(interface: Interface) -> str:
    return " and ".join(interface.members) or "no member yet"


def _address_words(interface: Interface) -> str:
    words = [*(["an address from DHCP"] if interface.dhcp else []), *interface.addresses]
    return " and ".join(words) or "no address"


def _options(interface: Interface) -> dict[str, str]:
    """The sentence about each setting that most interfaces do not have."""
    return {
        "on": "" if interface.on else "It is off, with its addresses.",
        "mtu": f"Its MTU is {interface.mtu}." if interface.mtu else "",
        "note": f"Note: '{interface.note}'." if interface.note else "",
        "stp": "Spanning tree (STP) is on." if interface.bridge and interface.bridge.stp else "",
        **(_bond_options(interface.bond) if interface.bond else {}),
    }


def _bond_options(bond: Bond) -> dict[str, str]:
    found = {"miimon": f"Link check interval: {bond.miimon} ms."}
    if bond.mode is BondMode.LACP:
        found["lacp_rate"] = f"LACP rate: {names.LACP_RATES[bond.lacp_rate].long}."
    if bond.mode in BY_HASH:
        found["hash_policy"] = f"Transmit hash policy: {names.HASH_POLICIES[bond.hash_policy].long}."
    if bond.mode in ONE_SPEAKS and bond.primary:
        found["primary"] = f"Primary member: {bond.primary}."
    return found


OFF = {
    "on": "It is switched on.",
    "mtu": "Its MTU is no longer set.",
    "note": "The note is removed.",
    "stp": "Spanning tree (STP) is off.",
    "primary": "No primary member.",
}


def _interface_change(old: Interface, new: Interface) -> Change:
    sentences = []
    before, after = kind_words(old) or "a network card", kind_words(new) or "a network card"
    if before != after:
        sentences.append(f"It becomes {after}; it was {before}.")
    if old.dhcp != new.dhcp:
        sentences.append(f"DHCP is switched {'on' if new.dhcp else 'off'}.")
    sentences += list_change(old.addresses, new.addresses, lambda text: f"Address {text}")
    told, tell = _options(old), _options(new)
    for name in dict.fromkeys([*told, *tell]):
        if told.get(name, "") != tell.get(name, ""):
            sentences.append(tell.get(name, "") or OFF.get(name, ""))
    impacts = [NETWORK] if _reach(old) != _reach(new) else []
    impacts += [APART] if _apart(old, new) else [JOINS] if _joining(old, new) else []
    return Change(
        "changed",
        f"interface '{new.name}'",
        tuple(filter(None, sentences)) or ("A setting changes that has no effect now.",),
        " ".join(impacts) or None,
    )


def _reach(interface: Interface) -> tuple[object, ...]:
    """What decides where the box is reached."""
    vlan = (interface.vlan.parent, interface.vlan.id) if interface.vlan else ()
    return interface.dhcp, interface.addresses, interface.on, vlan, interface.members, kind_words(interface)


def _apart(old: Interface, new: Interface) -> bool:
    """Whether the kernel takes the change only while nothing goes over it (applier/parts/network/plan.py)."""
    if (old.vlan, bool(old.bond), bool(old.bridge)) != (new.vlan, bool(new.bond), bool(new.bridge)):
        return True
    if not (old.bond and new.bond):
        return False
    rate = new.bond.mode is BondMode.LACP and old.bond.lacp_rate != new.bond.lacp_rate
    unset = new.bond.mode in ONE_SPEAKS and old.bond.primary != "" and new.bond.primary == ""
    return old.bond.mode != new.bond.mode or rate or unset


def _joining(old: Interface | None, new: Interface) -> str | None:
    return JOINS if {*new.members} - {*(old.members if old else ())} else None


# --- routes --------------------------------------------------------------------------------------


def _routes(old: Network, new: Network) -> Iterator[Change]:
    before = {(route.destination, route.metric): route for route in old.routes}
    after = {(route.destination, route.metric): route for route in new.routes}
    for key, route in after.items():
        if before.get(key) != route:
            kind: Kind = "changed" if key in before else "added"
            yield Change(kind, f"route to {route.destination}", (f"It goes {_way(route)}.",), OTHER_WAY)
    for key, route in before.items():
        if key not in after:
            yield Change("removed", f"route to {route.destination}", (f"It went {_way(route)}.",), OTHER_WAY)


def _policies(old: Network, new: Network) -> Iterator[Change]:
    before = {policy.source: policy for policy in old.policies}
    after = {policy.source: policy for policy in new.policies}
    for source, policy in after.items():
        if before.get(source) != policy:
            kind: Kind = "changed" if source in before else "added"
            sentence = f"Packets from this address leave {_way(policy)}."
            yield Change(kind, f"source-based route of {source}", (sentence,), OTHER_WAY)
    for source in before:
        if source not in after:
            sentence = "Packets from this address use the normal routes."
            yield Change("removed", f"source-based route of {source}", (sentence,), OTHER_WAY)


def _way(route: StaticRoute | PolicyRoute) -> str:
    words = [f"via {route.via}"] if route.via else []
    words += [f"on {route.interface}"] if route.interface else []
    metric = getattr(route, "metric", 0)
    return " ".join([*words, *([f"(metric {metric})"] if metric else [])])
