"""The link between the two boxes of a pair: WireGuard's interface pair0.

All that the boxes tell each other goes over it: the kernel's synchronisation of connections knows neither a password
nor encryption (decision 84). It belongs to no part of the network that an admin configures, and what looks at that
does not see it.
"""

from __future__ import annotations

import json
from typing import Any

from applier.base.paths import Paths
from applier.host import wireguard
from applier.host.host import Host, HostError, run
from applier.host.wireguard import Device, Peer, WireGuardError
from applier.kept import pair_key
from lbconfig.wanted import pair_link
from lbconfig.wanted.pair_link import LINK, MTU, PairLink

WHAT = f"the link to the other box ({LINK})"
MAKE = f"link add name {LINK} mtu {MTU} type wireguard"  # a line for `ip -batch`
_INPUT = "/proc/self/fd/0"  # wg takes the name of a file; this one has the private key, and lies on no disk


def wanted(conf: str) -> PairLink:
    """What the file says. Raises HostError where it cannot be read."""
    try:
        return pair_link.read(conf)
    except ValueError as error:
        raise HostError(WHAT, None, str(error)) from None


def switch_on(address: str) -> tuple[str, ...]:
    """Lines for `ip -batch`, for a link that was just made and that wg has told of the other box."""
    return f"link set dev {LINK} up", f"address add {address} dev {LINK}"


def altered(host: Host, paths: Paths, conf: str) -> str | None:
    """What differs from this file, in words for an admin; None: all is as it says. Empty: there is to be none."""
    if host.read(paths.pair_link) != (conf or None):
        return "made for another configuration" if conf else "there"
    if not conf:
        return None
    there = _interface(host)
    if there is None:
        return "not there"
    wish = wanted(conf)
    if _addresses(there) != {wish.address}:
        return f"with the addresses {', '.join(sorted(_addresses(there))) or 'none'} on it"
    if "UP" not in there.get("flags", ()):
        return "switched off"
    if there.get("mtu") != MTU:
        return f"with an MTU of {there.get('mtu')}"
    device = _device(host)
    if device.private != pair_key.private(paths) or device.port != wish.port:
        return "with another key or port"
    return None if [_seen(peer) for peer in device.peers] == [_configured(wish)] else "to another box"


def put(host: Host, paths: Paths, conf: str) -> None:
    """Bring about what the file says; empty: no link. Nobody must use the link meanwhile. Raises HostError.

    The file in /run is there as long as anything of it may be, so whoever comes after a kill knows.
    """
    there = _interface(host)
    ours = there is not None and there.get("linkinfo", {}).get("info_kind") == "wireguard"
    if not conf:
        if ours:
            _batch(host, [f"link delete dev {LINK}"])
        host.put(paths.pair_link, None)
        return
    wish, private = wanted(conf), pair_key.private(paths)
    if there is not None and not ours:
        raise HostError(WHAT, None, f"there is another interface of the name {LINK}")
    host.put(paths.pair_link, conf)
    if there is None:
        _batch(host, [MAKE])
    # What goes on between boxes that know each other already is not cut off.
    run(host, ["wg", "syncconf", LINK, _INPUT], stdin=pair_link.with_key(conf, private))
    present = _addresses(there or {})
    _batch(
        host,
        [
            f"link set dev {LINK} mtu {MTU}",
            f"link set dev {LINK} up",
            *(f"address del {address} dev {LINK}" for address in sorted(present - {wish.address})),
            *([] if wish.address in present else [f"address add {wish.address} dev {LINK}"]),
        ],
    )


def strayed(host: Host, conf: str) -> bool:
    """Whether the link sends to another address than the file says: WireGuard answers to where it was heard from last.

    What was on its way while both boxes changed the path moves it back to the former one, and the box there no longer
    takes what comes by that.
    """
    wish, there = wanted(conf), peer(host)
    return there is not None and there.key == wish.peer and there.endpoint != wish.endpoint


def lead_back(host: Host, conf: str) -> None:
    """Send to the address that the file says. Raises HostError."""
    wish = wanted(conf)
    run(host, ["wg", "set", LINK, "peer", wish.peer, "endpoint", wish.endpoint])


def peer(host: Host) -> Peer | None:
    """The other box as the link knows it: when it was heard last, and how much went to and fro. None: no link."""
    if _interface(host) is None:
        return None
    return next(iter(_device(host).peers), None)


def _seen(peer: Peer) -> tuple[object, ...]:
    return peer.key, peer.endpoint, peer.allowed, peer.keepalive


def _configured(link: PairLink) -> tuple[object, ...]:
    return link.peer, link.endpoint, link.allowed, link.keepalive


def _interface(host: Host) -> dict[str, Any] | None:
    """As ip prints it; None: there is none of that name."""
    argv = ["ip", "-json", "-details", "address", "show"]
    try:
        found: list[dict[str, Any]] = json.loads(run(host, argv).stdout)
    except ValueError:
        raise HostError(" ".join(argv), None, "it printed something unreadable") from None
    return next((one for one in found if one.get("ifname") == LINK), None)


def _addresses(entry: dict[str, Any]) -> set[str]:
    """Of IPv4: the kernel gives it one of IPv6 by itself."""
    return {
        f"{info['local']}/{info['prefixlen']}" for info in entry.get("addr_info", ()) if info.get("family") == "inet"
    }


def _device(host: Host) -> Device:
    argv = ["wg", "show", LINK, "dump"]
    output = host.command(argv)
    if output.exit:
        raise HostError(" ".join(argv), output.exit, output.stderr)  # what it printed may have the private key in it
    try:
        return wireguard.parse(output.stdout)
    except WireGuardError as error:
        raise HostError(WHAT, None, str(error)) from None


def _batch(host: Host, lines: list[str]) -> None:
    run(host, ["ip", "-batch", "-"], stdin="".join(f"{line}\n" for line in lines))
