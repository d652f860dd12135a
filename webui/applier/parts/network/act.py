"""The network of the box: bring about what is configured, take away what is ours, put back what was.

What has to be done is network_plan's to say; here it is done, through iproute2 and runit.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from applier.base.paths import Paths
from applier.host.host import Host, HostError, run
from applier.parts.network.plan import adopted, plan
from applier.parts.network.present import SeenLink, addresses, describe, links, present
from lbconfig.diff import drift
from lbconfig.diff.drift import Difference
from lbconfig.wanted.netstate import EVERYWHERE, MAIN, NOTHING, Address, NetworkState, Route

__all__ = ["NOTHING", "Address", "SeenLink", "addresses", "describe", "links", "present"]

DHCP_METRIC = 100  # of the default route that dhcp-event sets for the first interface that asks; the next have more
TIME_SERVICE = "time"  # chronyd
TOLD = ("names", "sources")  # notes of dhcp-event's about name servers and time servers
PASSES = 2  # what the kernel took along while something was changed (a route, an address) is put back by the second

Trouble = Callable[[HostError], None]


def dhcp_metric(state: NetworkState, name: str) -> int:
    """Of the default route by the router that DHCP names there: the first interface that asks is preferred."""
    return DHCP_METRIC + state.dhcp.index(name)


def _routers(now: NetworkState, state: NetworkState) -> tuple[str, ...]:
    """Lines that give default routes of DHCP the metric of their interface, where that has changed.

    Each replaces what had that metric, so the first lines are for the highest; what is left over goes afterwards.
    """
    most = DHCP_METRIC + len(now.links)
    brought = {
        route.device: route
        for route in now.routes
        if route.is_default and route.version == 4 and route.table == MAIN and DHCP_METRIC <= route.metric < most
        if route.device in state.dhcp
    }
    wanted = {name: dhcp_metric(state, name) for name in brought}
    moved = sorted((name for name in brought if brought[name].metric != wanted[name]), key=wanted.__getitem__)
    lines = [
        f"route replace {EVERYWHERE[4]} via {brought[name].via} dev {name} metric {wanted[name]}"
        for name in reversed(moved)
        if brought[name].via
    ]
    left = [brought[name] for name in moved if brought[name].via and brought[name].metric not in wanted.values()]
    gone = [f"route del {EVERYWHERE[4]} via {one.via} dev {one.device} metric {one.metric}" for one in left]
    return (*lines, *gone)


def _metrics_differ(host: Host, paths: Paths, state: NetworkState) -> list[str]:
    """Interfaces of which dhcp-event does not know the metric yet."""
    return [name for name in state.dhcp if host.read(_note(paths, name, "metric")) != f"{dhcp_metric(state, name)}\n"]


def leases(host: Host, state: NetworkState) -> dict[str, str]:
    """Interface to the address that DHCP brought there."""
    ours = set(state.addresses)
    return {name: address for name, address in sorted(addresses(host) - ours) if name in state.dhcp}


def missing(host: Host, state: NetworkState) -> list[str]:
    """What of the configuration is not there, in words; empty: all is."""
    now = present(host)
    words = [f"{address} on {name}" for name, address in state.addresses if (name, address) not in now.addresses]
    words += [_route_words(route) for route in state.routes if route not in now.routes]
    todo = plan(now, state, NOTHING)
    return words + [
        line for line in (*todo.create, *todo.change) if not line.startswith(("address add", "route replace"))
    ]


def foreign(host: Host, paths: Paths, now: NetworkState, state: NetworkState) -> NetworkState:
    """What is there and neither configured nor DHCP's: on configured interfaces, and rules like ours."""
    named = {link.name for link in state.links}
    leased = {name: (host.read(paths.run / "dhcp" / name) or "").strip() for name in state.dhcp}
    routes = [route for route in now.routes if route.device in named and route not in state.routes]
    return NetworkState(
        addresses=tuple(
            (name, address)
            for name, address in now.addresses
            if name in named and (name, address) not in state.addresses and leased.get(name) not in ("", address)
        ),
        routes=tuple(
            one
            for one in routes
            if not (one.is_default and one.device in leased and one.metric == dhcp_metric(state, one.device))
        ),
        rules=tuple(rule for rule in now.rules if rule not in state.rules),
    )


def differences(host: Host, paths: Paths, state: NetworkState) -> tuple[list[Difference], NetworkState]:
    """Of links, addresses, routes and rules; and what of it is there and has to go."""
    now = present(host)
    extra = foreign(host, paths, now, state)
    todo = plan(now, state, NOTHING)
    lines = [line.split() for line in (*todo.create, *todo.change, *todo.remove) if line.startswith("link ")]
    names = {words[words.index("name" if "name" in words else "dev") + 1] for words in lines}
    names |= {*_impossible(now, state)}
    found = drift.network(now, state, extra, names)
    for name in state.dhcp:
        if not asks(host, paths, name):
            why = "It gets no address, or loses the one that it has."
            found.append(Difference("addresses", f"interface {name}", "asks DHCP for its address", "does not", why))
    return found, extra


