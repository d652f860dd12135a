"""What the box can forward, by the API: what was measured, and a measurement while clients send."""

from __future__ import annotations

import logging
from typing import TypedDict

from api.bodies import BetweenRequest, WatchRequest
from api.errors import wrong_field
from api.routes import Answer, Call
from applier.wire.client import connect
from lbconfig.capacity.figures import LONGEST_WATCH, SHORTEST_WATCH

log = logging.getLogger(__name__)


class WatchStarted(TypedDict):
    job: str  # GET /capacity tells how far it is
    seconds: float  # that it takes at the least


def state(call: Call) -> Answer:
    return Answer(connect().capacity())


def watch(call: Call) -> Answer:
    wanted: WatchRequest = call.body
    if not SHORTEST_WATCH <= wanted.seconds <= LONGEST_WATCH:
        raise wrong_field("request", "seconds", f"must be {SHORTEST_WATCH} to {LONGEST_WATCH}")
    answer: WatchStarted = connect().capacity_watch(wanted.seconds, call.caller.name)
    log.info("%s measures what the box forwards", call.caller.name)
    return Answer(answer, 202)


def between(call: Call) -> Answer:
    wanted: BetweenRequest = call.body
    answer: WatchStarted = connect().capacity_between(wanted.sender, wanted.receiver, call.caller.name)
    log.info("%s measures between two ports", call.caller.name)
    return Answer(answer, 202)


def stop(call: Call) -> Answer:
    connect().capacity_stop(call.caller.name)
    return Answer(connect().capacity())
