"""Which queue of a card an interrupt serves: drivers say it in the name that they register.

"eth0-TxRx-3" (igb, ixgbe), "virtio0-input.1" and "virtio0-output.1", "mlx5_comp2@pci:0000:3b:00.0", "eth0-rx-0"
(e1000e), "eth0-q1-tx" (Xen), "eth0-fp-2" (bnx2x), or "eth0" alone where a card has a single one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

RX, TX, BOTH = "rx", "tx", "both"
# Interrupts of a card that carry no packets though a number is at their end.
_OTHER = re.compile(r"event|async|fdir|mgmnt|misc|ctrl", re.IGNORECASE)
_FORMS = (
    re.compile(r"(?P<way>tx-?rx|rx-?tx|rx|tx|input|output)[-.]?(?P<number>\d{1,4})$", re.IGNORECASE),
    re.compile(r"q(?P<number>\d{1,4})-(?P<way>rx|tx)$", re.IGNORECASE),
    re.compile(r"(?P<way>comp|blk\.?|[-.]q?)(?P<number>\d{1,4})$", re.IGNORECASE),
)
_WAYS = {"rx": RX, "input": RX, "tx": TX, "output": TX}


class Queue(NamedTuple):
    number: int
    way: str  # RX, TX or BOTH


def queue_of(device: str, alone: bool = False) -> Queue | None:
    """None for one that carries no packets. `alone`: the card has no other interrupt, so it carries everything."""
    if alone:
        return Queue(0, BOTH)
    name = device.partition("@")[0]
    match = next((found for form in _FORMS if (found := form.search(name))), None)
    if match is None or _OTHER.search(name):
        return None
    return Queue(int(match["number"]), _WAYS.get(match["way"].lower(), BOTH))


def in_order(devices: Iterable[tuple[int, str]]) -> tuple[int, ...]:
    """Interrupt numbers of a card by its queues, of one queue receiving first; those without a queue are left out."""
    given = list(devices)
    queues = [(queue_of(name, alone=len(given) == 1), number) for number, name in given]
    known = [(queue.number, queue.way == TX, number) for queue, number in queues if queue is not None]
    return tuple(number for _, _, number in sorted(known))
