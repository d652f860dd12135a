"""Does the wish make sense? Every field of every object, and how the objects fit together.

`validate` never changes its input and never asks the host: the same snapshot has the same problems
in the browser, in the applier and in a test.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass

from lbconfig.names import MANAGEMENT_PORT
from lbconfig.render import interfaces, ldirectord
from lbconfig.snapshot import (
    CheckKind,
    HealthCheck,
    Interface,
    Network,
    Protocol,
    RealServer,
    Snapshot,
    SnapshotError,
    VirtualService,
    from_data,
)


@dataclass(frozen=True, slots=True)
class Problem:
    object: str  # "virtual service 'web'"
    field: str  # "port": the name of the dataclass field
    message: str  # a sentence without the object: "must be 1 to 65535, not 0"
    path: str  # "services[id=3].port"

    def __str__(self) -> str:
        return f"{self.object}, {self.field}: {self.message}"


@dataclass(frozen=True, slots=True)
class _Place:
    """The object that is being looked at."""

    object: str
    path: str

    def problem(self, field: str, message: str) -> Problem:
        return Problem(self.object, field, message, f"{self.path}.{field}")

    def inner(self, step: str) -> _Place:
        return _Place(self.object, f"{self.path}.{step}")


MAX_NAME = 64
MAX_TEXT = 200  # path, expected text
MAX_ID = 2**53 - 1  # what JavaScript and every JSON reader keep exactly

NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._-]{0,62}[A-Za-z0-9._-])?")
INTERFACE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,14}")
PATH = re.compile(r"/[A-Za-z0-9._~!$&'()*+,;=:@%/?-]*")
LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_RESERVED_INTERFACES = frozenset({"lo", "all", "default"})  # the last two are folders of /proc/sys/net/ipv4/conf

_NO_IPV6 = "IPv6 is not supported yet"


def validate(snapshot: Snapshot) -> list[Problem]:
    """What is wrong, in the order of the snapshot. Empty: it can be rendered and applied."""
    try:
        from_data(dataclasses.asdict(snapshot))
    except SnapshotError as error:
        # The shape first: no rule below is asked about a port that is no number.
        return [Problem("snapshot", error.path.rpartition(".")[2] or "snapshot", error.message, error.path)]
    network = list(_network(snapshot.network))
    surroundings = snapshot.network if not network else _usable(snapshot.network)
    problems = [*_services(snapshot, surroundings), *network, *_management(snapshot)]
    return problems


# --- single values: each returns a sentence, or None where the value is good ---------------------


def _range(value: int, low: int, high: int) -> str | None:
    return None if low <= value <= high else f"must be {low} to {high}, not {value}"


def _host_address(text: str) -> str | None:
    """An IPv4 address that one machine can have."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return f"must be an IPv4 address such as 192.0.2.10, not {_quote(text)}"
    if address.version == 6:
        return f"{_NO_IPV6}: give an IPv4 address"
    for network, words in _NO_HOSTS:
        if address in network:
            return f"must be the address of one host, and {address} is {words}"
    return None


_NO_HOSTS = tuple(
    (ipaddress.IPv4Network(network), words)
    for network, words in (
        ("0.0.0.0/8", "in a network that no host can use"),
        ("127.0.0.0/8", "a loopback address"),
        ("224.0.0.0/4", "a multicast address"),
        ("255.255.255.255/32", "the broadcast address"),
        ("240.0.0.0/4", "in a range that is reserved"),
    )
)


def _name(text: str) -> str | None:
    if NAME.fullmatch(text):
        return None
    return (
        f"must be 1 to {MAX_NAME} letters (a-z, A-Z), digits, spaces, dots, underscores or hyphens, begin with "
        f"a letter or digit and not end with a space; {_quote(text)} is not"
    )


def _dns_name(text: str, longest: int) -> bool:
    return len(text) <= longest and all(LABEL.fullmatch(label) for label in text.split("."))


def _quote(text: str) -> str:
    """Somebody's text in a message: short, and nothing in it acts."""
    return ascii(text if len(text) <= 60 else text[:57] + "...")


# --- virtual services ----------------------------------------------------------------------------


def _services(snapshot: Snapshot, network: Network) -> Iterator[Problem]:
    first_id, first_name, first_place = _First(), _First(), _First()
    first_server_id = _First()
    neighbours = _Neighbours(snapshot, network)
    for service in snapshot.services:
        place = _Place(f"virtual service {_quote(service.name)}", f"services[id={service.id}]")
        yield from _service_fields(place, service)
        if not first_id(service.id):
            yield place.problem("id", f"{service.id} is the id of another virtual service as well")
        if not first_name(service.name.casefold()):
            yield place.problem("name", f"{_quote(service.name)} is the name of another virtual service as well")
        if not first_place((service.address, service.port, service.protocol)):
            yield place.problem(
                "port", f"another virtual service is {service.address} port {service.port} {service.protocol} already"
            )
        yield from neighbours.service(place, service)
        yield from _check(place.inner("check"), service)
        yield from _real_servers(place, service, first_server_id, neighbours)


