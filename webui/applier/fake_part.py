"""What the parts of applier.fake.Fake need of the whole."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from applier.shapes import Nothing

if TYPE_CHECKING:
    from applier.fake import Box


class Part(Protocol):
    def _box(self) -> AbstractContextManager[Box]:
        """The box, locked, and with its run brought up to now."""

    def reboot(self, user: str) -> Nothing: ...
