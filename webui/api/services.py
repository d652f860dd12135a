"""Virtual services and their real servers in the draft."""

from __future__ import annotations

from django.db import transaction

from api.bodies import CloneRequest
from api.drafts import judged, may_bring_programs, shown
from api.errors import not_found, of_shape, refused, wrong_field
from api.merge_patch import merged
from api.routes import Answer, Call, plain, tag_of
from balancing.editor import with_service
from draft import store as draft
from draft.models import Service
from lbconfig.model.problem import number, quote
from lbconfig.model.snapshot import Snapshot, SnapshotError, VirtualService, part

PREFIX = "/api/v1/services"


def listed(call: Call) -> Answer:
    name = call.query.get("name")
    return Answer([shown(one, call) for one in draft.current().services if name is None or one.name == name])


def get(call: Call) -> Answer:
    wish = _row(call).wish
    return Answer(shown(wish, call), headers={"ETag": tag_of(plain(wish))})


def create(call: Call) -> Answer:
    with transaction.atomic():
        return _create(call, call.body)


def _create(call: Call, data: object) -> Answer:
    if isinstance(data, dict) and "id" in data:
        raise wrong_field("virtual service", "id", "is given by the box: leave it out")
    snapshot = draft.current()
    new = 1 + max((one.id for one in snapshot.services), default=0)
    row = _store(call, snapshot, Service(), new, data)
    return _saved(row, 201, {"Location": f"{PREFIX}/{row.pk}"})


def replace(call: Call) -> Answer:
    with transaction.atomic():
        row = _row(call)
        call.match(tag_of(plain(row.wish)), required=True)
        return _saved(_store(call, draft.current(), row, row.pk, call.body))


def change(call: Call) -> Answer:
    with transaction.atomic():
        return _change(call, call.body)


def switch(enabled: bool):
    def switched(call: Call) -> Answer:
        with transaction.atomic():
            return _change(call, {"enabled": enabled})

    return switched


def _change(call: Call, patch: object) -> Answer:
    row = _row(call)
    data = plain(row.wish)
    call.match(tag_of(data))
    return _saved(_store(call, draft.current(), row, row.pk, merged(data, patch)))


def delete(call: Call) -> Answer:
    with transaction.atomic():
        row = _row(call)
        call.match(tag_of(plain(row.wish)), required=True)
        draft.remove_service(row, call.caller.name)
    return Answer(status=204)


def clone(call: Call) -> Answer:
    wanted: CloneRequest = call.body
    with transaction.atomic():
        data = plain(_row(call).wish) | {"name": wanted.name, "enabled": True}
        data |= {"address": wanted.address, "more_addresses": []} if wanted.address else {}
        data |= {"port": wanted.port} if wanted.port else {}
        del data["id"]
        data["real_servers"] = [_without_id(server) for server in data["real_servers"]]
        return _create(call, data)


# --- real servers ---


def servers(call: Call) -> Answer:
    return Answer(plain(_row(call).wish)["real_servers"])


def get_server(call: Call) -> Answer:
    _, server = _server(call)
    return Answer(server, headers={"ETag": tag_of(server)})


def add_server(call: Call) -> Answer:
    if isinstance(call.body, dict) and "id" in call.body:
        raise wrong_field("real server", "id", "is given by the box: leave it out")
    with transaction.atomic():
        row = _row(call)
        before = {server.id for server in row.wish.real_servers}
        stored = _store_servers(call, row, [*plain(row.wish)["real_servers"], call.body])
        new = next(one for one in plain(stored)["real_servers"] if one["id"] not in before)
    headers = {"ETag": tag_of(new), "Location": f"{PREFIX}/{row.pk}/real_servers/{new['id']}"}
    return Answer(new, 201, headers)


def replace_server(call: Call) -> Answer:
    with transaction.atomic():
        _, server = _server(call)
        call.match(tag_of(server), required=True)
        return _put_server(call, call.body)


def change_server(call: Call) -> Answer:
    with transaction.atomic():
        _, server = _server(call)
        call.match(tag_of(server))
        return _put_server(call, merged(server, call.body))


