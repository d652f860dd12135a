"""The draft: the tables of balancing and network, read and written as one lbconfig snapshot.

The only module that knows both the tables and the snapshot. Ids of the snapshot are primary keys.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence

from django.db import transaction
from django.db.models import Aggregate, Model, TextField
from django.utils import timezone

from balancing.models import Policy, RealServer, SorryPage, VirtualService
from changes import draft_firewall
from changes.models import Draft, Removal
from changes.stamps import ONLY_ROW, change_number, stamp, stamp_all
from lbconfig.model import snapshot as wish
from lbconfig.model.kept import kept
from network import rows as network_rows
from network.models import Management, Network
from system.models import Tuning


def is_filled() -> bool:
    return Draft.objects.exists()


def current() -> wish.Snapshot:
    """The draft as it stands in the database, read in one transaction."""
    with transaction.atomic():
        network = network_rows.network_wish(Network.objects.filter(pk=ONLY_ROW).first() or Network())
        management = Management.objects.filter(pk=ONLY_ROW).first() or Management()
        sorry = SorryPage.objects.filter(pk=ONLY_ROW).first()
        policy = Policy.objects.filter(pk=ONLY_ROW).first()
        tuning = Tuning.objects.filter(pk=ONLY_ROW).first()
        firewall = draft_firewall.current()
        services = _services()
    return wish.Snapshot(
        services=services,
        network=network,
        management=wish.Management(
            tuple(management.allow),
            management.port,
            management.certificate,
            management.key,
            tuple(management.interfaces),
        ),
        sorry=wish.SorryPage(sorry.title, tuple(sorry.paragraphs)) if sorry else wish.SorryPage(),
        policy=_policy_wish(policy) if policy else wish.Policy(),
        firewall=firewall,
        tuning=tuning_wish(tuning) if tuning else wish.Tuning(),
    )


class _Rows(Aggregate):
    """The rows of a group as one JSON text, which SQLite is much quicker to make than Django is ten thousand rows."""

    function = "json_group_array"
    template = "%(function)s(json_array(%(expressions)s))"
    output_field = TextField()


# By id: the values of the rows of each service when they were read last, and what was made of them. To make ten
# thousand real servers anew takes a small box seconds, and services that are one object are quick to compare.
_last: dict[int, tuple[tuple, wish.VirtualService]] = {}


def _services() -> tuple[wish.VirtualService, ...]:
    grouped = RealServer.objects.order_by("service").values_list("service").annotate(rows=_Rows(*SERVER_COLUMNS))
    servers = dict(grouped.values_list("service", "rows"))
    services = []
    for key, *values in VirtualService.objects.values_list("pk", *SERVICE_COLUMNS):
        rows = values, servers.get(key, "[]")
        known = _last.get(key)
        if known is None or known[0] != rows:
            row = VirtualService(pk=key, **dict(zip(SERVICE_COLUMNS, values, strict=True)))
            known = rows, service_wish(row, (_server_wish(*one) for one in sorted(json.loads(rows[1]))))
            _last[key] = known
        services.append(known[1])
    for gone in _last.keys() - {service.id for service in services}:
        _last.pop(gone, None)  # perhaps another thread was quicker
    return tuple(services)


def service_wish(row: VirtualService, servers: Iterable[wish.RealServer] | None = None) -> wish.VirtualService:
    """One row of the draft, with its real servers, as the snapshot has it; without `servers` they are looked up."""
    if servers is None:
        servers = (_server_wish(*values) for values in row.real_servers.values_list(*SERVER_COLUMNS))
    return wish.VirtualService(
        id=row.pk,
        name=row.name,
        address=row.address,
        port=row.port,
        protocol=wish.Protocol(row.protocol),
        scheduler=wish.Scheduler(row.scheduler),
        forwarding=wish.Forwarding(row.forwarding),
        check=wish.HealthCheck(
            kind=wish.CheckKind(row.check_kind),
            method=wish.HttpMethod(row.check_method),
            matching=wish.Matching(row.check_matching),
            **{name: getattr(row, f"check_{name}") for name in CHECK_FIELDS},
        ),
        real_servers=tuple(servers),
        fallback=wish.Fallback(wish.FallbackKind(row.fallback_kind), row.fallback_address, row.fallback_port),
        more_addresses=tuple(row.more_addresses),
        agent=wish.Agent(wish.AgentKind(row.agent_kind), row.agent_port, row.agent_interval, row.agent_floor),
        least_healthy=wish.LeastHealthy(
            row.least_healthy_servers, wish.TooFew(row.least_healthy_then), row.least_healthy_again
        ),
        **{name: getattr(row, name) for name in OPTIONS},
    )


def _server_wish(
    key: int, address: str, port: int, weight: int, state: str, upper: int, lower: int, forwarding: str, name: str
) -> wish.RealServer:
    """Of the values of SERVER_COLUMNS: ten thousand rows as objects of their own would take seconds on a small box."""
    return wish.RealServer(
        key, address, port, weight, wish.ServerState(state), upper, lower,
        wish.Forwarding(forwarding) if forwarding else None, name,
    )  # fmt: skip


OPTIONS = (
    "enabled", "note", "hash_port", "hash_next", "persistence", "persistence_prefix", "one_packet", "call_id",
    "more_ports", "slow_start",
)  # fmt: skip
POLICY_FIELDS = tuple(field.name for field in dataclasses.fields(wish.Policy))
TUNING_FIELDS = tuple(field.name for field in dataclasses.fields(wish.Tuning))
PARTS = {
    "fallback": ("kind", "address", "port"),
    "agent": ("kind", "port", "interval", "floor"),
    "least_healthy": ("servers", "then", "again"),
}
PART_COLUMNS = tuple((part, name, f"{part}_{name}") for part, fields in PARTS.items() for name in fields)
SERVER_FIELDS = ("address", "port", "weight", "state", "upper", "lower", "forwarding", "name")
SERVER_COLUMNS = ("pk", *SERVER_FIELDS)
AT_ONCE = 500  # rows named in one statement; SQLite takes a limited number of parameters
CHECK_CHOICES = ("kind", "method", "matching")
CHECK_FIELDS = tuple(one.name for one in dataclasses.fields(wish.HealthCheck) if one.name not in CHECK_CHOICES)
SERVICE_COLUMNS = (
    "name", "address", "port", "protocol", "scheduler", "forwarding", "more_addresses",
    *(f"check_{name}" for name in (*CHECK_CHOICES, *CHECK_FIELDS)), *(column for *_, column in PART_COLUMNS),
    *OPTIONS,
)  # fmt: skip


def write_service(
    service: wish.VirtualService, row: VirtualService, user: str, new_ids: bool = False
) -> VirtualService:
    """Store the service in `row`. With `new_ids`, servers that `row` does not have yet get fresh ids."""
    with transaction.atomic():
        known = set(row.real_servers.values_list("pk", flat=True)) if row.pk else set()
        _fill(row, service)
        stamp(row, user)
        row.save()
        if gone := known - {server.id for server in service.real_servers}:
            row.real_servers.filter(pk__in=gone).delete()
        _write_servers([(row, server) for server in service.real_servers], known if new_ids else None)
        Removal.objects.filter(service=row.pk).delete()
    return row


def _fill(row: VirtualService, service: wish.VirtualService) -> None:
    for name in ("name", "address", "port", "protocol", "scheduler", "forwarding", *OPTIONS):
        setattr(row, name, getattr(service, name))
    row.more_addresses = list(service.more_addresses)
    for name in (*CHECK_CHOICES, *CHECK_FIELDS):
        setattr(row, f"check_{name}", getattr(service.check, name))
    for part, name, column in PART_COLUMNS:
        setattr(row, column, getattr(getattr(service, part), name))


def _write_services(services: Sequence[wish.VirtualService], user: str) -> None:
    """Many at once, under their own ids: a thousand one by one would take a small box a minute."""
    if not services:
        return
    ids = [service.id for service in services]
    there = VirtualService.objects.in_bulk(ids)
    rows = [there.get(key) or VirtualService(pk=key) for key in ids]
    for row, service in zip(rows, services, strict=True):
        _fill(row, service)
    stamp_all(rows, user)
    columns = [field.name for field in VirtualService._meta.concrete_fields if not field.primary_key]
    VirtualService.objects.bulk_create(rows, update_conflicts=True, unique_fields=["id"], update_fields=columns)
    wanted = {server.id for service in services for server in service.real_servers}
    written = set(ids)
    known = RealServer.objects.values_list("pk", "service")
    _delete(RealServer, [key for key, service in known if service in written and key not in wanted])
    _write_servers(
        [(row, one) for row, service in zip(rows, services, strict=True) for one in service.real_servers], None
    )
    _delete(Removal, [removal.pk for removal in Removal.objects.all() if removal.service in written])


def _delete(kind: type[Model], keys: list[int]) -> None:
    for begin in range(0, len(keys), AT_ONCE):
        kind._default_manager.filter(pk__in=keys[begin : begin + AT_ONCE]).delete()


def _write_servers(servers: Iterable[tuple[VirtualService, wish.RealServer]], known: set[int] | None) -> None:
    """`known`: ids beside which a server gets a new one; None: all keep theirs."""
    old, new = [], []
    for row, server in servers:
        values = {name: getattr(server, name) for name in SERVER_FIELDS} | {"forwarding": server.forwarding or ""}
        if known is None or server.id in known:
            old.append(RealServer(pk=server.id, service=row, **values))
        else:
            new.append(RealServer(service=row, **values))
    RealServer.objects.bulk_create(
        old, update_conflicts=True, unique_fields=["id"], update_fields=["service", *SERVER_FIELDS]
    )
    RealServer.objects.bulk_create(new)


def set_state(servers: set[int], address: str, state: wish.ServerState, user: str) -> None:
    """Of real servers by id, as far as the draft still has them at this address."""
    with transaction.atomic():
        rows = RealServer.objects.filter(pk__in=servers, address=address).exclude(state=state)
        for service in VirtualService.objects.filter(real_servers__in=rows).distinct():
            stamp(service, user)
            service.save()
        RealServer.objects.filter(pk__in=servers, address=address).update(state=state)


def remove_service(row: VirtualService, user: str) -> None:
    with transaction.atomic():
        change_number()
        Removal.objects.update_or_create(
            service=row.pk, defaults={"name": row.name, "changed_by": user, "changed_at": timezone.now()}
        )
        row.delete()


def write_network(network: wish.Network, user: str) -> None:
    with transaction.atomic():
        row = Network.objects.filter(pk=ONLY_ROW).first() or Network(pk=ONLY_ROW)
        network_rows.store(row, network)
        stamp(row, user)
        row.save()


def write_management(management: wish.Management, user: str) -> None:
    with transaction.atomic():
        row = Management.objects.filter(pk=ONLY_ROW).first() or Management(pk=ONLY_ROW)
        row.allow, row.port = list(management.allow), management.port
        row.certificate, row.key = management.certificate, management.key
        row.interfaces = list(management.interfaces)
        stamp(row, user)
        row.save()


def write_sorry_page(page: wish.SorryPage, user: str) -> None:
    with transaction.atomic():
        row = SorryPage.objects.filter(pk=ONLY_ROW).first() or SorryPage(pk=ONLY_ROW)
        row.title, row.paragraphs = page.title, list(page.paragraphs)
        stamp(row, user)
        row.save()


def _policy_wish(row: Policy) -> wish.Policy:
    values = {name: getattr(row, name) for name in POLICY_FIELDS}
    return wish.Policy(**{**values, "flood_defence": wish.FloodDefence(row.flood_defence)})


def write_policy(policy: wish.Policy, user: str) -> None:
    with transaction.atomic():
        row = Policy.objects.filter(pk=ONLY_ROW).first() or Policy(pk=ONLY_ROW)
        for name in POLICY_FIELDS:
            setattr(row, name, getattr(policy, name))
        stamp(row, user)
        row.save()


def tuning_wish(row: Tuning) -> wish.Tuning:
    return wish.part(wish.Tuning, {name: getattr(row, name) for name in TUNING_FIELDS})


def write_tuning(tuning: wish.Tuning, user: str) -> None:
    with transaction.atomic():
        row = Tuning.objects.filter(pk=ONLY_ROW).first() or Tuning(pk=ONLY_ROW)
        for name, value in dataclasses.asdict(tuning).items():
            setattr(row, name, list(value) if isinstance(value, tuple) else value)
        stamp(row, user)
        row.save()


def replace(snapshot: wish.Snapshot, user: str) -> None:
    """Make the draft equal to `snapshot`. Objects that stay the same keep their version."""
    with transaction.atomic():
        Draft.objects.get_or_create(pk=ONLY_ROW)
        before = current()
        old = {service.id: service for service in before.services}
        wanted = {service.id for service in snapshot.services}
        for row in VirtualService.objects.all():
            if row.pk not in wanted:
                remove_service(row, user)
        _write_services([service for service in snapshot.services if old.get(service.id) != service], user)
        if before.network != snapshot.network or not Network.objects.exists():
            write_network(snapshot.network, user)
        if before.management != snapshot.management or not Management.objects.exists():
            write_management(snapshot.management, user)
        if before.sorry != snapshot.sorry or not SorryPage.objects.exists():
            write_sorry_page(snapshot.sorry, user)
        if before.policy != snapshot.policy or not Policy.objects.exists():
            write_policy(snapshot.policy, user)
        if before.tuning != snapshot.tuning:
            write_tuning(snapshot.tuning, user)
        draft_firewall.replace(snapshot.firewall, user)


def same(one: wish.Snapshot, other: wish.Snapshot) -> bool:
    """Whether both wish the same; the order of services and of their servers wishes nothing."""
    return one is other or _ordered(one) == _ordered(other)


@kept
def _ordered(snapshot: wish.Snapshot) -> wish.Snapshot:
    services = (one if _is_ordered(one) else _ordered_service(one) for one in snapshot.services)
    return dataclasses.replace(snapshot, services=tuple(sorted(services, key=lambda one: one.id)))


@kept
def _is_ordered(service: wish.VirtualService) -> bool:
    ids = [server.id for server in service.real_servers]
    return ids == sorted(ids)


@kept
def _ordered_service(service: wish.VirtualService) -> wish.VirtualService:
    servers = tuple(sorted(service.real_servers, key=lambda one: one.id))
    return dataclasses.replace(service, real_servers=servers)