def _service_fields(place: _Place, service: VirtualService) -> Iterator[Problem]:
    yield from _each(
        place,
        id=_range(service.id, 1, MAX_ID),
        name=_name(service.name),
        address=_host_address(service.address),
        port=_range(service.port, 1, 65535),
    )


def _check(place: _Place, service: VirtualService) -> Iterator[Problem]:
    check = service.check
    yield from _each(
        place,
        kind=_check_kind(service),
        port=_check_port(service),
        path=_check_path(check),
        host=None
        if check.host == "" or _dns_name(check.host, 253)
        else f"must be a DNS name or empty, not {_quote(check.host)}",
        expect=_expected_text(check),
        interval=_range(check.interval, 1, 3600),
        timeout=_range(check.timeout, 1, 60),
        failures=_range(check.failures, 1, 100),
    )


def _check_kind(service: VirtualService) -> str | None:
    if service.protocol == Protocol.UDP and service.check.kind == CheckKind.CONNECT:
        return "a UDP service has no connections to check: use ping, HTTP on a TCP port of the servers, or no check"
    return None


def _check_port(service: VirtualService) -> str | None:
    check = service.check
    if service.protocol == Protocol.UDP and check.kind == CheckKind.HTTP and check.port == 0:
        return "an HTTP check of a UDP service needs a port: the TCP port on which the servers answer HTTP"
    return None if 0 <= check.port <= 65535 else f"must be 1 to 65535, or 0 for the server's own port, not {check.port}"


def _check_path(check: HealthCheck) -> str | None:
    if len(check.path) > MAX_TEXT:
        return f"must not be longer than {MAX_TEXT} characters, and has {len(check.path)}"
    if PATH.fullmatch(check.path):
        return None
    return f"must begin with / and consist of characters of a URL (others as %XX, no #), not {_quote(check.path)}"


def _expected_text(check: HealthCheck) -> str | None:
    if len(check.expect) > MAX_TEXT:
        return f"must not be longer than {MAX_TEXT} characters, and has {len(check.expect)}"
    return None if check.expect.isprintable() else "must be text that can be printed, on one line"


def _real_servers(
    outer: _Place, service: VirtualService, first_id: _First, neighbours: _Neighbours
) -> Iterator[Problem]:
    first_place = _First()
    for server in service.real_servers:
        place = _Place(
            f"real server {_plain(server.address)}:{server.port} of {outer.object}",
            f"{outer.path}.real_servers[id={server.id}]",
        )
        yield from _each(
            place,
            id=_range(server.id, 1, MAX_ID),
            address=_host_address(server.address),
            port=_range(server.port, 1, 65535),
            weight=_range(server.weight, 1, 65535),
        )
        if not first_id(server.id):
            yield place.problem("id", f"{server.id} is the id of another real server as well")
        if not first_place((server.address, server.port)):
            yield place.problem("address", "this service has a real server with this address and port already")
        yield from neighbours.real_server(place, server)


def _plain(text: str) -> str:
    return text if _host_address(text) is None else _quote(text)


class _First:
    """Was this value not seen before?"""

    def __init__(self) -> None:
        self._seen: set[Hashable] = set()

    def __call__(self, value: Hashable) -> bool:
        if value in self._seen:
            return False
        self._seen.add(value)
        return True


def _each(place: _Place, **sentences: str | None) -> Iterator[Problem]:
    for field, sentence in sentences.items():
        if sentence is not None:
            yield place.problem(field, sentence)


