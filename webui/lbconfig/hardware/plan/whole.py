"""From the facts of a machine and the admin's choices to all that is written below the network: a pure function.

What is right already is in it too, marked `done`, so that the plan is also what a page shows. Where an action
`reshapes` a card, what is planned of its queues and interrupts holds for the card as it still is: carry out those
first, look again, and plan again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lbconfig.hardware.actions import Action
from lbconfig.hardware.facts import Machine
from lbconfig.hardware.plan import cards as plan_cards
from lbconfig.hardware.plan import cpus as plan_cpus
from lbconfig.hardware.plan import queues as plan_queues
from lbconfig.model.tuning import Tuning

# In the order in which they are carried out.
PARTS: tuple[Callable[[Machine, Tuning], Iterator[Action]], ...] = (
    plan_queues.counts,
    plan_cards.rings,
    plan_cards.offloads,
    plan_cards.coalescing,
    plan_queues.interrupts,
    plan_queues.storage,
    plan_queues.receiving,
    plan_queues.sending,
    plan_cpus.clocks,
    plan_cpus.sleep,
)


def plan(machine: Machine, tuning: Tuning) -> tuple[Action, ...]:
    """Every action, done ones as well, in the order of carrying out."""
    return tuple(action for part in PARTS for action in part(machine, tuning))


def due(actions: tuple[Action, ...]) -> tuple[Action, ...]:
    """What there is to do now: first of all what reshapes cards, and nothing else beside it."""
    todo = tuple(action for action in actions if not action.done)
    return tuple(action for action in todo if action.reshapes) or todo
