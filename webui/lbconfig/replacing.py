"""A box of a pair is replaced: the new one gets its part of the configuration, with a key and cards of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from lbconfig.joining import Facts
from lbconfig.model.problem import Problem, quote
from lbconfig.model.snapshot import PairBox, Snapshot
from lbconfig.validate.cards import renamed
from lbconfig.validate.services import validate
from lbconfig.wanted.network import links


def own_addresses(box: PairBox) -> tuple[str, ...]:
    """What nobody may answer for when the new box gets them. Without a length."""
    return tuple(text.partition("/")[0] for one in box.network.interfaces if one.on for text in one.addresses)


def cards(box: PairBox, facts: Facts) -> tuple[tuple[str, str], ...]:
    """Each card that the box has in the configuration, and the new box's that is proposed for it.

    The one of the same name; where that is missing, another one that nothing needs.
    """
    names = [link.name for link in links(box.network) if not link.kind]
    there = [card.name for card in facts.cards if not card.kind]
    spare = [name for name in there if name not in names]
    return tuple((name, name if name in there or not spare else spare.pop(0)) for name in names)


def replaced(snapshot: Snapshot, box: int, swaps: Mapping[str, str], key: str) -> Snapshot:
    """The configuration of the pair with the new box at this place. `swaps`: for each card the new box's."""
    if snapshot.pair is None:
        raise ValueError("this is no snapshot of a pair")
    boxes = list(snapshot.pair.boxes)
    boxes[box] = replace(renamed(boxes[box], swaps), key=key)
    return replace(snapshot, pair=replace(snapshot.pair, boxes=(boxes[0], boxes[1])))


def problems(snapshot: Snapshot, box: int, facts: Facts, swaps: Mapping[str, str], key: str) -> list[Problem]:
    """With the path of what is to be changed, such as "cards[0]"; others name the configuration."""
    return [*_strange(facts, swaps), *validate(replaced(snapshot, box, swaps, key))]


def alive(box: PairBox, taken: Collection[str]) -> str:
    """A sentence where somebody still answers for its addresses; "": nobody does."""
    found = next((one for one in own_addresses(box) if one in taken), "")
    if not found:
        return ""
    return f"{found}, an address of {quote(box.name)}, is still in use. Switch {quote(box.name)} off first."


def _strange(facts: Facts, swaps: Mapping[str, str]) -> Iterator[Problem]:
    there, used = {card.name for card in facts.cards}, list(swaps.values())
    for number, (name, other) in enumerate(swaps.items()):
        object, path = f"card {quote(name)}", f"cards[{number}]"
        if other not in there:
            yield Problem(object, "card", f"{quote(other)} is not in the new box", path)
        elif used.index(other) != number:
            yield Problem(object, "card", f"{quote(other)} stands for another card already", path)