class _Neighbours:
    """What a VIP or a real server has to get along with: the box's addresses, networks and VIPs."""

    def __init__(self, snapshot: Snapshot, network: Network) -> None:
        self._network = network
        self._own = {
            address.partition("/")[0]: interface.name
            for interface in network.interfaces
            for address in interface.addresses
        }
        self._vips = {service.address: service.name for service in snapshot.services}
        self._connected = [net for interface in network.interfaces for net in interfaces.static_networks(interface)]
        self._routed = bool(network.gateway) or any(interface.dhcp for interface in network.interfaces)

    def service(self, place: _Place, service: VirtualService) -> Iterator[Problem]:
        vip = service.address
        if _host_address(vip) is not None:
            return
        if vip in self._own:
            if service.port == MANAGEMENT_PORT and service.protocol == Protocol.TCP:
                yield place.problem(
                    "port", f"{vip} port {MANAGEMENT_PORT} is the web UI of this box: take another address or port"
                )
            return
        if vip == self._network.gateway:
            yield place.problem("address", f"{vip} is the default gateway")
        elif reason := self._not_a_host(vip):
            yield place.problem("address", reason)
        elif interfaces.home(self._network, vip) is None:
            yield place.problem(
                "address",
                f"no interface can carry {vip}: none has a network that contains it, asks DHCP, or leads to a gateway",
            )

    def real_server(self, place: _Place, server: RealServer) -> Iterator[Problem]:
        rip = server.address
        if _host_address(rip) is not None:
            return
        if rip in self._own:
            yield place.problem("address", f"{rip} is this box's own address on {self._own[rip]}")
        elif rip in self._vips:
            yield place.problem("address", f"{rip} is the address of virtual service {_quote(self._vips[rip])}")
        elif reason := self._not_a_host(rip):
            yield place.problem("address", reason)
        elif not self._routed and not any(ipaddress.IPv4Address(rip) in net for net in self._connected):
            yield place.problem(
                "address", f"{rip} cannot be reached: it is in no network of an interface, and there is no gateway"
            )

    def _not_a_host(self, text: str) -> str | None:
        address = ipaddress.IPv4Address(text)
        for net in self._connected:
            if net.prefixlen < 31 and address in (net.network_address, net.broadcast_address):
                return (
                    f"{address} is the {'network' if address == net.network_address else 'broadcast'} address of {net}"
                )
        return None


# --- the network ---------------------------------------------------------------------------------


def _network(network: Network) -> Iterator[Problem]:
    place = _Place("network", "network")
    if not _dns_name(network.hostname, 64) or network.hostname.replace(".", "").isdigit():
        yield place.problem(
            "hostname",
            f"must be letters, digits, hyphens and dots, at most 64, as in RFC 1123, not {_quote(network.hostname)}",
        )
    yield from _each(place, gateway=_gateway(network))
    if not any(interface.dhcp or interface.addresses for interface in network.interfaces):
        yield place.problem("interfaces", "at least one interface needs an address, or DHCP")
    first_name, first_address = _First(), _First()
    taken: list[tuple[str, ipaddress.IPv4Network]] = []
    for interface in network.interfaces:
        inner = _Place(f"interface {_quote(interface.name)}", f"network.interfaces[{interface.name}]")
        yield from _each(inner, name=_interface_name(interface.name))
        if not first_name(interface.name):
            yield inner.problem("name", "another interface has this name as well")
        yield from _addresses(inner, interface, first_address, taken)


def _interface_name(name: str) -> str | None:
    if not INTERFACE_NAME.fullmatch(name):
        return f"must be 1 to 15 letters, digits, dots, underscores or hyphens, not {_quote(name)}"
    return f"{name!r} cannot be configured" if name in _RESERVED_INTERFACES else None


def _addresses(
    place: _Place, interface: Interface, first: _First, taken: list[tuple[str, ipaddress.IPv4Network]]
) -> Iterator[Problem]:
    for text in interface.addresses:
        sentence = _interface_address(text)
        if sentence is not None:
            yield place.problem("addresses", sentence)
            continue
        address = ipaddress.IPv4Interface(text)
        if not first(address.ip):
            yield place.problem("addresses", f"{address.ip} is given twice")
            continue
        for name, other in taken:
            if address.network.overlaps(other) and not (name == interface.name and address.network == other):
                yield place.problem("addresses", f"{text} overlaps the network {other} of {name}")
        taken.append((interface.name, address.network))


def _interface_address(text: str) -> str | None:
    form = f"must be an IPv4 address with its prefix length, such as 192.0.2.10/24, not {_quote(text)}"
    host, slash, _ = text.partition("/")
    try:
        address = ipaddress.ip_interface(text)
    except ValueError:
        return form
    if address.version == 6:
        return f"{_NO_IPV6}: give an IPv4 address"
    if not slash or str(address) != text:
        return form
    if sentence := _host_address(host):
        return sentence
    network = address.network
    if not 8 <= network.prefixlen <= 32:
        return f"must have a prefix length of 8 to 32, not {network.prefixlen}"
    if network.prefixlen < 31 and address.ip in (network.network_address, network.broadcast_address):
        kind = "network" if address.ip == network.network_address else "broadcast"
        return f"must be the address of one host, and {address.ip} is the {kind} address of {network}"
    return None


