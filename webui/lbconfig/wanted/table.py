"""The IPVS table: what is wanted, how it is written, and the safe way from a running table to it.

Lines are in the syntax that `ipvsadm -R` reads. While they are applied ldirectord does not run: it
writes the same table. It alone decides that a checked server is up, hence the rule of `difference`:
a server of a checked service is never raised from weight 0. It also adds and removes the fallback server. Where
weights follow the load it decides on them as well, between LEAST_SHARE and the whole weight.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from lbconfig.model.addresses import bits, endpoint, version
from lbconfig.model.kept import kept
from lbconfig.model.snapshot import GUE_PORT, CheckKind, Forwarding, RealServer, ServerState, Snapshot, VirtualService

ServiceKey = tuple[str, str, int]  # protocol, address, port
ServerKey = tuple[str, int]  # address, port

# What a weight of the admin's is in the table where it follows the load: so there are steps between 0 and 1.
FINE = 100
LEAST_SHARE = 10  # per cent: a smaller weight does not come from the checks (Fairlead/Weights.pm)

# The kernel's service flags by the names that ipvsadm has for them (ip_vs.h: IP_VS_SVC_F_ONEPACKET, _SCHED1, …).
# What flag-1 and flag-2 mean is the scheduler's: of sh and mh "fallback" and "port".
ONE_PACKET, HASH_NEXT, HASH_PORT = "ops", "flag-1", "flag-2"
# The protocols of a Service that is a firewall mark, of IPv4 and IPv6: address "", port = the mark.
FIREWALL_MARK, FIREWALL_MARK6 = "fwm", "fwm6"

_SERVICE_OPTIONS = {"tcp": "-t", "udp": "-u", "sctp": "--sctp-service"}
_METHOD_OPTIONS = {"masq": "-m", "route": "-g", "tunnel": "-i"}
_METHODS = {
    Forwarding.NAT: "masq",
    Forwarding.SNAT: "masq",
    Forwarding.DIRECT: "route",
    Forwarding.TUNNEL: "tunnel",
    Forwarding.GRE: "tunnel",
    Forwarding.GUE: "tunnel",
}


@dataclass(frozen=True, slots=True)
class Service:
    """A virtual service as the kernel has it."""

    protocol: str  # "tcp", "udp", "sctp", "fwm", "fwm6"
    address: str
    port: int
    scheduler: str
    flags: tuple[str, ...] = ()  # of FLAGS, sorted
    persistence: int = 0  # seconds, 0: not persistent
    prefix: int = 0  # length of the persistence mask in bits; 0 where the service is not persistent
    engine: str = ""  # of persistence: "sip"

    @property
    def key(self) -> ServiceKey:
        return (self.protocol, self.address, self.port)


@dataclass(frozen=True, slots=True)
class Server:
    """A real server of a service as the kernel has it."""

    weight: int
    method: str = "masq"  # "masq", "route", "tunnel"
    upper: int = 0  # connections, 0: no threshold
    lower: int = 0
    tunnel: str = ""  # ipvsadm's options of it; none: IP in IP


@dataclass(frozen=True, slots=True)
class Watched:
    """What of a service is ldirectord's to decide, beside the weights of its servers."""

    fallback: ServerKey | None = None  # whether this one is in the table
    leaves: bool = False  # a dead server is not in the table: else it is, with weight 0
    weighed: bool = False  # weights follow the load


Checked = Mapping[ServiceKey, Watched]
_NOT_WATCHED = Watched()


@dataclass(frozen=True, slots=True)
class Table:
    services: Mapping[Service, Mapping[ServerKey, Server]] = field(default_factory=dict)

    def by_key(self) -> dict[ServiceKey, Service]:
        return {service.key: service for service in self.services}


@kept
def key(service: VirtualService) -> ServiceKey:
    if service.by_mark:
        return (FIREWALL_MARK6 if version(service.address) == 6 else FIREWALL_MARK, "", service.mark)
    return (str(service.protocol), service.address, service.port)


def wanted(snapshot: Snapshot) -> Table:
    """The table of a box where every enabled server is up, in the order of the snapshot."""
    return table_of(snapshot.enabled_services)


def table_of(services: Iterable[VirtualService]) -> Table:
    """The part of the table that these services have."""
    return Table({_service(service): _servers(service) for service in services})


def touched(before: Snapshot, new: Snapshot) -> frozenset[ServiceKey]:
    """The services whose part of the table a change makes another one, or whose health is watched in another way."""
    old = {key(one): one for one in before.enabled_services}
    now = {key(one): one for one in new.enabled_services}
    return frozenset(one for one in old.keys() | now.keys() if not _alike(old.get(one), now.get(one)))


def _alike(old: VirtualService | None, new: VirtualService | None) -> bool:
    if old is None or new is None:
        return False
    return old is new or _part(old) == _part(new)


def _part(service: VirtualService) -> tuple[object, ...]:
    off = service.check.kind is CheckKind.OFF
    return _service(service), _servers(service), None if off else _watched(service)


