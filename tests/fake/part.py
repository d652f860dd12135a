"""What the parts of tests.fake.appliance.Fake need of the whole."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from applier.wire.shapes import Nothing

if TYPE_CHECKING:
    from tests.fake.appliance import Box


class Part(Protocol):
    def _box(self) -> AbstractContextManager[Box]:
        """The box, locked, and with its run brought up to now."""

    def reboot(self, user: str) -> Nothing: ...
