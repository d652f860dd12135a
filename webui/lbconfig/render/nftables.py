"""The firewall: what is not asked for is dropped.

IPVS sits in the same hooks, as any local service does: packets of clients come to `input` with the VIP still as their
destination, replies of real servers to `forward` with the real server's address and port still as their source. Its
own functions stand at priorities 98 to 100 there (ip_vs_core.c): it takes a client's packet out of `input`, and gives
a reply in `forward` the VIP as its source. Both chains of ours stand behind them, at 150 (decision 34):

    input    sees only what IPVS did not want. What is for a service anyway is dropped first: else a service on
             a VIP's port 443 would be the web UI, for everybody, while the IPVS table is empty
    forward  tells by the source whether IPVS knows an answer

So a packet of a service meets no rule, unless something has to be asked before IPVS takes it: the admin's own rules
about services, or whether somebody asks for the sorry page past its service.

Most boxes track nothing (decision 33): what the box itself asks for is known by its open sockets. Where something asks
for states (tracking.py), each packet is looked up once, in `prerouting` before connection tracking: one of a service
or an answer is not tracked (decision 30: IPVS takes it before its entry is kept, so there would be a new entry for
each packet, and it cost more than balancing), and an answer gets a mark, by which `forward` knows it. What a real
server says to the box itself stays tracked then: it may belong to a connection whose source the box wrote. ICMP
errors, which belong to no connection that is tracked, are matched by their type.

With source NAT it is tracked after all (net.ipv4.vs.conntrack), and a packet that IPVS sends on is masqueraded as it
leaves; in a pair it gets a floating address instead, which goes on at the box that takes over. Its tracked connection
was made for the VIP: a server may stand behind one VIP with source NAT and behind another one without.
"""

from __future__ import annotations

from dataclasses import replace

from lbconfig.model import addresses, icmp
from lbconfig.model.firewall import Where
from lbconfig.model.icmp import Care
from lbconfig.model.kept import kept, kept_by
from lbconfig.model.snapshot import (
    SORRY_PORT,
    FallbackKind,
    HealthCheck,
    Management,
    Scheduler,
    Snapshot,
    VirtualService,
)
from lbconfig.render import own_rules, pair_rules, tracking, translation
from lbconfig.render.firewall_sets import FAMILIES, All, by_mark, sets

_AFTER_IPVS = 150
_OF_ANSWER = 0x20000000  # a mark above those of services of several ports, which are their ids
_ASKING = 1024  # ports from which the box asks; no program of it listens there over UDP
_MARK_OF_SERVICE = "meta mark set {ip} daddr . meta l4proto . th dport map @marks{six}"
JOINING = "joining"  # a set of ports
_WEB_LIMIT = "limit rate over 20/second burst 40 packets"


def _part(snapshot: Snapshot) -> tuple[object, ...]:
    """All of a snapshot that the rules are made of."""
    services = tuple(map(_of_service, snapshot.enabled_services))
    return services, snapshot.network, snapshot.management, snapshot.firewall, snapshot.pair


@kept
def _of_service(service: VirtualService) -> VirtualService:
    """Without what balancing alone is about, which is what changes most often."""
    return replace(
        service,
        scheduler=Scheduler.RR,
        check=HealthCheck(),
        note="",
        persistence=0,
        persistence_prefix=0,
        real_servers=tuple(replace(server, weight=1, upper=0, lower=0) for server in service.real_servers),
    )


def render(snapshot: Snapshot, *leaving: Snapshot) -> str:
    """A file for `nft -f`: it replaces the table at once or, on an error, changes nothing.

    With `leaving`, the rules for as long as IPVS still has services and real servers of these configurations: theirs
    pass, too. Such an element opens nothing by itself: what IPVS does not know is dropped behind it.
    """
    part = _part(snapshot)
    return _rules((snapshot, *(one for one in leaving if _part(one) != part)))


def _parts(all_of: All) -> tuple[object, ...]:
    return tuple(map(_part, all_of))


@kept_by(_parts)
def _rules(all_of: All) -> str:
    snapshot = all_of[0]
    parts = [
        "table inet fairlead {}",
        "delete table inet fairlead",
        "",
        *translation.lasting(all_of),
        "table inet fairlead {",
        *sets(all_of),
        *pair_rules.sets(all_of),
        *_for_second_box(snapshot),
        *(_before_tracking(all_of) if tracking.wanted(all_of) else _marking(all_of)),
        *own_rules.chains(snapshot.firewall, snapshot.own_ports),
        *_before_ipvs(all_of),
        *pair_rules.chain(all_of),
        *_input(all_of),
        "",
        *_forward(all_of),
        "",
        *translation.chain(all_of),
        "}",
    ]
    return "".join(f"{line}\n" for line in parts)


