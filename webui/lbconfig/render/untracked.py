"""What connection tracking need not know."""

from __future__ import annotations


def web(port: int) -> list[str]:
    """The web UI needs no connection tracking: who may reach it is known by his address.

    A flood to its port, from addresses that may, would fill the table of tracked connections, and then nobody gets in.
    SYN cookies keep the port itself open.
    """
    return [
        "\tchain untracked_web {",
        "\t\ttype filter hook prerouting priority raw; policy accept;",
        f"\t\tip daddr != @vips tcp dport {port} fib daddr type local notrack",
        f"\t\tip6 daddr != @vips6 tcp dport {port} fib daddr type local notrack",
        "\t}",
        "",
        "\tchain untracked_web_answers {",
        "\t\ttype filter hook output priority raw; policy accept;",
        f"\t\ttcp sport {port} notrack",
        "\t}",
        "",
    ]
