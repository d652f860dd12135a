"""What changes about the hardware, in plain words."""

from __future__ import annotations

from collections.abc import Iterator

from lbconfig.diff.change import Change, Kind
from lbconfig.hardware.settings import AT_START, BY_KEY
from lbconfig.model import names
from lbconfig.model.tuning import CardChoice, Tuning

RESTARTS = "The card stops for a moment, and traffic over it waits."
FOR_THE_START = "What has been spread so far stays until the box restarts."


def tuning_changes(old: Tuning, new: Tuning) -> Iterator[Change]:
    yield from _settings(old, new)
    yield from _cards(old, new)
    sentences = []
    if old.spread != new.spread:
        how = "are spread over the CPUs by the box" if new.spread else "are left as the kernel has them"
        sentences.append(f"Queues and interrupts of the network cards {how}.")
    if old.power != new.power:
        sentences.append(f"Clock and sleep of the CPUs: {names.POWER[new.power].long}.")
    if sentences:
        impact = (RESTARTS if new.spread else FOR_THE_START) if old.spread != new.spread else None
        yield Change("changed", "hardware", tuple(sentences), impact)


def _settings(old: Tuning, new: Tuning) -> Iterator[Change]:
    before, after = ({one.key: one.value for one in tuning.settings} for tuning in (old, new))
    for key in dict.fromkeys((*before, *after)):
        if before.get(key) == after.get(key):
            continue
        was = before.get(key, "the box's own value")
        said = f"{after[key]} instead of {was}." if key in after else f"Back to the box's own value, from {was}."
        impact = AT_START if key in BY_KEY and BY_KEY[key].at_start else None
        yield Change(_kind(key in before, key in after), f"kernel setting {key}", (said,), impact)


def _kind(before: bool, after: bool) -> Kind:
    return "changed" if before and after else "added" if after else "removed"


def _cards(old: Tuning, new: Tuning) -> Iterator[Change]:
    for name in dict.fromkeys(one.name for one in (*old.cards, *new.cards)):
        before, after = old.card(name), new.card(name)
        sentences = tuple(_card_sentences(before, after))
        if sentences:
            yield Change("changed", f"network card {name}", sentences, RESTARTS)


def _card_sentences(before: CardChoice, after: CardChoice) -> Iterator[str]:
    for field, words in names.OF_A_CARD.items():
        was, now = (str(getattr(card, field) or "the box's choice") for card in (before, after))
        if was != now:
            yield f"{words}: {now} instead of {was}."
