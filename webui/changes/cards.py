"""Other network cards instead of those that a configuration names and this box does not have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django import forms
from django.http import HttpRequest

from applier.wire.shapes import Review
from draft.frame import look
from lbconfig.model.snapshot import Snapshot
from lbconfig.validate import cards

PREFIX = "card-"  # of the fields, before the name of a card that is missing
LEAVE = ("", "leave it missing")

Pairs = Sequence[tuple[str, str]]


class CardsForm(forms.Form):
    """A choice for each card that is missing; `swaps` once it is valid."""

    def __init__(self, missing: Pairs, free: Pairs, data: Mapping[str, str] | None = None, sent_with: str = "") -> None:
        """`missing`: names and sentences; `free`: names, and what tells these cards from others.

        `sent_with`: the id of a form elsewhere on the page that sends the choice along; "": a form of its own.
        """
        super().__init__(data if data and any(name.startswith(PREFIX) for name in data) else None)
        self.missing, self.free = missing, free
        for name, _ in missing if free else ():
            choices = [LEAVE, *((card, f"{card} ({about})") for card, about in free)]
            self.fields[f"{PREFIX}{name}"] = forms.ChoiceField(
                label=f"Replace {name} with", choices=choices, required=False
            )
            if sent_with:
                self.fields[f"{PREFIX}{name}"].widget.attrs["form"] = sent_with

    def clean(self) -> None:
        """One card cannot stand in for two; a choice that nobody offers any more is not forgotten in silence."""
        taken: dict[str, str] = {}
        for name, card in list(self.cleaned_data.items()):  # an error takes one out
            if card and taken.setdefault(card, name) != name:
                old = taken[card].removeprefix(PREFIX)
                self.add_error(name, f"{card} replaces {old} already. Choose another one.")
        gone = [name for name in self.data if name.startswith(PREFIX) and self.data[name] and name not in self.fields]
        if gone:
            names = ", ".join(name.removeprefix(PREFIX) for name in gone)
            raise forms.ValidationError(f"There is nothing to choose for {names} any more. Look at it again.")

    @property
    def swaps(self) -> dict[str, str]:
        """The name of each card that is missing -> the one to take instead."""
        if not self.is_bound or not self.is_valid():
            return {}
        return {name.removeprefix(PREFIX): card for name, card in self.cleaned_data.items() if card}


def of_review(found: Review) -> CardsForm:
    missing = [(one["name"], one["sentence"]) for one in found["missing_cards"]]
    return CardsForm(missing, [(one["name"], one["about"]) for one in found["free_cards"]])


def of_box(request: HttpRequest, snapshot: Snapshot, sent_with: str = "") -> CardsForm:
    """By what the box says of its interfaces; without its word none is missing. With the choice that was sent."""
    status = look(request).status
    present = cards.of_status(status["interfaces"]) if status else ()
    lacking = cards.missing(snapshot.network, present) if present else ()
    spare = cards.free(snapshot, present) if lacking else ()
    missing = [(one.name, one.sentence) for one in lacking]
    return CardsForm(missing, [(card.name, card.about) for card in spare], request.POST, sent_with)
