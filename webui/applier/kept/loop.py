"""What the applier does again and again, for as long as it runs: one loop for all of its threads."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import NoReturn

from applier.host.host import HostError

log = logging.getLogger("applier")


class Loop:
    """Waits and looks, by turns; no error ends it, because nobody would start its thread again.

    `name` is what it looks at, for the log. An `expected` error may last: it is logged once, and not as a mistake.
    """

    def __init__(
        self,
        name: str,
        look: Callable[[], object],
        wait: Callable[[], object],
        expected: tuple[type[Exception], ...] = (HostError,),
        level: int = logging.ERROR,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._look = look
        self._wait = wait
        self._expected = expected
        self._level = level
        self._clock = clock
        self.came = clock()  # when it came round last
        self._trouble = ""  # as the log was told

    @property
    def late(self) -> float:
        """Seconds since it last came round."""
        return self._clock() - self.came

    def run(self) -> NoReturn:
        """For ever; in a thread of its own."""
        while True:
            self._wait()
            self.turn()

    def turn(self) -> None:
        """Look once. A look that failed counts as well: what `late` shows is one that does not end."""
        try:
            self._look()
            self._trouble = ""
        except self._expected as error:
            if str(error) != self._trouble:
                log.log(self._level, "%s: %s", self.name, error)
            self._trouble = str(error)
        except Exception:
            log.exception("%s: the look has failed", self.name)
        self.came = self._clock()
