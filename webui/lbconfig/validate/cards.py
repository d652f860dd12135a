"""Network cards that a configuration names and this box does not have, and others that can be taken instead.

A configuration may come from elsewhere, and a card may have been replaced: its name is then another one. Fields that
name an interface are marked in the model (network_model.INTERFACE), so another card is taken in all of them at once.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from lbconfig.model.network import Interface, Network
from lbconfig.model.problem import Place, Problem, Unseen, quote
from lbconfig.model.snapshot import Snapshot
from lbconfig.wanted.network import links

Part = TypeVar("Part")

HARDWARE = re.compile(r"(?!00(?::00)+$)[0-9a-f]{2}(?::[0-9a-f]{2}){5}")  # its address; what the kernel makes has none


@dataclass(frozen=True, slots=True)
class Card:
    """An interface that the box has."""

    name: str
    kind: str = ""  # of those that the box makes: "vlan", "bond", "bridge"
    mac: str = ""
    up: bool = False
    speed: int = 0  # Mbit/s; 0: not known

    @property
    def about(self) -> str:
        """What tells it from others."""
        speed = f"{self.speed} Mbit/s" if self.speed else "link up" if self.up else "no link"
        return f"{self.mac}, {speed}"


@dataclass(frozen=True, slots=True)
class Missing:
    """A card that a configuration needs and the box does not have."""

    name: str
    use: str  # what it is there for, in words; may be empty

    @property
    def sentence(self) -> str:
        return f"{self.name}{f' ({self.use})' if self.use else ''} is not in this box."


def of_status(entries: Iterable[Mapping[str, Any]]) -> tuple[Card, ...]:
    """The interfaces as the applier lists them."""
    return tuple(Card(*(entry[field.name] for field in dataclasses.fields(Card))) for entry in entries)


def missing(network: Network, present: Iterable[Card]) -> tuple[Missing, ...]:
    """The cards that it needs and that are not there, in its order."""
    there = {card.name for card in present}
    names = [link.name for link in links(network) if not link.kind]
    return tuple(Missing(name, ", ".join(_uses(network, name))) for name in names if name not in there)


def free(snapshot: Snapshot, present: Sequence[Card]) -> tuple[Card, ...]:
    """The cards of the box that the configuration has no use for."""
    named = set(_names(_without_idle(snapshot, {card.name for card in present})))
    return tuple(card for card in present if not card.kind and HARDWARE.fullmatch(card.mac) and card.name not in named)


def problems(new: Snapshot, running: Snapshot, present: Sequence[Card]) -> list[Problem]:
    """Interfaces that the box does not have or cannot make; those of `running` that got lost stop no other change."""
    kinds = {card.name: card.kind for card in present}
    known = frozenset(links(running.network))
    found = []
    for link in links(new.network):
        place = Place(f"interface {quote(link.name)}", f"network.interfaces[{link.name}]")
        if not link.kind and link.name not in kinds and link not in known:
            spare = ", ".join(f"{card.name} ({card.about})" for card in free(new, present))
            others = f"cards that nothing uses: {spare}" if spare else "it has no card that nothing uses"
            found.append(place.problem("name", f"is not in this box; {others}"))
        elif link.kind and kinds.get(link.name) == "":
            found.append(place.problem("name", f"is the name of a network card, so no {link.kind} can have it"))
    return found


def swap_problems(snapshot: Snapshot, swaps: Sequence[tuple[str, str]], present: Sequence[Card]) -> Iterator[Problem]:
    """Why other cards cannot be taken; `swaps`: the name of each card and of the one to take instead."""
    needed = {link.name for link in links(snapshot.network) if not link.kind}
    spare = [card.name for card in free(snapshot, present)]
    first, taken = Unseen(), Unseen()
    for number, (old, new) in enumerate(swaps):
        place = Place(f"card {quote(old)}", f"cards[{number}]")
        if old not in needed:
            yield place.problem("name", "the configuration has no card of this name")
        elif not first(old):
            yield place.problem("name", "it is named twice")
        elif new not in spare:
            choice = f"one of {', '.join(spare)}" if spare else "a card that nothing uses, and this box has none"
            yield place.problem("take", f"must be {choice}, not {quote(new)}")
        elif not taken(new):
            yield place.problem("take", f"{quote(new)} is taken already")


def swapped(snapshot: Snapshot, swaps: Mapping[str, str]) -> Snapshot:
    """With other cards in every place that names one of these; `swaps`: old name -> the name of a free card."""
    if not swaps:
        return snapshot
    return renamed(_without_idle(snapshot, swaps.values()), swaps)


def _uses(network: Network, name: str) -> Iterator[str]:
    for one in network.interfaces:
        if one.name == name:
            yield from [one.note] if one.note else []
            yield from one.addresses
            yield from ["DHCP"] if one.dhcp else []
        if name in one.members:
            yield f"member of {one.name}"
        if one.vlan and one.vlan.parent == name:
            yield f"carries {one.name}"


def _without_idle(snapshot: Snapshot, names: Collection[str]) -> Snapshot:
    """Without the entries of these cards that set nothing up: they stand for no use."""
    network = snapshot.network
    kept = tuple(
        one for one in network.interfaces if one.name not in names or replace(one, on=True) != Interface(one.name)
    )
    return replace(snapshot, network=replace(network, interfaces=kept))


def _names(value: object) -> Iterator[str]:
    """What the fields say that name interfaces."""
    if isinstance(value, tuple):
        for one in value:
            yield from _names(one)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            inner = getattr(value, field.name)
            if not field.metadata.get("interface"):
                yield from _names(inner)
            elif isinstance(inner, tuple):
                yield from inner
            else:
                yield inner


def renamed(value: Part, swaps: Mapping[str, str]) -> Part:
    """What has no such name stays the same object."""
    if isinstance(value, tuple):
        entries = tuple(renamed(one, swaps) for one in value)
        same = all(one is other for one, other in zip(entries, value, strict=True))
        return value if same else cast(Part, entries)
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    changes: dict[str, object] = {}
    for field in dataclasses.fields(value):
        inner = getattr(value, field.name)
        if not field.metadata.get("interface"):
            other = renamed(inner, swaps)
        elif isinstance(inner, tuple):
            other = tuple(swaps.get(name, name) for name in inner)
        else:
            other = swaps.get(inner, inner)
        if other != inner:
            changes[field.name] = other
    return replace(value, **changes) if changes else value
