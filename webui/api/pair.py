"""The pair by the API: how it stands, and who leads."""

from __future__ import annotations

import logging

from api.bodies import DrillRequest, HoldRequest
from api.changes import started
from api.errors import wrong_field
from api.routes import Answer, Call
from applier.wire.client import connect
from applier.wire.shapes_pair import LONGEST_HOLD

log = logging.getLogger(__name__)


def state(call: Call) -> Answer:
    return Answer(connect().pair())


def hand_over(call: Call) -> Answer:
    """Answers once the other box leads."""
    found = connect().pair_hand_over(call.caller.name)
    log.info("%s has handed over to the other box of the pair", call.caller.name)
    return Answer(found)


def drills(call: Call) -> Answer:
    return Answer(connect().pair_drills())


def drill(call: Call) -> Answer:
    """Answers once it has begun."""
    wanted: DrillRequest = call.body
    found = connect().pair_drill(wanted.back, call.caller.name)
    log.info("%s is trying a hand-over of the pair", call.caller.name)
    return Answer(found, 202)


def hold(call: Call) -> Answer:
    wanted: HoldRequest = call.body
    if not 0 <= wanted.hours <= LONGEST_HOLD:
        raise wrong_field("request", "hours", f"must be 1 to {LONGEST_HOLD}, or 0: until it is released")
    found = connect().pair_hold(wanted.hours, call.caller.name)
    log.info("%s holds this box of the pair", call.caller.name)
    return Answer(found)


def release(call: Call) -> Answer:
    found = connect().pair_release(call.caller.name)
    log.info("%s has released this box of the pair", call.caller.name)
    return Answer(found)


def leave(call: Call) -> Answer:
    found = connect().pair_leave(call.caller.name)
    log.info("%s takes this box out of the pair", call.caller.name)
    return started(found["apply"])


def alone(call: Call) -> Answer:
    found = connect().pair_alone(call.caller.name)
    log.info("%s lets this box go on without the other one of the pair", call.caller.name)
    return started(found["apply"])


def choose(call: Call) -> Answer:
    connect().pair_choose(call.caller.name)
    log.info("%s chose the configuration of this box for the pair", call.caller.name)
    return Answer(connect().pair())
