"""The admin's own rules as chains of the firewall's table; nftables.py says at which place each chain is asked.

Every rule of nft that stands for a rule of the admin has a comment "rule N" with its id, and a counter; one that
drops what is above its limit has "rule N over". The test of a packet (lbconfig/judge.py) follows the same order.

Packets of virtual services are not tracked (nftables.py says why), so there each packet meets the rules and not only
the first of a connection. What counts against a limit is told by the packet itself: SYN of TCP, INIT of SCTP, and
each packet of UDP. Of what comes for the box itself, packets of TCP that begin nothing do not come so far.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from ipaddress import ip_network

from lbconfig.model.addresses import SOURCE_BITS
from lbconfig.model.firewall import Action, Firewall, Per, Rule, RuleProtocol, Where
from lbconfig.model.spelling import in_comment

CHAINS = {where: f"own_{where}" for where in Where}
MASQUERADE = 0x80000000  # a mark that no service has; it says how a packet leaves
SOURCES_AT_ONCE = 65535  # of a limit for each source; one that comes when so many are known is not limited

_FAMILIES = {4: ("", "ipv4_addr"), 6: ("6", "ipv6_addr")}  # end of names, nft's type
_FIELDS = {"sources": ("from", "saddr"), "destinations": ("to", "daddr")}
_MATCHES = {
    RuleProtocol.TCP: "meta l4proto tcp",
    RuleProtocol.UDP: "meta l4proto udp",
    RuleProtocol.TCP_UDP: "meta l4proto { tcp, udp }",
    RuleProtocol.SCTP: "meta l4proto sctp",
    RuleProtocol.ICMP: "meta l4proto { icmp, ipv6-icmp }",
    RuleProtocol.GRE: "meta l4proto gre",
    RuleProtocol.ESP: "meta l4proto esp",
    RuleProtocol.OSPF: "meta l4proto 89",
    RuleProtocol.VRRP: "meta l4proto 112",
}
_PING = {4: "icmp type echo-request", 6: "icmpv6 type echo-request"}
SOURCE = {4: "ip saddr", 6: f"ip6 saddr & {ip_network(f'::/{SOURCE_BITS[6]}').netmask}"}
_VERDICTS = {Action.ALLOW: "accept", Action.DENY: "drop", Action.REJECT: "goto refuse"}
# Longer than a bucket of that rate takes to fill again; a source that is forgotten earlier would be let off.
_REMEMBERED = {Per.SECOND: 1, Per.MINUTE: 60}


def used(firewall: Firewall, where: Where) -> bool:
    return bool(firewall.of(where))


def sets(firewall: Firewall) -> Iterator[tuple[str, str, list[str], str, str]]:
    """Name, type, elements, comment and flags of each."""
    for rule in _enabled(firewall):
        for kind in rule.families():
            suffix, type_ = _FAMILIES[kind]
            for field, (word, _) in _FIELDS.items():
                if len(networks := rule.networks(field, kind)) > 1:
                    yield (
                        _set_name(rule, word, kind),
                        type_,
                        list(map(str, networks)),
                        f"{in_comment(rule.name)}: {word}",
                        "interval",
                    )
            if rule.limit.rate and rule.limit.each_source:
                yield (
                    f"rule_{rule.id}_rate{suffix}",
                    type_,
                    [],
                    f"{in_comment(rule.name)}: who came lately",
                    _rate_flags(rule),
                )


def _rate_flags(rule: Rule) -> str:
    seconds = rule.limit.burst * _REMEMBERED[rule.limit.per] // rule.limit.rate + 60
    return remembering(seconds)


def remembering(seconds: int, sources: int = SOURCES_AT_ONCE) -> str:
    """Flags of a set of so many sources, which are forgotten so long after they came last."""
    return f"dynamic, timeout\n\t\tsize {sources}\n\t\ttimeout {seconds}s"


def chains(firewall: Firewall, own_ports: Collection[int]) -> list[str]:
    """Before the chains that ask them. Empty where the admin has no rule. `own_ports`: of the box, beside all rules."""
    begins = {Where.BOX: [f"tcp dport {{ {', '.join(map(str, sorted(own_ports)))} }} return"]}
    lines = []
    if any(rule.action is Action.REJECT for rule in _enabled(firewall)):
        refuse = ["meta l4proto tcp reject with tcp reset", "reject with icmpx admin-prohibited"]
        lines += _chain("refuse", refuse)
    for rule in _enabled(firewall):
        if rule.limit.rate:
            lines += _chain(f"rule_{rule.id}", _limited(rule))
    for where in Where:
        if rules := firewall.of(where):
            own = [line for rule in rules for line in _lines(rule)]
            lines += _chain(CHAINS[where], [*begins.get(where, ()), *own, *_ENDS.get(where, ())])
    return lines


_ENDS = {Where.SERVICES: ["accept"]}


def masquerades(firewall: Firewall, verdict: str = "masquerade") -> list[str]:
    """For the chain of source NAT. `verdict`: what writes the source."""
    wanted = any(rule.masquerade for rule in firewall.of(Where.THROUGH))
    return [f"\t\tmeta mark {MASQUERADE:#x} {verdict}"] if wanted else []


def _enabled(firewall: Firewall) -> list[Rule]:
    return [rule for rule in firewall.rules if rule.enabled]


def _chain(name: str, rules: Iterable[str]) -> list[str]:
    return [f"\tchain {name} {{", *(f"\t\t{rule}" for rule in rules), "\t}", ""]


def _set_name(rule: Rule, word: str, kind: int) -> str:
    return f"rule_{rule.id}_{word}{_FAMILIES[kind][0]}"


def _lines(rule: Rule) -> Iterator[str]:
    """One for both families, where the rule does not tell them apart."""
    verdict = f"goto rule_{rule.id}" if rule.limit.rate else _verdict(rule)
    for match in _matches(rule):
        if rule.log:
            yield f"{match}{_log(rule)}"
        yield f'{match}counter {verdict} comment "rule {rule.id}"'


def _verdict(rule: Rule) -> str:
    mark = f"meta mark set {MASQUERADE:#x} " if rule.masquerade else ""
    return f"{mark}{_VERDICTS[rule.action]}"


def _log(rule: Rule) -> str:
    return f'limit rate 5/second burst 20 packets log prefix "fairlead rule {rule.id} {rule.action}: "'


def _matches(rule: Rule) -> Iterator[str]:
    """How each line of the rule begins: "" or words with a blank at their end."""
    interface = f'iifname "{rule.interface}" ' if rule.interface else ""
    by_family = not rule.any_family or rule.protocol is RuleProtocol.PING
    for kind in rule.families() if by_family else (0,):
        yield f"{interface}{_places(rule, kind)}{_protocol(rule, kind)}"


def _places(rule: Rule, kind: int) -> str:
    words = ""
    for field, (word, key) in _FIELDS.items():
        networks = rule.networks(field, kind) if kind else []
        if networks:
            one = str(networks[0]) if len(networks) == 1 else f"@{_set_name(rule, word, kind)}"
            words += f"ip{_FAMILIES[kind][0]} {key} {one} "
    return words


def _protocol(rule: Rule, kind: int) -> str:
    if rule.protocol is RuleProtocol.ANY:
        return ""
    match = _PING[kind] if rule.protocol is RuleProtocol.PING else _MATCHES[rule.protocol]
    if not rule.ports:
        return f"{match} "
    ports = [str(first) if first == last else f"{first}-{last}" for first, last in rule.port_ranges]
    return f"{match} th dport {{ {', '.join(ports)} }} "


def _limited(rule: Rule) -> Iterator[str]:
    """What of the rule's packets counts, and what is too much of it."""
    if rule.where is Where.SERVICES:
        yield "meta l4proto tcp tcp flags & (fin | syn | rst | ack) != syn accept"
        yield "meta l4proto sctp sctp chunk init missing accept"
    limit = f"limit rate over {rule.limit.rate}/{rule.limit.per} burst {rule.limit.burst} packets"
    over = f'counter drop comment "rule {rule.id} over"'
    if rule.limit.each_source:
        for kind in rule.families():
            yield f"update @rule_{rule.id}_rate{_FAMILIES[kind][0]} {{ {SOURCE[kind]} {limit} }} {over}"
    else:
        yield f"{limit} {over}"
    yield _verdict(rule)
