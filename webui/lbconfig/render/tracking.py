"""Whether the kernel's connection tracking is at work, and what it need not know."""

from __future__ import annotations

from lbconfig.model.firewall import Where
from lbconfig.render import own_rules, pair_rules, translation
from lbconfig.render.firewall_sets import All


def wanted(all_of: All) -> bool:
    """Only source NAT and the admin's rules about what is routed ask for connections.

    The kernel tracks as soon as any rule asks (nf_ct_netns_get), and then every packet pays for it at four hooks.
    """
    return bool(translation.lasting(all_of)) or own_rules.used(all_of[0].firewall, Where.THROUGH)


def web(port: int) -> list[str]:
    """Rules for the end of `prerouting`: the web UI needs no connection tracking.

    Who may reach it is known by his address. A flood to its port, from addresses that may, would fill the table of
    tracked connections, and then nobody gets in. SYN cookies keep the port itself open. The port is asked first: most
    packets are of something else.
    """
    return [
        f"tcp dport {port} ip daddr != @vips fib daddr type local notrack",
        f"tcp dport {port} ip6 daddr != @vips6 fib daddr type local notrack",
    ]


def answers(all_of: All) -> list[str]:
    """The chain about what the box itself sends: answers of the web UI, and what a pair's box says to its peer."""
    return [
        "\tchain untracked_web_answers {",
        "\t\ttype filter hook output priority raw; policy accept;",
        f"\t\ttcp sport {all_of[0].management.port} notrack",
        *(f"\t\t{rule}" for rule in pair_rules.untracked_answers(all_of)),
        "\t}",
        "",
    ]
