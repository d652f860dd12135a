"""The network as the kernel has it, read through `ip -json`."""

from __future__ import annotations

import ipaddress
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from applier.host.host import Host, HostError, run
from applier.wire.shapes import InterfaceStatus
from lbconfig.wanted import pair_link
from lbconfig.wanted.netstate import (
    EVERYWHERE,
    MAIN,
    PREFERENCE_MAIN,
    PREFERENCE_OWN,
    Address,
    Link,
    NetworkState,
    Route,
    RoutingRule,
)

Entry = dict[str, Any]  # what ip prints of one link, route or rule

TABLES = {"main": 254, "default": 253, "local": 255}
OPTIONS = {  # of the kinds that are ours to make: the kernel's name in JSON -> ip's own word for it
    "bond": {
        "mode": "mode",
        "miimon": "miimon",
        "ad_lacp_rate": "lacp_rate",
        "xmit_hash_policy": "xmit_hash_policy",
        "primary": "primary",
    },
    "bridge": {"stp_state": "stp_state"},
    "vlan": {},
}


@dataclass(frozen=True, slots=True)
class SeenLink:
    name: str
    mac: str
    on: bool  # switched on here
    up: bool  # on, and there is something at the other end
    addresses: tuple[str, ...]  # as "10.1.0.2/24"; of IPv6 not the link-local one, which the kernel makes


def links(host: Host) -> list[SeenLink]:
    """All but the loopback and the link to the other box of a pair."""
    found = []
    for entry in _entries(_json(host, ["ip", "-json", "address", "show"])):
        on = "UP" in entry.get("flags", ())
        up = on and entry.get("operstate") != "DOWN"
        found.append(SeenLink(entry["ifname"], entry.get("address", ""), on, up, _addresses(entry)))
    return found


def addresses(host: Host) -> set[Address]:
    return {(link.name, address) for link in links(host) for address in link.addresses}


def describe(host: Host) -> list[InterfaceStatus]:
    """Each interface for an admin's eyes."""
    found: list[InterfaceStatus] = []
    for entry in _entries(_json(host, ["ip", "-json", "-details", "address", "show"])):
        kind = entry.get("linkinfo", {}).get("info_kind", "")
        up = "UP" in entry.get("flags", ()) and entry.get("operstate") != "DOWN"
        found.append(
            {
                "name": entry["ifname"],
                "mac": entry.get("address", ""),
                "up": up,
                "addresses": list(_addresses(entry)),
                "kind": kind if kind in OPTIONS else "",
                "master": entry.get("master", ""),
                "mtu": entry.get("mtu", 0),
                "speed": _speed(host, entry["ifname"]) if up else 0,
            }
        )
    return found


def _speed(host: Host, name: str) -> int:
    """In Mbit/s; many virtual cards and all bridges have none."""
    try:
        text = (host.read(Path("/sys/class/net") / name / "speed") or "").strip()
    except HostError:
        return 0
    return int(text) if text.isdigit() else 0


def present(host: Host) -> NetworkState:
    """All of it but the loopback and what the kernel keeps for itself; the host name and DHCP are not looked at.

    Nor are floating addresses: no step of an apply adds or removes them (decision 81).
    """
    # One program for three questions: this is asked many times in an apply. Rules of IPv6 need a word of their own.
    found, routes, rules = _several(host, "address show", "route show table all", "rule show")
    rules += _json(host, ["ip", "-json", "-6", "rule", "show"])
    entries = _entries(found)
    return NetworkState(
        links=tuple(map(_link, entries)),
        addresses=tuple((entry["ifname"], one) for entry in entries for one in _addresses(entry, leases=False)),
        routes=tuple(_routes(routes)),
        rules=tuple(_rules(rules)),
    )


def _entries(data: list[Entry]) -> list[Entry]:
    """Without the loopback, and without the link to the other box of a pair, which parts/pair/link.py looks after."""
    found = (entry for entry in data if entry and "LOOPBACK" not in entry.get("flags", ()))
    return [entry for entry in found if entry.get("ifname") != pair_link.LINK]


def _addresses(entry: Entry, leases: bool = True) -> tuple[str, ...]:
    return tuple(
        f"{info['local']}/{info['prefixlen']}"
        for info in entry.get("addr_info", ())
        if info.get("family") == "inet" or (info.get("family") == "inet6" and info.get("scope") != "link")
        if leases or not _is_lease(info)
    )


def _is_lease(info: Entry) -> bool:
    """Whether the floater of a pair holds it: for itself alone, and for some seconds."""
    return bool(info.get("dynamic")) and info["prefixlen"] == (128 if info["family"] == "inet6" else 32)


def _link(entry: Entry) -> Link:
    info = entry.get("linkinfo", {})
    kind = info.get("info_kind", "")
    data = info.get("info_data", {}) if kind in OPTIONS else {}
    return Link(
        entry["ifname"],
        kind if kind in OPTIONS else "",
        "UP" in entry.get("flags", ()),
        entry.get("mtu", 0),
        entry.get("master", ""),
        entry.get("link", "") if kind == "vlan" else "",
        data.get("id", 0) if kind == "vlan" else 0,
        tuple((word, str(data[name])) for name, word in OPTIONS.get(kind, {}).items() if name in data),
        entry.get("max_mtu", 0),
        entry.get("permaddr") or entry.get("address", ""),
    )


def _routes(data: list[Entry]) -> list[Route]:
    """Those that a configuration may bring: plain ones, by one device."""
    found = []
    for entry in data:
        table = entry.get("table", "main")
        number = TABLES.get(table) or (int(table) if str(table).isdigit() else 0)
        ours = entry.get("type", "unicast") == "unicast" and entry.get("protocol") not in ("kernel", "ra")
        if not ours or "dev" not in entry or number in (0, TABLES["local"]):
            continue
        kind = 6 if ":" in entry["dst"] or "pref" in entry else 4  # a preference (RFC 4191) is what IPv6 alone has
        destination = EVERYWHERE[kind] if entry["dst"] == "default" else str(ipaddress.ip_network(entry["dst"]))
        found.append(Route(destination, entry.get("gateway", ""), entry["dev"], entry.get("metric", 0), number))
    return found


def _rules(data: list[Entry]) -> list[RoutingRule]:
    found = []
    for entry in data:
        table = str(entry.get("table", ""))
        own = entry.get("priority") == PREFERENCE_OWN and table.isdigit()
        main = entry.get("priority") == PREFERENCE_MAIN and table == "main" and entry.get("suppress_prefixlen") == 0
        if own or main:
            found.append(RoutingRule(entry["src"], int(table) if own else MAIN))
    return found


def _json(host: Host, argv: list[str]) -> list[Entry]:
    return _lists(argv, run(host, argv).stdout or "[]", 1)[0]


def _several(host: Host, *questions: str) -> list[list[Entry]]:
    """The answers of one run of ip, which prints them one after the other."""
    argv = ["ip", "-json", "-details", "-batch", "-"]
    return _lists(argv, run(host, argv, stdin="".join(f"{line}\n" for line in questions)).stdout, len(questions))


def _lists(argv: list[str], text: str, count: int) -> list[list[Entry]]:
    found, rest = [], text.lstrip()
    try:
        while rest:
            answer, end = json.JSONDecoder().raw_decode(rest)
            found.append(answer)
            rest = rest[end:].lstrip()
    except ValueError:
        pass
    if rest or len(found) != count:
        raise HostError(" ".join(argv), None, f"it printed something unreadable: {text[:100]!r}")
    return found
