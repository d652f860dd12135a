"""The draft, read and written as one lbconfig snapshot: the only module that knows both it and the tables."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Model, Q
from django.utils import timezone

from draft import firewall
from draft.documents import OPTIONAL, PARTS, Kept, checked_text, text
from draft.models import Draft, Part, Removal, Rule, Service
from draft.stamps import ONLY_ROW, change_number, stamp, stamp_all
from lbconfig import migrate
from lbconfig.model.kept import kept
from lbconfig.model.lines import line
from lbconfig.model.snapshot import SCHEMA, ServerState, Snapshot, VirtualService

AT_ONCE = 500  # rows named in one statement; SQLite takes a limited number of parameters

_services = Kept(VirtualService)
_parts = {name: Kept(kind) for name, kind in (PARTS | OPTIONAL).items()}


def is_filled() -> bool:
    return Draft.objects.exists()


def current() -> Snapshot:
    """The draft as it stands in the database, read in one transaction."""
    with transaction.atomic():
        parts = dict(Part.objects.values_list("name", "data"))
        services = dict(Service.objects.values_list("pk", "data"))
        rules = firewall.current()
    _services.forget_others(set(services))
    found: dict[str, Any] = {name: _parts[name](name, data) for name, data in parts.items()}
    return Snapshot(services=tuple(_services(key, data) for key, data in services.items()), firewall=rules, **found)


def counter() -> int:
    """How often the draft was changed."""
    row = Draft.objects.filter(pk=ONLY_ROW).first()
    return row.counter if row else 0


def authors(since: datetime | None) -> Iterator[str]:
    """Everybody who touched the draft since then, some of them more than once; None: since ever."""
    late = Q() if since is None else Q(changed_at__gt=since)
    tables: list[type[Model]] = [Service, Rule, Part, Removal]
    for table in tables:
        yield from table._default_manager.filter(late).exclude(changed_by="").values_list("changed_by", flat=True)


def part(name: str) -> Part | None:
    """A part of the draft with who changed it when; None where nobody has stored it yet."""
    return Part.objects.filter(pk=name).first()


def service(key: int) -> Service | None:
    """The same of a virtual service."""
    return Service.objects.filter(pk=key).first()


def write_service(service: VirtualService, row: Service, user: str, new_ids: bool = False) -> Service:
    """Store the service in `row`; a new row gets an id. With `new_ids`, servers that `row` does not have do, too.

    Raises SnapshotError for what could not be read again.
    """
    with transaction.atomic():
        if new_ids:
            service = _with_new_ids(service, row)
        stamp(row, user)
        if not row.pk:  # now it gets its id, which the document has as well
            row.data = "{}"
            row.save()
        row.data = checked_text(dataclasses.replace(service, id=row.pk))
        row.save()
        _count_servers([service])
        Removal.objects.filter(service=row.pk).delete()
    return row


def _with_new_ids(service: VirtualService, row: Service) -> VirtualService:
    known = {server.id for server in row.wish.real_servers} if row.pk else set()
    new = [server for server in service.real_servers if server.id not in known]
    last = Draft.objects.get_or_create(pk=ONLY_ROW)[0].last_server
    fresh = {id(server): number for number, server in enumerate(new, last + 1)}
    servers = (dataclasses.replace(one, id=fresh.get(id(one), one.id)) for one in service.real_servers)
    return dataclasses.replace(service, real_servers=tuple(servers))


def _count_servers(services: Sequence[VirtualService]) -> None:
    """An id of a real server is given once, also after it has gone: statistics and open forms name it."""
    highest = max((server.id for service in services for server in service.real_servers), default=0)
    Draft.objects.filter(pk=ONLY_ROW, last_server__lt=highest).update(last_server=highest)


def _write_services(services: Sequence[VirtualService], user: str) -> None:
    """Many at once, under their own ids: a thousand one by one would take a small box a minute."""
    rows = [Service(pk=service.id, data=text(service)) for service in services]
    if not rows:
        return
    stamp_all(rows, user)
    columns = [field.name for field in Service._meta.concrete_fields if not field.primary_key]
    Service.objects.bulk_create(rows, update_conflicts=True, unique_fields=["id"], update_fields=columns)
    _count_servers(services)
    written = {service.id for service in services}
    gone = [removal.pk for removal in Removal.objects.all() if removal.service in written]
    for begin in range(0, len(gone), AT_ONCE):
        Removal.objects.filter(pk__in=gone[begin : begin + AT_ONCE]).delete()


def set_state(servers: set[int], address: str, state: ServerState, user: str) -> None:
    """Of real servers by id, as far as the draft still has them at this address."""
    with transaction.atomic():
        changed = []
        for service in current().services:
            after = tuple(
                dataclasses.replace(one, state=state) if one.id in servers and one.address == address else one
                for one in service.real_servers
            )
            if after != service.real_servers:
                changed.append(dataclasses.replace(service, real_servers=after))
        _write_services(changed, user)


def remove_service(row: Service, user: str) -> None:
    with transaction.atomic():
        change_number()
        Removal.objects.update_or_create(
            service=row.pk, defaults={"name": row.name, "changed_by": user, "changed_at": timezone.now()}
        )
        row.delete()


def write_part(name: str, value: object, user: str) -> None:
    """Store a part of the snapshot by the name of its field. Raises SnapshotError for what could not be read again."""
    with transaction.atomic():
        row = part(name) or Part(pk=name)
        row.data = checked_text(value)
        stamp(row, user)
        row.save()


def _remove_part(name: str) -> None:
    if Part.objects.filter(pk=name).delete()[0]:
        change_number()


def replace(snapshot: Snapshot, user: str) -> None:
    """Make the draft equal to `snapshot`. Objects that stay the same keep their version."""
    with transaction.atomic():
        Draft.objects.get_or_create(pk=ONLY_ROW)
        before = current()
        old = {service.id: service for service in before.services}
        wanted = {service.id for service in snapshot.services}
        for row in Service.objects.all():
            if row.pk not in wanted:
                remove_service(row, user)
        _write_services([service for service in snapshot.services if old.get(service.id) != service], user)
        stored = set(Part.objects.values_list("name", flat=True))
        for name in PARTS:
            if name not in stored or getattr(before, name) != getattr(snapshot, name):
                write_part(name, getattr(snapshot, name), user)
        for name in OPTIONAL:
            if getattr(snapshot, name) is None:
                _remove_part(name)
            elif getattr(before, name) != getattr(snapshot, name):
                write_part(name, getattr(snapshot, name), user)
        firewall.replace(snapshot.firewall, user)


def upgrade(using: str) -> None:
    """Bring documents that an older software has written to the schema of this one. Raises SnapshotError.

    `using`: the alias of the database.
    """
    with transaction.atomic(using):
        draft = Draft.objects.using(using).first()
        if draft is None or draft.schema == SCHEMA:
            return
        services, rules = list(Service.objects.using(using)), list(Rule.objects.using(using))
        parts = list(Part.objects.using(using))
        new: Any = migrate.upgrade(
            {
                "schema": draft.schema,
                "services": [json.loads(row.data) for row in services],
                "firewall": {"rules": [json.loads(row.data) for row in rules]},
                **{row.name: json.loads(row.data) for row in parts},
            }
        )
        written = [*new["services"], *new["firewall"]["rules"], *(new[row.name] for row in parts)]
        rows: list[Service | Rule | Part] = [*services, *rules, *parts]
        for row, data in zip(rows, written, strict=True):
            row.data = line(data)
            row.save(update_fields=["data"])
        draft.schema = SCHEMA
        draft.save(update_fields=["schema"])


def same(one: Snapshot, other: Snapshot) -> bool:
    """Whether both say the same; the order of services and of their servers says nothing."""
    return one is other or _ordered(one) == _ordered(other)


@kept
def _ordered(snapshot: Snapshot) -> Snapshot:
    services = (one if _is_ordered(one) else _ordered_service(one) for one in snapshot.services)
    return dataclasses.replace(snapshot, services=tuple(sorted(services, key=lambda one: one.id)))


@kept
def _is_ordered(service: VirtualService) -> bool:
    ids = [server.id for server in service.real_servers]
    return ids == sorted(ids)


@kept
def _ordered_service(service: VirtualService) -> VirtualService:
    servers = tuple(sorted(service.real_servers, key=lambda one: one.id))
    return dataclasses.replace(service, real_servers=servers)
