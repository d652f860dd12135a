"""Does the configuration make sense? Every field of every object, and how the objects fit together.

`validate` never changes its input and never asks the host: the same snapshot has the same problems
in the browser, in the applier and in a test.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator

from lbconfig.model.addresses import bits, version
from lbconfig.model.kept import kept
from lbconfig.model.names import FALLBACKS, FORWARDING, PROTOCOLS
from lbconfig.model.problem import Place, Problem, Unseen, each, number, quote
from lbconfig.model.reading import has_shape
from lbconfig.model.snapshot import (
    HASHING,
    MAX_PROGRAMS,
    SCHEMA,
    SORRY_PORT,
    THROUGH_THE_BOX,
    CheckKind,
    FallbackCheck,
    FallbackKind,
    Network,
    Protocol,
    RealServer,
    Snapshot,
    SnapshotError,
    VirtualService,
    from_data,
)
from lbconfig.model.spelling import looks
from lbconfig.validate.balance import balance_problems, weight_problem
from lbconfig.validate.checks import check_problems
from lbconfig.validate.fields import (
    MAX_CONNECTIONS,
    MAX_ID,
    MAX_MARK,
    MAX_PERSISTENCE,
    host_address,
    in_range,
    note,
    paragraphs,
    server_address,
    service_name,
    tags,
    title,
)
from lbconfig.validate.firewall import firewall_problems
from lbconfig.validate.neighbours import (
    Fronts,
    Names,
    Neighbours,
    Sources,
    more_addresses,
    more_ports,
    plain,
    vips,
    vips_at_sorry_port,
)
from lbconfig.validate.network import management_problems, network_problems, usable
from lbconfig.validate.pair import alone_problems, pair_problems
from lbconfig.validate.reach import admin_problem, lease_problems
from lbconfig.validate.routes import answers_problem
from lbconfig.validate.tuning import tuning_problems

__all__ = ["Problem", "admin_problem", "lease_problems", "validate"]


TIMEOUTS = ("tcp_timeout", "fin_timeout", "udp_timeout")


def validate(snapshot: Snapshot) -> list[Problem]:
    """What is wrong, in the order of the snapshot. Empty: it can be rendered and applied."""
    return [*_validated(snapshot)]


@kept
def _validated(snapshot: Snapshot) -> tuple[Problem, ...]:
    # The shape first: no rule below is asked about a port that is no number.
    if wrong := _wrong_shape(snapshot):
        return (wrong,)
    if snapshot.pair is not None:
        return tuple(pair_problems(snapshot, snapshot.pair, _problems))
    return (*_problems(snapshot), *alone_problems(snapshot.network))


def _wrong_shape(snapshot: Snapshot) -> Problem | None:
    services = snapshot.services
    good = isinstance(services, tuple) and all(type(one) is VirtualService and _well_formed(one) for one in services)
    looked_at = dataclasses.replace(snapshot, services=()) if good else snapshot
    if looked_at.schema == SCHEMA and has_shape(Snapshot, looked_at):
        return None
    # It says what is wrong.
    try:
        rebuilt = from_data(dataclasses.asdict(looked_at), exact=True)
    except SnapshotError as error:
        return Problem("snapshot", error.path.rpartition(".")[2] or "snapshot", error.message, error.path)
    if rebuilt != looked_at:
        return Problem(
            "snapshot", "snapshot", "must consist of the classes of lbconfig.model.snapshot, with tuples", ""
        )
    return None


@kept
def _well_formed(service: VirtualService) -> bool:
    return has_shape(VirtualService, service)


def _problems(snapshot: Snapshot) -> list[Problem]:
    return [
        *_services(snapshot, usable(snapshot.network)),
        *network_problems(snapshot.network),
        *management_problems(snapshot),
        *firewall_problems(snapshot),
        *each(
            Place("sorry page", "sorry"),
            title=title(snapshot.sorry.title),
            paragraphs=paragraphs(snapshot.sorry.paragraphs),
        ),
        *each(
            Place("connections", "policy"),
            **{name: in_range(getattr(snapshot.policy, name), 1, MAX_PERSISTENCE) for name in TIMEOUTS},
            route_answers=answers_problem(snapshot),
        ),
        *tuning_problems(snapshot.tuning),
    ]


def _services(snapshot: Snapshot, network: Network) -> Iterator[Problem]:
    first_id, first_name, first_server_id = Unseen(), Unseen(), Unseen()
    fronts, sources = Fronts(), Sources()
    neighbours, at_peace = _around(network, snapshot.management.port, vips(snapshot), vips_at_sorry_port(snapshot))
    for service in snapshot.services:
        place = _place(service)
        good = at_peace(service)
        # Nearly all that can be wrong is known of a service that was looked at before, among the same neighbours.
        if not good:
            yield from _service_fields(place, service)
        if not first_id(service.id):
            yield place.problem("id", f"{number(service.id)} is the id of another virtual service as well")
        if not first_name.all(looks(service.name)):
            whose = "is the name of another virtual service as well, or looks like it"
            yield place.problem("name", f"{quote(service.name)} {whose}")
        if service.enabled and (taken := fronts.taken(service)):
            yield place.problem("port", f"another virtual service is {taken} already")
        if good and (not service.enabled or sources.fit(service)) and first_server_id.all(_server_ids(service)):
            continue
        if service.enabled:  # a disabled one is on the shelf: it may belong to another network
            yield from neighbours.service(place, service)
        yield from check_problems(place.inner("check"), service)
        yield from _real_servers(place, service, first_server_id, neighbours, sources)
        yield from _fallback(place, service, neighbours, sources)
        yield from balance_problems(place, service)
    yield from _programs(snapshot)


def _programs(snapshot: Snapshot) -> Iterator[Problem]:
    """All of them are in one file, which is read at each start of the checks."""
    length = 0
    for service in snapshot.services:
        length += len(service.check.program)
        if length > MAX_PROGRAMS:
            place = _place(service).inner("check")
            text = f"is too much: all programs together may have {MAX_PROGRAMS} characters"
            yield place.problem("program", text)
            return


@functools.lru_cache(4)
def _around(
    network: Network, web_port: int, vips: Names, at_sorry_port: Names
) -> tuple[Neighbours, Callable[[VirtualService], bool]]:
    """The neighbours of a service, and whether there is nothing wrong with it among them, were it the only service."""
    neighbours = Neighbours(network, web_port, vips, at_sorry_port)

    def at_peace(service: VirtualService) -> bool:
        place, sources = _place(service), Sources()
        parts = (
            _service_fields(place, service),
            neighbours.service(place, service) if service.enabled else (),
            check_problems(place.inner("check"), service),
            _real_servers(place, service, Unseen(), neighbours, sources),
            _fallback(place, service, neighbours, sources),
            balance_problems(place, service),
        )
        return next(itertools.chain(*parts), None) is None

    return neighbours, kept(at_peace)


def _place(service: VirtualService) -> Place:
    return Place(f"virtual service {quote(service.name)}", f"services[id={number(service.id)}]")


@kept
def _server_ids(service: VirtualService) -> frozenset[int]:
    return frozenset(server.id for server in service.real_servers)


def _service_fields(place: Place, service: VirtualService) -> Iterator[Problem]:
    yield from each(
        place,
        id=in_range(service.id, 1, MAX_ID),
        name=service_name(service.name),
        address=host_address(service.address),
        port=in_range(service.port, 1, 65535),
        note=note(service.note),
        tags=tags(service.tags),
        hash_port=_of_hashing(service, service.hash_port),
        hash_next=_of_hashing(service, service.hash_next),
        persistence=_persistence(service),
        persistence_prefix=in_range(service.persistence_prefix, 0, bits(service.address)),
        one_packet=_one_packet(service),
        call_id=_call_id(service),
        more_ports=more_ports(service),
        more_addresses=more_addresses(service),
    )
    if service.by_mark:
        yield from each(place, id=in_range(service.id, 1, MAX_MARK))


def _of_hashing(service: VirtualService, wanted: bool) -> str | None:
    if wanted and service.scheduler not in HASHING:
        return f"is an option of source and Maglev hashing (sh, mh), not of {service.scheduler}"
    return None


def _persistence(service: VirtualService) -> str | None:
    if service.persistence and service.one_packet and not service.call_id:
        return "cannot be combined with one-packet scheduling, which balances each packet by itself"
    return in_range(service.persistence, 0, MAX_PERSISTENCE)


def _one_packet(service: VirtualService) -> str | None:
    if service.one_packet and service.protocol != Protocol.UDP:
        return "is for UDP only: the packets of a connection belong together"
    return None


def _call_id(service: VirtualService) -> str | None:
    if service.call_id and service.protocol is not Protocol.UDP:
        return "is for SIP over UDP only"
    if service.call_id and not service.persistence:
        return "needs persistence: seconds for which a call keeps its server"
    return None


def _real_servers(
    outer: Place, service: VirtualService, first_id: Unseen, neighbours: Neighbours, sources: Sources
) -> Iterator[Problem]:
    first_place = Unseen()
    for server in service.real_servers:
        place = Place(
            f"real server {plain(server.address)}:{number(server.port)} of {outer.object}",
            f"{outer.path}.real_servers[id={number(server.id)}]",
        )
        yield from each(
            place,
            id=in_range(server.id, 1, MAX_ID),
            address=server_address(server.address),
            port=_server_port(service, server),
            weight=in_range(server.weight, 1, 65535) or weight_problem(service, server.weight),
            upper=in_range(server.upper, 0, MAX_CONNECTIONS),
            lower=_lower(server),
            name=service_name(server.name) if server.name else None,
        )
        if not first_id(server.id):
            yield place.problem("id", f"{number(server.id)} is the id of another real server as well")
        if not first_place((server.address, server.port)):
            yield place.problem("address", "this service has a real server with this address and port already")
        yield from _fits(place, service, server, neighbours, sources)


def _fits(
    place: Place, service: VirtualService, server: RealServer, neighbours: Neighbours, sources: Sources
) -> Iterator[Problem]:
    """Whether a machine can stand behind this service."""
    if service.enabled and not sources.one(service, server):
        yield place.problem(
            "forwarding",
            f"NAT to this server and port is used for {service.address} with source NAT and without: "
            "choose one of them, or give one of the services another virtual address",
        )
    if version(server.address) != version(service.address):
        yield place.problem("address", f"must be an IPv{version(service.address)} address, as the virtual address is")
    if not service.by_mark and server.port != service.port and service.forwarding_of(server) not in THROUGH_THE_BOX:
        way = FORWARDING[service.forwarding_of(server)].long
        yield place.problem("port", f"must be {service.port}, as the service: {way} leaves the port as it is")
    if service.enabled:
        yield from neighbours.real_server(place, service, server)


def _fallback(outer: Place, service: VirtualService, neighbours: Neighbours, sources: Sources) -> Iterator[Problem]:
    fallback, place = service.fallback, outer.inner("fallback")
    yield from each(place, kind=_fallback_kind(service, neighbours))
    server = service.fallback_server
    if server is None or fallback.kind is not FallbackKind.SERVER:
        # One meaning, one spelling: what means nothing is empty.
        nothing = f"must be empty, because {FALLBACKS[fallback.kind].long} answers"
        filled = {"address": fallback.address, "port": fallback.port}
        yield from each(place, **{name: nothing if value else None for name, value in filled.items()})
        if fallback.check is not FallbackCheck.OFF:
            yield place.problem("check", f"must be off, because {FALLBACKS[fallback.kind].long} answers")
        return
    yield from each(
        place,
        address=server_address(fallback.address),
        port=in_range(fallback.port, 0, 65535),
        check=_fallback_check(service),
    )
    if service.by_mark:
        through = service.forwarding_of(server) in THROUGH_THE_BOX
        if through and not fallback.port:
            yield place.problem("port", "must be 1 to 65535: connections to all ports of this service go there")
        if not through and fallback.port:
            yield place.problem("port", "must be empty: this way of forwarding leaves the port as it is")
    if any((one.address, one.port) == (server.address, server.port) for one in service.real_servers):
        yield place.problem("address", "this service has a real server with this address and port already")
    yield from _fits(place, service, server, neighbours, sources)


def _fallback_check(service: VirtualService) -> str | None:
    if service.fallback.check is FallbackCheck.CONNECT and "tcp" not in service.protocol.parts:
        return f"must be same or off: {PROTOCOLS[service.protocol].long} servers take no TCP connections"
    return None


def _fallback_kind(service: VirtualService, neighbours: Neighbours) -> str | None:
    kind = service.fallback.kind
    if kind is FallbackKind.NONE:
        return None
    if service.check.kind is CheckKind.OFF:
        return f"{FALLBACKS[kind].long} needs a health check: without one nobody notices that all servers are down"
    if kind is FallbackKind.PAGE and service.protocol is not Protocol.TCP:
        return f"the sorry page is for TCP services: it is shown over HTTP; {service.protocol} clients cannot read it"
    if kind is FallbackKind.PAGE and service.enabled and (name := neighbours.at_sorry_port(service.address)):
        return (
            f"{service.address} port {SORRY_PORT}, which the sorry page needs, belongs to virtual service {quote(name)}"
        )
    return None


def _server_port(service: VirtualService, server: RealServer) -> str | None:
    if not service.by_mark:
        return in_range(server.port, 1, 65535)
    if server.port:
        return "must be empty: a service of several ports, protocols or addresses leaves the port as it is"
    return None


def _lower(server: RealServer) -> str | None:
    """The kernel refuses a lower threshold above the upper one (ip_vs_ctl.c)."""
    if sentence := in_range(server.lower, 0, MAX_CONNECTIONS):
        return sentence
    if not server.upper and server.lower:
        return "needs an upper threshold: it says when a server that was full gets connections again"
    if server.lower > server.upper > 0:
        return f"must not be above the upper threshold, {server.upper}"
    return None
