"""Old snapshots: each schema number has one step to the next one.

A step takes and returns plain data; it never uses the classes of `snapshot`, which are always those
of the newest schema.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from lbconfig.snapshot import SCHEMA, Snapshot, SnapshotError, from_data


def _states(data: dict) -> dict:
    """1 to 2: a real server was enabled or not; now it can also be quiesced."""
    return {**data, "services": [_with_states(service) for service in data.get("services", [])]}


def _with_states(service: dict) -> dict:
    if not isinstance(service, dict) or not isinstance(service.get("real_servers", []), list):
        return service  # from_data will say what is wrong with it
    return {**service, "real_servers": [_with_state(server) for server in service.get("real_servers", [])]}


def _with_state(server: dict) -> dict:
    if not isinstance(server, dict) or type(server.get("enabled", True)) is not bool:
        return server
    rest = {key: value for key, value in server.items() if key != "enabled"}
    return {**rest, "state": "enabled" if server.get("enabled", True) else "disabled"}


STEPS: dict[int, Callable[[dict], dict]] = {1: _states}  # schema number -> what makes it the next one


def read(text: str) -> Snapshot:
    """A snapshot of this or any older schema. Raises SnapshotError."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SnapshotError("", f"is not JSON: {error}") from None
    return from_data(upgrade(data) if isinstance(data, dict) else data)


def upgrade(data: dict, steps: dict[int, Callable[[dict], dict]] = STEPS, newest: int = SCHEMA) -> dict:
    """Apply the steps from the data's own schema number on. What has none is left to `from_data`."""
    number = data.get("schema", newest)
    while type(number) is int and number < newest:
        if number not in steps:
            raise SnapshotError("schema", f"is {number}; this software cannot read it any more")
        data = {**steps[number](data), "schema": number + 1}
        number += 1
    return data
