"""The nftables table of the box: try it, load it, and the closed one for when it cannot be loaded."""

from __future__ import annotations

import ipaddress
from pathlib import Path

from applier.host import Host, HostError, run
from lbconfig.snapshot import Snapshot

TABLE = "table inet fairlead"
TIMEOUT = 120.0  # seconds; thousands of rules take some on a small box


def check(host: Host, path: Path) -> None:
    run(host, ["nft", "-c", "-f", str(path)], timeout=TIMEOUT)


def load(host: Host, path: Path) -> None:
    """In one piece: on an error the kernel keeps what it had."""
    run(host, ["nft", "-f", str(path)], timeout=TIMEOUT)


def is_loaded(host: Host) -> bool:
    return TABLE in run(host, ["nft", "list", "tables"]).stdout.splitlines()


def _management(snapshot: Snapshot) -> list[str]:
    networks = [ipaddress.ip_network(text) for text in snapshot.management.allow]
    four = ipaddress.collapse_addresses(network for network in networks if network.version == 4)
    six = list(ipaddress.collapse_addresses(network for network in networks if network.version == 6))
    rules = [f"ip saddr {network} tcp dport 443 accept" for network in four]
    neighbours = ["icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept"] if six else []
    return rules + neighbours + [f"ip6 saddr {network} tcp dport 443 accept" for network in six]


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
