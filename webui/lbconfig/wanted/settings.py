"""Kernel settings: one table, each line with the reason for it.

How the kernel joins `conf/all` with an interface's own value decides which lines are enough for all
interfaces (include/linux/inetdevice.h): rp_filter, arp_ignore and arp_announce take the larger one,
accept_source_route and (on a router) accept_redirects need both, but send_redirects is on where
*either* is on; so that one is also written per interface.
The net.ipv4.vs keys exist only once the module ip_vs is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from lbconfig.model.firewall import Where
from lbconfig.model.snapshot import FloodDefence, Forwarding, Policy, Snapshot
from lbconfig.wanted.network import homes, policy_route


class Setting(NamedTuple):
    key: str  # below /proc/sys, with slashes: "net/ipv4/ip_forward"
    value: str
    reason: str
    also: str = ""  # what the kernel makes of it by itself

    def holds(self, present: str | None) -> bool:
        return present is not None and present in (self.value, self.also or self.value)


_TABLE = (
    # First: a change of ip_forward resets the settings of all interfaces to the defaults of a router.
    Setting("net/ipv4/ip_forward", "1", "NAT: replies of the real servers are routed through the box"),
    Setting("net/ipv4/conf/all/arp_ignore", "1", "answer ARP for an address only on the interface that has it"),
    Setting("net/ipv4/conf/all/arp_announce", "2", "never name another interface's address in ARP requests"),
    Setting("net/ipv4/conf/all/accept_redirects", "0", "nobody on the wire changes our routes"),
    Setting("net/ipv4/conf/default/accept_redirects", "0", "the same for interfaces that appear later"),
    Setting("net/ipv4/conf/all/send_redirects", "0", "a redirect would lead real servers past the box and break NAT"),
    Setting("net/ipv4/conf/default/send_redirects", "0", "the same for interfaces that appear later"),
    Setting("net/ipv4/conf/all/accept_source_route", "0", "the sender does not choose the way"),
    Setting("net/ipv4/conf/default/accept_source_route", "0", "the same for interfaces that appear later"),
    Setting("net/ipv4/icmp_echo_ignore_broadcasts", "1", "no amplifier for others' attacks"),
    Setting("net/ipv4/tcp_syncookies", "1", "the web UI stays reachable under a SYN flood"),
    # Never switched off: that would take every address and route along, and an undo would have to know them.
    Setting("net/ipv6/conf/all/disable_ipv6", "0", "IPv6 is there, with the addresses that were asked for"),
    Setting("net/ipv6/conf/default/disable_ipv6", "0", "the same for interfaces that appear later"),
    Setting("net/ipv6/conf/all/forwarding", "1", "NAT: replies of the real servers are routed through the box"),
)


def settings(snapshot: Snapshot | None = None) -> tuple[Setting, ...]:
    """The table in the order of writing; with a snapshot also what depends on it."""
    snapshot = snapshot or Snapshot()
    redirects = (
        Setting(
            f"net/ipv4/conf/{interface.name}/send_redirects", "0", "redirects are on where all or the interface says so"
        )
        for interface in snapshot.network.interfaces
    )
    return (
        *_TABLE,
        *_policy(snapshot.policy),
        *_defence(snapshot.policy.flood_defence),
        _answers(snapshot),
        *_announcements(snapshot),
        _conntrack(snapshot),
        *_pair(snapshot),
        *redirects,
        *_forged(snapshot),
    )


def loose(snapshot: Snapshot) -> set[str | None]:
    """Interfaces by which requests come in whose answers leave by another one: senders are checked loosely there."""
    network = snapshot.network
    policies = {policy.source: policy_route(network, policy).device for policy in network.policies}
    arrivals = homes(network, policies)
    return {arrivals[source] for source, device in policies.items() if arrivals[source] != device}


def checks_senders(snapshot: Snapshot) -> bool:
    """Not where all comes by one interface: there is no wrong one, and the look costs each packet (decision 34).

    What has an address of the box itself as its sender, the kernel drops anyway.
    """
    network = snapshot.network
    members = {name for one in network.interfaces for name in one.members}
    return len([one for one in network.interfaces if one.on and one.name not in members]) != 1


def _forged(snapshot: Snapshot) -> Iterator[Setting]:
    value = str(int(checks_senders(snapshot)))
    forged = "a packet whose source belongs to another interface is forged"
    yield Setting("net/ipv4/conf/all/rp_filter", value, forged if value == "1" else "there is one interface only")
    yield Setting("net/ipv4/conf/default/rp_filter", value, "the same for interfaces that appear later")
    found = loose(snapshot)
    for interface in snapshot.network.interfaces:
        key = f"net/ipv4/conf/{interface.name}/rp_filter"
        if interface.name in found:
            yield Setting(key, "2", "answers to its packets leave by another interface")
        else:
            yield Setting(key, value, "as for all interfaces")


def _policy(policy: Policy) -> Iterator[Setting]:
    """What they mean: the kernel's Documentation/networking/ipvs-sysctl.rst.

    conn_reuse_mode 3 and not 1: by direct routing and tunnels the box sees the client's half of a connection only,
    whose last state is FIN_WAIT. With 1 a port that is used again leads to the server that the connection before had:
    a new server gets too little, and where clients of a removed one are not released they get no answer.
    """
    reuse = "3" if policy.reuse_ports else "0"
    yield Setting("net/ipv4/vs/conn_reuse_mode", reuse, "whether a client that uses a port again is balanced anew")
    for name, wanted, reason in (
        ("expire_nodest_conn", policy.release_removed, "whether clients of a server that was removed are released"),
        ("expire_quiescent_template", policy.release_persistent, "whether a persistent client leaves weight 0"),
        ("sloppy_tcp", policy.adopt, "whether connections are taken that began before the box saw them"),
        ("schedule_icmp", policy.icmp_errors, "whether ICMP errors of unknown connections are passed on"),
    ):
        yield Setting(f"net/ipv4/vs/{name}", str(int(wanted)), reason)


def _defence(when: FloodDefence) -> Iterator[Setting]:
    """0: never, 1: when memory is short (the kernel makes that 2 for as long as it is), 3: always.

    secure_tcp stays off: with it a half-open connection of direct routing is kept for 120 s instead of 60 (its table
    of states, in ip_vs_proto_tcp.c, starts with SYNACK there; seen in the lab).
    """
    entries = {FloodDefence.NEVER: "0", FloodDefence.AUTOMATIC: "1", FloodDefence.ALWAYS: "3"}[when]
    packets = "0" if when is FloodDefence.NEVER else "1"
    for name, value, reason in (
        ("drop_entry", entries, "a flood: half-open connections are forgotten before memory runs out"),
        ("drop_packet", packets, "a flood: some new connections are turned away before memory runs out"),
        ("secure_tcp", "0", "half-open connections are not kept for longer"),
    ):
        yield Setting(f"net/ipv4/vs/{name}", value, reason, also="2" if value == "1" else "")


def _answers(snapshot: Snapshot) -> Setting:
    """Where no route depends on the source, the second look finds what the first one found."""
    wanted = snapshot.policy.route_answers and bool(snapshot.network.policies)
    return Setting(
        "net/ipv4/vs/snat_reroute", str(int(wanted)), "whether an answer's route is looked up again, by its new source"
    )


def _announcements(snapshot: Snapshot) -> Iterator[Setting]:
    """conf/all is no word for all interfaces here, so each is told."""
    for place in ("default", *(interface.name for interface in snapshot.network.interfaces)):
        yield Setting(
            f"net/ipv6/conf/{place}/accept_ra", "0", "no address or route that somebody on the wire announces"
        )
        yield Setting(f"net/ipv6/conf/{place}/autoconf", "0", "no address that nobody asked for")
        yield Setting(f"net/ipv6/conf/{place}/accept_redirects", "0", "nobody on the wire changes our routes")


def _conntrack(snapshot: Snapshot) -> Setting:
    """A connection keeps what it began with (IP_VS_CONN_F_NFCT), so that a change breaks none."""
    key = "net/ipv4/vs/conntrack"
    if _has_source_nat(snapshot):
        return Setting(key, "1", "source NAT: the connections of IPVS are known to the firewall, which rewrites them")
    return Setting(key, "0", "IPVS keeps its own connection table; the firewall matches by address")


def _has_source_nat(snapshot: Snapshot) -> bool:
    return any(
        service.forwarding_of(server) is Forwarding.SNAT
        for service in snapshot.enabled_services
        for server in service.machines
    )


def _pair(snapshot: Snapshot) -> Iterator[Setting]:
    """How the kernel tells the peer of its connections, and what the peer's connection tracking makes of them.

    With the kernel's own values a connection with a packet now and then is sent once, and its copy runs out while it
    lives. backup_only would switch the balancer off, as both boxes listen all the time. The keys of connection tracking
    are there once the firewall asks for states, and its rules are loaded before.
    """
    if snapshot.pair is None:
        return
    for name, value, reason in (
        ("sync_version", "1", "the peer is told of IPv6, persistence and timeouts, too"),
        ("sync_threshold", "0 2", "the peer is told of a connection when it is there and not for each packet"),
        ("sync_refresh_period", "10", "the peer is told of quiet connections again before its copies run out"),
        ("sync_retries", "1", "what may have been lost is told once more"),
        ("sync_sock_size", str(4 * 1024 * 1024), "room for what is told while the peer is busy"),
        ("backup_only", "0", "a box that listens to its peer balances anyway"),
    ):
        yield Setting(f"net/ipv4/vs/{name}", value, reason)
    if _has_source_nat(snapshot) or snapshot.firewall.of(Where.THROUGH):
        loose = "a tracked connection goes on at the box that takes over"
        yield Setting("net/netfilter/nf_conntrack_tcp_loose", "1", loose)
        yield Setting("net/netfilter/nf_conntrack_tcp_be_liberal", "1", "and when it comes back to the first one")


def render(snapshot: Snapshot) -> str:
    """In sysctl.conf(5) syntax, with the reasons as comments."""
    return "".join(f"# {reason}\n{key} = {value}\n" for key, value, reason, _ in settings(snapshot))