def _route_words(route: Route) -> str:
    if route.is_default and route.table == MAIN:
        return f"the gateway {route.via}"
    return f"the route to {route.destination} by {route.via or route.device}"


def asks(host: Host, paths: Paths, name: str) -> bool:
    """Whether this interface asks DHCP."""
    return host.read(paths.services / f"dhcp-{name}" / "run") is not None


def must_exist(host: Host, state: NetworkState) -> None:
    """HostError that names the first interface which this box has not, or cannot make."""
    for error in _impossible(present(host), state).values():
        raise error


def _impossible(now: NetworkState, state: NetworkState) -> dict[str, HostError]:
    """By the name of the interface."""
    known = {link.name: link.kind for link in now.links}
    there = ", ".join(sorted(known)) or "none at all"
    found = {}
    for link in state.links:
        if not link.kind and link.name not in known:
            found[link.name] = f"this box has no interface of that name (there is: {there})"
        elif link.kind and known.get(link.name) == "":
            found[link.name] = f"there is a network card of that name, so no {link.kind} can have it"
    return {name: HostError(f"interface {name}", None, words) for name, words in found.items()}


def without_lost(host: Host, state: NetworkState, before: NetworkState) -> NetworkState:
    """The configured network without cards that are not there and that this change is not about (`before`)."""
    there = {link.name for link in links(host)}
    kept = {link.name for link in before.links if not link.kind and link in state.links}
    return _without(state, kept - there)


def links_to_make(host: Host, state: NetworkState, ours: NetworkState) -> int:
    now = present(host)
    return len(plan(now, _possible(now, state), ours).create)


def lacks(host: Host, state: NetworkState, ours: NetworkState) -> bool:
    """Whether there is anything to make, to change or to add."""
    now = present(host)
    todo = plan(now, state, ours)
    return bool(todo.create or todo.change or _impossible(now, state) or _routers(now, state))


def make_links(host: Host, state: NetworkState, ours: NetworkState, trouble: Trouble) -> int:
    """How many lines that took; nothing is on the new ones yet."""
    now = present(host)
    todo = plan(now, _possible(now, state), ours).create
    _batch(host, todo, trouble)
    return len(todo)


def add(host: Host, paths: Paths, state: NetworkState, trouble: Trouble, ours: NetworkState = NOTHING) -> None:
    """Bring about all of the configuration that is not there yet; takes nothing away that it has.

    `trouble` gets each error, and re-raises it to stop. `ours`: what left the configuration and
    may change for it.
    """
    if state.hostname and host.setting("kernel/hostname") != state.hostname:
        _tolerate(trouble, lambda: host.set("kernel/hostname", state.hostname))
    now = present(host)
    for error in _impossible(now, state).values():
        trouble(error)
    state = _possible(now, state)
    for attempt in range(PASSES):
        todo = plan(present(host) if attempt else now, state, ours)
        _batch(host, (*todo.create, *todo.change), trouble)
        if not (todo.create or todo.change):
            break
    for name in _metrics_differ(host, paths, state):
        note = f"{dhcp_metric(state, name)}\n"
        _tolerate(trouble, functools.partial(host.put, _note(paths, name, "metric"), note))
    if state.dhcp:
        _batch(host, _routers(present(host), state), trouble)
    for name in state.dhcp:
        if not asks(host, paths, name):
            folder = paths.services / f"dhcp-{name}"
            _tolerate(trouble, functools.partial(host.add_service, folder, paths.dhcp_template))


def _possible(now: NetworkState, state: NetworkState) -> NetworkState:
    """Without the interfaces that cannot be, and what would stand on them."""
    return _without(state, {*_impossible(now, state)})


def _without(state: NetworkState, names: set[str]) -> NetworkState:
    out = {*names}
    if not out:
        return state
    for _ in state.links:
        out |= {link.name for link in state.links if link.parent in out}
    return replace(
        state,
        links=tuple(
            replace(link, master="") if link.master in out else link for link in state.links if link.name not in out
        ),
        addresses=tuple(one for one in state.addresses if one[0] not in out),
        dhcp=tuple(name for name in state.dhcp if name not in out),
        routes=tuple(route for route in state.routes if route.device not in out),
    )


