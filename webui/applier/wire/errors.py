"""What a caller of the applier has to expect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from applier.wire.shapes import Problem, Refusal


class ApplierDown(Exception):
    """The applier cannot be reached, or gave no readable answer. The text says why, for an admin."""


class ApplierRefused(Exception):
    """The applier understood and said no; nothing was changed.

    `code` is one of a small set (see protocol.py), `message` one sentence for an admin, `problems` say which field of
    which object is wrong; empty where there is none to name.
    """

    def __init__(self, code: str, message: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.problems = list(problems)

    @property
    def in_full(self) -> str:
        """The message with the first of the problems: for whoever gets a sentence and no list."""
        first = next((f" {one['object']}: {one['field']} {one['message']}." for one in self.problems), "")
        return f"{self.message}{first}"

    def to_data(self) -> Refusal:
        return {"code": self.code, "message": self.message, "problems": self.problems}
