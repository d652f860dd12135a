"""What `wg show INTERFACE dump` prints: one line about the interface, one about each peer, words between tabs."""

from __future__ import annotations

from dataclasses import dataclass, field

NONE, OFF = "(none)", "off"  # wg's words for what is not set


class WireGuardError(Exception):
    """It cannot be read. The text has no key in it."""


@dataclass(frozen=True, slots=True)
class Peer:
    key: str  # public
    endpoint: str  # "192.0.2.2:51820"; empty: not known
    allowed: frozenset[str]  # networks
    keepalive: int  # seconds; 0: off
    handshake: int = 0  # when the last one was, in seconds since 1970; 0: there was none
    received: int = 0  # bytes
    sent: int = 0


@dataclass(frozen=True, slots=True)
class Device:
    private: str = field(repr=False)  # empty: none
    port: int
    peers: tuple[Peer, ...]


def parse(text: str) -> Device:
    """Raises WireGuardError."""
    try:
        first, *rest = (line.split("\t") for line in text.splitlines())
        private, _, port, _ = first
        return Device("" if private == NONE else private, int(port), tuple(map(_peer, rest)))
    except ValueError:
        raise WireGuardError("what wg prints of it cannot be read") from None


def _peer(words: list[str]) -> Peer:
    key, _, endpoint, allowed, handshake, received, sent, keepalive = words
    return Peer(
        key,
        "" if endpoint == NONE else endpoint,
        frozenset() if allowed == NONE else frozenset(allowed.split(",")),
        0 if keepalive == OFF else int(keepalive),
        int(handshake),
        int(received),
        int(sent),
    )
