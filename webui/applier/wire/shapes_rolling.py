"""The shapes of what the applier answers about an update of both boxes of a pair."""

from __future__ import annotations

from typing import Literal, TypedDict

Choice = Literal["stop", "go-on", "go-back", "leave"]

State = Literal["none", "running", "stopped", "done", "went-back", "left"]


class RollingStep(TypedDict):
    words: str
    state: Literal["done", "now", "stopped", "later"]


class Rolling(TypedDict):
    """The update of both boxes that is under way, or the last one; empty texts: there was none."""

    id: str
    version: str
    user: str
    since: str
    desk: str  # host name of the box at which it was begun, which does all that is to be done
    here: bool  # whether that is the box that was asked
    state: State
    sentence: str
    steps: list[RollingStep]
    choices: list[Choice]  # what an admin can decide now
