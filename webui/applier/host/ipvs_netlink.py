"""The IPVS table by generic netlink: requests as bytes, answers as dataclasses. No socket: host.py has it.

Source of the numbers: the kernel's uapi headers linux/netlink.h, linux/genetlink.h and linux/ip_vs.h.
All integers are in host byte order but addresses, ports and netmasks, which are in network order.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from applier.host.ipvs_sync import GROUP, LARGEST, PORT
from lbconfig.model.addresses import version
from lbconfig.wanted.table import (
    FIREWALL_MARK,
    FIREWALL_MARK6,
    HASH_NEXT,
    HASH_PORT,
    ONE_PACKET,
    Server,
    ServerKey,
    Service,
    ServiceKey,
    Table,
    tunnel_options,
)

DaemonKind = Literal["master", "backup"]

# linux/netlink.h
NLMSG_ERROR, NLMSG_DONE = 2, 3
NLM_F_REQUEST, NLM_F_MULTI, NLM_F_ACK, NLM_F_DUMP_INTR, NLM_F_DUMP = 0x1, 0x2, 0x4, 0x10, 0x300
NLA_TYPE_MASK = 0x3FFF  # without NLA_F_NESTED and NLA_F_NET_BYTEORDER
NLA_F_NESTED = 0x8000

# linux/genetlink.h
GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME = 0x10, 3, 1, 2

# linux/ip_vs.h
FAMILY_NAME, FAMILY_VERSION = "IPVS", 1
CMD_GET_SERVICE, CMD_GET_DEST, CMD_GET_CONFIG = 4, 8, 13
CMD_NEW_DAEMON, CMD_DEL_DAEMON, CMD_GET_DAEMON = 9, 10, 11
CMD_ATTR_SERVICE, CMD_ATTR_DEST, CMD_ATTR_DAEMON = 1, 2, 3
TIMEOUTS = (4, 5, 6)  # CMD_ATTR_TIMEOUT_TCP, _TCP_FIN, _UDP
(SVC_AF, SVC_PROTOCOL, SVC_ADDR, SVC_PORT, SVC_FWMARK, SVC_SCHED_NAME, SVC_FLAGS, SVC_TIMEOUT, SVC_NETMASK) = range(
    1, 10
)
SVC_PE_NAME = 11
DEST_ADDR, DEST_PORT, DEST_FWD_METHOD, DEST_WEIGHT, DEST_UPPER, DEST_LOWER = 1, 2, 3, 4, 5, 6
DEST_ACTIVE, DEST_INACTIVE, DEST_PERSISTENT, DEST_ADDR_FAMILY = 7, 8, 9, 11
DEST_TUN_TYPE, DEST_TUN_PORT, DEST_TUN_FLAGS = 13, 14, 15
DAEMON_STATE, DAEMON_INTERFACE, DAEMON_SYNC_ID, DAEMON_LARGEST, DAEMON_GROUP = 1, 2, 3, 4, 5
DAEMON_PORT, DAEMON_TTL = 7, 8
DAEMONS: dict[int, DaemonKind] = {1: "master", 2: "backup"}
FLAG_PERSISTENT = 0x1
FLAG_NAMES = {0x4: ONE_PACKET, 0x8: HASH_NEXT, 0x10: HASH_PORT, 0x20: "flag-3"}
FORWARD_MASK = 0x7
METHODS = {0: "masq", 2: "tunnel", 3: "route"}  # 1 is masq to an address of the box itself
TUNNELS = {1: "gue", 2: "gre"}  # 0 is IP in IP
CHECKSUMS = {0: "nocsum", 1: "csum", 2: "remcsum"}

PROTOCOLS = {socket.IPPROTO_TCP: "tcp", socket.IPPROTO_UDP: "udp", socket.IPPROTO_SCTP: "sctp"}

_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, port id
_GENERIC = struct.Struct("=BBH")  # command, version, reserved
_ATTRIBUTE = struct.Struct("=HH")  # length, type
_PORT = struct.Struct("!H")
_WEIGHT = struct.Struct("=i")

Attributes = dict[int, bytes]
Exchange = Callable[[bytes], list[bytes]]  # sends one request, gives all messages of the answer


class NetlinkError(Exception):
    """The kernel refused a request, with an error number (errno), or its answer cannot be read (0)."""

    def __init__(self, message: str, number: int = 0) -> None:
        super().__init__(message)
        self.number = number


class Interrupted(NetlinkError):
    """The table changed while it was being dumped; ask again."""


@dataclass(frozen=True, slots=True)
class KernelServer:
    server: Server
    active: int
    inactive: int
    persistent: int


@dataclass(frozen=True, slots=True)
class KernelService:
    af: int
    service: Service
    servers: dict[ServerKey, KernelServer] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Daemon:
    """A thread of the kernel: a master sends connections to the other box, a backup takes what that one sends."""

    kind: DaemonKind
    interface: str
    sync_id: int  # of who sends; a backup takes no other's
    largest: int = LARGEST  # bytes of a datagram
    group: str = GROUP
    port: int = PORT


def dump(exchange: Exchange, attempts: int = 5) -> list[KernelService]:
    """The whole table with its counters."""
    family = family_id(exchange)
    for attempt in range(attempts):
        try:
            services = [parse_service(body) for body in _ask(exchange, family, CMD_GET_SERVICE)]
            for entry in services:
                entry.servers.update(_servers(exchange, family, entry.af, entry.service.key))
        except Interrupted:
            if attempt == attempts - 1:
                raise
        else:
            return services
    raise AssertionError("unreachable")


def some(exchange: Exchange, keys: Iterable[ServiceKey]) -> list[KernelService]:
    """Those services of the table that are named and there, with their counters."""
    family, found = family_id(exchange), []
    for key in keys:
        af = _family_of(key)
        about = attribute(CMD_ATTR_SERVICE | NLA_F_NESTED, _name_service(af, key))
        try:
            [body] = _bodies(exchange(message(family, NLM_F_REQUEST, CMD_GET_SERVICE, about)))
        except NetlinkError as error:
            if error.number == errno.ESRCH:
                continue
            raise
        entry = parse_service(body)
        entry.servers.update(_servers(exchange, family, af, key))
        found.append(entry)
    return found


def _family_of(key: ServiceKey) -> int:
    protocol, address, _ = key
    six = protocol == FIREWALL_MARK6 or (address != "" and version(address) == 6)
    return socket.AF_INET6 if six else socket.AF_INET


def servers(exchange: Exchange, service: Service) -> dict[ServerKey, KernelServer]:
    """Those of one service with their counters. NetlinkError where the kernel does not have it."""
    return _servers(exchange, family_id(exchange), _family_of(service.key), service.key)


def _servers(exchange: Exchange, family: int, af: int, service: ServiceKey) -> dict[ServerKey, KernelServer]:
    about = attribute(CMD_ATTR_SERVICE | NLA_F_NESTED, _name_service(af, service))
    return dict(parse_server(body, af) for body in _ask(exchange, family, CMD_GET_DEST, about))


def to_table(services: list[KernelService]) -> Table:
    return Table({entry.service: {place: one.server for place, one in entry.servers.items()} for entry in services})


def timeouts(exchange: Exchange) -> tuple[int, int, int]:
    """Seconds: of TCP, of TCP after FIN, of UDP."""
    [body] = _bodies(exchange(message(family_id(exchange), NLM_F_REQUEST, CMD_GET_CONFIG)))
    found = attributes(body)
    try:
        tcp, fin, udp = (_number(found[kind]) for kind in TIMEOUTS)
    except KeyError as error:
        raise NetlinkError(f"timeouts that cannot be read: {error!r}") from None
    return tcp, fin, udp


def daemons(exchange: Exchange) -> tuple[Daemon, ...]:
    """Those that run: one of each kind at most."""
    return tuple(map(_daemon, _ask(exchange, family_id(exchange), CMD_GET_DAEMON)))


def start_daemon(exchange: Exchange, daemon: Daemon) -> None:
    """NetlinkError EEXIST where one of its kind runs, EINVAL where a service has servers of both IP versions."""
    parts = [
        (DAEMON_INTERFACE, daemon.interface.encode() + b"\0"),
        (DAEMON_SYNC_ID, struct.pack("=I", daemon.sync_id)),
        (DAEMON_LARGEST, struct.pack("=H", daemon.largest)),
        (DAEMON_GROUP, ipaddress.IPv4Address(daemon.group).packed),
        (DAEMON_PORT, struct.pack("=H", daemon.port)),
        (DAEMON_TTL, b"\1"),
    ]
    _tell_daemon(exchange, CMD_NEW_DAEMON, daemon.kind, b"".join(attribute(*part) for part in parts))


def stop_daemon(exchange: Exchange, kind: DaemonKind) -> None:
    """What a master has not sent yet is lost. NetlinkError ESRCH where none runs."""
    _tell_daemon(exchange, CMD_DEL_DAEMON, kind)


def _tell_daemon(exchange: Exchange, command: int, kind: DaemonKind, more: bytes = b"") -> None:
    [number] = [number for number, name in DAEMONS.items() if name == kind]
    about = attribute(CMD_ATTR_DAEMON | NLA_F_NESTED, attribute(DAEMON_STATE, struct.pack("=I", number)) + more)
    list(_bodies(exchange(message(family_id(exchange), NLM_F_REQUEST | NLM_F_ACK, command, about))))


def _daemon(body: bytes) -> Daemon:
    found = attributes(attributes(body).get(CMD_ATTR_DAEMON, b""))
    try:
        return Daemon(
            DAEMONS[_number(found[DAEMON_STATE])],
            found[DAEMON_INTERFACE].rstrip(b"\0").decode("ascii", "replace"),
            _number(found[DAEMON_SYNC_ID]),
            _number(found[DAEMON_LARGEST]),
            # One that sends to a group of IPv6 is none of ours.
            _address(socket.AF_INET, found[DAEMON_GROUP]) if DAEMON_GROUP in found else "",
            _number(found[DAEMON_PORT]),
        )
    except (KeyError, ValueError) as error:
        raise NetlinkError(f"a daemon that cannot be read: {error!r}") from None


def family_id(exchange: Exchange) -> int:
    name = attribute(CTRL_ATTR_FAMILY_NAME, FAMILY_NAME.encode() + b"\0")
    request = message(GENL_ID_CTRL, NLM_F_REQUEST, CTRL_CMD_GETFAMILY, name, version=1)
    try:
        bodies = list(_bodies(exchange(request)))
    except NetlinkError as error:
        raise NetlinkError(f"the kernel has no IPVS (module ip_vs): {error}") from None
    for body in bodies:
        found = attributes(body)
        if CTRL_ATTR_FAMILY_ID in found:
            return _number(found[CTRL_ATTR_FAMILY_ID])
    raise NetlinkError("the kernel has no IPVS (module ip_vs)")


def message(kind: int, flags: int, command: int, payload: bytes = b"", version: int = FAMILY_VERSION) -> bytes:
    body = _GENERIC.pack(command, version, 0) + payload
    return _HEADER.pack(_HEADER.size + len(body), kind, flags, 1, 0) + body


def attribute(kind: int, value: bytes) -> bytes:
    length = _ATTRIBUTE.size + len(value)
    return _ATTRIBUTE.pack(length, kind) + value + b"\0" * (-length % 4)


def attributes(data: bytes) -> Attributes:
    # Most of the time that reading a table takes is spent here, so names are looked up once.
    found: Attributes = {}
    header, unpack, whole = _ATTRIBUTE.size, _ATTRIBUTE.unpack_from, len(data)
    offset = 0
    while offset + header <= whole:
        length, kind = unpack(data, offset)
        end = offset + length
        if length < header or end > whole:
            raise NetlinkError(f"an attribute of {length} bytes at {offset} of {whole}")
        found[kind & NLA_TYPE_MASK] = data[offset + header : end]
        offset = end + 3 & ~3
    return found


def messages(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """(type, flags, payload) of each message of one datagram."""
    offset = 0
    while offset + _HEADER.size <= len(data):
        length, kind, flags, _, _ = _HEADER.unpack_from(data, offset)
        if length < _HEADER.size or offset + length > len(data):
            raise NetlinkError(f"a message of {length} bytes at {offset} of {len(data)}")
        yield kind, flags, data[offset + _HEADER.size : offset + length]
        offset += length + (-length % 4)


def is_last(datagram: bytes) -> bool:
    """No more datagrams follow this one in the answer."""
    final = (NLMSG_DONE, NLMSG_ERROR)
    return any(kind in final or not flags & NLM_F_MULTI for kind, flags, _ in messages(datagram))


def parse_service(body: bytes) -> KernelService:
    found = attributes(attributes(body).get(CMD_ATTR_SERVICE, b""))
    try:
        af = _number(found[SVC_AF])
        flags = struct.unpack_from("=I", found[SVC_FLAGS])[0]
        if SVC_FWMARK in found:
            protocol = FIREWALL_MARK if af == socket.AF_INET else FIREWALL_MARK6
            address, port = "", _number(found[SVC_FWMARK])
        else:
            number = _number(found[SVC_PROTOCOL])
            protocol = PROTOCOLS.get(number, str(number))
            address, port = _address(af, found[SVC_ADDR]), _port(found[SVC_PORT])
        service = Service(
            protocol,
            address,
            port,
            scheduler=found[SVC_SCHED_NAME].rstrip(b"\0").decode("ascii", "replace"),
            flags=tuple(sorted(name for bit, name in FLAG_NAMES.items() if flags & bit)),
            persistence=_number(found[SVC_TIMEOUT]) if flags & FLAG_PERSISTENT else 0,
            prefix=_prefix(af, found[SVC_NETMASK]) if flags & FLAG_PERSISTENT else 0,
            engine=found.get(SVC_PE_NAME, b"").rstrip(b"\0").decode("ascii", "replace"),
        )
    except (KeyError, struct.error, ValueError) as error:
        raise NetlinkError(f"a virtual service that cannot be read: {error!r}") from None
    return KernelService(af, service)


@lru_cache(20_000)  # of a server without traffic the kernel says the same each time; some 15 MiB when it is full
def parse_server(body: bytes, service_af: int) -> tuple[ServerKey, KernelServer]:
    found = attributes(attributes(body).get(CMD_ATTR_DEST, b""))
    try:
        af = _number(found[DEST_ADDR_FAMILY]) if DEST_ADDR_FAMILY in found else service_af
        place = (_address(af, found[DEST_ADDR]), _port(found[DEST_PORT]))
        method = METHODS.get(_number(found[DEST_FWD_METHOD]) & FORWARD_MASK, "masq")
        tunnel = _tunnel(found) if method == "tunnel" else ""
        weight = _WEIGHT.unpack(found[DEST_WEIGHT])[0]
        upper, lower = (_number(found.get(kind, b"\0")) for kind in (DEST_UPPER, DEST_LOWER))
        counters = [_number(found.get(kind, b"\0")) for kind in (DEST_ACTIVE, DEST_INACTIVE, DEST_PERSISTENT)]
    except (KeyError, struct.error, ValueError) as error:
        raise NetlinkError(f"a real server that cannot be read: {error!r}") from None
    return place, KernelServer(Server(weight, method, upper, lower, tunnel), *counters)


def _tunnel(found: Attributes) -> str:
    kind = TUNNELS.get(_number(found.get(DEST_TUN_TYPE, b"\0")), "")
    if not kind:
        return ""
    port = _port(found[DEST_TUN_PORT]) if DEST_TUN_PORT in found else 0
    return tunnel_options(kind, port, CHECKSUMS.get(_number(found.get(DEST_TUN_FLAGS, b"\0")), "csum"))


def _ask(exchange: Exchange, family: int, command: int, payload: bytes = b"") -> list[bytes]:
    return list(_bodies(exchange(message(family, NLM_F_REQUEST | NLM_F_DUMP, command, payload))))


def _bodies(datagrams: list[bytes]) -> Iterator[bytes]:
    """The attributes of each generic message; errors are raised."""
    for datagram in datagrams:
        for kind, flags, payload in messages(datagram):
            if flags & NLM_F_DUMP_INTR:
                raise Interrupted("the table changed during the dump")
            if kind in (NLMSG_ERROR, NLMSG_DONE):
                code = struct.unpack_from("=i", payload)[0] if len(payload) >= 4 else 0
                if code < 0:
                    raise NetlinkError(f"the kernel answered with error {-code}", -code)
            else:
                yield payload[_GENERIC.size :]


def _name_service(af: int, service: ServiceKey) -> bytes:
    protocol, address, port = service
    parts = [attribute(SVC_AF, struct.pack("=H", af))]
    if protocol in (FIREWALL_MARK, FIREWALL_MARK6):
        parts.append(attribute(SVC_FWMARK, struct.pack("=I", port)))
        return b"".join(parts)
    number = next((key for key, name in PROTOCOLS.items() if name == protocol), None)
    parts.append(attribute(SVC_PROTOCOL, struct.pack("=H", int(protocol) if number is None else number)))
    parts.append(attribute(SVC_ADDR, ipaddress.ip_address(address).packed.ljust(16, b"\0")))
    parts.append(attribute(SVC_PORT, struct.pack("!H", port)))
    return b"".join(parts)


@lru_cache(4096)  # the same servers stand in many services
def _address(af: int, data: bytes) -> str:
    length = 4 if af == socket.AF_INET else 16
    if len(data) < length:
        raise ValueError(f"an address of {len(data)} bytes")
    return str(ipaddress.ip_address(data[:length]))


def _prefix(af: int, data: bytes) -> int:
    """Bits of the persistence mask, which is a mask for IPv4 and a number of bits for IPv6."""
    if af == socket.AF_INET:
        return int.from_bytes(data, "big").bit_count()
    return _number(data)


def _port(data: bytes) -> int:
    port: int = _PORT.unpack(data)[0]
    return port


def _number(data: bytes) -> int:
    return int.from_bytes(data, sys.byteorder)
