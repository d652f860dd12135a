"""Snapshots, as plain data, that somebody has tampered with."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple

import lbconfig_certificates as pems
from lbconfig_hostile import ADDRESSES, HOSTILE, NUMBERS

Data = dict | list
Place = tuple[str | int, ...]  # the keys and indexes that lead to a value

VALUES = (
    *HOSTILE,
    *NUMBERS,
    *ADDRESSES,
    *(1, 2, 443, 2**31 - 1, 2**31, 2**32, 2**53, 2**63, 2**64),
    *(None, True, False, 1.0, 0.5, math.nan, math.inf, [], {}, [None], ["a"], [[]], {"id": 1}),
    *("\ud800", "\u202e", "\u4f60", "1", "on", "nan", "x" * 2000, "65535-1", "1-65535", "0-1", "::/0", "0.0.0.0/0"),
)


def places(data: Data, above: Place = ()) -> Iterator[Place]:
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        yield (*above, key)
        if isinstance(value, dict | list):
            yield from places(value, (*above, key))


def at(data: Data, place: Place):
    for key in place:
        data = data[key]
    return data


class Mutation(NamedTuple):
    data: dict
    path: str  # of what was changed, as SnapshotError writes it
    what: str


def mutated(data: dict, random: Random) -> Mutation:
    """A copy in which one value is another one. Each field is as likely as any other."""
    found: dict[Place, list[Place]] = {}
    for place in places(data):
        found.setdefault(tuple(key for key in place if isinstance(key, str)), []).append(place)
    *above, key = random.choice(random.choice(list(found.values())))
    change = random.choice(["replace"] * 8 + ["borrow"] * 4 + ["lose", "add"])
    old = at(data, (*above, key))
    match change:
        case "replace":
            new = random.choice(VALUES)
        case "borrow":
            new = copy.deepcopy(at(data, random.choice(list(places(data)))))
        case "add":
            new = {**old, random.choice(["execute", "__class__", "a\nb", ""]): 1} if isinstance(old, dict) else [old]
        case "lose":
            new = None
    data = copy.deepcopy(data)
    if change == "lose":
        del at(data, above)[key]
    else:
        at(data, above)[key] = new
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in (*above, key))[1:]
    return Mutation(data, path, f"{change} {path}: {shown(new)}")


def shown(value: object) -> str:
    try:
        return f"{value!r:.300}"
    except ValueError:  # Python writes no number of thousands of digits
        return "a very large number"


def service_of(data: dict) -> dict | None:
    """One that breaches can be tried on: it is in the table, and has a server."""
    return next((one for one in data["services"] if one["enabled"] and one["real_servers"]), None)


def breached(data: dict, breach: Callable) -> dict:
    """A copy in which `breach` broke one of the rules about how values fit together."""
    data = copy.deepcopy(data)
    service = service_of(data)
    breach(data, service, service["real_servers"][0])
    return data


def _twin(**same: Callable) -> Callable:
    """One more service, which has nothing but a few values of the first."""

    def breach(data: dict, service: dict, server: dict) -> None:
        own = {"id": _free(data["services"]), "name": "twin", "address": "10.0.2.77", "port": 7, "real_servers": []}
        wish = {name: value(service) for name, value in same.items()}
        data["services"].append({**service, "fallback": {}, **own, **wish})

    return breach


def _server(**fields) -> Callable:
    """One more server in the service."""

    def breach(data: dict, service: dict, server: dict) -> None:
        taken = [one for every in data["services"] for one in every["real_servers"]]
        service["real_servers"].append({**server, "id": _free(taken), **fields})

    return breach


def _free(taken: list[dict]) -> int:
    return next(number for number in range(1, len(taken) + 2) if number not in {one["id"] for one in taken})


def _set(**fields) -> Callable:
    """Fields of the service; those of its parts by two underlines."""

    def breach(data: dict, service: dict, server: dict) -> None:
        parts = {"server": server, "check": service["check"], "fallback": service["fallback"]}
        for name, value in fields.items():
            part, _, field = name.rpartition("__")
            parts.get(part, service)[field] = value

    return breach


def _all(name: str, **fields) -> Callable:
    """Fields of a part of the snapshot that is there once."""
    return lambda data, service, server: data[name].update(fields)


def _rules(*rules: dict) -> Callable:
    return _all("firewall", rules=list(rules))


def _second_family(data: dict, service: dict, server: dict) -> None:
    service["more_addresses"] = ["10.0.2.77" if ":" in service["address"] else "2001:db8:1::77"]


def _own_port(data: dict, service: dict, server: dict) -> None:
    service["more_ports"] = f"{service['port']}-65535"


def _other_family(data: dict, service: dict, server: dict) -> None:
    server["address"] = "10.2.0.11" if ":" in service["address"] else "2001:db8:2::11"


def _direct_to_another_port(data: dict, service: dict, server: dict) -> None:
    service |= {"protocol": "tcp", "more_ports": ""}
    server |= {"forwarding": "direct", "port": service["port"] % 65535 + 1}


def _at_the_web_page(data: dict, service: dict, server: dict) -> None:
    data["management"]["port"] = 8443
    service |= {"address": "10.0.2.15", "port": 8443, "protocol": "tcp", "more_ports": "", "enabled": True}


def _behind_itself(data: dict, service: dict, server: dict) -> None:
    server["address"] = service["address"]


def _missing(data: dict, service: dict, server: dict) -> None:
    del service["address"]


# What is done, and the field that must be named for it (its path without what stands in brackets), whatever else is.
BREACHES: dict[str, tuple[str, Callable]] = {
    "two services of one id": ("services.id", _twin(id=lambda one: one["id"])),
    "two services of one name": ("services.name", _twin(name=lambda one: one["name"].upper())),
    "two services at one place": (
        "services.port",
        _twin(**{name: lambda one, name=name: one[name] for name in ("address", "port")}),
    ),
    "two servers of one id": (
        "services.real_servers.id",
        lambda data, service, server: _server(id=server["id"])(data, service, server),
    ),
    "two servers at one place": ("services.real_servers.address", _server()),
    "a server behind itself": ("services.real_servers.address", _behind_itself),
    "a server that is this box": ("services.real_servers.address", _set(server__address="10.2.0.1")),
    "a server of the other family": ("services.real_servers.address", _other_family),
    "direct routing to another port": ("services.real_servers.port", _direct_to_another_port),
    "several ports, and a server with one": (
        "services.real_servers.port",
        _set(more_ports="1-2", port=3, server__port=80),
    ),
    "a mark of more than 31 bits": ("services.id", _set(more_ports="1-2", port=3, id=2**31)),
    "its own port once more": ("services.more_ports", _own_port),
    "the port of the web page": ("services.port", _at_the_web_page),
    "the port of a service": ("management.port", _at_the_web_page),
    "no port of a web page": ("management.port", _all("management", port=0)),
    "a certificate that is none": ("management.certificate", _all("management", certificate="x", key=pems.LB_KEY)),
    "a certificate without its key": ("management.key", _all("management", certificate=pems.LB, key="")),
    "a web page on no interface": ("management.interfaces", _all("management", interfaces=["eth99"])),
    "a port that no browser opens": ("management.port", _all("management", port=6000)),
    "a connection to UDP servers": ("services.check.port", _set(protocol="udp", check__kind="connect", check__port=0)),
    "a TCP check of UDP servers": ("services.check.port", _set(protocol="udp", check__kind="https", check__port=0)),
    "RADIUS without a secret": ("services.check.secret", _set(check__kind="radius", check__secret="")),
    "one-packet scheduling of TCP": ("services.one_packet", _set(protocol="tcp", one_packet=True)),
    "one-packet scheduling and persistence": (
        "services.persistence",
        _set(protocol="udp", one_packet=True, persistence=60, call_id=False),
    ),
    "calls without persistence": ("services.call_id", _set(protocol="udp", call_id=True, persistence=0)),
    "calls over TCP": ("services.call_id", _set(protocol="tcp", call_id=True, persistence=60)),
    "an option of another scheduler": ("services.hash_port", _set(scheduler="wlc", hash_port=True)),
    "another option of another one": ("services.hash_next", _set(scheduler="rr", hash_next=True)),
    "a longer mask than addresses are": ("services.persistence_prefix", _set(persistence_prefix=129)),
    "thresholds that cross": ("services.real_servers.lower", _set(server__upper=5, server__lower=6)),
    "a sorry page for UDP": ("services.fallback.kind", _set(protocol="udp", fallback__kind="page")),
    "a fallback without a check": ("services.fallback.kind", _set(check__kind="off", fallback__kind="page")),
    "a connection to a fallback of UDP": (
        "services.fallback.check",
        _set(protocol="udp", fallback__kind="server", fallback__check="connect"),
    ),
    "a check of a fallback that is none": (
        "services.fallback.check",
        _set(fallback__kind="none", fallback__check="same"),
    ),
    "a request without its slash": (
        "services.check.more_requests",
        _set(check__kind="http", check__more_requests=[{"path": "health"}]),
    ),
    "an address of a fallback that is none": (
        "services.fallback.address",
        _set(fallback__kind="none", fallback__address="10.2.0.99"),
    ),
    "an address of the other family beside it": ("services.more_addresses", _second_family),
    "its own address once more": (
        "services.more_addresses",
        lambda data, service, server: service.update(more_addresses=[service["address"]]),
    ),
    "a firewall rule twice": ("firewall.rules.id", _rules({"id": 1, "name": "a"}, {"id": 1, "name": "b"})),
    "two firewall rules of one name": ("firewall.rules.name", _rules({"id": 1, "name": "a"}, {"id": 2, "name": "A"})),
    "a firewall rule for an interface that is not there": (
        "firewall.rules.interface",
        _rules({"id": 1, "name": "a", "interface": "eth0;"}),
    ),
    "ports of pings": ("firewall.rules.ports", _rules({"id": 1, "name": "a", "protocol": "ping", "ports": "80"})),
    "pings of services": (
        "firewall.rules.protocol",
        _rules({"id": 1, "name": "a", "protocol": "ping", "where": "services"}),
    ),
    "the way to the sorry page": (
        "firewall.rules.ports",
        _rules({"id": 1, "name": "a", "protocol": "tcp", "ports": "64503"}),
    ),
    "a rule between families": (
        "firewall.rules.destinations",
        _rules({"id": 1, "name": "a", "sources": ["10.0.0.0/8"], "destinations": ["::/0"]}),
    ),
    "source NAT of what is denied": (
        "firewall.rules.masquerade",
        _rules({"id": 1, "name": "a", "action": "deny", "where": "through", "masquerade": True}),
    ),
    "a limit of what is denied": (
        "firewall.rules.limit.rate",
        _rules({"id": 1, "name": "a", "action": "deny", "limit": {"rate": 1}}),
    ),
    "a limit of nothing": (
        "firewall.rules.limit.rate",
        _rules({"id": 1, "name": "a", "limit": {"rate": 0, "burst": 7}}),
    ),
    "nobody may manage": ("management.allow", _all("management", allow=[])),
    "one network twice": ("management.allow", _all("management", allow=["::/0", "::/0"])),
    "no address at all": ("network.interfaces", _all("network", interfaces=[])),
    "an interface twice": (
        "network.interfaces.name",
        _all("network", interfaces=[{"name": "a", "dhcp": True}, {"name": "a"}]),
    ),
    "a gateway that is this box": ("network.gateway", _all("network", gateway="10.0.2.15")),
    "a gateway of the other family": ("network.gateway6", _all("network", gateway6="10.0.2.2")),
    "a VLAN twice": (
        "network.interfaces.vlan.id",
        _all(
            "network",
            interfaces=[
                {"name": "a", "addresses": ["10.0.2.15/24"]},
                {"name": "b", "vlan": {"parent": "a", "id": 7}},
                {"name": "c", "vlan": {"parent": "a", "id": 7}},
            ],
        ),
    ),
    "a member of two bonds": (
        "network.interfaces.bond.members",
        _all("network", interfaces=[{"name": name, "bond": {"members": ["x"]}} for name in "ab"]),
    ),
    "a member with an address": (
        "network.interfaces.addresses",
        _all(
            "network",
            interfaces=[{"name": "a", "bridge": {"members": ["b"]}}, {"name": "b", "addresses": ["10.0.2.15/24"]}],
        ),
    ),
    "a loop": (
        "network.interfaces.vlan",
        _all(
            "network",
            interfaces=[
                {"name": "a", "vlan": {"parent": "b", "id": 7}},
                {"name": "b", "bridge": {"members": ["a"]}},
            ],
        ),
    ),
    "a router that nobody can reach": (
        "network.routes.via",
        _all("network", routes=[{"destination": "10.99.0.0/16", "via": "192.0.2.1"}]),
    ),
    "a way out of an address by the other family": (
        "network.policies.via",
        _all("network", policies=[{"source": "10.0.2.100", "via": "2001:db8:1::9"}]),
    ),
    "four name servers": ("network.dns", _all("network", dns=["10.0.2.3", "10.0.2.4", "10.0.2.5", "10.0.2.6"])),
    "a field that is missing": ("services.address", _missing),
    "a field that nobody knows": ("services.execute", _set(execute="/bin/sh")),
    "a field without a name": ("services.?", _set(**{"": 1})),
    "a field whose name is two lines": ("services.a?b", _set(**{"a\nb": 1})),
    "another schema": ("schema", lambda data, service, server: data.update(schema=99)),
    "a schema of thousands of digits": ("schema", lambda data, service, server: data.update(schema=10**5000)),
}
