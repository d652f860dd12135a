"""Old snapshots: each schema number has one step to the next one.

A step takes and returns plain data; it never uses the classes of `snapshot`, which are always those
of the newest schema.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from lbconfig.model.snapshot import SCHEMA, Snapshot, SnapshotError, from_data

Data = dict[str, object]  # of a snapshot, or of a part of one; nothing is sure but that it was JSON


def _each_service(data: Data, step: Callable[[object], object]) -> Data:
    services = data.get("services", [])
    return {**data, "services": [step(one) for one in services]} if isinstance(services, list) else data


def _states(data: Data) -> Data:
    """1 to 2: a real server was enabled or not; now it can also be quiesced."""
    return _each_service(data, _with_states)


def _with_states(service: object) -> object:
    if not isinstance(service, dict) or not isinstance(service.get("real_servers", []), list):
        return service  # from_data will say what is wrong with it
    return {**service, "real_servers": [_with_state(server) for server in service.get("real_servers", [])]}


def _with_state(server: object) -> object:
    if not isinstance(server, dict) or type(server.get("enabled", True)) is not bool:
        return server
    rest = {key: value for key, value in server.items() if key != "enabled"}
    return {**rest, "state": "enabled" if server.get("enabled", True) else "disabled"}


WEB_ALSO_GOOD = "200-399"  # statuses
_TALK = ("port", "connects")
_LOGIN = ("login", "password", *_TALK)
_WEB = ("path", "host", "expect", *_TALK)
_USED_2: dict[object, tuple[str, ...]] = {
    "connect": ("port",), "http": _WEB, "https": (*_WEB, "verify", "authority"), "ping": (), "off": (), "smtp": _TALK,
    "submission": _TALK, "imap": _LOGIN, "imaps": _LOGIN, "pop": _LOGIN, "pops": _LOGIN, "ftp": _LOGIN, "nntp": _TALK,
    "dns": ("port", "ask", "expect"), "ldap": (*_LOGIN, "ask"), "ldaps": (*_LOGIN, "ask"), "mysql": _TALK,
    "pgsql": ("login", "database", *_TALK), "radius": ("port", "login", "password", "secret"), "sip": ("port",),
    "simpletcp": ("ask", "expect", *_TALK),
}  # fmt: skip
_EMPTY_2 = {
    "port": 0, "path": "/", "host": "", "expect": "", "login": "", "password": "", "secret": "", "database": "",
    "ask": "", "verify": False, "authority": "", "connects": 0,
}  # fmt: skip


def unused_of_schema_2(check: Data) -> Data:
    """The fields of a health check that its kind never used, as they are empty."""
    used = _USED_2.get(check.get("kind", "connect"), tuple(_EMPTY_2))
    if check.get("verify") is not True:
        used = tuple(name for name in used if name != "authority")
    return {name: empty for name, empty in _EMPTY_2.items() if name in check and name not in used}


def _whole_answers(data: Data) -> Data:
    """2 to 3: what a check does not use is refused; redirects are not followed any more.

    A web check that expected no text went on to where the server sent it, and was mostly good there. To take all these
    servers out of service for an update would be worse than to believe their redirects, as the new field can say.
    """
    return _each_service(data, _with_whole_answers)


def _with_whole_answers(service: object) -> object:
    if not isinstance(service, dict):
        return service
    check = service.get("check", {})
    if not isinstance(check, dict) or not isinstance(check.get("kind", ""), str):
        return service
    web = check.get("kind") in ("http", "https") and not check.get("expect")
    return {**service, "check": check | unused_of_schema_2(check) | ({"statuses": WEB_ALSO_GOOD} if web else {})}


# Schema number -> what makes it the next one.
STEPS: dict[int, Callable[[Data], Data]] = {1: _states, 2: _whole_answers}


def read(text: str) -> Snapshot:
    """A snapshot of this or any older schema. Raises SnapshotError."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SnapshotError("", f"is not JSON: {error}") from None
    return from_data(upgrade(data) if isinstance(data, dict) else data)


def upgrade(data: Data, steps: Mapping[int, Callable[[Data], Data]] = STEPS, newest: int = SCHEMA) -> Data:
    """Apply the steps from the data's own schema number on. What has none is left to `from_data`."""
    number = data.get("schema", newest)
    while type(number) is int and number < newest:
        if number not in steps:
            raise SnapshotError("schema", f"is {number}; this software cannot read it any more")
        data = {**steps[number](data), "schema": number + 1}
        number += 1
    return data
