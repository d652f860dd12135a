"""Tell the other box of a pair every connection: when it has come back, and around a hand-over."""

from __future__ import annotations

from typing import Protocol

from applier.host.host import Host
from applier.parts.pair import link
from applier.parts.pair.retell import Told, retell
from lbconfig.target import Target

ENOUGH, FEW = 0.9, 20  # the share that the other box has to know, and how many may come or end meanwhile
SMALL = 5_000  # open connections: to tell so many once more takes a moment


class Core(Protocol):
    """What is needed of the daemon."""

    host: Host
    running: Target


def tell_peer(core: Core) -> Told | None:
    """What was told; None: the box is in no pair. HostError where the table cannot be read or nothing be sent.

    It takes as long as the kernel needs to list its table, and changes nothing: so it may be called at any time.
    """
    running = core.running
    return retell(core.host, running.snapshot, link.wanted(running.pair_conf)) if running.in_pair else None


def knows_all(known: int, there: int) -> bool:
    """Whether nothing is gained by telling all open connections once more to who knows so many of them."""
    return known >= there if there <= SMALL else knows_enough(known, there)


def knows_enough(known: int, there: int) -> bool:
    """Whether who knows so many of the open connections may lead; while it is counted, some come and end."""
    return known >= ENOUGH * there - FEW
