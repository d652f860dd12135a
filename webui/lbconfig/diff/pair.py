"""What changes about a pair and its boxes, in plain words."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from lbconfig.diff.change import Change, list_change
from lbconfig.diff.network import network_changes
from lbconfig.diff.tuning import tuning_changes
from lbconfig.model.network import Network
from lbconfig.model.pair import Pair, PairBox
from lbconfig.model.snapshot import Snapshot
from lbconfig.pair import ORDINALS, heartbeats, own_addresses

MADE = "Addresses of this box may become floating ones, and it gets new ones of its own; connections to them go on."
ENDED = "If this box fails, no other one takes over."
GONE = "Connections to this address end."
APART = "While the link is set up again, the boxes do not tell each other about connections."
FEWER = "The boxes hear each other over fewer networks."
ONE_NETWORK = "The boxes share only one network: if it fails, both of them lead."


def pair_changes(old: Snapshot, new: Snapshot) -> Iterator[Change]:
    """Of the pair itself, and of network and hardware of its boxes. At least one of the two has a pair."""
    if old.pair is None and new.pair is not None:
        yield from _made(old, new.pair)
    elif old.pair is not None and new.pair is None:
        yield from _ended(old.pair, new)
    elif old.pair is not None and new.pair is not None:
        yield from _changed(old.pair, new.pair)


def cuts_the_link(old: Snapshot, new: Snapshot) -> bool:
    """Whether the boxes may lose each other while one of them runs the old configuration and the other one the new."""
    if old.pair is None or new.pair is None:
        return old.pair != new.pair
    return any(_link(one) != _link(other) for one, other in zip(old.pair.boxes, new.pair.boxes, strict=True))


def parts_them(pair: Pair, place: str) -> bool:
    """Whether two boxes that were joined lose each other while the second one alone runs the pair's configuration.

    `place`: where the second one is now. WireGuard answers wherever the other box was heard last: so as long as the
    second one keeps that address, it is found there, and answers the first one at whatever address that has.
    """
    return place not in own_addresses(pair.boxes[1].network)


def _link(box: PairBox) -> tuple[object, ...]:
    """All that the link between the boxes stands on, on this one."""
    by_name = {one.name: one for one in box.network.interfaces}
    found, names = [], [box.cable]
    for name in names:  # grows with what lies below
        one = by_name.get(name)
        if one is not None:
            found.append(dataclasses.replace(one, floating=(), addresses=()))
            names += [below for below in (*one.members, *([one.vlan.parent] if one.vlan else [])) if below not in names]
    return box.cable, box.cable_address, box.key, found


def _made(old: Snapshot, pair: Pair) -> Iterator[Change]:
    first, second = pair.boxes
    sentences = (
        f"{first.name} and {second.name} become one director: if one fails, the other one takes over.",
        *(
            f"{one.name} is the {word} box; its end of the pair cable is {_cable(one)}."
            for word, one in zip(ORDINALS, pair.boxes, strict=True)
        ),
        _advert(pair),
        _by_itself(pair),
        *(f"Floating address {text} is held by the box that leads." for text in _floating(pair)),
        f"{second.name} has {_places(second)}.",
    )
    yield Change("added", "pair", sentences, " ".join((MADE, *_doubts(pair))))
    yield from _of_box(first, network_changes(old.network, _without_floating(first.network)))
    yield from _of_box(first, tuning_changes(old.tuning, first.tuning))


def _ended(pair: Pair, new: Snapshot) -> Iterator[Change]:
    stays = next((one for one in pair.boxes if one.name == new.network.hostname), pair.boxes[0])
    sentences = (
        f"{' and '.join(one.name for one in pair.boxes)} are no longer one director.",
        *(f"Floating address {text} is removed." for text in _floating(pair)),
    )
    yield Change("removed", "pair", sentences, ENDED)
    yield from _of_box(stays, network_changes(_without_floating(stays.network), new.network))
    yield from _of_box(stays, tuning_changes(stays.tuning, new.tuning))


def _changed(old: Pair, new: Pair) -> Iterator[Change]:
    sentences = [] if old.id == new.id else ["This is another pair."]
    sentences += [_advert(new)] if old.advert != new.advert else []
    sentences += [_by_itself(new)] if old.hand_over_by_itself != new.hand_over_by_itself else []
    impacts = []
    for before, after in zip(old.boxes, new.boxes, strict=True):
        if _cable(before) != _cable(after):
            sentences.append(f"{after.name}: the pair cable ends at {_cable(after)} instead of {_cable(before)}.")
        if before.key != after.key:
            sentences.append(f"{after.name} has another key for the link between the boxes.")
        if _cable(before) != _cable(after) or before.key != after.key:
            impacts = [APART]
    gone, came = _floating(old), _floating(new)
    sentences += list_change(gone, came, lambda text: f"Floating address {text}")
    impacts += [GONE] if set(gone) - set(came) else []
    impacts += [one for one in _doubts(new) if one not in _doubts(old)]
    if sentences or impacts:
        yield Change("changed", "pair", tuple(sentences) or (FEWER,), " ".join(impacts) or None)
    for before, after in zip(old.boxes, new.boxes, strict=True):
        networks = _without_floating(before.network), _without_floating(after.network)
        yield from _of_box(after, network_changes(*networks))
        yield from _of_box(after, tuning_changes(before.tuning, after.tuning))


def _of_box(box: PairBox, changes: Iterator[Change]) -> Iterator[Change]:
    return (dataclasses.replace(one, object=f"{box.name}: {one.object}") for one in changes)


def _without_floating(network: Network) -> Network:
    """Both boxes name the same ones, so they are told once, for the pair."""
    interfaces = tuple(dataclasses.replace(one, floating=()) for one in network.interfaces)
    return dataclasses.replace(network, interfaces=interfaces)


def _floating(pair: Pair) -> tuple[str, ...]:
    texts = (text for box in pair.boxes for interface in box.network.interfaces for text in interface.floating)
    return tuple(dict.fromkeys(texts))


def _cable(box: PairBox) -> str:
    return f"{box.cable} ({box.cable_address})"


def _places(box: PairBox) -> str:
    used = [one for one in box.network.interfaces if one.on and one.addresses]
    return " and ".join(f"{', '.join(one.addresses)} on {one.name}" for one in used) or "no address of its own"


def _advert(pair: Pair) -> str:
    return f"The box that leads announces itself every {pair.advert} ms."


def _by_itself(pair: Pair) -> str:
    if pair.hand_over_by_itself:
        return "The box that leads hands over by itself when the other one is fitter."
    return "The box that leads hands over only when it is told to."


def _doubts(pair: Pair) -> tuple[str, ...]:
    return () if len(heartbeats(pair, 0)) > 1 else (ONE_NETWORK,)
