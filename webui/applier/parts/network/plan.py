"""From the network that is there to the configured one: lines for `ip -batch`, without touching anything.

The order is the point. Links are made before what lives on them; addresses, routes and rules come to their new place
before they leave the old one; an interface becomes the member of another one only when all that it carried is there
already; what nobody wants any more goes last. What others brought (DHCP, the kernel, an admin by hand) stays.

Some changes the kernel refuses in place: then a link is taken apart first, and whatever falls with it is put back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypedDict, TypeVar, Unpack

from lbconfig.model.addresses import version
from lbconfig.model.network import ONE_SPEAKS
from lbconfig.wanted.netstate import MAIN, Address, Link, NetworkState, Route, RoutingRule, depth, stacked

One = TypeVar("One", RoutingRule, Route, Address)

ETHERNET = 1500  # bytes: the MTU of a card for which none is configured any more
WHEN_DOWN = frozenset({"mode", "lacp_rate"})  # bonding refuses these while the bond is up (bond_options.c)


@dataclass(frozen=True, slots=True)
class Plan:
    """Lines in the order of doing; after `create` the links are there, without anything on them."""

    create: tuple[str, ...] = ()
    change: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()  # addresses, routes and rules
    destroy: tuple[str, ...] = ()  # links


def plan(present: NetworkState, wanted: NetworkState, ours: NetworkState) -> Plan:
    """`ours`: what may be taken away where it is not wanted any more."""
    kernel = _Kernel.of(present)
    create = _create(kernel, wanted, ours)
    change = _change(kernel, wanted, ours)
    destroy = _destroyed(kernel, wanted, ours)
    remove = _remove(kernel, wanted, ours, {link.name for link in destroy})
    return Plan(
        tuple(create), tuple(change), tuple(remove), tuple(f"link delete dev {link.name}" for link in reversed(destroy))
    )


def adopted(wanted: Mapping[Address, Address]) -> list[str]:
    """Lines that make own addresses (values) of leases, which are for themselves alone."""
    lines = []
    for (name, lease), (_, wish) in wanted.items():
        if wish == lease:
            preferred = "preferred_lft 0 nodad" if version(lease) == 6 else "preferred_lft forever"
            lines.append(f"address change {lease} dev {name} valid_lft forever {preferred}")
            continue
        makes, drops = f"address add {wish} dev {name}{_kind(wish, moves=True)}", f"address del {lease} dev {name}"
        # IPv6 has an address once on a link, whatever its length; of IPv4 both are there for a moment.
        lines += [drops, makes] if version(lease) == 6 else [makes, drops]
    return lines


class _Fields(TypedDict, total=False):
    """Of a link, those that a change is about."""

    on: bool
    mtu: int
    master: str
    options: tuple[tuple[str, str], ...]
    mac: str


@dataclass
class _Kernel:
    """What will be there when the lines so far have been done."""

    links: dict[str, Link]
    addresses: set[Address]
    routes: set[Route]
    rules: set[RoutingRule]
    lines: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, state: NetworkState) -> _Kernel:
        return cls({one.name: one for one in state.links}, {*state.addresses}, {*state.routes}, {*state.rules})

    def take_lines(self) -> list[str]:
        lines, self.lines = self.lines, []
        return lines

    def update(self, name: str, **fields: Unpack[_Fields]) -> None:
        self.links[name] = replace(self.links[name], **fields)

    def above(self, name: str) -> list[str]:
        """VLANs on this link, and VLANs on those."""
        found = [link.name for link in self.links.values() if link.parent == name and link.name != name]
        return found + [higher for one in found for higher in self.above(one)]

    def fall(self, name: str) -> None:
        """A link goes down: the kernel takes its routes and IPv6 addresses, and VLANs go down with it."""
        for one in (name, *self.above(name)):
            self.update(one, on=False)
            self.routes = {route for route in self.routes if route.device != one}
            self.addresses = {
                (link, address) for link, address in self.addresses if link != one or version(address) == 4
            }

    def down(self, name: str) -> None:
        if self.links[name].on:
            self.lines.append(f"link set dev {name} down")
        self.fall(name)

    def release(self, name: str) -> None:
        """Of its master; bonding switches it off."""
        self.lines.append(f"link set dev {name} nomaster")
        master = self.links.get(self.links[name].master)
        self.update(name, master="")
        if master is not None and master.kind == "bond":
            self.fall(name)

    def delete(self, name: str) -> None:
        self.lines.append(f"link delete dev {name}")
        self.vanish(name)

    def vanish(self, name: str) -> None:
        for member in [link.name for link in self.links.values() if link.master == name]:
            bond = self.links[name].kind == "bond"
            self.update(member, master="")
            if bond:
                self.fall(member)
        for one in (*self.above(name), name):
            del self.links[one]
            self.routes = {route for route in self.routes if route.device != one}
            self.addresses = {(link, address) for link, address in self.addresses if link != one}


# --- links ---------------------------------------------------------------------------------------


def _create(kernel: _Kernel, wanted: NetworkState, ours: NetworkState) -> list[str]:
    mine = {link.name for link in ours.links if link.kind}
    for name in _in_the_way(kernel, wanted, mine):
        if name in kernel.links:  # it may have gone with another one
            kernel.delete(name)
    for link in stacked(wanted.links):
        if link.kind and link.name not in kernel.links:
            mac = _bridge_mac(kernel, link)
            kernel.lines.append(_made(link, mac))
            kernel.links[link.name] = replace(link, on=False, master="", mtu=0, mac=mac)
    return kernel.take_lines()


def _in_the_way(kernel: _Kernel, wanted: NetworkState, mine: set[str]) -> list[str]:
    """Links that cannot become what is configured: they are made anew. What stands on others comes first."""
    found = []
    tags = {(link.parent, link.tag): link.name for link in wanted.links if link.kind == "vlan"}
    wishes = {link.name: link for link in wanted.links}
    for link in stacked(kernel.links.values()):
        wish = wishes.get(link.name)
        moved = wish is not None and wish.kind and _another(link, wish)
        claimed = link.kind == "vlan" and tags.get((link.parent, link.tag), link.name) != link.name
        if moved or (claimed and link.name in mine):
            found.append(link.name)
    return found[::-1]


def _another(present: Link, wish: Link) -> bool:
    """Whether no change in place leads there. A primary member can be changed, but not be unset by ip(8)."""
    if (present.kind, present.parent, present.tag) != (wish.kind, wish.parent, wish.tag):
        return True
    before, after = dict(present.options), dict(wish.options)
    return "primary" in before and "primary" not in after and after.get("mode") in ONE_SPEAKS


def _bridge_mac(kernel: _Kernel, wish: Link) -> str:
    """The MAC that a bridge must have, or "" for any.

    Without one it gets a random MAC until its first port joins, and its link-local address is made of that.
    """
    if wish.kind != "bridge":
        return ""
    return next((kernel.links[name].mac for name in wish.like if name in kernel.links), wish.mac)


def _made(link: Link, mac: str) -> str:
    if link.kind == "vlan":
        return f"link add link {link.parent} name {link.name} type vlan id {link.tag}"
    # A primary member is told once it is one.
    options = [f" {name} {value}" for name, value in link.options if name != "primary"]
    address = f" address {mac}" if mac else ""
    return f"link add name {link.name}{address} type {link.kind}{''.join(options)}"


def _change(kernel: _Kernel, wanted: NetworkState, ours: NetworkState) -> list[str]:
    wishes = {link.name: link for link in stacked(wanted.links) if link.name in kernel.links}
    _release(kernel, wishes, ours)
    for wish in wishes.values():
        _set_options(kernel, wish)
        _set_mac(kernel, wish)
    _set_mtus(kernel, wishes, ours)
    joins_bond = {wish.name for wish in wishes.values() if _joins(kernel, wish) and _is_bond(wishes, wish.master)}
    for wish in wishes.values():
        if wish.on and not kernel.links[wish.name].on and wish.name not in joins_bond:
            _up(kernel, wish.name)
    _add_addresses(kernel, wanted)
    _add_routes(kernel, wanted)
    for wish in wishes.values():
        if _joins(kernel, wish):
            _enslave(kernel, wish, _is_bond(wishes, wish.master))
    for wish in wishes.values():
        primary = dict(wish.options).get("primary")
        if primary and dict(kernel.links[wish.name].options).get("primary") != primary:
            kernel.lines.append(f"link set dev {wish.name} type bond primary {primary}")
    return kernel.take_lines()


def _joins(kernel: _Kernel, wish: Link) -> bool:
    return bool(wish.master) and wish.master in kernel.links and kernel.links[wish.name].master != wish.master


def _is_bond(wishes: dict[str, Link], master: str) -> bool:
    return master in wishes and wishes[master].kind == "bond"


def _up(kernel: _Kernel, name: str) -> None:
    kernel.lines.append(f"link set dev {name} up")
    kernel.update(name, on=True)


def _release(kernel: _Kernel, wishes: dict[str, Link], ours: NetworkState) -> None:
    """Members to release: those configured otherwise, and ours that no bond or bridge names any more."""
    joined = {(link.name, link.master) for link in ours.links if link.master}
    for link in list(kernel.links.values()):
        if not link.master:
            continue
        wish = wishes.get(link.name)
        dropped = wish is None and link.master in wishes and (link.name, link.master) in joined
        if dropped or (wish is not None and wish.master != link.master):
            kernel.release(link.name)


def _set_options(kernel: _Kernel, wish: Link) -> None:
    present = kernel.links[wish.name]
    before = dict(present.options)
    differ = {name: value for name, value in wish.options if name != "primary" and before.get(name) != value}
    if not differ:
        return
    if "mode" in differ:
        for member in [link.name for link in kernel.links.values() if link.master == wish.name]:
            kernel.release(member)
        differ = {name: value for name, value in wish.options if name != "primary"}  # some go with the old mode
    if wish.kind == "bond" and WHEN_DOWN & {*differ} and present.on:
        kernel.down(wish.name)
    words = "".join(f" {name} {value}" for name, value in differ.items())
    kernel.lines.append(f"link set dev {wish.name} type {wish.kind}{words}")
    kept = {} if "mode" in differ else before
    kernel.update(wish.name, options=tuple((kept | differ).items()))


def _set_mac(kernel: _Kernel, wish: Link) -> None:
    """In place: its link-local address follows at the next start, because taking it down would cut clients off."""
    mac = _bridge_mac(kernel, wish)
    if mac and mac != kernel.links[wish.name].mac:
        kernel.lines.append(f"link set dev {wish.name} address {mac}")
        kernel.update(wish.name, mac=mac)


def _set_mtus(kernel: _Kernel, wishes: dict[str, Link], ours: NetworkState) -> None:
    """Smaller ones from the top, larger ones from the bottom: a VLAN may not carry more than its parent."""
    was = {link.name: link.mtu for link in ours.links}
    changes = []
    for wish in wishes.values():
        present = kernel.links[wish.name].mtu
        mtu = wish.mtu or (_usual(kernel, wish) if was.get(wish.name) and not wish.master else 0)
        if mtu and mtu != present:
            changes.append((wish, mtu, mtu < present))
    shrink = sorted((one for one in changes if one[2]), key=lambda one: -depth(one[0], wishes))
    grow = sorted((one for one in changes if not one[2]), key=lambda one: depth(one[0], wishes))
    for wish, mtu, _ in (*shrink, *grow):
        if wish.master and _is_bond(wishes, wish.master):
            continue  # a bond gives its own to its members
        kernel.lines.append(f"link set dev {wish.name} mtu {mtu}")
        kernel.update(wish.name, mtu=mtu)


def _usual(kernel: _Kernel, wish: Link) -> int:
    if wish.parent in kernel.links:
        return kernel.links[wish.parent].mtu
    return min(ETHERNET, kernel.links[wish.name].largest or ETHERNET)


def _enslave(kernel: _Kernel, wish: Link, bond: bool) -> None:
    if bond:
        kernel.down(wish.name)
    kernel.lines.append(f"link set dev {wish.name} master {wish.master}")
    kernel.update(wish.name, master=wish.master)
    if bond:
        kernel.update(wish.name, on=True)
    elif not kernel.links[wish.name].on:
        _up(kernel, wish.name)


# --- addresses, routes, rules --------------------------------------------------------------------


def _add_addresses(kernel: _Kernel, wanted: NetworkState) -> None:
    places: dict[str, list[Address]] = {}  # by the address alone
    for place in kernel.addresses:
        places.setdefault(_without_length(place[1]), []).append(place)
    for name, address in wanted.addresses:
        if (name, address) in kernel.addresses or name not in kernel.links:
            continue
        same = places.setdefault(_without_length(address), [])
        kind = _kind(address, bool(same))
        for place in [one for one in same if version(address) == 6 and one[0] == name]:
            # IPv6 has an address once on a link, whatever its length.
            kernel.lines.append(f"address del {place[1]} dev {name}")
            kernel.addresses.discard(place)
            same.remove(place)
        kernel.lines.append(f"address add {address} dev {name}{kind}")
        kernel.addresses.add((name, address))
        same.append((name, address))


def _without_length(address: str) -> str:
    return address.partition("/")[0]


def _kind(address: str, moves: bool) -> str:
    """A VIP of IPv6 is there at once, and is not what the box itself speaks from (RFC 6724 would choose it).

    An address that another card of the box still has would be taken for somebody else's.
    """
    if version(address) == 4:
        return ""
    if address.endswith("/128"):
        return " nodad preferred_lft 0"
    return " nodad" if moves else ""


def _add_routes(kernel: _Kernel, wanted: NetworkState) -> None:
    for route in wanted.routes:
        if route not in kernel.routes and route.device in kernel.links:
            kernel.lines.append(f"route replace {_route(route)}")
            kernel.routes = {one for one in kernel.routes if one.key != route.key} | {route}
    for rule in wanted.rules:
        if rule not in kernel.rules:
            kernel.lines.append(f"rule add {_rule(rule)}")
            kernel.rules.add(rule)


def _route(route: Route) -> str:
    words = [route.destination]
    words += ["via", route.via] if route.via else []
    words += ["dev", route.device]
    words += ["metric", str(route.metric)] if route.metric else []
    words += ["table", str(route.table)] if route.table != MAIN else []
    return " ".join(words)


def _rule(rule: RoutingRule) -> str:
    """Of `main` its default routes do not count: what has a network of its own goes there as ever."""
    table = "main suppress_prefixlength 0" if rule.table == MAIN else str(rule.table)
    return f"from {rule.source} lookup {table} preference {rule.preference}"


# --- what goes -----------------------------------------------------------------------------------


def _remove(kernel: _Kernel, wanted: NetworkState, ours: NetworkState, destroyed: set[str]) -> list[str]:
    lines = [f"rule del {_rule(rule)}" for rule in _gone(ours.rules, wanted.rules, kernel.rules)]
    kept = {route.key for route in wanted.routes}
    for route in _gone(ours.routes, wanted.routes, kernel.routes):
        if route.key not in kept:
            lines.append(f"route del {_route(route)}")
    for name, address in _gone(ours.addresses, wanted.addresses, kernel.addresses):
        if name not in destroyed:
            lines.append(f"address del {address} dev {name}")
    off = [link.name for link in wanted.links if not link.on and link.name in kernel.links]
    lines += [f"link set dev {name} down" for name in off if kernel.links[name].on]
    return lines


def _gone(ours: Iterable[One], wanted: Iterable[One], present: set[One]) -> list[One]:
    wishes = {*wanted}
    return [one for one in dict.fromkeys(ours) if one in present and one not in wishes]


def _destroyed(kernel: _Kernel, wanted: NetworkState, ours: NetworkState) -> list[Link]:
    """Parents first."""
    wishes = {link.name for link in wanted.links}
    made = {(link.name, link.kind) for link in ours.links}
    return [
        link
        for link in stacked(kernel.links.values())
        if link.kind and (link.name, link.kind) in made and link.name not in wishes
    ]