def some(snapshot: Snapshot, keys: Collection[ServiceKey]) -> tuple[VirtualService, ...]:
    """The enabled services that have these keys."""
    return tuple(one for one in snapshot.enabled_services if key(one) in keys)


@kept
def _servers(service: VirtualService) -> Mapping[ServerKey, Server]:
    return {
        (server.address, server.port): _server(service, server) for server in service.real_servers if server.in_table
    }


@kept
def _service(service: VirtualService) -> Service:
    # A telephone system sends all its calls from one port: without one-packet scheduling they are one connection to
    # the kernel, which asks for the Call-ID of the first only (ip_vs_core.c: conn_in_get comes before the schedulers).
    one_packet = service.one_packet or service.call_id
    flags = {ONE_PACKET: one_packet, HASH_NEXT: service.hash_next, HASH_PORT: service.hash_port}
    protocol, address, port = key(service)
    return Service(
        protocol,
        address,
        port,
        scheduler=str(service.scheduler),
        flags=tuple(sorted(name for name, wanted in flags.items() if wanted)),
        persistence=service.persistence,
        prefix=(service.persistence_prefix or bits(service.address)) if service.persistence else 0,
        engine="sip" if service.call_id else "",
    )


def _server(service: VirtualService, server: RealServer) -> Server:
    method = service.forwarding_of(server)
    return Server(weight_of(service, server), _METHODS[method], server.upper, server.lower, _tunnel(method, server))


def weight_of(service: VirtualService, server: RealServer) -> int:
    """The whole weight of a server that is up."""
    weight = 0 if server.state is ServerState.QUIESCED else server.weight
    return weight * FINE if service.weighed else weight


def _tunnel(method: Forwarding, server: RealServer) -> str:
    if method is Forwarding.GUE:
        # Over IPv6 UDP has to have a checksum (RFC 8200); over IPv4 that of the packet inside is enough.
        return tunnel_options("gue", GUE_PORT, "csum" if version(server.address) == 6 else "nocsum")
    return tunnel_options("gre") if method is Forwarding.GRE else ""


def tunnel_options(kind: str, port: int = 0, checksum: str = "nocsum") -> str:
    """As ipvsadm takes them. `kind`: "gre" or "gue" (it alone has a port); `checksum`: "nocsum", "csum", "remcsum"."""
    return " ".join(["--tun-type", kind, *(["--tun-port", str(port)] if port else []), f"--tun-{checksum}"])


def service_name(service: VirtualService) -> str:
    """In a line of ipvsadm."""
    return _service_name(_service(service))


def tunnels(service: VirtualService) -> dict[tuple[str, ServerKey], str]:
    """By the service's and the server's name in a line of ipvsadm: the options of tunnels that are not IP in IP."""
    name = service_name(service)
    found = {(one.address, one.port): _tunnel(service.forwarding_of(one), one) for one in service.machines}
    return {(name, place): options for place, options in found.items() if options}


def checked(snapshot: Snapshot) -> Checked:
    return checked_of(snapshot.enabled_services)


def checked_of(services: Iterable[VirtualService]) -> Checked:
    """Those of these services that are checked."""
    return {key(one): _watched(one) for one in services if one.check.kind != CheckKind.OFF}


@kept
def _watched(service: VirtualService) -> Watched:
    fallback = service.fallback_server
    return Watched((fallback.address, fallback.port) if fallback else None, service.dead_leave, service.weighed)


def timeouts(snapshot: Snapshot) -> tuple[int, int, int]:
    """Seconds, in the order of `ipvsadm --set`: TCP, TCP after FIN, UDP."""
    return snapshot.policy.tcp_timeout, snapshot.policy.fin_timeout, snapshot.policy.udp_timeout


def render(snapshot: Snapshot) -> str:
    """The whole configured table with its weights, for reading and comparing. It is never loaded as it is."""
    first = f"--set {' '.join(map(str, timeouts(snapshot)))}\n"
    return "".join((first, *map(_lines, snapshot.enabled_services)))


@kept
def _lines(service: VirtualService) -> str:
    one = _service(service)
    lines = [_service_line("-A", one)]
    lines += (_server_line("-a", one, place, server) for place, server in _servers(service).items())
    return "".join(f"{line}\n" for line in lines)


def at_start(snapshot: Snapshot) -> str:
    """For `ipvsadm -R` into an empty table: servers that are checked have weight 0 until ldirectord raises them."""
    return "".join(map(_lines_at_start, snapshot.enabled_services))


@kept
def _lines_at_start(service: VirtualService) -> str:
    return "".join(f"{line}\n" for line in difference(Table(), table_of([service]), checked_of([service])))


@dataclass(frozen=True, slots=True)
class TableChange:
    """One line of the way from a running table to the wanted one; `old`, `new`: None where there is none."""

    service: Service  # as it is wanted; one that goes as it runs
    place: ServerKey | None  # None: it is about the service itself
    old: Service | Server | None
    new: Service | Server | None

    @property
    def deletes(self) -> bool:
        return self.new is None

    @property
    def line(self) -> str:
        """For `ipvsadm -R`."""
        if self.place is None:
            if self.new is None:
                return f"-D {_service_name(self.service)}"
            return _service_line("-A" if self.old is None else "-E", self.service)
        if not isinstance(self.new, Server):
            return f"-d {_service_name(self.service)} -r {endpoint(*self.place)}"
        return _server_line("-a" if self.old is None else "-e", self.service, self.place, self.new)


