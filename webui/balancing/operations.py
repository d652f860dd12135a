"""Drain, halt and resume a real server: at once, in what the box runs.

The draft of an admin who is at work is not applied by it. It only learns of the new state, so that applying it later
does not take the operation back.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from applier.wire.client import connect
from applier.wire.shapes import Review
from draft import store as draft
from draft import what_runs
from lbconfig.model.snapshot import RealServer, ServerState, Snapshot, VirtualService

log = logging.getLogger(__name__)

WORDS = {ServerState.QUIESCED: "Drain", ServerState.DISABLED: "Halt", ServerState.ENABLED: "Resume"}


class Refused(Exception):
    """The message says why nothing was done."""


@dataclass(frozen=True, slots=True)
class Operation:
    """`server` None: wherever this address is a real server."""

    state: ServerState
    address: str
    server: int | None = None

    def concerns(self, server: RealServer) -> bool:
        return server.address == self.address and self.server in (None, server.id)

    def of(self, snapshot: Snapshot) -> Snapshot:
        services = tuple(
            replace(
                service,
                real_servers=tuple(
                    replace(server, state=self.state) if self.concerns(server) else server
                    for server in service.real_servers
                ),
            )
            for service in snapshot.services
        )
        return replace(snapshot, services=services)

    def comment(self, services: list[VirtualService]) -> str:
        where = "all its services" if self.server is None else services[0].name
        return f"{WORDS[self.state]} {self.address} in {where}"


def carry_out(operation: Operation, user: str, client: str) -> str:
    """The id of the apply that does it. Raises Refused, ApplierDown, ApplierRefused, SnapshotError."""
    applier = connect()
    before = what_runs.current()
    services = [one for one in before.services if any(map(operation.concerns, one.real_servers))]
    if not services:
        raise Refused(f"The box runs no service with the real server {operation.address}. Apply the draft first.")
    after = operation.of(before)
    if after == before:
        raise Refused(f"Nothing is to be done: {operation.address} is in that state already.")
    review: Review = applier.check(after)
    if review["problems"]:
        raise Refused("; ".join(f"{one['object']}: {one['message']}" for one in review["problems"]))
    what_runs.remember(after)
    answer = applier.apply(
        after, review["digest"], review["base"], user=user, comment=operation.comment(services), client=client
    )
    changed = {server.id for one in services for server in one.real_servers if operation.concerns(server)}
    draft.set_state(changed, operation.address, operation.state, user)
    log.info("user %s: %s", user, operation.comment(services))
    return answer["apply"]