def _before_tracking(all_of: All) -> list[str]:
    """Before anything else looks at a packet: what is it, and need it be tracked?

    IPVS finds a service of several ports by its mark. An answer that comes for the box itself stays tracked: it may
    belong to a connection whose source the box wrote.
    """
    rules = _ranged(all_of, f"{_MARK_OF_SERVICE} notrack accept")
    for version, suffix, _ in FAMILIES:
        if _has(all_of, version):
            rules.append(f"ip{suffix} daddr . meta l4proto . th dport @services{suffix} notrack accept")
    rules += _answers(all_of, f"meta mark set {_OF_ANSWER:#x} fib daddr type unicast notrack accept")
    rules += [*pair_rules.untracked(all_of), *tracking.web(all_of[0].management.port)]
    return [*_prerouting(rules), *tracking.answers(all_of)]


def _marking(all_of: All) -> list[str]:
    """Where nothing is tracked: what IPVS finds by a mark, and what `forward` cannot know otherwise.

    There an answer of IPv4 is known by its new source: a VIP, with which nothing comes from outside, as the kernel
    drops whatever has an own address as its source. In IPv6 it does not.
    """
    rules = _ranged(all_of, f"{_MARK_OF_SERVICE} accept")
    rules += _answers(all_of, f"meta mark set {_OF_ANSWER:#x}", 6)
    return _prerouting(rules) if rules else []


def _prerouting(rules: list[str]) -> list[str]:
    begin = "type filter hook prerouting priority raw; policy accept;"
    return ["\tchain prerouting {", *(f"\t\t{rule}" for rule in (begin, *rules)), "\t}", ""]


def _answers(all_of: All, verdict: str, *versions: int) -> list[str]:
    """Rules about packets that come from where answers of real servers come from."""
    served = [(version, suffix) for version, suffix, _ in FAMILIES if version in (versions or (4, 6))]
    one = "ip{six} saddr . meta l4proto . th sport @{name}{six} {verdict}"
    rules = [
        one.format(six=suffix, name="replies", verdict=verdict) for version, suffix in served if _has(all_of, version)
    ]
    return rules + [
        one.format(six=suffix, name="reply_ranges", verdict=verdict)
        for version, suffix in served
        if by_mark(all_of, version)
    ]


def _has(all_of: All, version: int) -> bool:
    """Whether any service is of this family; a rule costs every packet something."""
    return any(addresses.version(one.address) == version for snapshot in all_of for one in snapshot.enabled_services)


def _ranged(all_of: All, rule: str) -> list[str]:
    """A rule about services of several ports; {ip} and {six} differ between IPv4 and IPv6."""
    return [rule.format(ip=f"ip{suffix}", six=suffix) for version, suffix, _ in FAMILIES if by_mark(all_of, version)]


def _before_ipvs(all_of: All) -> list[str]:
    """What must be asked before IPVS takes a packet; most boxes need nothing of it.

    What IPVS hands to the sorry page comes to `input` with the page's own port, so who asks for that port by himself
    has to be told apart before.
    """
    rules = []
    if own_rules.used(all_of[0].firewall, Where.SERVICES):
        rules += _of_services(all_of, f"goto {own_rules.CHAINS[Where.SERVICES]}")
    if _has_sorry_page(all_of):
        rules.append(f"tcp dport {SORRY_PORT} iif != lo counter drop")
    begin = "type filter hook input priority filter; policy accept;"
    return ["\tchain input_before_ipvs {", *(f"\t\t{rule}" for rule in (begin, *rules)), "\t}", ""] if rules else []


def _of_services(all_of: All, verdict: str) -> list[str]:
    """Rules about packets that come for a service."""
    looks = [
        f"ip{suffix} daddr . meta l4proto . th dport @services{suffix} {verdict}"
        for version, suffix, _ in FAMILIES
        if _has(all_of, version)
    ]
    return looks + _ranged(all_of, f"{{ip}} daddr . meta l4proto . th dport @service_ranges{{six}} {verdict}")


def _has_sorry_page(all_of: All) -> bool:
    services = (one for snapshot in all_of for one in snapshot.enabled_services)
    return any(one.fallback.kind is FallbackKind.PAGE for one in services)


