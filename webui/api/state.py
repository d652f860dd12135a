"""What the box does now, what is done to it at once, and who asks."""

from __future__ import annotations

from typing import TypedDict

from api.bodies import OperationRequest
from api.changes import started
from api.drafts import shown
from api.errors import not_found, wrong_field
from api.routes import Answer, Call, tag_of
from applier.wire.client import connect
from applier.wire.shapes import Trial
from balancing import operations
from balancing.operations import Operation
from draft import store as draft
from draft import what_runs
from lbconfig.model.problem import quote
from lbconfig.model.snapshot import ServerState, to_data
from lbconfig.validate.fields import MAX_ID

OPERATIONS = {"drain": ServerState.QUIESCED, "halt": ServerState.DISABLED, "resume": ServerState.ENABLED}


class Trials(TypedDict):
    trials: list[Trial]


class Scopes(TypedDict):
    name: str
    scopes: list[str]
    expires: str | None


def status(call: Call) -> Answer:
    return Answer({name: value for name, value in what_runs.status().items() if name != "snapshot"})


def running(call: Call) -> Answer:
    wish = what_runs.current()
    return Answer(shown(wish, call), headers={"ETag": tag_of(to_data(wish))})


def operate(call: Call) -> Answer:
    """At once, in what runs; the draft only learns of it."""
    wanted: OperationRequest = call.body
    if wanted.operation not in OPERATIONS:
        raise wrong_field("request", "operation", f"must be one of {', '.join(OPERATIONS)}")
    for field in ("service", "server"):
        if not 0 <= getattr(wanted, field) <= MAX_ID:
            raise wrong_field("request", field, "must be an id, or 0")
    server = _server(wanted) if wanted.service or wanted.server else None
    operation = Operation(OPERATIONS[wanted.operation], wanted.address, server)
    return started(operations.carry_out(operation, call.caller.name, call.caller.address))


def _server(wanted: OperationRequest) -> int:
    """The id of the one real server that is meant."""
    snapshot = what_runs.current()
    found = [
        server.id
        for service in snapshot.services
        if wanted.service in (0, service.id)
        for server in service.real_servers
        if server.address == wanted.address and wanted.server in (0, server.id)
    ]
    if not found:
        raise not_found(f"real server {quote(wanted.address)} of that kind in what the box runs")
    if len(found) > 1:
        ids = ", ".join(map(str, found))
        raise wrong_field("request", "server", f"must say which one is meant: this service has {ids} at the address")
    return found[0]


def events(call: Call) -> Answer:
    return Answer(connect().events())


def drift(call: Call) -> Answer:
    return Answer(what_runs.status()["drift"])


def look(call: Call) -> Answer:
    return Answer(connect().look())


def repair(call: Call) -> Answer:
    """A run like an apply, to what should run already; the draft is not concerned."""
    return started(connect().repair(call.caller.name)["apply"])


def hardware(call: Call) -> Answer:
    return Answer(connect().hardware())


def tune(call: Call) -> Answer:
    return Answer(connect().tune(str(call.query.get("object", "")), call.caller.name))


def diagnose(call: Call) -> Answer:
    return Answer(connect().diagnose(_known(call)))


def try_check(call: Call) -> Answer:
    """Of the service as it stands in the draft."""
    answer: Trials = {"trials": connect().try_check(draft.current(), _known(call))}
    return Answer(answer)


def whoami(call: Call) -> Answer:
    token = call.caller.token
    expires = token.expires.strftime("%Y-%m-%dT%H:%M:%SZ") if token and token.expires else None
    answer: Scopes = {"name": call.caller.name, "scopes": sorted(call.caller.scopes), "expires": expires}
    return Answer(answer)


def _known(call: Call) -> int:
    number = call.values["service"]
    if draft.service(number) is None:
        raise not_found(f"virtual service {number} in the draft")
    return number
