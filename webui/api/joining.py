"""Two boxes become a pair, by the API: the code of the one, the other one that joins, and the proposal.

And a new box that takes the place of a dead one.
"""

from __future__ import annotations

import logging
from typing import TypedDict

from django.db import transaction

from api.bodies import JoinRequest
from api.errors import ApiError
from api.routes import Answer, Call
from applier.wire.client import connect
from applier.wire.shapes import Problem, of_problem
from draft import store as draft
from draft import what_runs
from system import joining, replacing

log = logging.getLogger(__name__)


class Proposed(TypedDict):
    hostname: str  # of the second box
    problems: list[Problem]  # that have to be solved in the draft before it can be applied


def state(call: Call) -> Answer:
    return Answer(connect().pair_joining())


def invite(call: Call) -> Answer:
    answer = connect().pair_invite(call.caller.name)
    log.info("%s makes a pair", call.caller.name)
    return Answer(answer, 201)


def join(call: Call) -> Answer:
    wanted: JoinRequest = call.body
    answer = connect().pair_join(wanted.address, wanted.code, call.caller.name)
    log.info("%s joined this box to the one at %s", call.caller.name, wanted.address)
    return Answer(answer)


def forget(call: Call) -> Answer:
    return Answer(connect().pair_forget(call.caller.name))


def replace(call: Call) -> Answer:
    answer = connect().pair_replace(call.caller.name)
    log.info("%s replaces the other box of the pair", call.caller.name)
    return Answer(answer, 201)


def propose_replacement(call: Call) -> Answer:
    found = replacing.new_box(connect().pair_joining()["joined"], what_runs.current())
    if found is None:
        raise ApiError(409, "not-joined", "No new box has joined this one. Make a code first.")
    swaps = dict(found.cards())
    with transaction.atomic():
        draft.replace(found.replaced(swaps), call.caller.name)
    log.info("%s put a new box instead of %s into the draft", call.caller.name, found.old.name)
    answer: Proposed = {"hostname": found.old.name, "problems": [of_problem(one) for one in found.problems(swaps)]}
    return Answer(answer)


def propose(call: Call) -> Answer:
    known = connect().pair_joining()["joined"]
    found = joining.boxes(known, what_runs.current()) if known else None
    if found is None:
        raise ApiError(409, "not-joined", "No second box has joined this one. Make a code first.")
    choice = found.proposed()
    with transaction.atomic():
        draft.replace(found.joined(choice), call.caller.name)
    log.info("%s put the pair with %s into the draft", call.caller.name, choice.hostname)
    problems = found.problems(choice, found.known["taken"])
    answer: Proposed = {"hostname": choice.hostname, "problems": [of_problem(one) for one in problems]}
    return Answer(answer)