def _put_server(call: Call, data: object) -> Answer:
    row, old = _server(call)
    if isinstance(data, dict):
        data = {"id": old["id"], **data}
        if data["id"] != old["id"]:
            raise wrong_field("real server", "id", f"must be {old['id']}, or left out")
    others = plain(row.wish)["real_servers"]
    stored = _store_servers(call, row, [data if one["id"] == old["id"] else one for one in others])
    server = next(one for one in plain(stored)["real_servers"] if one["id"] == old["id"])
    return Answer(server, headers={"ETag": tag_of(server)})


def delete_server(call: Call) -> Answer:
    with transaction.atomic():
        row, server = _server(call)
        call.match(tag_of(server), required=True)
        _store_servers(call, row, [one for one in plain(row.wish)["real_servers"] if one["id"] != server["id"]])
    return Answer(status=204)


def _server(call: Call) -> tuple[Service, dict]:
    row = _row(call)
    for server in plain(row.wish)["real_servers"]:
        if server["id"] == call.values["server"]:
            return row, server
    raise not_found(f"real server {call.values['server']} in the virtual service {row.name}")


def _store_servers(call: Call, row: Service, servers: list) -> VirtualService:
    data = plain(row.wish) | {"real_servers": servers}
    return _store(call, draft.current(), row, row.pk, data).wish


# --- all of them ---


def _row(call: Call) -> Service:
    row = draft.service(call.values["service"])
    if row is None:
        raise not_found(f"virtual service {call.values['service']} in the draft")
    return row


def _store(call: Call, snapshot: Snapshot, row: Service, key: int, data: object) -> Service:
    """Refused where it has problems, or makes new ones elsewhere; as the page of the service does it."""
    known = {server.id for server in row.wish.real_servers} if row.pk else set()
    service = _read(data, key, known, snapshot)
    # last in line: of two services with one name or address, lbconfig names the later one
    after = with_service(snapshot, service, last=True)
    own, elsewhere = judged(snapshot, after, f"services[id={key}]")
    if own or elsewhere:
        raise refused([*own, *elsewhere])
    may_bring_programs(call, snapshot, after)
    return draft.write_service(service, row, call.caller.name, new_ids=True)


def _read(data: object, key: int, known: set[int], snapshot: Snapshot) -> VirtualService:
    """The service that the data is; its real servers without an id get the next free ones, which stand for "new"."""
    place = f"services[id={key}]"
    if isinstance(data, dict):
        if data.get("id", key) != key:
            raise wrong_field("virtual service", "id", f"must be {key}, or left out", f"{place}.id")
        given = data.get("real_servers", [])
        servers = _with_ids(given, known, snapshot, place) if isinstance(given, list) else given
        data = {**data, "id": key, "real_servers": servers}
    try:
        return part(VirtualService, data, place)
    except SnapshotError as error:
        name = data.get("name") if isinstance(data, dict) else None
        raise of_shape(
            error, f"virtual service {quote(name)}" if isinstance(name, str) else "virtual service"
        ) from None


def _with_ids(servers: list, known: set[int], snapshot: Snapshot, place: str) -> list:
    free = 1 + max((server.id for one in snapshot.services for server in one.real_servers), default=0)
    found = []
    for index, server in enumerate(servers):
        new = isinstance(server, dict) and "id" not in server
        if not new and isinstance(server, dict) and type(server["id"]) is int and server["id"] not in known:
            path = f"{place}.real_servers[{index}].id"
            text = f"{number(server['id'])} is not a real server of this service: leave the id of a new one out"
            raise wrong_field("real server", "id", text, path)
        found.append({**server, "id": free + index} if new else server)
    return found


def _saved(row: Service, status: int = 200, headers: dict | None = None) -> Answer:
    data = plain(row.wish)
    return Answer(data, status, {"ETag": tag_of(data), **(headers or {})})


def _without_id(server: dict) -> dict:
    return {name: value for name, value in server.items() if name != "id"}
