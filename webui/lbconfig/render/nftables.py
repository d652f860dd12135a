"""The firewall: what is not asked for is dropped.

IPVS sits behind the filter hooks, as any local service does: packets of clients pass `input` with
the VIP still as their destination, replies of real servers pass `forward` with the real server's
address and port still as their source. Connection tracking never sees such a connection whole (IPVS
takes the packets before they are confirmed), so each of its packets may count as new or invalid.
Therefore services and replies are matched by address, before anything looks at the state, and ICMP
errors, which belong to no connection that is tracked, are matched by their type.

Each packet is looked up once, in `prerouting` before connection tracking: one of a service or an answer gets a mark, by
which the other chains know it, and is not tracked (decision 30: making an entry for each packet, only to throw it away,
cost more than balancing it). What a real server says to the box itself, as to a health check, stays tracked.

With source NAT it is tracked after all (net.ipv4.vs.conntrack), and a packet that IPVS sends on is masqueraded as it
leaves. Its tracked connection was made for the VIP: a server may stand behind one VIP with source NAT and behind
another one without.

IPVS's hooks stand at priorities 98 to 100 (ip_vs_core.c): it takes a client's packet out of `input`
there, and gives a reply in `forward` the VIP as its source. So a chain for `input` at 150 sees only what
IPVS did not want: without it a service on a VIP's port 443 would be the web UI, for everybody, while the
IPVS table is empty. The one for `forward` stands there as a whole, as it tells by the source whether IPVS
knows an answer.
"""

from __future__ import annotations

from lbconfig import addresses
from lbconfig.firewall import Where
from lbconfig.render import own_rules, translation, untracked
from lbconfig.render.firewall_sets import FAMILIES, All, by_mark, sets
from lbconfig.snapshot import Snapshot

_AFTER_IPVS = 150
_ICMP_ERRORS = "destination-unreachable, time-exceeded, parameter-problem"
# Marks by which a packet is known once it was looked up. Services of several ports have marks of their own: their ids.
_OF_SERVICE, _OF_ANSWER = 0x40000000, 0x20000000
_ND = "nd-neighbor-solicit, nd-neighbor-advert"
_ROUTERS = "nd-router-solicit, nd-router-advert"  # said by every host on the wire; not worth a line in the log
_ICMP6_ERRORS = "destination-unreachable, packet-too-big, time-exceeded, parameter-problem"


def render(snapshot: Snapshot, *leaving: Snapshot) -> str:
    """A file for `nft -f`: it replaces the table at once or, on an error, changes nothing.

    With `leaving`, the rules for as long as IPVS still has services and real servers of these configurations: theirs
    pass, too. Such an element opens nothing by itself: what IPVS does not know is dropped behind it.
    """
    all_of = (snapshot, *leaving)
    parts = [
        "table inet fairlead {}",
        "delete table inet fairlead",
        "",
        *translation.lasting(all_of),
        "table inet fairlead {",
        *sets(all_of),
        *_early(all_of),
        *untracked.web_answers(all_of[0].management.port),
        *own_rules.chains(snapshot.firewall, snapshot.own_ports),
        *_input(all_of),
        "",
        *_after_ipvs(all_of),
        "",
        *_forward(all_of),
        "",
        *translation.chain(all_of),
        "}",
    ]
    return "".join(f"{line}\n" for line in parts)


def _early(all_of: All) -> list[str]:
    """Before anything else looks at a packet: what is it, and need it be tracked?

    IPVS finds a service of several ports by its mark. An answer that comes for the box itself stays tracked: it belongs
    to a connection of the box, or to one whose source the box wrote.
    """
    rules = _ranged(all_of, "meta mark set {ip} daddr . meta l4proto . th dport map @marks{six} notrack accept")
    for version, suffix, _ in FAMILIES:
        if _has(all_of, version):
            ip = f"ip{suffix}"
            rules.append(
                f"{ip} daddr . meta l4proto . th dport @services{suffix} meta mark set {_OF_SERVICE:#x} notrack accept"
            )
    answer = f"meta mark set {_OF_ANSWER:#x} fib daddr type unicast notrack accept"
    for version, suffix, _ in FAMILIES:
        if _has(all_of, version):
            rules.append(f"ip{suffix} saddr . meta l4proto . th sport @replies{suffix} {answer}")
    rules += _ranged(all_of, f"{{ip}} saddr . meta l4proto . th sport @reply_ranges{{six}} {answer}")
    begin = "type filter hook prerouting priority raw; policy accept;"
    rules = [begin, *rules, *untracked.web(all_of[0].management.port)]
    return ["\tchain prerouting {", *(f"\t\t{rule}" for rule in rules), "\t}", ""]


