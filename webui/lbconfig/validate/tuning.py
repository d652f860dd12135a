"""Do the choices about the hardware make sense? Which cards it has is not known here."""

from __future__ import annotations

from collections.abc import Iterator

from lbconfig.hardware import settings
from lbconfig.model.problem import Place, Problem, Unseen, each, quote
from lbconfig.model.tuning import Tuning
from lbconfig.validate.fields import in_range, interface_name

MAX_QUEUES = 256  # as many CPUs as our kernel knows (CONFIG_NR_CPUS)
MAX_RING = 65_536  # descriptors; the largest of today's cards have 16,384


def tuning_problems(tuning: Tuning) -> Iterator[Problem]:
    first_key, first_card = Unseen(), Unseen()
    for index, choice in enumerate(tuning.settings):
        place = Place(f"kernel setting {quote(choice.key)}", f"tuning.settings[{index}]")
        if found := settings.problem(choice):
            yield place.problem(*found)
        elif not first_key(choice.key):
            yield place.problem("key", f"{quote(choice.key)} is chosen twice")
    for index, card in enumerate(tuning.cards):
        yield from each(
            Place(f"network card {quote(card.name)}", f"tuning.cards[{index}]"),
            name=interface_name(card.name) or (None if first_card(card.name) else f"{quote(card.name)} is there twice"),
            queues=in_range(card.queues, 0, MAX_QUEUES),
            rx_ring=in_range(card.rx_ring, 0, MAX_RING),
            tx_ring=in_range(card.tx_ring, 0, MAX_RING),
        )