def has_more(host: Host, paths: Paths, ours: NetworkState, state: NetworkState) -> bool:
    """Whether anything of `ours` is there that is not configured."""
    todo = plan(present(host), state, ours)
    asking = [name for name in ours.dhcp if name not in state.dhcp and asks(host, paths, name)]
    return bool(todo.remove or todo.destroy or asking)


def remove(host: Host, paths: Paths, ours: NetworkState, state: NetworkState) -> None:
    """Take away what is in `ours` and not in `state`. What others brought (DHCP) stays."""
    dropped = [name for name in ours.dhcp if name not in state.dhcp]
    for name in dropped:
        _end_dhcp(host, paths, name)
    now = present(host)
    leased = tuple(address for address in now.addresses if address[0] in dropped)
    todo = plan(now, state, replace(ours, addresses=(*ours.addresses, *leased)))
    _batch(host, (*todo.remove, *todo.destroy), _raise)


def own(state: NetworkState, leases: Iterable[Address]) -> dict[Address, Address]:
    """Of those leases that are to be the box's own addresses: what `state` has each as."""
    wishes = {(name, address.partition("/")[0]): address for name, address in state.addresses}
    found = {(name, lease): wishes.get((name, lease.partition("/")[0])) for name, lease in leases}
    return {lease: (lease[0], wish) for lease, wish in found.items() if wish}


def adopt(host: Host, wanted: Mapping[Address, Address]) -> None:
    """Make the box's own addresses (values) of leases that nobody renews any more; one that has ended is left out."""
    there = addresses(host)
    _batch(host, tuple(adopted({lease: wish for lease, wish in wanted.items() if lease in there})), _raise)


def put_back(
    host: Host, paths: Paths, before: NetworkState, new: NetworkState, trouble: Trouble, links_too: bool
) -> None:
    """The network as `before` found it, without what `new` has brought; its links go only with `links_too`."""
    for name in new.dhcp:
        if name not in before.dhcp:
            _end_dhcp(host, paths, name)
    # All addresses come back, because DHCP, when it ends, takes one along that was there before it.
    add(host, paths, before, trouble, new)
    todo = plan(present(host), before, new)
    _batch(host, (*todo.remove, *(todo.destroy if links_too else ())), _raise)
    add(host, paths, before, trouble)


def _end_dhcp(host: Host, paths: Paths, name: str) -> None:
    if asks(host, paths, name):
        folder = paths.services / f"dhcp-{name}"
        # No supervisor yet, or none any more: then there is nothing to end.
        host.command(["sv", "-w", "5", "stop", str(folder)])
        host.remove_service(folder)
    for kind in (*TOLD, "kept", "metric"):  # what it said about name and time servers holds no more
        note = _note(paths, name, kind)
        if host.read(note) is not None:
            host.put(note, None)


def told(host: Host, paths: Paths, names: Iterable[str]) -> dict[Path, str]:
    """What DHCP said at these interfaces, as notes for `retell`: name servers, time servers, the address."""
    notes = {_note(paths, name, kind): host.read(_note(paths, name, kind)) for name in names for kind in TOLD}
    notes |= {_note(paths, name, "kept"): host.read(paths.run / "dhcp" / name) for name in names}
    return {note: text for note, text in notes.items() if text}


def retell(host: Host, paths: Paths, notes: Mapping[Path, str]) -> None:
    """Have what DHCP said count again until it says so anew, which takes seconds."""
    changed = {note: text for note, text in notes.items() if host.read(note) != text}
    for note, text in changed.items():
        host.put(note, text)
    if any(note.suffix == ".sources" for note in changed):
        host.command(["sv", "term", str(paths.services / TIME_SERVICE)])  # it starts again, and reads them


def _note(paths: Paths, name: str, kind: str) -> Path:
    """A note of dhcp-event's. "kept": the address that DHCP gave before; it goes where DHCP gives another one."""
    return paths.run / "dhcp" / f"{name}.{kind}"


def _batch(host: Host, lines: tuple[str, ...], trouble: Trouble) -> None:
    """All lines, or none after the first that fails; where `trouble` lets that pass, all that can be done."""
    for options, some in itertools.groupby(lines, _options):
        text = "".join(f"{line}\n" for line in some)
        try:
            run(host, ["ip", *options, "-batch", "-"], stdin=text)
        except HostError as error:
            trouble(error)
            host.command(["ip", *options, "-force", "-batch", "-"], stdin=text)


def _options(line: str) -> tuple[str, ...]:
    """Of a rule, ip does not see by its address which family it is for."""
    return ("-6",) if line.startswith("rule ") and ":" in line else ()


def _raise(error: HostError) -> None:
    raise error


def _tolerate(trouble: Trouble, action: Callable[[], None]) -> None:
    try:
        action()
    except HostError as error:
        trouble(error)
