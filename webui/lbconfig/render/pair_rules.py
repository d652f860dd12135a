"""What the firewall of a pair's box knows of its peer. Without a pair each function but one gives nothing.

The kernel's sync trusts whoever can send to its port: on any interface but the link of the pair, a neighbour could
write the table of connections. Its socket is open as the others are, so the drop stands before the rule about those.

During a change the peer may still speak as it did before it, and this box may still listen: so the rules are those of
all configurations that the rules are for. A box that cannot hear its peer would lead beside it.
"""

from __future__ import annotations

from collections.abc import Iterable

from lbconfig.model import addresses
from lbconfig.model.snapshot import Snapshot
from lbconfig.pair import Heartbeat, heartbeats, peers_addresses, sides
from lbconfig.render.firewall_sets import FAMILIES, All, one_set
from lbconfig.wanted.pair_link import CHANNEL_PORT, LINK, LINK_PORT, SYNC_PORT

CHAIN = "from_peer"
VRRP = "meta l4proto 112"
ADVERTS = "adverts"  # how often the peer has said that it leads (overlay/etc/sv/lead/run)
JOINED = "joined"  # sets: where the other box speaks from that does not run the pair's configuration yet


def sets(all_of: All) -> list[str]:
    """Where the peer's own addresses are, by which of the box's interfaces it speaks, and how often it has."""
    if not _in_pair(all_of):
        return []
    lines = [f"\tcounter {ADVERTS} {{", "\t}", ""]
    for version, suffix, kind in FAMILIES:
        beats = [one for view in all_of for one in _heartbeats(view) if addresses.version(one.peer) == version]
        speaks = [f'"{one.interface}" . {one.peer}' for one in beats]
        lines += one_set(f"heartbeats{suffix}", f"ifname . {kind}", _once(speaks), "the peer's advertisements")
        own = [text for view in all_of for text in peers_addresses(view) if addresses.version(text) == version]
        lines += one_set(f"peer{suffix}", kind, _once(own), "the peer's own addresses")
        lines += one_set(f"{JOINED}{suffix}", kind, [], "where the peer was when the boxes were joined", "timeout")
    return lines


def chain(all_of: All) -> list[str]:
    """What comes by the link between the boxes: the kernel's sync, the channel and pings, and the answers to both."""
    if not _in_pair(all_of):
        return []
    return [
        f"\tchain {CHAIN} {{",
        f"\t\tudp dport {SYNC_PORT} accept",
        f"\t\ttcp dport {CHANNEL_PORT} accept",
        f"\t\ttcp sport {CHANNEL_PORT} tcp flags & (syn | ack) != syn socket transparent 0 accept",
        "\t\ticmp type { echo-request, echo-reply, destination-unreachable } accept",
        "\t\tcounter drop",
        "\t}",
        "",
    ]


def at_input(all_of: All) -> list[str]:
    """The first rules about what comes for the box itself."""
    if not _in_pair(all_of):
        return []
    return [
        f'udp dport {SYNC_PORT} iifname != "{LINK}" counter drop',
        f'iifname "{LINK}" goto {CHAIN}',
        *_once(rule for view in all_of for rule in _cable(view)),
        *(f"ip{suffix} saddr @{JOINED}{suffix} udp dport {LINK_PORT} accept" for _, suffix, _ in FAMILIES),
        f"udp dport {LINK_PORT} counter drop",
        f"{VRRP} iifname . ip saddr @heartbeats counter name {ADVERTS} accept",
        f"{VRRP} iifname . ip6 saddr @heartbeats6 counter name {ADVERTS} accept",
        f"{VRRP} counter drop",
    ]


def _cable(view: Snapshot) -> list[str]:
    both = sides(view)
    if both is None:
        return []
    peer = both.peer.cable_address.partition("/")[0]
    suffix = "6" if addresses.version(peer) == 6 else ""
    return [f'iifname "{both.own.cable}" ip{suffix} saddr {peer} udp dport {LINK_PORT} accept']


def from_joined() -> list[str]:
    """For a box that is alone: if another one has joined it, the channel comes by the link, and nothing else does.

    The link itself needs no rule of its own there: its port is an open socket, and it hears whoever has the key.
    """
    return [f'iifname "{LINK}" tcp dport {CHANNEL_PORT} accept', f'iifname "{LINK}" counter drop']


def at_forward(all_of: All) -> list[str]:
    """Nothing passes by the link. Answers to the peer's checks may come by the servers' gateway, which is this box."""
    if not _in_pair(all_of):
        return []
    return [
        f'iifname "{LINK}" counter drop',
        f'oifname "{LINK}" counter drop',
        "ip daddr @peer accept",
        "ip6 daddr @peer6 accept",
    ]


def untracked(all_of: All) -> list[str]:
    """What comes from the peer belongs to no connection that anybody asks about; what is routed may."""
    if not _in_pair(all_of):
        return []
    here = "fib daddr type local notrack"
    return [f'iifname "{LINK}" notrack', f"udp dport {LINK_PORT} {here}", f"{VRRP} {here}"]


def untracked_answers(all_of: All) -> list[str]:
    """The same of what goes to the peer."""
    if not _in_pair(all_of):
        return []
    return [f'oifname "{LINK}" notrack', f"udp sport {LINK_PORT} notrack", f"{VRRP} notrack"]


def _in_pair(all_of: All) -> bool:
    return any(view.pair is not None for view in all_of)


def _heartbeats(view: Snapshot) -> tuple[Heartbeat, ...]:
    both = sides(view)
    return () if both is None or view.pair is None else heartbeats(view.pair, both.number)


def _once(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))
