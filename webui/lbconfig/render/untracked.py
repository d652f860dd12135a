"""What connection tracking need not know."""

from __future__ import annotations


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


def web_answers(port: int) -> list[str]:
    return [
        "\tchain untracked_web_answers {",
        "\t\ttype filter hook output priority raw; policy accept;",
        f"\t\ttcp sport {port} notrack",
        "\t}",
        "",
    ]
