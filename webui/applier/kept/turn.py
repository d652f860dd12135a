"""Whose turn it is to change the system: one at a time, and who comes meanwhile is told who that is."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from applier.wire.errors import ApplierRefused

log = logging.getLogger("applier")

OVERDUE = 600.0  # seconds after which what is being done may never end
Owner = str | Callable[[], str]  # what is being done, as a refusal says it
Result = TypeVar("Result")


def beside(
    name: str, work: Callable[[], Result], failed: Callable[[BaseException], Result], tell: Callable[[Result], None]
) -> None:
    """Do it in a thread of its own. `tell` gets the result, or what `failed` makes of whatever was raised.

    So who follows it hears of an end in any case, also where there is no memory left for a thread.
    """

    def mistaken(error: BaseException) -> Result:
        log.exception("%s", name)
        return failed(error)

    def run() -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 (`mistaken` writes it down)
            result = mistaken(error)
        tell(result)

    try:
        threading.Thread(target=run, name=name, daemon=True).start()
    except RuntimeError as error:
        tell(mistaken(error))


class Held:
    """The turn in the hands of who has it."""

    def __init__(self, lock: threading.Lock) -> None:
        self._lock = lock
        self.kept = False

    def keep(self) -> None:
        """Beyond the `with` in which it was taken: nothing is changed any more unless it is given back."""
        self.kept = True

    def give_back(self) -> None:
        """Once, by who has kept it."""
        self._lock.release()

    def hand_on(
        self,
        name: str,
        work: Callable[[], Result],
        failed: Callable[[BaseException], Result],
        tell: Callable[[Result], None],
    ) -> None:
        """As `beside`, to a thread that gives the turn back before it tells: who hears of the end may take a turn."""

        def told(result: Result) -> None:
            self.give_back()
            tell(result)

        self.keep()
        beside(name, work, failed, told)


class Turn:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._owner: Owner = ""
        self._since = 0.0  # when that was said
        self.count = 0  # how often somebody has become the one who changes the system

    @contextmanager
    def take(self, owner: Owner, wait: bool = False) -> Iterator[Held]:
        """Be the one who changes the system, or be refused; until the end, unless it is kept or handed on."""
        if not self._lock.acquire(blocking=wait):
            raise self._refusal()
        self.count += 1
        self.owned_by(owner)
        held = Held(self._lock)
        try:
            yield held
        finally:
            if not held.kept:
                held.give_back()

    def owned_by(self, owner: Owner) -> None:
        """What whoever is refused from now on reads; for the one who has it."""
        self._owner, self._since = owner, self._clock()

    @property
    def overdue(self) -> bool:
        """Whether it has been the same thing for so long that it may hang. What waits for an admin says how long."""
        return self.taken and not callable(self._owner) and self._clock() - self._since > OVERDUE

    @property
    def taken(self) -> bool:
        return self._lock.locked()

    def refusal(self) -> ApplierRefused | None:
        """What a caller would get now, or None if the box is idle."""
        return self._refusal() if self.taken else None

    def _refusal(self) -> ApplierRefused:
        named = self._owner() if callable(self._owner) else self._owner
        if not self.overdue:
            return ApplierRefused("busy", f"Right now {named}; wait until that has ended.")
        minutes = round((self._clock() - self._since) / 60)
        words = (
            f"Right now {named}, for {minutes} minutes already. If that does not end, restart the box where it hangs"
        )
        return ApplierRefused("busy", f"{words}: what was not confirmed is taken back.")
