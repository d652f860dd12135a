"""The snapshot: one complete, immutable wish for what the box shall be.

A snapshot is plain data. `from_json` checks its *shape* (types, unknown and missing keys) and names
the path of what is wrong; whether the wish makes sense is `validate.py`'s question.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

SCHEMA = 1
MAX_TEXT = 1024  # characters; no field of the model needs more
MAX_ITEMS = 20_000  # entries of one list; the kernel takes more, a web page does not


class Protocol(StrEnum):
    TCP = "tcp"
    UDP = "udp"


class Scheduler(StrEnum):
    """The kernel's names (ip_vs_*.ko)."""

    RR = "rr"
    WRR = "wrr"
    LC = "lc"
    WLC = "wlc"


class Forwarding(StrEnum):
    NAT = "nat"


class CheckKind(StrEnum):
    CONNECT = "connect"
    HTTP = "http"
    PING = "ping"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """How ldirectord asks a real server whether it is up. Times in seconds."""

    kind: CheckKind = CheckKind.CONNECT
    port: int = 0  # 0: the real server's own port
    path: str = "/"  # http only: what is requested
    host: str = ""  # http only: the Host header; empty: the real server's address
    expect: str = ""  # http only: literal text that the answer must contain; empty: any 2xx answer
    interval: int = 2
    timeout: int = 2
    failures: int = 2  # failed checks in a row before the server leaves


@dataclass(frozen=True, slots=True)
class RealServer:
    id: int  # unique within the snapshot, stable while the server is edited
    address: str
    port: int
    weight: int = 1
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class VirtualService:
    id: int  # unique within the snapshot, stable while the service is edited
    name: str
    address: str  # the VIP
    port: int
    protocol: Protocol = Protocol.TCP
    scheduler: Scheduler = Scheduler.WLC
    forwarding: Forwarding = Forwarding.NAT
    check: HealthCheck = HealthCheck()
    real_servers: tuple[RealServer, ...] = ()


@dataclass(frozen=True, slots=True)
class Interface:
    name: str
    dhcp: bool = False
    addresses: tuple[str, ...] = ()  # "10.1.0.2/24"; VIPs are not listed here, they come from the services


@dataclass(frozen=True, slots=True)
class Network:
    hostname: str = "fairlead"
    gateway: str = ""  # the default gateway; empty: none, or the one that DHCP brings
    interfaces: tuple[Interface, ...] = ()


@dataclass(frozen=True, slots=True)
class Management:
    """From where the web UI of the box may be reached: networks as "192.168.0.0/16"."""

    allow: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    services: tuple[VirtualService, ...] = ()
    network: Network = Network()
    management: Management = Management()
    schema: int = SCHEMA


# What a box that nobody has set up yet runs: an address by DHCP on its first interface, and the web
# page for the private networks (RFC 1918) and link-local addresses only.
FACTORY = Snapshot(
    network=Network(interfaces=(Interface("eth0", dhcp=True),)),
    management=Management(allow=("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16")),
)


class SnapshotError(ValueError):
    """The data has not the shape of a snapshot. `path` names the place, e.g. "services[0].port"."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path or 'snapshot'}: {message}")
        self.path = path
        self.message = message


def to_data(snapshot: Snapshot) -> dict:
    """The snapshot as plain dicts, lists, strings, ints and bools (tuples become lists)."""
    return json.loads(to_json(snapshot))


def to_json(snapshot: Snapshot) -> str:
    """The canonical text: sorted keys, two spaces, a newline at the end; equal snapshots, equal text."""
    return json.dumps(dataclasses.asdict(snapshot), sort_keys=True, indent=2, ensure_ascii=False) + "\n"


def digest(snapshot: Snapshot) -> str:
    """SHA-256 (hex) of the canonical text."""
    return hashlib.sha256(to_json(snapshot).encode()).hexdigest()


def from_json(text: str) -> Snapshot:
    """Read the canonical text, or any JSON of that shape. Raises SnapshotError."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SnapshotError("", f"is not JSON: {error}") from None
    return from_data(data)


def from_data(data: object) -> Snapshot:
    """Build a snapshot from plain data, checking every type. Raises SnapshotError."""
    if isinstance(data, Mapping) and data.get("schema", SCHEMA) != SCHEMA:
        raise SnapshotError("schema", f"is {data['schema']!r}; this software reads schema {SCHEMA}")
    return _build(Snapshot, data, "")


def _build(kind: type, data: object, path: str):
    if not isinstance(data, Mapping):
        raise SnapshotError(path, f"must be an object, not {_type_name(data)}")
    hints = typing.get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}
    for key in data:
        if key not in fields:
            raise SnapshotError(_join(path, str(key)[:80]), "is not a known field")
    values = {}
    for name, field in fields.items():
        if name in data:
            values[name] = _convert(hints[name], data[name], _join(path, name))
        elif field.default is dataclasses.MISSING:
            raise SnapshotError(_join(path, name), "is missing")
    return kind(**values)


def _convert(hint: object, value: object, path: str):
    if typing.get_origin(hint) is tuple:
        return _convert_list(typing.get_args(hint)[0], value, path)
    if dataclasses.is_dataclass(hint):
        return _build(hint, value, path)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        names = [str(member) for member in hint]
        if not isinstance(value, str) or value not in names:
            raise SnapshotError(path, f"must be one of {', '.join(names)}")
        return hint(value)
    if type(value) is not hint:  # exactly: True is no int
        raise SnapshotError(path, f"must be {_TYPE_WORDS[hint]}, not {_type_name(value)}")
    if isinstance(value, str) and len(value) > MAX_TEXT:
        raise SnapshotError(path, f"is longer than {MAX_TEXT} characters")
    if isinstance(value, str) and not value.isprintable():
        raise SnapshotError(path, "contains a character that cannot be printed")
    return value


def _convert_list(item: type, value: object, path: str) -> tuple:
    if not isinstance(value, list | tuple):
        raise SnapshotError(path, f"must be a list, not {_type_name(value)}")
    if len(value) > MAX_ITEMS:
        raise SnapshotError(path, f"has more than {MAX_ITEMS} entries")
    return tuple(_convert(item, entry, f"{path}[{index}]") for index, entry in enumerate(value))


_TYPE_WORDS = {str: "text", int: "a whole number", bool: "true or false"}


def _type_name(value: object) -> str:
    if value is None:
        return "nothing"
    words = {str: "text", int: "a number", float: "a number with a point", bool: "true or false"}
    return words.get(type(value), "a list" if isinstance(value, list | tuple) else "an object")


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