def _gateway(network: Network) -> str | None:
    gateway = network.gateway
    if gateway == "":
        return None
    if sentence := _host_address(gateway):
        return sentence
    own = [ipaddress.IPv4Interface(text) for interface in _usable(network).interfaces for text in interface.addresses]
    address = ipaddress.IPv4Address(gateway)
    if any(address == mine.ip for mine in own):
        return f"{gateway} is this box's own address"
    nets = [mine.network for mine in own if address in mine.network]
    if not nets:
        return f"{gateway} is in no network of an interface"
    if any(net.prefixlen < 31 and address in (net.network_address, net.broadcast_address) for net in nets):
        return f"{gateway} is the network or broadcast address of {nets[0]}"
    return None


def _usable(network: Network) -> Network:
    """The part of a faulty network that the other rules can work with."""
    usable = tuple(
        dataclasses.replace(
            interface,
            addresses=tuple(text for text in interface.addresses if _interface_address(text) is None),
        )
        for interface in network.interfaces
    )
    gateway = network.gateway if _host_address(network.gateway) is None else ""
    return dataclasses.replace(network, interfaces=usable, gateway=gateway)


# --- management ----------------------------------------------------------------------------------


def _management(snapshot: Snapshot) -> Iterator[Problem]:
    place = _Place("management", "management")
    if not snapshot.management.allow:
        yield place.problem("allow", "must name at least one network, or nobody could reach the web UI")
    first = _First()
    for text in snapshot.management.allow:
        sentence = _allowed_network(text)
        if sentence is None and not first(text):
            sentence = f"{text} is given twice"
        yield from _each(place, allow=sentence)


def _allowed_network(text: str) -> str | None:
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        return f"must be networks such as 192.0.2.0/24, not {_quote(text)}"
    if network.version == 6:
        return f"{_NO_IPV6}: give an IPv4 network"
    if str(network) != text:
        return f"must be a network with its prefix length; {_quote(text)} is probably meant to be {network}"
    return None


# --- questions beside the snapshot ---------------------------------------------------------------


def admin_problem(snapshot: Snapshot, address: str) -> Problem | None:
    """Would the admin at this address lose the web UI by this snapshot? `snapshot` must be valid.

    "" (not known, e.g. the console) and a loopback address are never locked out.
    """
    place = _Place("management", "management")
    if address == "":
        return None
    try:
        admin = ipaddress.ip_address(address)
    except ValueError:
        return place.problem("allow", f"your own address is not readable: {_quote(address)}")
    admin = getattr(admin, "ipv4_mapped", None) or admin
    if admin.is_loopback:
        return None
    if admin.version == 6:
        return place.problem("allow", f"you are at {admin}: {_NO_IPV6}, so you would be locked out")
    if not any(admin in ipaddress.IPv4Network(network) for network in snapshot.management.allow):
        return place.problem(
            "allow", f"you are at {admin}, which none of these networks contains: you would be locked out"
        )
    network = snapshot.network
    connected = any(admin in net for interface in network.interfaces for net in interfaces.static_networks(interface))
    if not (connected or network.gateway or any(interface.dhcp for interface in network.interfaces)):
        return Problem(
            "network",
            "gateway",
            f"there would be no way back to you at {admin}: no network of an interface contains it",
            "network.gateway",
        )
    return None


def lease_problems(snapshot: Snapshot, leases: Mapping[str, str]) -> list[Problem]:
    """Clashes with what DHCP brought, which the snapshot cannot know.

    `leases` maps an interface to its address, "10.0.2.15/24". A VIP may not be such an address: the
    web UI would be shut there, and the address may go at any time.
    """
    held = {address.partition("/")[0]: name for name, address in leases.items()}
    return [
        Problem(
            f"virtual service {_quote(service.name)}",
            "address",
            f"{service.address} is what DHCP gave to {held[service.address]}; make that a static address first",
            f"services[id={service.id}].address",
        )
        for service in snapshot.services
        if service.address in held
    ]


def worst_case_detection(service: VirtualService, snapshot: Snapshot | None = None) -> float:
    """Seconds until a dead server has left its service, at the worst.

    ldirectord checks one server after the other and rests for the interval after each round. The
    worst is a server that dies right after its check while every other server answers so late that
    the check runs into its timeout:

        failures x (interval + sum of the timeouts of all servers that are checked)

    With a snapshot the sum goes over all its services, and the interval is the shortest of them,
    because both are shared; without one, over this service alone. 0 where nothing is checked.
    """
    everything = snapshot or Snapshot(services=(service,))
    watched = ldirectord.watched(everything)
    if not any(other.id == service.id for other in watched):
        return 0.0
    round_of_checks = sum(
        other.check.timeout * sum(server.enabled for server in other.real_servers) for other in watched
    )
    return float(service.check.failures * (ldirectord.interval(everything) + round_of_checks))
