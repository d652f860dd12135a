"""Two boxes become a pair: the proposal for them, from what the applier has heard of the second one to the draft."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from applier.wire.client import connect
from applier.wire.shapes_joining import JoinedBoxes
from draft import store as draft
from lbconfig import joining
from lbconfig.joining import Choice, Facts
from lbconfig.model.problem import Problem
from lbconfig.model.reading import build
from lbconfig.model.snapshot import Snapshot

MADE = "The draft has the pair. Review it: until you apply, both boxes stay as they are."


@dataclass(frozen=True)
class Boxes:
    """Two boxes that know each other, and the configuration that the first one would bring along."""

    known: JoinedBoxes
    facts: Facts
    first: Snapshot

    @property
    def keys(self) -> tuple[str, str]:
        one, other = self.known["keys"]
        return one, other

    def proposed(self) -> Choice:
        return joining.proposed(self.first, self.facts, self.known["taken"])

    def joined(self, choice: Choice) -> Snapshot:
        return joining.joined(self.first, self.facts, choice, self.known["id"], self.keys)

    def problems(self, choice: Choice, taken: Collection[str]) -> list[Problem]:
        return joining.problems(self.first, self.facts, choice, self.known["id"], self.keys, taken)


def boxes(known: JoinedBoxes, running: Snapshot | None) -> Boxes | None:
    """None at the second box, which proposes nothing. `running` stands in where the draft has the pair already."""
    if known["facts"] is None:
        return None
    now = draft.current()
    first = now if now.pair is None else running
    return Boxes(known, build(Facts, known["facts"]), first) if first is not None and first.pair is None else None


def asked(found: Boxes, choice: Choice) -> set[str]:
    """Addresses that somebody answers for; those that an admin has entered are asked for now.

    Raises ApplierDown, ApplierRefused.
    """
    before = {text for end in found.proposed().ends for own in end.own for text in own}
    entered = {text for end in choice.ends for own in end.own for text in own} - before
    new = sorted(text.partition("/")[0] for text in entered)
    return {*found.known["taken"], *(connect().pair_probe(new)["taken"] if new else ())}


def flat(choice: Choice) -> dict[str, Any]:
    """As the form has it: a field for each thing that can be chosen."""
    found: dict[str, Any] = {"hostname": choice.hostname}
    found |= {f"card_{number}": there for number, (_, there) in enumerate(choice.cards)}
    for number, end in enumerate(choice.ends):
        found |= {f"own_{number}_{box}": own for box, own in enumerate(end.own)}
    found |= {f"cable_{box}": name for box, name in enumerate(choice.cables)}
    return found | {f"cable_address_{box}": text for box, text in enumerate(choice.cable_addresses)}


def chosen(proposal: Choice, data: dict[str, Any]) -> Choice:
    """The proposal with what the form has; a card that becomes the cable needs addresses of its own."""
    ends = tuple(
        replace(end, own=(data[f"own_{number}_0"], data[f"own_{number}_1"])) for number, end in enumerate(proposal.ends)
    )
    cards = tuple((name, data[f"card_{number}"]) for number, (name, _) in enumerate(proposal.cards))
    cables = (data["cable_0"], data["cable_1"])
    known = [{end.interface for end in ends}, {dict(cards).get(end.interface, end.interface) for end in ends}]
    addresses = [
        data[f"cable_address_{box}"] or ("" if cables[box] in known[box] else joining.CABLE[box]) for box in (0, 1)
    ]
    return Choice(data["hostname"], cards, ends, cables, (addresses[0], addresses[1]))


def field_of(path: str) -> str:
    """The field of the form that a problem's path names; "": none."""
    name, _, rest = path.partition("[")
    numbers = [part for part in rest.replace("]", "[").split("[") if part.isdigit()]
    start = {"cards": "card", "ends": "own", "cables": "cable", "cable_addresses": "cable_address"}.get(name, "")
    return path if path == "hostname" else "_".join([start, *numbers]) if start else ""
