"""This box's share in a change of both boxes of a pair.

The agreement (both.py) says here when to try the change, and whether it stays; the apply (verbs.py) how far it came.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from applier.apply.deadline import Decision
from lbconfig.agreement import Lineage, Revision

Tell = Callable[[Revision, str], None]  # that a box has tried it, and why it failed; "": it runs, and waits


class Share:
    def __init__(self, revision: Revision, other: str, tell: Tell, alone: bool = False) -> None:
        self.revision = revision
        self.other = other  # host name of the other box
        self.alone = alone  # that one is away
        self.lineage: Lineage = ()  # with which it is confirmed
        self.why = ""  # it goes back
        self._tell = tell
        self._told = False
        self._changed = threading.Condition()
        self._may_try = False
        self._decision: Decision | None = None
        self._trouble: str | None = None  # at its end; "": it is confirmed

    # --- by the agreement ------------------------------------------------------------------------

    def let_try(self) -> None:
        with self._changed:
            self._may_try = True
            self._changed.notify_all()

    def go_back(self, why: str) -> None:
        """Undo what was done; where nothing was done yet, nothing will be."""
        with self._changed:
            if self._decision is None:
                self._decision, self.why = Decision("back"), why
                self._changed.notify_all()

    def confirm(self, lineage: Lineage, user: str) -> str:
        """Keep it. Returns once that is written down: why it could not be; "": it is."""
        with self._changed:
            if self._decision is None:
                self._decision, self.lineage = Decision("keep", user), lineage
                self._changed.notify_all()
            self._changed.wait_for(lambda: self._trouble is not None)
            return self._trouble or ""

    # --- by the apply ----------------------------------------------------------------------------

    def may_begin(self) -> bool:
        """Wait until the change is to be tried; False: it was given up before."""
        with self._changed:
            self._changed.wait_for(lambda: self._may_try or self._decision is not None)
            return self._decision is None

    def wait(self) -> Decision:
        """Everything runs here: wait for what becomes of it."""
        self._say("")
        with self._changed:
            while self._decision is None:
                self._changed.wait()
            return self._decision

    def ended(self, trouble: str) -> None:
        """The apply is at its end. `trouble`: why it is not confirmed; "": it is."""
        with self._changed:
            self._trouble = trouble
            self._changed.notify_all()
        self._say(trouble)

    def _say(self, why: str) -> None:
        if not self._told:
            self._told = True
            self._tell(self.revision, why)
