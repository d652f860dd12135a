"""Kernel settings: one table, each line with the reason for it.

How the kernel joins `conf/all` with an interface's own value decides which lines are enough for all
interfaces (include/linux/inetdevice.h): rp_filter, arp_ignore and arp_announce take the larger one,
accept_source_route and (on a router) accept_redirects need both, but send_redirects is on where
*either* is on; so that one is also written per interface.
The net.ipv4.vs keys exist only once the module ip_vs is loaded.
"""

from __future__ import annotations

from typing import NamedTuple

from lbconfig.snapshot import Snapshot


class Setting(NamedTuple):
    key: str  # below /proc/sys, with slashes: "net/ipv4/ip_forward"
    value: str
    reason: str


_TABLE = (
    # First: a change of ip_forward resets the settings of all interfaces to the defaults of a router.
    Setting("net/ipv4/ip_forward", "1", "NAT: replies of the real servers are routed through the box"),
    Setting("net/ipv4/conf/all/rp_filter", "1", "a packet whose source belongs to another interface is forged"),
    Setting("net/ipv4/conf/default/rp_filter", "1", "the same for interfaces that appear later"),
    Setting("net/ipv4/conf/all/arp_ignore", "1", "answer ARP for an address only on the interface that has it"),
    Setting("net/ipv4/conf/all/arp_announce", "2", "never ask by ARP in the name of another interface's address"),
    Setting("net/ipv4/conf/all/accept_redirects", "0", "nobody on the wire changes our routes"),
    Setting("net/ipv4/conf/default/accept_redirects", "0", "the same for interfaces that appear later"),
    Setting("net/ipv4/conf/all/send_redirects", "0", "a redirect would lead real servers past the box and break NAT"),
    Setting("net/ipv4/conf/default/send_redirects", "0", "the same for interfaces that appear later"),
    Setting("net/ipv4/conf/all/accept_source_route", "0", "the sender does not choose the way"),
    Setting("net/ipv4/conf/default/accept_source_route", "0", "the same for interfaces that appear later"),
    Setting("net/ipv4/icmp_echo_ignore_broadcasts", "1", "no amplifier for others' attacks"),
    Setting("net/ipv4/tcp_syncookies", "1", "the web UI stays reachable under a SYN flood"),
    Setting("net/ipv6/conf/all/disable_ipv6", "1", "IPv6 is not supported yet: no address that nobody asked for"),
    Setting("net/ipv6/conf/default/disable_ipv6", "1", "the same for interfaces that appear later"),
    Setting("net/ipv4/vs/conntrack", "0", "IPVS keeps its own connection table; the firewall matches by address"),
    Setting(
        "net/ipv4/vs/conn_reuse_mode", "1", "a client that uses a port again is balanced anew, also to a new server"
    ),
    Setting("net/ipv4/vs/expire_nodest_conn", "1", "clients of a server that was removed are released at once"),
    Setting("net/ipv4/vs/expire_quiescent_template", "1", "a persistent client leaves a server of weight 0"),
)


def settings(snapshot: Snapshot | None = None) -> tuple[Setting, ...]:
    """The table in the order of writing; with a snapshot also the lines of its interfaces."""
    interfaces = snapshot.network.interfaces if snapshot else ()
    return _TABLE + tuple(
        Setting(
            f"net/ipv4/conf/{interface.name}/send_redirects", "0", "redirects are on where all or the interface says so"
        )
        for interface in interfaces
    )


def render(snapshot: Snapshot) -> str:
    """In sysctl.conf(5) syntax, with the reasons as comments."""
    return "".join(f"# {reason}\n{key} = {value}\n" for key, value, reason in settings(snapshot))
