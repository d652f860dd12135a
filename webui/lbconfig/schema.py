"""The JSON Schema (draft 2020-12) of a configuration, made from the dataclasses of the snapshot.

It says what `from_data` says: types, names, and how long a text or a list may be; and the ranges of numbers. Rules
between fields are lbconfig.validate's. What validates here may be refused there; never the other way round.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import types
import typing

from lbconfig.model import names, ports
from lbconfig.model.snapshot import MAX_ITEMS, MAX_TEXT, SCHEMA, Snapshot
from lbconfig.validate import fields as rules
from lbconfig.validate.balance import INTERVALS, MAX_SLOW_START
from lbconfig.validate.pair import ADVERT
from lbconfig.validate.tuning import MAX_QUEUES, MAX_RING
from lbconfig.wanted.table import LEAST_SHARE

DIALECT = "https://json-schema.org/draft/2020-12/schema"
ID = f"urn:fairlead:configuration:{SCHEMA}"

Part = dict[str, object]  # of a schema, as plain data

_ID = (1, rules.MAX_ID)
_PORT = (0, 65535)
# Class and field -> the numbers that it may have. One that is not here may be any whole number, for the schema.
RANGES: dict[str, tuple[int, int]] = {
    "VirtualService.id": _ID,
    "VirtualService.port": (1, 65535),
    "VirtualService.persistence": (0, rules.MAX_PERSISTENCE),
    "VirtualService.persistence_prefix": (0, 128),
    "RealServer.id": _ID,
    "RealServer.port": _PORT,
    "RealServer.weight": (1, 65535),
    "RealServer.upper": (0, rules.MAX_CONNECTIONS),
    "RealServer.lower": (0, rules.MAX_CONNECTIONS),
    "Fallback.port": _PORT,
    "HealthCheck.port": _PORT,
    "HealthCheck.interval": (1, 3600),
    "HealthCheck.timeout": (1, 60),
    "HealthCheck.failures": (1, 100),
    "HealthCheck.successes": (1, 100),
    "HealthCheck.retry": (0, 3600),
    "HealthCheck.connects": (0, 100),
    "Agent.port": (1, 65535),
    "Agent.interval": INTERVALS,
    "Agent.floor": (LEAST_SHARE, 100),
    "VirtualService.slow_start": (0, MAX_SLOW_START),
    "Management.port": (1, 65535),
    "Pair.advert": ADVERT,
    "CardChoice.queues": (0, MAX_QUEUES),
    "CardChoice.rx_ring": (0, MAX_RING),
    "CardChoice.tx_ring": (0, MAX_RING),
}
# Class and field -> a sentence, where the name alone does not say it.
SENTENCES: dict[str, str] = {
    "Snapshot.schema": "The number of this schema. Older numbers are read, too, and brought up to date.",
    "VirtualService.id": "Unique among the services, and the same for as long as it is the same service.",
    "VirtualService.address": "The virtual address (VIP), IPv4 or IPv6.",
    "VirtualService.more_ports": "Ports beside `port`: 443,8000-8100",
    "VirtualService.enabled": "false: the box does not know it, not even its address.",
    "VirtualService.persistence": "Seconds for which a client comes back to the same server; 0: not persistent.",
    "VirtualService.persistence_prefix": "Clients that agree in so many bits count as one; 0: in all of them.",
    "VirtualService.one_packet": "UDP only: each packet is balanced by itself.",
    "VirtualService.call_id": "UDP only: what comes back to a server is a SIP call, not a client.",
    "VirtualService.hash_port": "Schedulers sh and mh: the client's port counts, too.",
    "VirtualService.hash_next": "Schedulers sh and mh: a client whose server takes nothing goes to another one.",
    "RealServer.id": "Unique in the whole configuration, and the same for as long as it is the same server.",
    "RealServer.port": "0, for services of several ports or protocols: the port that the client asked for.",
    "RealServer.upper": "Connections at which it gets no new ones; 0: no limit.",
    "RealServer.lower": "Connections below which it gets new ones again; 0: three quarters of `upper`.",
    "RealServer.forwarding": "null: that of the service.",
    "RealServer.name": "For people; empty: it is known by its address.",
    "HealthCheck.port": "0: the real server's own port.",
    "HealthCheck.host": "The Host header, perhaps with a port, and the name that TLS asks for; empty: the real "
    "server's address.",
    "HealthCheck.expect": "Text that the answer must contain, or as `matching` has it; empty: any good answer.",
    "HealthCheck.interval": "Seconds.",
    "HealthCheck.timeout": "Seconds.",
    "HealthCheck.failures": "Failed checks in a row before the server leaves.",
    "HealthCheck.successes": "Good checks in a row before a server that has failed comes back.",
    "HealthCheck.retry": "Seconds between the checks of a server that has failed and is still in; 0: `interval`.",
    "HealthCheck.secret": "What RADIUS servers and this box share.",
    "HealthCheck.authority": "PEM certificates of those who may have signed; empty: the public authorities.",
    "HealthCheck.connects": "Plain TCP connects between two whole checks.",
    "HealthCheck.statuses": "Of HTTP, those that count as good: 200-299,401; empty: 200-299.",
    "Agent.kind": "text: a line of its own; http: the page /load; response: the time of the health checks.",
    "Agent.port": "Where it is asked, at each real server.",
    "Agent.interval": "Seconds.",
    "Agent.floor": "Per cent of its weight that a server gets at least.",
    "VirtualService.slow_start": "Seconds in which a server that was down gets back to its weight; 0: at once.",
    "LeastHealthy.servers": "So many real servers must be up; 0: any number will do.",
    "LeastHealthy.then": "keep: the last ones stay though they fail; aside: none serves, as if all were down.",
    "LeastHealthy.again": "aside: so many must be up before they serve again; 0: `servers`.",
    "HealthCheck.old_tls": "TLS 1.0 and 1.1 will do, which anybody on the way can break.",
    "HealthCheck.program": "Its text, from the line with #! on; exit code 0 is up.",
    "Fallback.port": "0: that of the service.",
    "Fallback.check": "While it is down, clients are refused instead of sent there.",
    "HealthCheck.more_requests": "Of HTTP, at most 5: sent after the first one; their answers must be good as well.",
    "Request.expect": "Text that the answer must contain; empty: any good answer.",
    "Interface.addresses": "With prefix length: 10.1.0.2/24. Virtual addresses are not listed: services bring them.",
    "Interface.floating": "In a pair: with prefix length, held by the box that leads; both boxes name the same ones.",
    "Snapshot.pair": "Two boxes that are one director. Then network and tuning are empty: each box has its own.",
    "Pair.id": "32 hexadecimal digits.",
    "Pair.advert": "Milliseconds between two advertisements of the box that leads.",
    "Pair.hand_over_by_itself": "The box that leads hands over when its peer is fitter.",
    "PairBox.cable": "The interface of the pair cable.",
    "PairBox.cable_address": "The box's own address there, with prefix length; network has it as well.",
    "PairBox.key": "The public key of WireGuard: 32 bytes as base64.",
    "Network.gateway": "The default gateway; empty: none, or the one that DHCP brings.",
    "Network.gateway6": "The default gateway of IPv6; empty: none.",
    "Management.allow": "Networks from which the web page of the box may be reached.",
    "Management.interfaces": "Those that the web page answers on, by where a packet arrives; empty: all of them.",
    "Management.port": "TCP port of the web page; it is reached by no other.",
    "Management.certificate": "PEM: that of the web page, then the one that signed it …; empty: the box's own.",
    "Tuning.spread": "Queues, interrupts and packets are spread over the CPUs; false: as the kernel has them.",
    "SettingChoice.key": "As `settings` of the API's hardware shows them: net/core/somaxconn",
    "SettingChoice.value": "Numbers, with a blank between them.",
    "CardChoice.queues": "0: one for each core, as far as the card has them.",
    "CardChoice.rx_ring": "Packets that wait in the card; 0: the box decides.",
    "CardChoice.tx_ring": "Packets that wait in the card; 0: the box decides.",
    "Management.key": "PEM, not encrypted: the private key of `certificate`.",
}
_SCALARS: dict[type, str] = {str: "string", int: "integer", bool: "boolean"}
# What each name of an enumeration means, in the words of the screens.
_MEANINGS = tuple(value for value in vars(names).values() if isinstance(value, dict))


def schema() -> Part:
    """The whole schema, as plain data."""
    definitions: dict[str, Part] = {}
    top = _object(Snapshot, definitions)
    head: Part = {"$schema": DIALECT, "$id": ID, "title": "Configuration of a Fairlead load balancer"}
    return head | top | {"$defs": dict(sorted(definitions.items()))}


def to_json() -> str:
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _object(kind: type, definitions: dict[str, Part]) -> Part:
    hints = typing.get_type_hints(kind)
    properties: dict[str, Part] = {}
    required = []
    for field in dataclasses.fields(kind):
        name = f"{kind.__name__}.{field.name}"
        found = _of_type(hints[field.name], definitions, field.metadata.get("longest", MAX_TEXT))
        if name in RANGES:
            found |= dict(zip(("minimum", "maximum"), RANGES[name], strict=True))
        if field.metadata.get("port"):
            named = {"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9-]*$", "examples": list(ports.NAMES)}
            found = {"anyOf": [found, named]}
        if name in SENTENCES:
            found["description"] = SENTENCES[name]
        if field.default is dataclasses.MISSING:
            required.append(field.name)
        else:
            found["default"] = _plain(field.default)
        properties[field.name] = found
    if kind is Snapshot:
        properties["schema"] |= {"minimum": 1, "maximum": SCHEMA}
    said = {"description": " ".join((kind.__doc__ or "").split())} if _is_written(kind) else {}
    needed = {"required": required} if required else {}
    return {"type": "object", **said, "properties": properties, **needed, "additionalProperties": False}


def _of_type(hint: object, definitions: dict[str, Part], longest: int) -> Part:
    if typing.get_origin(hint) is types.UnionType:  # of a type and None
        return {"anyOf": [_of_type(typing.get_args(hint)[0], definitions, longest), {"type": "null"}]}
    if typing.get_origin(hint) is tuple:
        kinds = typing.get_args(hint)
        items = {"type": "array", "items": _of_type(kinds[0], definitions, longest)}
        return items | ({"maxItems": MAX_ITEMS} if kinds[-1] is Ellipsis else _exactly(len(kinds)))
    if not isinstance(hint, type):
        raise TypeError(f"{hint} is no type that a field can have")
    if hint in _SCALARS:
        return {"type": _SCALARS[hint]} | ({"maxLength": longest} if hint is str else {})
    if hint.__name__ not in definitions:
        definitions[hint.__name__] = {}  # its place, for what may be inside itself
        definitions[hint.__name__] = _enumeration(hint) if issubclass(hint, enum.Enum) else _object(hint, definitions)
    return {"$ref": f"#/$defs/{hint.__name__}"}


def _exactly(count: int) -> Part:
    return {"minItems": count, "maxItems": count}


def _enumeration(kind: type[enum.Enum]) -> Part:
    members = list(kind)
    words = next((table for table in _MEANINGS if all(member in table for member in members)), {})
    said = "; ".join(f"{member.value}: {words[member].long}" for member in members if member in words)
    described = {"description": said} if said else {}
    return {"type": "string", "enum": [member.value for member in members], **described}


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    return value.value if isinstance(value, enum.Enum) else value


def _is_written(kind: type) -> bool:
    """Whether somebody wrote the docstring; the one that a dataclass makes up is its signature."""
    doc = kind.__doc__ or ""
    return bool(doc) and not doc.startswith(f"{kind.__name__}(")
