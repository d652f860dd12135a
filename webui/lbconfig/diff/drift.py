"""Where what the kernel holds is not what the running configuration says, in words for an admin.

What differs is found by what repairs it as well (ipvs.changes, netstate); here it gets a name, a reason and
what repairing it costs. What the health checks decide is no difference.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from lbconfig.model import names
from lbconfig.model.addresses import endpoint
from lbconfig.model.snapshot import CheckKind, Forwarding, Scheduler, Snapshot
from lbconfig.wanted import table as ipvs
from lbconfig.wanted.netstate import MAIN, Address, Link, NetworkState, Route, RoutingRule
from lbconfig.wanted.settings import Setting
from lbconfig.wanted.table import Server, ServerKey, Service, Table, TableChange

Where = Literal["table", "firewall", "links", "addresses", "routes", "settings", "checks", "pair"]

REFUSED = "New connections to it may be refused for a moment."
CLOSED = "Connections through it are closed."
PATH = "Traffic on this route moves to the right one."
ENDS = "Connections to this address end."
PAUSES = "Traffic over this interface pauses for a moment."


@dataclass(frozen=True, slots=True)
class Difference:
    where: Where
    object: str  # "virtual service 'web'"
    wanted: str  # what should be
    present: str  # what is
    why: str  # a sentence: why it matters
    disturbs: str = ""  # a sentence: what repairing it does to connections; "": nothing

    @property
    def key(self) -> tuple[str, str]:
        """Two looks at the same thing: what is there instead may have changed between them."""
        return self.where, self.object


# --- the table of virtual services -------------------------------------------------------------------


def table(running: Table, snapshot: Snapshot) -> list[Difference]:
    """`running`: the kernel's; `snapshot`: what runs."""
    named = {ipvs.key(one): one.name for one in snapshot.enabled_services}
    wanted, checked = ipvs.wanted(snapshot), ipvs.checked(snapshot)
    there = running.by_key()
    found = []
    for change in ipvs.changes(running, wanted, checked):
        if change.place is None:
            found.append(_service(change, named.get(change.service.key, "")))
        elif change.service.key in there and not _by_health(change, snapshot):
            found.append(_server(change, change.place, named[change.service.key], change.service.key in checked))
    return found


def _by_health(change: TableChange, snapshot: Snapshot) -> bool:
    """Whether only the weight of a checked server differs, and lies between 0 and the configured one."""
    if not isinstance(change.old, Server) or not isinstance(change.new, Server):
        return False
    service = next(one for one in snapshot.enabled_services if ipvs.key(one) == change.service.key)
    same = _server_words(change.old, weight=False) == _server_words(change.new, weight=False)
    return service.check.kind is not CheckKind.OFF and same and 0 <= change.old.weight <= change.new.weight


def _service(change: TableChange, name: str) -> Difference:
    if not isinstance(change.new, Service):
        why = "The box takes connections for a service that is not configured."
        return Difference("table", f"virtual service {_place(change.service)}", "none", "there", why, CLOSED)
    object_ = f"virtual service '{name}'"
    if not isinstance(change.old, Service):
        return Difference("table", object_, "in the kernel's table", "not there", "Its clients get no answer.")
    new, old = _service_words(change.new), _service_words(change.old)
    words = [key for key in new if new[key] != old[key]]
    why = "Its clients are distributed differently than configured."
    disturbs = REFUSED if "scheduler" in words else ""
    return Difference(
        "table", object_, ", ".join(new[key] for key in words), ", ".join(old[key] for key in words), why, disturbs
    )


def _place(service: Service) -> str:
    if service.protocol in (ipvs.FIREWALL_MARK, ipvs.FIREWALL_MARK6):
        return f"of firewall mark {service.port}"
    return f"at {endpoint(service.address, service.port)} ({service.protocol.upper()})"


def _service_words(service: Service) -> dict[str, str]:
    known = service.scheduler in list(Scheduler)
    mask = f" for networks of {service.prefix} bits" if service.persistence else ""
    return {
        "scheduler": names.SCHEDULERS[Scheduler(service.scheduler)].long if known else service.scheduler,
        "persistence": f"persistence of {service.persistence} s{mask}" if service.persistence else "no persistence",
        "engine": f"persistence by {service.engine or 'address'}",
        "flags": f"options {', '.join(service.flags)}" if service.flags else "no options",
    }


def _server(change: TableChange, place: ServerKey, name: str, checked: bool) -> Difference:
    object_ = f"real server {endpoint(*place)} of virtual service '{name}'"
    if not isinstance(change.new, Server):
        why = "It gets connections although it is not configured."
        return Difference("table", object_, "none", "there", why, "Connections to it are closed.")
    if not isinstance(change.old, Server):
        wanted = "in the kernel's table"
        return Difference("table", object_, wanted, "not there", "It gets no connections, whether it is up or not.")
    new, old = _server_words(change.new), _server_words(change.old)
    words = [key for key in new if new[key] != old[key]]
    why = "It gets another share of the connections than you chose, or gets them in another way."
    if checked and words == ["weight"]:
        why = "It gets a larger share of the connections than you chose."
    return Difference("table", object_, ", ".join(new[key] for key in words), ", ".join(old[key] for key in words), why)


def _server_words(server: Server, weight: bool = True) -> dict[str, str]:
    methods = {"masq": names.FORWARDING[Forwarding.NAT].long, "route": names.FORWARDING[Forwarding.DIRECT].long}
    words = {
        "method": methods.get(server.method, server.method),
        "tunnel": f"tunnel {server.tunnel or 'ipip'}",
        "limits": f"thresholds {server.upper} and {server.lower}",
    }
    return words | ({"weight": f"weight {server.weight}"} if weight else {})


# --- the network -----------------------------------------------------------------------------------


