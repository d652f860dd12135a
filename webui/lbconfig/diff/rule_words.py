"""The words for the admin's own firewall rules: on the screens, in the diff, in what the test of a packet says."""

from __future__ import annotations

from lbconfig.model.firewall import Action, Per, Rule, RuleProtocol, Where
from lbconfig.model.names import Name

ACTIONS: dict[Action, Name] = {
    Action.ALLOW: Name("allow", "It passes, and no later rule is asked."),
    Action.DENY: Name("deny", "It is dropped, and the sender is told nothing."),
    Action.REJECT: Name("reject", "It is dropped, and the sender is told so at once."),
}

WHERE: dict[Where, Name] = {
    Where.BOX: Name("to this box", "For the box itself, such as pings. Who may open the web UI is set under Access."),
    Where.SERVICES: Name(
        "to virtual services", "For what clients send to a virtual service; without a rule everybody may."
    ),
    Where.THROUGH: Name(
        "through this box", "For what is routed, such as updates that real servers fetch; without a rule nobody may."
    ),
}

PROTOCOLS: dict[RuleProtocol, Name] = {
    RuleProtocol.ANY: Name("any protocol", ""),
    RuleProtocol.TCP: Name("TCP", ""),
    RuleProtocol.UDP: Name("UDP", ""),
    RuleProtocol.TCP_UDP: Name("TCP and UDP", ""),
    RuleProtocol.SCTP: Name("SCTP", ""),
    RuleProtocol.PING: Name("ping", ""),
    RuleProtocol.ICMP: Name("ICMP", ""),
    RuleProtocol.GRE: Name("GRE", ""),
    RuleProtocol.ESP: Name("ESP (IPsec)", ""),
    RuleProtocol.OSPF: Name("OSPF", ""),
    RuleProtocol.VRRP: Name("VRRP", ""),
}

PER: dict[Per, str] = {Per.SECOND: "second", Per.MINUTE: "minute"}
_SHOWN = 3  # networks of a list


def sentence(rule: Rule) -> str:
    """Without a point: "allow TCP 22 from 10.0.0.0/8 to this box"."""
    words = [ACTIONS[rule.action].long, what(rule)]
    if rule.sources:
        words.append(f"from {networks(rule.sources)}")
    if rule.interface:
        words.append(f"by {rule.interface}")
    words.append(_target(rule))
    words += [f"({note})" for note in extras(rule)]
    return " ".join(words)


def what(rule: Rule) -> str:
    words = PROTOCOLS[rule.protocol].long if rule.protocol is not RuleProtocol.ANY else "everything"
    return f"{words} {rule.ports.replace(',', ', ')}" if rule.ports else words


def networks(texts: tuple[str, ...]) -> str:
    """The first of them, and how many more there are; single addresses without their length."""
    shown = ", ".join(_plain(text) for text in texts[:_SHOWN])
    more = len(texts) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _plain(text: str) -> str:
    address, _, length = text.partition("/")
    return address if length == ("128" if ":" in address else "32") else text


def _target(rule: Rule) -> str:
    places = {
        Where.BOX: "to this box",
        Where.SERVICES: "to virtual services",
        Where.THROUGH: "through this box",
    }
    if not rule.destinations:
        return places[rule.where]
    at = {Where.BOX: "to this box at", Where.SERVICES: "to virtual services at", Where.THROUGH: "through this box to"}
    return f"{at[rule.where]} {networks(rule.destinations)}"


def extras(rule: Rule) -> list[str]:
    found = []
    if rule.limit.rate:
        each = " from each source" if rule.limit.each_source else ""
        found.append(
            f"at most {rule.limit.rate} new connections a {PER[rule.limit.per]}{each}, {rule.limit.burst} at once"
        )
    if rule.masquerade:
        found.append("with the box's address as the source")
    if rule.log:
        found.append("logged")
    return found