def difference(running: Table, wanted: Table, checked: Checked) -> list[str]:
    """The `ipvsadm -R` lines that turn `running` into `wanted`, nothing else touched."""
    return [change.line for change in changes(running, wanted, checked)]


def changes(running: Table, wanted: Table, checked: Checked) -> list[TableChange]:
    """What turns `running` into `wanted`, in the order of doing.

    Additions come first and deletions last, so that at no moment a service has fewer servers than
    before and after. A new server of a checked service enters with weight 0, and one that stands at
    0 stays there; where dead servers leave, it is ldirectord that adds new ones. A fallback server that
    is in the table stays. A service that differs in anything but its servers is edited with its whole
    definition.
    """
    before = running.by_key()
    services: list[TableChange] = []
    additions: list[TableChange] = []
    edits: list[TableChange] = []
    deletions: list[TableChange] = []
    for service, servers in wanted.services.items():
        old = before.get(service.key)
        if old != service:
            services.append(TableChange(service, None, old, service))
        present = {} if old is None else running.services[old]
        wait = service.key in checked
        watched = checked.get(service.key, _NOT_WATCHED)
        for place, server in servers.items():
            if watched.leaves and place not in present:
                continue
            was = present.get(place)
            wish = replace(server, weight=_weight_to_be(was, server, watched)) if wait else server
            if was != wish:
                (edits if place in present else additions).append(TableChange(service, place, was, wish))
        kept_places = {*servers, watched.fallback}
        deletions += [
            TableChange(service, place, server, None) for place, server in present.items() if place not in kept_places
        ]
    kept = wanted.by_key()
    gone = [TableChange(service, None, service, None) for service in running.services if service.key not in kept]
    return [*services, *additions, *edits, *deletions, *gone]


def _weight_to_be(was: Server | None, wish: Server, watched: Watched) -> int:
    """Of a server of a checked service."""
    if was is None or was.weight == 0:
        return 0
    if watched.weighed and wish.weight * LEAST_SHARE <= was.weight * 100 and was.weight <= wish.weight:
        return was.weight
    return wish.weight


def taken_over(changes: list[TableChange], running: Table) -> list[TableChange]:
    """Weight 0 for each server that `changes` take out of a service where others go on: they get what is new.

    So what such a server is answering at the moment can end before it leaves the table, which cuts it off at once.
    Where nobody would take over, it would only be refused earlier.
    """
    weights = {
        (service.key, place): server.weight for service, servers in running.services.items()
        for place, server in servers.items()
    }  # fmt: skip
    for change in changes:
        if change.place is not None:
            weights[change.service.key, change.place] = change.new.weight if isinstance(change.new, Server) else 0
    goes_on = {service for (service, _), weight in weights.items() if weight > 0}
    return [
        replace(change, new=replace(change.old, weight=0))
        for change in changes
        if change.deletes and isinstance(change.old, Server) and change.old.weight > 0
        and change.service.key in goes_on
    ]  # fmt: skip


def _service_line(verb: str, service: Service) -> str:
    """The whole definition: what is not written (flags, persistence) is switched off by an edit."""
    words = [verb, _service_name(service), "-s", service.scheduler]
    if service.persistence:
        words += ["-p", str(service.persistence), "-M", _mask(service)]
    if service.engine:
        words += ["--pe", service.engine]
    if ONE_PACKET in service.flags:
        words.append("-o")
    if of_scheduler := [flag for flag in service.flags if flag != ONE_PACKET]:
        words += ["-b", ",".join(of_scheduler)]
    return " ".join(words)


def _mask(service: Service) -> str:
    """As ipvsadm takes it: dotted for IPv4, the number of bits for IPv6."""
    if service.protocol == FIREWALL_MARK6 or version(service.address) == 6:
        return str(service.prefix)
    return str(ipaddress.IPv4Network(f"0.0.0.0/{service.prefix}").netmask)


def _server_line(verb: str, service: Service, place: ServerKey, server: Server) -> str:
    method = _METHOD_OPTIONS[server.method]
    tunnel = f" {server.tunnel}" if server.tunnel else ""
    line = f"{verb} {_service_name(service)} -r {endpoint(*place)} {method}{tunnel} -w {server.weight}"
    return f"{line} -x {server.upper} -y {server.lower}" if server.upper or server.lower else line


def _service_name(service: Service) -> str:
    if service.protocol == FIREWALL_MARK:
        return f"-f {service.port}"
    if service.protocol == FIREWALL_MARK6:
        return f"-f {service.port} -6"
    return f"{_SERVICE_OPTIONS[service.protocol]} {endpoint(service.address, service.port)}"
