"""What an admin has chosen about the hardware, for reading. What comes of it depends on the machine (plan)."""

from __future__ import annotations

from lbconfig.hardware.settings import BY_KEY
from lbconfig.model.snapshot import Snapshot


def render(snapshot: Snapshot) -> str:
    tuning = snapshot.tuning
    lines = [
        f"spread = {'yes' if tuning.spread else 'no'}",
        f"power = {tuning.power}",
        *(f"# {BY_KEY[one.key].reason}\n{one.key} = {one.value}" for one in tuning.settings),
        *(
            f"{card.name} queues = {card.queues} rx-ring = {card.rx_ring} tx-ring = {card.tx_ring}"
            for card in tuning.cards
        ),
    ]
    return "".join(f"{line}\n" for line in lines)
