"""The small drawing client → virtual address → real servers, as numbers for an SVG template."""

from __future__ import annotations

from dataclasses import dataclass

from lbconfig.model.addresses import shown
from lbconfig.model.snapshot import RealServer, ServerState, VirtualService

MOST = 6  # servers that are drawn; more become one line of text
ROW = 34  # height of a server, in units of the drawing
TOP = 12
STATE_WORDS = {ServerState.ENABLED: "", ServerState.QUIESCED: " (draining)", ServerState.DISABLED: " (disabled)"}


@dataclass(frozen=True)
class Box:
    y: int
    middle: int
    text: str
    enabled: bool

    @property
    def long(self) -> bool:
        """Wider than its box at the ordinary size of letters."""
        return len(self.text) > 17


@dataclass(frozen=True)
class Picture:
    height: int
    middle: int
    vip: str
    port: int
    protocol: str
    servers: tuple[Box, ...]
    more: int
    label: str  # for who does not see the drawing


def picture(service: VirtualService) -> Picture:
    drawn = service.real_servers[:MOST]
    more = len(service.real_servers) - len(drawn)
    rows = max(1, len(drawn) + bool(more))
    height = 2 * TOP + rows * ROW
    boxes = tuple(
        Box(top, top + ROW // 2, shown(server.address, server.port), server.state is ServerState.ENABLED)
        for top, server in zip(range(TOP, height, ROW), drawn, strict=False)
    )
    targets = ", ".join(map(_words, service.real_servers))
    where = f"{' or '.join(service.vips[:MOST])} port {service.port}"
    label = f"Clients connect to {where}; the box sends them on to {targets or 'no server yet'}."
    return Picture(height, height // 2, service.address, service.port, service.protocol.upper(), boxes, more, label)


def _words(server: RealServer) -> str:
    return f"{server.address} port {server.port}{STATE_WORDS[server.state]}"
