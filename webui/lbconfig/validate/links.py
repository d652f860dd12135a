"""The rules for interfaces that stand on others: VLANs, bonds, bridges, and what may be their parts."""

from __future__ import annotations

from collections.abc import Iterator

from lbconfig.model.addresses import version
from lbconfig.model.network import ONE_SPEAKS, Interface, Network
from lbconfig.model.problem import Place, Problem, Unseen, each, number, quote
from lbconfig.validate.fields import in_range, interface_name, note

MAX_INTERFACES = 512  # each is looked at by each apply
MAX_MEMBERS = 32
MIN_MTU, MAX_MTU = 576, 9216  # bytes; every IPv4 host takes the first, every card with large frames the second
IPV6_MTU = 1280  # RFC 8200: no link may carry less
MIIMON = (10, 10_000)  # milliseconds


def link_problems(network: Network) -> Iterator[Problem]:
    if len(network.interfaces) > MAX_INTERFACES:
        yield Place("network", "network").problem("interfaces", f"has more than {MAX_INTERFACES} interfaces")
        return
    known = {interface.name: interface for interface in network.interfaces}
    masters = _masters(network)
    first_tag = Unseen()
    for interface in network.interfaces:
        place = Place(f"interface {quote(interface.name)}", f"network.interfaces[{interface.name}]")
        yield from each(place, note=note(interface.note), mtu=_mtu(interface, known, masters))
        yield from _kinds(place, interface)
        yield from _as_member(place, interface, masters)
        yield from _vlan(place, interface, known, masters, first_tag)
        yield from _members(place, interface, known, masters)
        yield from _bond(place, interface)
        yield from _loop(place, interface, known)


def _masters(network: Network) -> dict[str, list[Interface]]:
    """Member -> the bonds and bridges that name it."""
    found: dict[str, list[Interface]] = {}
    for interface in network.interfaces:
        for member in dict.fromkeys(interface.members):
            found.setdefault(member, []).append(interface)
    return found


def _kinds(place: Place, interface: Interface) -> Iterator[Problem]:
    set_ = [name for name in ("vlan", "bond", "bridge") if getattr(interface, name) is not None]
    if len(set_) > 1:
        yield place.problem(set_[1], f"it is a {set_[0]} already; an interface is one thing")


def _as_member(place: Place, interface: Interface, masters: dict[str, list[Interface]]) -> Iterator[Problem]:
    master = next(iter(masters.get(interface.name, [])), None)
    if master is None:
        return
    whose = f"it is a member of {quote(master.name)}"
    if interface.addresses:
        yield place.problem("addresses", f"{whose}, which has the addresses; a member has none")
    if interface.dhcp:
        yield place.problem("dhcp", f"{whose}; DHCP is asked there and not by a member")
    if not interface.on:
        yield place.problem("on", f"{whose}, and a member cannot be switched off")


def _vlan(
    place: Place,
    interface: Interface,
    known: dict[str, Interface],
    masters: dict[str, list[Interface]],
    first_tag: Unseen,
) -> Iterator[Problem]:
    vlan = interface.vlan
    if vlan is None:
        return
    inner = place.inner("vlan")
    yield from each(inner, id=in_range(vlan.id, 1, 4094), parent=interface_name(vlan.parent))
    if not first_tag((vlan.parent, vlan.id)):
        yield inner.problem("id", f"another interface is VLAN {number(vlan.id)} of {quote(vlan.parent)} already")
    if vlan.parent == interface.name:
        yield inner.problem("parent", "it cannot be its own parent")
    if master := masters.get(vlan.parent):
        yield inner.problem(
            "parent", f"{quote(vlan.parent)} is a member of {quote(master[0].name)}; put the VLAN on that one"
        )
    parent = known.get(vlan.parent)
    if parent and not parent.on and interface.on:
        yield inner.problem("parent", f"{quote(vlan.parent)} is switched off, and this VLAN with it")


def _members(
    place: Place, interface: Interface, known: dict[str, Interface], masters: dict[str, list[Interface]]
) -> Iterator[Problem]:
    group = interface.bond or interface.bridge
    if group is None:
        return
    inner = place.inner("bond" if interface.bond else "bridge")
    if len(group.members) > MAX_MEMBERS:
        yield inner.problem("members", f"has more than {MAX_MEMBERS} members")
        return
    first = Unseen()
    for member in group.members:
        if sentence := interface_name(member):
            yield inner.problem("members", sentence)
        elif not first(member):
            yield inner.problem("members", f"{quote(member)} is named twice")
        elif member == interface.name:
            yield inner.problem("members", "it cannot be a member of itself")
        elif len(masters[member]) > 1 and masters[member][0] is not interface:
            yield inner.problem("members", f"{quote(member)} is a member of {quote(masters[member][0].name)} already")
        elif member in known and (sentence := _unfit(interface, known[member])):
            yield inner.problem("members", sentence)


def _unfit(master: Interface, member: Interface) -> str | None:
    if master.bond and member.made:
        return f"{quote(member.name)} is not a network card; a bond is made of cards"
    if master.bridge and member.bridge:
        return f"{quote(member.name)} is a bridge, and a bridge takes no other bridge"
    return None


def _bond(place: Place, interface: Interface) -> Iterator[Problem]:
    bond = interface.bond
    if bond is None:
        return
    inner = place.inner("bond")
    yield from each(inner, miimon=in_range(bond.miimon, *MIIMON))
    if bond.primary and bond.mode not in ONE_SPEAKS:
        yield inner.problem("primary", f"the mode {bond.mode} has no primary member: all of them are active")
    elif bond.primary and bond.primary not in bond.members:
        yield inner.problem("primary", f"{quote(bond.primary)} is not one of its members")


def _loop(place: Place, interface: Interface, known: dict[str, Interface]) -> Iterator[Problem]:
    """Whether it stands on itself, over however many others."""
    waiting, seen = list(_parts(interface)), set()
    while waiting:
        name = waiting.pop()
        if name == interface.name and name not in _parts(interface):
            field = "vlan" if interface.vlan else "bond" if interface.bond else "bridge"
            yield place.problem(field, "it contains itself: one of its parts is made of it")
            return
        if name not in seen and name in known:
            seen.add(name)
            waiting += _parts(known[name])


def _parts(interface: Interface) -> tuple[str, ...]:
    return (interface.vlan.parent, *interface.members) if interface.vlan else interface.members


def _mtu(interface: Interface, known: dict[str, Interface], masters: dict[str, list[Interface]]) -> str | None:
    mtu = interface.mtu
    if mtu == 0:
        return None
    if sentence := in_range(mtu, MIN_MTU, MAX_MTU):
        return f"{sentence}; 0 leaves it as it is"
    if master := masters.get(interface.name):
        return f"it is a member of {quote(master[0].name)} and has its MTU; leave 0 here"
    if mtu < IPV6_MTU and any(version(address) == 6 for address in interface.addresses):
        return f"IPv6 needs at least {IPV6_MTU}, not {mtu}"
    parent = known.get(interface.vlan.parent) if interface.vlan else None
    if parent and parent.mtu and mtu > parent.mtu:
        return f"must not be larger than that of {quote(parent.name)}, {parent.mtu}"
    return None
