"""Updates by the API: what runs, and a bundle as a body, which is checked and installed."""

from __future__ import annotations

import logging
from typing import TypedDict, get_args

from api.bodies import UpdateChoice
from api.errors import ApiError, wrong_field
from api.routes import Answer, Call
from applier.wire.client import connect
from applier.wire.shapes import BundleReview, UpdateState
from applier.wire.shapes_rolling import Choice
from system.uploads import UploadRefused, receive

log = logging.getLogger(__name__)

NO_SLOTS = "This box does not run from a disk with two slots"


class VersionState(UpdateState):
    version: str  # what runs


class InstallStarted(TypedDict):
    job: str  # GET /update tells how far it is
    version: str
    notes: list[str]  # what an admin should know


class Restarted(TypedDict):
    slot: str
    version: str


def state(call: Call) -> Answer:
    applier = connect()
    return Answer({"version": applier.status()["version"], **applier.slots()})


def install(call: Call) -> Answer:
    """On this box; it restarts when it is told to."""
    review = _received(call)
    job = connect().update_install(review["source"], call.caller.name)["job"]
    log.info("%s installs version %s into slot %s", call.caller.name, review["version"], review["slot"])
    answer: InstallStarted = {"job": job, "version": review["version"], "notes": review["notes"]}
    return Answer(answer, 202)


def both(call: Call) -> Answer:
    """How far the update of both boxes is."""
    return Answer(connect().pair_update())


def update_both(call: Call) -> Answer:
    """On both boxes, which restart one after the other."""
    connect().pair_update_ready()
    review = _received(call)
    found = connect().pair_update_start(review["source"], call.caller.name)
    log.info("%s updates both boxes to version %s", call.caller.name, review["version"])
    return Answer(found, 202)


def choose(call: Call) -> Answer:
    wanted: UpdateChoice = call.body
    choice = next((one for one in get_args(Choice) if one == wanted.choice), None)
    if choice is None:
        raise wrong_field("request", "choice", f"must be one of {', '.join(get_args(Choice))}")
    if choice == "go-back":
        _may_go_back(call, "The version before was not installed just now")
    found = connect().pair_update_choose(choice, call.caller.name)
    log.info("%s at the update of both boxes: %s", call.caller.name, choice)
    return Answer(found)


def _received(call: Call) -> BundleReview:
    """The body of the request as a bundle, once it was checked."""
    applier = connect()
    found = applier.slots()
    if not found["present"]:
        raise ApiError(409, "no-slots", f"{NO_SLOTS}, so it cannot be updated.")
    applier.update_forget()
    try:
        source = receive(call.request, found["limit"])
    except UploadRefused as refusal:
        raise ApiError(refusal.status, "upload-refused", str(refusal)) from None
    review = applier.update_check(source)
    if review["older"]:
        try:
            _may_go_back(call, f"Version {review['version']} is older than the one that runs")
        except ApiError:
            applier.update_forget()
            raise
    return review


def restart(call: Call) -> Answer:
    """Into the other slot."""
    applier = connect()
    found = applier.slots()
    other = next((slot for slot in found["slots"] if not slot["booted"]), None)
    if other is None:
        raise ApiError(409, "no-slots", f"{NO_SLOTS}.")
    outcome = found["outcome"]
    if other["version"] and not (outcome and (outcome["slot"], outcome["state"]) == (other["name"], "installed")):
        _may_go_back(call, f"Version {other['version']} in slot {other['name']} was not installed just now")
    applier.boot_slot(other["name"], call.caller.name)
    log.info("%s restarts the box into slot %s, version %s", call.caller.name, other["name"], other["version"])
    answer: Restarted = {"slot": other["name"], "version": other["version"]}
    return Answer(answer, 202)


def _may_go_back(call: Call, why: str) -> None:
    """An older version may have a hole that the one that runs has not. Raises ApiError."""
    if "admin" not in call.caller.scopes:
        raise ApiError(403, "forbidden", f"{why}. That needs a token that may: admin.")
