"""The IPVS table: what is wanted, how it is written, and the safe way from a running table to it.

Lines are in the syntax that `ipvsadm -R` reads. While they are applied ldirectord does not run: it
writes the same table. It alone decides that a checked server is up, hence the rule of `difference`:
a server of a checked service is never raised from weight 0.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from lbconfig.snapshot import CheckKind, Forwarding, Snapshot, VirtualService

ServiceKey = tuple[str, str, int]  # protocol, address, port
ServerKey = tuple[str, int]  # address, port

FIREWALL_MARK = "fwm"  # the protocol of a Service that is a firewall mark: address "", port = the mark

_SERVICE_OPTIONS = {"tcp": "-t", "udp": "-u", "sctp": "--sctp-service", FIREWALL_MARK: "-f"}
_METHOD_OPTIONS = {"masq": "-m", "route": "-g", "tunnel": "-i"}
_METHODS = {Forwarding.NAT: "masq"}


@dataclass(frozen=True, slots=True)
class Service:
    """A virtual service as the kernel has it."""

    protocol: str  # "tcp", "udp", "sctp", "fwm"
    address: str
    port: int
    scheduler: str
    flags: tuple[str, ...] = ()  # names of set service flags, sorted; read from the kernel, none is wanted yet
    persistence: int = 0  # seconds, 0: not persistent; read from the kernel, not wanted yet

    @property
    def key(self) -> ServiceKey:
        return (self.protocol, self.address, self.port)


@dataclass(frozen=True, slots=True)
class Server:
    """A real server of a service as the kernel has it."""

    weight: int
    method: str = "masq"  # "masq", "route", "tunnel"


@dataclass(frozen=True, slots=True)
class Table:
    services: Mapping[Service, Mapping[ServerKey, Server]] = field(default_factory=dict)

    def by_key(self) -> dict[ServiceKey, Service]:
        return {service.key: service for service in self.services}


def key(service: VirtualService) -> ServiceKey:
    return (str(service.protocol), service.address, service.port)


def wanted(snapshot: Snapshot) -> Table:
    """The table of a box where every enabled server is up, in the order of the snapshot."""
    return Table(
        {
            Service(*key(service), scheduler=str(service.scheduler)): {
                (server.address, server.port): Server(server.weight, _METHODS[service.forwarding])
                for server in service.real_servers
                if server.enabled
            }
            for service in snapshot.services
        }
    )


def checked(snapshot: Snapshot) -> frozenset[ServiceKey]:
    """The services whose servers' weights are ldirectord's to raise."""
    return frozenset(key(service) for service in snapshot.services if service.check.kind != CheckKind.OFF)


def render(snapshot: Snapshot) -> str:
    """The whole wish with its weights, for reading and comparing. It is never loaded as it is."""
    lines = []
    for service, servers in wanted(snapshot).services.items():
        lines.append(_service_line("-A", service))
        lines.extend(_server_line("-a", service, place, server) for place, server in servers.items())
    return "".join(f"{line}\n" for line in lines)


def difference(running: Table, wanted: Table, checked: Collection[ServiceKey]) -> list[str]:
    """The `ipvsadm -R` lines that turn `running` into `wanted`, nothing else touched.

    Additions come first and deletions last, so that at no moment a service has fewer servers than
    before and after. A new server of a checked service enters with weight 0, and one that stands at
    0 stays there. A service that differs in anything but its servers is edited with its whole
    definition.
    """
    before = running.by_key()
    services, additions, edits, deletions = [], [], [], []
    for service, servers in wanted.services.items():
        old = before.get(service.key)
        if old != service:
            services.append(_service_line("-A" if old is None else "-E", service))
        present = {} if old is None else running.services[old]
        wait = service.key in checked
        for place, server in servers.items():
            line = _server_change(service, place, present.get(place), server, wait)
            if line is not None:
                (edits if place in present else additions).append(line)
        deletions += [
            f"-d {_service_name(service)} -r {_endpoint(*place)}" for place in present if place not in servers
        ]
    kept = wanted.by_key()
    gone = [f"-D {_service_name(service)}" for service in running.services if service.key not in kept]
    return [*services, *additions, *edits, *deletions, *gone]


def _server_change(service: Service, place: ServerKey, old: Server | None, new: Server, wait: bool) -> str | None:
    if wait and (old is None or old.weight == 0):
        new = Server(0, new.method)
    if old == new:
        return None
    return _server_line("-a" if old is None else "-e", service, place, new)


def _service_line(verb: str, service: Service) -> str:
    """The whole definition: what is not written (flags, persistence) is switched off by an edit."""
    return f"{verb} {_service_name(service)} -s {service.scheduler}"


def _server_line(verb: str, service: Service, place: ServerKey, server: Server) -> str:
    method = _METHOD_OPTIONS[server.method]
    return f"{verb} {_service_name(service)} -r {_endpoint(*place)} {method} -w {server.weight}"


def _service_name(service: Service) -> str:
    option = _SERVICE_OPTIONS[service.protocol]
    if service.protocol == FIREWALL_MARK:
        return f"{option} {service.port}"
    return f"{option} {_endpoint(service.address, service.port)}"


def _endpoint(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