def network(
    present: NetworkState, wanted: NetworkState, foreign: NetworkState, links: Collection[str]
) -> list[Difference]:
    """`foreign`: what is there and not configured; `links`: the names of those that are not as configured."""
    there = {link.name: link for link in present.links}
    absent = {link.name for link in wanted.links} - there.keys()
    found = [_link(there.get(link.name), link) for link in wanted.links if link.name in links]
    found += _addresses(present, wanted, foreign, absent)
    found += _routes(present, wanted, foreign, absent)
    found += [_rule(rule, True) for rule in wanted.rules if rule not in present.rules]
    found += [_rule(rule, False) for rule in foreign.rules]
    return found


def _link(present: Link | None, wish: Link) -> Difference:
    object_ = f"interface {wish.name}"
    if present is None:
        kind = wish.kind or "network card"
        why = "Everything that uses it is cut off."
        return Difference("links", object_, f"a {kind} that is on", "not there", why)
    new, old = _link_words(wish, wish), _link_words(present, wish)
    words = [key for key in new if new[key] != old.get(key)]
    why = "Traffic over it may be cut off, or its packets may be too large for others."
    return Difference(
        "links",
        object_,
        ", ".join(new[key] for key in words) or "as configured",
        ", ".join(old.get(key, "not set") for key in words) or "not as configured",
        why,
        PAUSES,
    )


def _link_words(link: Link, wish: Link) -> dict[str, str]:
    """The link in words, as far as the configuration names it."""
    words = {"on": "on" if link.on else "off", "kind": link.kind or "network card"}
    words |= {"mtu": f"MTU {link.mtu}"} if wish.mtu else {}
    words |= {"master": f"member of {link.master}" if link.master else "no member of another interface"}
    words |= {"tag": f"VLAN {link.tag} of {link.parent}"} if wish.kind == "vlan" else {}
    asked = dict(wish.options)
    return words | {name: f"{name} {value}" for name, value in link.options if name in asked}


def _addresses(
    present: NetworkState, wanted: NetworkState, foreign: NetworkState, absent: Collection[str]
) -> Iterator[Difference]:
    for name, address in wanted.addresses:
        if (name, address) in present.addresses or name in absent:
            continue
        host, _, length = address.partition("/")
        if length in ("32", "128"):
            why = "The box does not answer at this address, so no client reaches the services there."
            yield Difference("addresses", f"virtual address {host}", f"on {name}", "not there", why)
        else:
            why = "Clients and real servers that use this address no longer reach the box."
            yield Difference("addresses", f"address {address}", f"on {name}", "not there", why)
    for name, address in foreign.addresses:
        why = "The box answers at an address that is not configured; it may belong to another machine."
        yield Difference("addresses", f"address {address}", "none", f"on {name}", why, ENDS)


def _routes(
    present: NetworkState, wanted: NetworkState, foreign: NetworkState, absent: Collection[str]
) -> Iterator[Difference]:
    others = {route.key: route for route in foreign.routes}
    for route in wanted.routes:
        if route in present.routes or route.device in absent:
            continue
        other = others.pop(route.key, None)
        why = "Answers to clients behind this router, or packets to real servers there, do not arrive."
        yield Difference(
            "routes", _route(route), _way(route), _way(other) if other else "not there", why, PATH if other else ""
        )
    for route in others.values():
        why = "Packets take a route that is not configured."
        yield Difference("routes", f"{_route(route)} {_way(route)}", "none", "there", why, PATH)


def _route(route: Route) -> str:
    family = " of IPv6" if route.version == 6 else ""
    what = f"default route{family}" if route.is_default else f"route to {route.destination}"
    return what if route.table == MAIN else f"{what} of routing table {route.table}"


def _way(route: Route) -> str:
    return f"via {route.via} on {route.device}" if route.via else f"on {route.device}"


def _rule(rule: RoutingRule, wished: bool) -> Difference:
    table = "main" if rule.table == MAIN else str(rule.table)
    words = ("there", "not there") if wished else ("none", "there")
    why = "Answers from this address leave through another router than configured."
    return Difference("routes", f"rule for packets from {rule.source} (routing table {table})", *words, why, PATH)


def floating(lacks: Iterable[Address], has: Iterable[Address]) -> Iterator[Difference]:
    """Of a pair: what a box lacks that leads, and what one has that does not."""
    for name, address in lacks:
        why = "The box leads and does not answer at this address, so no client reaches what is there."
        yield Difference("pair", _floating(address), f"on {name}", "not there", why)
    for name, address in has:
        why = "The other box may have it as well: some clients reach the wrong one."
        yield Difference("pair", _floating(address), "none, as this box does not lead", f"on {name}", why, ENDS)


def _floating(address: str) -> str:
    return f"floating address {address.partition('/')[0]}"


# --- settings --------------------------------------------------------------------------------------


def settings(differing: Iterable[tuple[Setting, str]]) -> list[Difference]:
    """Of the kernel; each with its present value."""
    return [
        Difference(
            "settings",
            f"kernel setting {setting.key.replace('/', '.')}",
            setting.value,
            present,
            f"{setting.reason[:1].upper()}{setting.reason[1:]}.",
        )
        for setting, present in differing
    ]


def timeouts(present: tuple[int, int, int], wanted: tuple[int, int, int]) -> list[Difference]:
    """Seconds, in the order of ipvs.timeouts."""
    if present == wanted:
        return []
    said: Mapping[tuple[int, int, int], str] = {
        one: "TCP {} s, TCP after its end {} s, UDP {} s".format(*one) for one in (present, wanted)
    }
    why = "The kernel forgets idle connections sooner or later than configured."
    return [Difference("settings", "timeouts of connections", said[wanted], said[present], why)]