def _has(all_of: All, version: int) -> bool:
    """Whether any service is of this family; a rule costs every packet something."""
    return any(addresses.version(one.address) == version for snapshot in all_of for one in snapshot.enabled_services)


def _ranged(all_of: All, rule: str) -> list[str]:
    """A rule about services of several ports; {ip} and {six} differ between IPv4 and IPv6."""
    return [rule.format(ip=f"ip{suffix}", six=suffix) for version, suffix, _ in FAMILIES if by_mark(all_of, version)]


def _input(all_of: All) -> list[str]:
    """The admin's own rules stand behind all that the box needs to live and to be managed."""
    snapshot = all_of[0]
    firewall, web = snapshot.firewall, snapshot.management.port
    dhcp = [f'"{interface.name}"' for interface in snapshot.network.interfaces if interface.on and interface.dhcp]
    take = f"goto {own_rules.CHAINS[Where.SERVICES]}" if own_rules.used(firewall, Where.SERVICES) else "accept"
    rules = [
        "type filter hook input priority filter; policy drop;",
        f"meta mark {_OF_SERVICE:#x} {take}",
        *([f"meta mark 1-{_OF_ANSWER - 1:#x} {take}"] if any(by_mark(all_of, one) for one, _, _ in FAMILIES) else []),
        "iif lo accept",
        "ct state established,related accept",
        f"icmp type {{ {_ICMP_ERRORS} }} accept",
        f"icmpv6 type {{ {_ICMP6_ERRORS}, {_ND} }} accept",
        f"icmpv6 type {{ {_ROUTERS} }} drop",
        *([f"iifname {{ {', '.join(dhcp)} }} udp sport 67 udp dport 68 accept"] if dhcp else []),
        "ct state invalid counter drop",
        f"ip saddr @management_v4 ip daddr != @vips tcp dport {web} accept",
        f"ip6 saddr @management_v6 ip6 daddr != @vips6 tcp dport {web} accept",
        *([f"jump {own_rules.CHAINS[Where.BOX]}"] if own_rules.used(firewall, Where.BOX) else []),
        "icmp type echo-request limit rate 50/second burst 100 packets accept",
        "icmpv6 type echo-request limit rate 50/second burst 100 packets accept",
        'limit rate 5/second burst 20 packets log prefix "fairlead input drop: "',
        "counter drop",
    ]
    return ["\tchain input {", *(f"\t\t{rule}" for rule in rules), "\t}"]


def _after_ipvs(all_of: All) -> list[str]:
    return [
        "\tchain input_after_ipvs {",
        f"\t\ttype filter hook input priority {_AFTER_IPVS}; policy accept;",
        "\t\tip daddr . meta l4proto . th dport @services counter drop",
        "\t\tip6 daddr . meta l4proto . th dport @services6 counter drop",
        *_ranged(all_of, "\t\t{ip} daddr . meta l4proto . th dport @service_ranges{six} counter drop"),
        "\t}",
    ]


def _forward(all_of: All) -> list[str]:
    """An answer that IPVS knows has a VIP as its source here; one that it does not know still has the real server's."""
    own = f"jump {own_rules.CHAINS[Where.THROUGH]}"
    used = own_rules.used(all_of[0].firewall, Where.THROUGH)
    routed = ["ct state established,related accept", "ct state invalid counter drop", own] if used else []
    errors = [f"icmp type {{ {_ICMP_ERRORS} }} accept", f"icmpv6 type {{ {_ICMP6_ERRORS} }} accept"]
    answers = [
        f"meta mark {_OF_ANSWER:#x} ip{suffix} saddr @answering{suffix} accept"
        for version, suffix, _ in FAMILIES
        if _has(all_of, version)
    ]
    rules = [
        f"type filter hook forward priority {_AFTER_IPVS}; policy drop;",
        *answers,
        *([f"meta mark {_OF_ANSWER:#x} counter drop"] if answers else []),
        *(errors if routed or any(snapshot.enabled_services for snapshot in all_of) else []),
        *routed,
        'limit rate 5/second burst 20 packets log prefix "fairlead forward drop: "',
        "counter drop",
    ]
    return ["\tchain forward {", *(f"\t\t{rule}" for rule in rules), "\t}"]
