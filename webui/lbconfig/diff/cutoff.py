"""Which changes can cut the admin off from the box, and where its web UI is reached after them.

A new field of the network asks for confirmation by itself, unless it is named as harmless. The admin's own
firewall rules ask for none: they stand behind the access list (render/own_rules.py).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from lbconfig.model.addresses import contains, parse_network, version, within
from lbconfig.model.snapshot import Management, Network, Pair, Snapshot
from lbconfig.pair import views
from lbconfig.wanted.network import static_networks

SHORTEST, LONGEST, USUAL = 10, 3600, 90  # seconds within which to confirm
HARMLESS = frozenset({"hostname", "dns", "search", "ntp"})  # fields of the network
NETWORK_WORDS = {
    "gateway": "The default gateway changes.",
    "gateway6": "The IPv6 default gateway changes.",
    "routes": "The static routes change.",
    "policies": "The source-based routes change.",
}


@dataclass(frozen=True, slots=True)
class Cutoff:
    """`reasons`: sentences; empty: the change cuts nobody off."""

    reasons: tuple[str, ...]
    addresses: tuple[str, ...]  # of the box, where the web UI is reached after the change; without VIPs
    dhcp: tuple[str, ...]  # interfaces that get one more, which nobody knows yet

    @property
    def asks(self) -> bool:
        return bool(self.reasons)


def cutoff(running: Snapshot, new: Snapshot) -> Cutoff:
    """What the change from one valid snapshot to the other can do to the one who makes it."""
    shown = _open(new)
    return Cutoff(
        reasons=(*_boxes(running, new), *_management(running.management, new.management)),
        addresses=tuple(_places(shown)),
        dhcp=tuple(sorted(_asking(shown))),
    )


def follow(running: Snapshot, new: Snapshot, used: str, client: str, live: Mapping[str, str]) -> str:
    """The address at which a browser that now uses `used` finds the box after the change.

    `live`: every address that the box has now, to its interface; so those are known that came from DHCP. `used` itself
    where it stays, or where that is unknown: it is no address of the box at all (a name, a port that somebody
    forwards). "": it goes, and there is no other that is known.
    """
    runs, networks = _networks(running), _open(new)
    before, after = _places(runs), _places(networks)
    if live.get(used) in _asking(runs) - _asking(networks):
        before = {**before, used: live[used]}
    if used not in before or used in after:
        return used
    candidates = [address for address in after if version(address) == version(used)] or list(after)
    near = {address for address in candidates if _same_network(networks, address, client)}
    link = before[used]
    if link in _asking(networks) and not near and link not in {after[address] for address in candidates}:
        return ""  # what DHCP brings to the same interface is a better guess than another interface
    # False comes first.
    ranked = sorted(candidates, key=lambda one: (one not in near, after[one] != link, one in before))
    return ranked[0] if ranked else ""


def _boxes(running: Snapshot, new: Snapshot) -> Iterator[str]:
    """The networks of the box, or of both of a pair. A floating address stays, whichever of them leads."""
    if (running.pair is None) != (new.pair is None):
        yield "The box becomes one of a pair." if new.pair else "The box leaves the pair."
        return
    for old, now in zip(_networks(running), _networks(new), strict=True):
        whose = f"{now.hostname}: " if new.pair else ""
        yield from (f"{whose}{reason}" for reason in _network(old, now))
    if running.pair and new.pair:
        yield from _pair(running.pair, new.pair)


def _pair(running: Pair, new: Pair) -> Iterator[str]:
    """What only a pair has; the networks are told already."""
    for old, now in zip(running.boxes, new.boxes, strict=True):
        if (old.cable, old.cable_address, old.key) != (now.cable, now.cable_address, now.key):
            yield f"{now.name}: The pair cable changes, and the boxes have to find each other again."
    if running.id != new.id:
        yield "The box becomes one of another pair."


def _network(running: Network, new: Network) -> Iterator[str]:
    for field in dataclasses.fields(Network):
        if field.name in HARMLESS or getattr(running, field.name) == getattr(new, field.name):
            continue
        if field.name == "interfaces":
            yield from _interfaces(running, new)
        else:
            yield NETWORK_WORDS.get(field.name, f"The network changes: {field.name.replace('_', ' ')}.")


def _interfaces(running: Network, new: Network) -> Iterator[str]:
    before = {interface.name: replace(interface, note="") for interface in running.interfaces}
    after = {interface.name: replace(interface, note="") for interface in new.interfaces}
    names = [name for name in dict.fromkeys([*before, *after]) if before.get(name) != after.get(name)]
    for name in names:
        old, wished = before.get(name), after.get(name)
        if old is None or wished is None:
            yield f"Interface {name} is {'added' if old is None else 'removed'}."
        elif old.dhcp != wished.dhcp and old.addresses == wished.addresses:
            yield f"DHCP on {name} is switched {'on' if wished.dhcp else 'off'}."
        elif old.addresses != wished.addresses:
            yield f"The addresses of {name} change."
        elif replace(old, floating=()) == replace(wished, floating=()):
            if set(old.floating) - set(wished.floating):
                yield f"A floating address of {name} is removed."
        else:
            yield f"Interface {name} changes its settings."
    if not names and [*before] != [*after]:
        yield "The order of the interfaces changes, and with it where virtual addresses are placed."


def _management(running: Management, new: Management) -> Iterator[str]:
    gone = [text for text in running.allow if not _covered(text, new.allow)]
    if gone:
        yield f"The web page can no longer be reached from {', '.join(gone)}."
    if running.port != new.port:
        yield f"The web page moves to port {new.port}."
    if running.page_key != new.page_key:
        yield "The web page gets another certificate; your browser may warn about it."
    if shut := [name for name in running.interfaces if not new.answers_on(name)]:
        yield f"The web page can no longer be reached on {' and '.join(shut)}."
    elif new.interfaces and not running.interfaces:
        yield f"The web page can be reached on {' and '.join(new.interfaces)} only."
    told = ("allow", "port", "certificate", "key", "interfaces")
    others = [field.name for field in dataclasses.fields(Management) if field.name not in told]
    if any(getattr(running, name) != getattr(new, name) for name in others):
        yield "How the web page is reached changes."


def _networks(snapshot: Snapshot) -> list[Network]:
    """Of the box; of a pair those of both."""
    return [one.network for one in views(snapshot)]


def _open(snapshot: Snapshot) -> list[Network]:
    """The same, of their interfaces only those that the web UI answers on."""
    answers_on = snapshot.management.answers_on
    return [
        replace(network, interfaces=tuple(one for one in network.interfaces if answers_on(one.name)))
        for network in _networks(snapshot)
    ]


def _covered(text: str, allow: tuple[str, ...]) -> bool:
    network = parse_network(text)
    others = [parse_network(other) for other in allow]
    return any(within(network, other) for other in others)


def _places(networks: Iterable[Network]) -> Mapping[str, str]:
    """Address to interface, of those that are on; where there are floating ones, they come first."""
    used = [interface for network in networks for interface in network.interfaces if interface.on]
    floating = {text.partition("/")[0]: interface.name for interface in used for text in interface.floating}
    return floating | {text.partition("/")[0]: interface.name for interface in used for text in interface.addresses}


def _asking(networks: Iterable[Network]) -> set[str]:
    """The interfaces that ask DHCP."""
    return {one.name for network in networks for one in network.interfaces if one.on and one.dhcp}


def _same_network(networks: Iterable[Network], address: str, client: str) -> bool:
    used = [interface for network in networks for interface in network.interfaces]
    nets = [net for interface in used for net in static_networks(interface) if contains(net, address)]
    try:
        return any(contains(net, client) for net in nets)
    except ValueError:
        return False  # nobody knows where the client is
