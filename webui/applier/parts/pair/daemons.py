"""The kernel's own synchronisation of connections: a thread that sends them over the link, and one that takes them.

Both run on both boxes at all times, each box with a sync id of its own, so nothing has to be switched when the other
one leads.
"""

from __future__ import annotations

import errno

from applier.host import ipvs_netlink
from applier.host.host import Host, HostError
from applier.host.ipvs_netlink import Daemon, NetlinkError
from lbconfig.wanted.pair_link import LINK, PairLink

WHAT = "the synchronisation of connections with the other box"
_MIXED = "the kernel refuses it as long as a service over IPv4 has real servers over IPv6, or the other way round"


def wanted(link: PairLink) -> tuple[Daemon, ...]:
    own, other = link.sync_ids
    return Daemon("master", LINK, own), Daemon("backup", LINK, other)


def running(host: Host) -> tuple[Daemon, ...]:
    try:
        return ipvs_netlink.daemons(host.netlink)
    except NetlinkError as error:
        raise HostError(WHAT, None, str(error)) from None


def put(host: Host, daemons: tuple[Daemon, ...]) -> int:
    """Let exactly these run; how many were started or stopped. One that runs as it should is left alone."""
    present = running(host)
    gone = [one for one in present if one not in daemons]
    new = [one for one in daemons if one not in present]
    try:
        for one in gone:
            ipvs_netlink.stop_daemon(host.netlink, one.kind)
        for one in new:
            ipvs_netlink.start_daemon(host.netlink, one)
    except NetlinkError as error:
        raise HostError(WHAT, None, _MIXED if new and error.number == errno.EINVAL else str(error)) from None
    return len(gone) + len(new)
