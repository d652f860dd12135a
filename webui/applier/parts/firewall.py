"""The nftables table of the box: try it, load it, and the closed one for when it cannot be loaded."""

from __future__ import annotations

import hashlib
import ipaddress
import json
import logging
import re
from pathlib import Path
from typing import Any

from applier.base.paths import Paths
from applier.host.host import Host, HostError, run
from applier.wire.errors import ApplierRefused
from applier.wire.shapes import RuleCounter
from lbconfig.model import icmp
from lbconfig.model.snapshot import Snapshot

log = logging.getLogger("applier")

Body = dict[str, Any]  # what nft prints of one table, chain, set or rule

TABLE = "table inet fairlead"
OURS = frozenset({"fairlead", "fairlead_translation"})  # tables of the family inet
_BY_ITSELF = frozenset({"handle", "packets", "bytes"})  # changes without anybody's doing, or with every load
_COMMENT = re.compile(r"rule (?P<id>\d+)(?P<over> over)?")
TIMEOUT = 120.0  # seconds; thousands of rules take some on a small box


def check(host: Host, path: Path) -> None:
    run(host, ["nft", "-c", "-f", str(path)], timeout=TIMEOUT)


def load(host: Host, path: Path) -> None:
    """In one piece: on an error the kernel keeps what it had."""
    run(host, ["nft", "-f", str(path)], timeout=TIMEOUT)


def is_loaded(host: Host) -> bool:
    return TABLE in run(host, ["nft", "list", "tables"]).stdout.splitlines()


def altered(host: Host, paths: Paths, rules: str) -> str | None:
    """How the kernel's rules are others than those of this file, in words; None: they are these, as they were loaded.

    HostError where that cannot be told.
    """
    if not is_loaded(host):
        return "not there"
    if host.read(paths.nftables) != rules:
        return "others were loaded"
    noted = _noted(host, paths, rules)
    if noted is None:
        raise HostError("the rules of the firewall", None, "nobody noted what the kernel had after they were loaded")
    return None if fingerprint(host) == noted else "changed since they were loaded"


def note(host: Host, paths: Paths, rules: str) -> None:
    """Right after these rules were loaded: what the kernel makes of them."""
    try:
        text = json.dumps({"rules": _digest(rules), "seen": fingerprint(host)}) + "\n"
    except HostError as error:  # they run anyway; only nobody can tell when they are changed by hand
        log.error("what the kernel made of the rules is not known: %s", error)
        text = None
    host.put(paths.rules_seen, text)


def _noted(host: Host, paths: Paths, rules: str) -> str | None:
    try:
        found = json.loads(host.read(paths.rules_seen) or "{}")
        return found["seen"] if found["rules"] == _digest(rules) else None
    except (ValueError, KeyError, TypeError):
        return None


def fingerprint(host: Host) -> str:
    """A digest of what the kernel has in our tables, without what changes by itself."""
    argv = ["nft", "-j", "list", "ruleset", "inet"]
    text = run(host, argv, timeout=TIMEOUT).stdout
    try:
        listed = [_steady(body, kind) for entry in json.loads(text)["nftables"] for kind, body in entry.items()
                  if (body.get("name") if kind == "table" else body.get("table")) in OURS]  # fmt: skip
    except (ValueError, KeyError, TypeError, AttributeError):
        raise HostError(" ".join(argv), None, f"it printed something unreadable: {text[:100]!r}") from None
    return _digest(json.dumps(listed, sort_keys=True))


def _steady(body: Body, kind: str) -> object:
    body = {"kind": kind, **body}
    if "elem" in body:
        grows = {"dynamic", "timeout"} & {*_list(body.get("flags"))}
        # The kernel has no order for the elements of a set.
        body["elem"] = [] if grows else sorted(json.dumps(one, sort_keys=True) for one in body["elem"])
    if "elem" in body and not body["elem"]:
        del body["elem"]
    return _without_counts(body)


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def _without_counts(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_counts(one) for key, one in value.items() if key not in _BY_ITSELF}
    return [_without_counts(one) for one in value] if isinstance(value, list) else value


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def counters(host: Host) -> list[RuleCounter]:
    """Of the admin's own rules, told by their comments (lbconfig/render/own_rules.py); ApplierRefused."""
    try:
        # Without the elements of the sets, of which there may be many thousands.
        listed = json.loads(run(host, ["nft", "-j", "-t", "list", *TABLE.split()], timeout=TIMEOUT).stdout)["nftables"]
        found: dict[int, RuleCounter] = {}
        for entry in listed:
            rule = entry.get("rule", {})
            if match := _COMMENT.fullmatch(rule.get("comment", "")):
                number = int(match["id"])
                counter = found.setdefault(number, {"id": number, "packets": 0, "bytes": 0, "over": 0})
                _add(counter, next(part["counter"] for part in rule["expr"] if "counter" in part), bool(match["over"]))
    except HostError as error:
        raise ApplierRefused("no-counters", f"The firewall cannot be read: {error}.") from None
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration) as error:
        raise ApplierRefused("no-counters", f"What nft says of the firewall cannot be read: {error!r}.") from None
    return list(found.values())


def _add(counter: RuleCounter, seen: dict[str, int], over: bool) -> None:
    """One rule of the admin may be several of nft: for IPv4, for IPv6, for what is above its limit."""
    if over:
        counter["over"] += seen["packets"]
        return
    counter["packets"] += seen["packets"]
    counter["bytes"] += seen["bytes"]


def _management(snapshot: Snapshot) -> list[str]:
    networks = [ipaddress.ip_network(text) for text in snapshot.management.allow]
    four = ipaddress.collapse_addresses(network for network in networks if network.version == 4)
    six = list(ipaddress.collapse_addresses(network for network in networks if network.version == 6))
    port = snapshot.management.port
    places = [f'iifname "{name}" ' for name in snapshot.management.interfaces] or [""]
    rules = [f"{place}ip saddr {network} tcp dport {port} accept" for place in places for network in four]
    # Without these nobody finds the box, or large packets of the page do not arrive.
    messages = icmp.rules(4) + (icmp.rules(6) if six else [])
    by_six = [f"{place}ip6 saddr {network} tcp dport {port} accept" for place in places for network in six]
    return rules + messages + by_six


def closed(snapshot: Snapshot) -> str:
    """For a boot at which the real rules could not be loaded: nothing passes but the way to the web UI.

    As plain as can be: no sets, no limits, no logging, nothing that needs a module which might be what is missing.
    """
    rules = "".join(f"		{rule}\n" for rule in _management(snapshot))
    return f"""{TABLE} {{}}
delete {TABLE}
{TABLE} {{
	chain input {{
		type filter hook input priority 0; policy drop;
		iif lo accept
{rules}	}}
	chain forward {{
		type filter hook forward priority 0; policy drop;
	}}
}}
"""


def load_closed(host: Host, path: Path, snapshot: Snapshot) -> None:
    """HostError if not even this can be loaded; then the box must stay without addresses."""
    host.put(path, closed(snapshot))
    try:
        load(host, path)
    finally:
        host.put(path, None)


def last_resort(error: HostError) -> str:
    return f"The firewall rules could not be loaded, so the box stays without addresses: {error}"
