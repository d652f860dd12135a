"""The kernel's own synchronisation of connections: a thread that sends them over the link, and one that takes them.

Both run on both boxes at all times, each box with a sync id of its own, so nothing has to be switched when the other
one leads. How large the sender's messages are follows the number of new connections (applier.pair.messages): whoever
compares what runs with what should leaves that out.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable
from dataclasses import replace

from applier.host import ipvs_netlink
from applier.host.host import Host, HostError
from applier.host.ipvs_netlink import Daemon, NetlinkError
from applier.host.ipvs_sync import LARGEST, SMALL
from lbconfig.wanted.pair_link import LINK, PairLink

WHAT = "the synchronisation of connections with the other box"
_MIXED = "the kernel refuses it as long as a service over IPv4 has real servers over IPv6, or the other way round"


def wanted(link: PairLink) -> tuple[Daemon, ...]:
    """As they are started: with small messages."""
    own, other = link.sync_ids
    return Daemon("master", LINK, own, SMALL), Daemon("backup", LINK, other)


def arguments(daemon: Daemon) -> tuple[str, ...]:
    """With which ipvsadm(8) starts the same one."""
    what = {
        "--start-daemon": daemon.kind,
        "--mcast-interface": daemon.interface,
        "--syncid": daemon.sync_id,
        "--sync-maxlen": daemon.largest,
        "--mcast-group": daemon.group,
        "--mcast-port": daemon.port,
        "--mcast-ttl": 1,
    }
    return tuple(f"{word}" for pair in what.items() for word in pair)


def differ(present: Iterable[Daemon], wanted: Iterable[Daemon]) -> bool:
    return {*map(_of_any_size, present)} != {*map(_of_any_size, wanted)}


def _of_any_size(daemon: Daemon) -> Daemon:
    return replace(daemon, largest=SMALL) if daemon.kind == "master" else daemon


def running(host: Host) -> tuple[Daemon, ...]:
    try:
        return ipvs_netlink.daemons(host.netlink)
    except NetlinkError as error:
        raise HostError(WHAT, None, str(error)) from None


def put(host: Host, daemons: tuple[Daemon, ...]) -> int:
    """Let exactly these run; how many were started or stopped. One that runs as it should is left alone."""
    present = running(host)
    gone = [one for one in present if _of_any_size(one) not in map(_of_any_size, daemons)]
    new = [one for one in daemons if _of_any_size(one) not in map(_of_any_size, present)]
    return _change(host, gone, new)


def sends_large(host: Host) -> bool:
    return any(one.kind == "master" and one.largest == LARGEST for one in running(host))


def resize(host: Host, daemons: tuple[Daemon, ...], large: bool) -> None:
    """Start the sender anew with messages of this size. What it was about to send is lost: tell all again."""
    gone = [one for one in running(host) if one.kind == "master"]
    new = [replace(one, largest=LARGEST if large else SMALL) for one in daemons if one.kind == "master"]
    _change(host, gone, new)


def _change(host: Host, gone: list[Daemon], new: list[Daemon]) -> int:
    try:
        for one in gone:
            ipvs_netlink.stop_daemon(host.netlink, one.kind)
        for one in new:
            ipvs_netlink.start_daemon(host.netlink, one)
    except NetlinkError as error:
        raise HostError(WHAT, None, _MIXED if new and error.number == errno.EINVAL else str(error)) from None
    return len(gone) + len(new)