def _input(all_of: All) -> list[str]:
    """The admin's own rules stand behind all that the box needs to live and to be managed."""
    snapshot = all_of[0]
    firewall, web = snapshot.firewall, snapshot.management.port
    dhcp = [f'"{interface.name}"' for interface in snapshot.network.interfaces if interface.on and interface.dhcp]
    # The web UI's packets are asked for their address each, so that who loses access loses it at once.
    later = f"tcp dport != {web} tcp flags & (syn | ack) != syn"
    rules = [
        f"type filter hook input priority {_AFTER_IPVS}; policy drop;",
        *pair_rules.at_input(all_of),
        *_of_services(all_of, "counter drop"),
        *([f"tcp dport {SORRY_PORT} accept"] if _has_sorry_page(all_of) else []),
        "iif lo accept",
        f"{later} socket transparent 0 accept",
        f"udp dport >= {_ASKING} socket transparent 0 accept",
        *icmp.rules(4),
        *icmp.rules(6),
        f"icmpv6 type {{ {icmp.names(6, Care.SILENT)} }} drop",
        *([f"iifname {{ {', '.join(dhcp)} }} udp sport 67 udp dport 68 accept"] if dhcp else []),
        f"{later} counter drop",
        *([] if snapshot.pair else pair_rules.from_joined()),
        *_to_web(snapshot.management),
        *([] if snapshot.pair else _to_join(snapshot.management)),
        *([f"jump {own_rules.CHAINS[Where.BOX]}"] if own_rules.used(firewall, Where.BOX) else []),
        "icmp type echo-request limit rate 50/second burst 100 packets accept",
        "icmpv6 type echo-request limit rate 50/second burst 100 packets accept",
        'limit rate 5/second burst 20 packets log prefix "fairlead input drop: "',
        "counter drop",
    ]
    return ["\tchain input {", *(f"\t\t{rule}" for rule in rules), "\t}"]


def _to_web(management: Management) -> list[str]:
    """Who may come to the web UI and where; and of each source so many new connections that it cannot take nginx's all.

    nginx counts a connection only once it has read a request, and gives up one that is half-open after twenty seconds
    at the latest (ten each for the handshake and for the request): so 440 of a source are half-open at most.
    """
    names = ", ".join(f'"{name}"' for name in management.interfaces)
    here = f"iifname {{ {names} }} " if names else ""
    rules = []
    for version, suffix, _ in FAMILIES:
        ip = f"ip{suffix}"
        allowed = f"{here}{ip} saddr @management_v{version} {ip} daddr != @vips{suffix} tcp dport {management.port}"
        count = f"update @web_clients{suffix} {{ {own_rules.SOURCE[version]} {_WEB_LIMIT} }}"
        rules += [f"{allowed} tcp flags & (syn | ack) == syn {count} counter drop", f"{allowed} accept"]
    return rules


def _for_second_box(snapshot: Snapshot) -> list[str]:
    """Empty but while the box waits for another one: the applier adds the port, with its time."""
    if snapshot.pair:
        return []
    return [f"\tset {JOINING} {{", "\t\ttype inet_service", "\t\tflags timeout", "\t}", ""]


def _to_join(management: Management) -> list[str]:
    """Those who may open the web page may join, wherever they come in."""
    return [
        f"ip{suffix} saddr @management_v{version} ip{suffix} daddr != @vips{suffix} tcp dport @{JOINING} accept"
        for version, suffix, _ in FAMILIES
    ]


def _forward(all_of: All) -> list[str]:
    """An answer that IPVS knows has a VIP as its source here; one that it does not know still has the real server's."""
    own = f"jump {own_rules.CHAINS[Where.THROUGH]}"
    used = own_rules.used(all_of[0].firewall, Where.THROUGH)
    routed = ["ct state established,related accept", "ct state invalid counter drop", own] if used else []
    errors = [f"icmp type {{ {icmp.errors(4)} }} accept", f"icmpv6 type {{ {icmp.errors(6)} }} accept"]
    rules = [
        f"type filter hook forward priority {_AFTER_IPVS}; policy drop;",
        *_answered(all_of),
        *(errors if routed or any(snapshot.enabled_services for snapshot in all_of) else []),
        *routed,
        'limit rate 5/second burst 20 packets log prefix "fairlead forward drop: "',
        "counter drop",
    ]
    return ["\tchain forward {", *(f"\t\t{rule}" for rule in rules), "\t}"]


def _answered(all_of: All) -> list[str]:
    """What IPVS does not know is dropped without a word in the log: answers that come late are no attack."""
    marked, six, peer = f"meta mark {_OF_ANSWER:#x}", _has(all_of, 6), pair_rules.at_forward(all_of)
    known = {
        version: f"ip{suffix} saddr @answering{suffix} accept"
        for version, suffix, _ in FAMILIES
        if _has(all_of, version)
    }
    if tracking.wanted(all_of):
        passed = [f"{marked} {rule}" for rule in known.values()]
        return [*passed, *peer, *([f"{marked} counter drop"] if known else [])]
    passed = [known[4]] if 4 in known else []
    passed += [f"{marked} {known[6]}"] if six else []
    dropped = [f"{marked} counter drop"] if six else []
    return [*passed, *peer, *dropped, *_answers(all_of, "counter drop", 4)]
