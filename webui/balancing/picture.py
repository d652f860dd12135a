"""The small drawing client → virtual address → real servers, as numbers for an SVG template."""

from __future__ import annotations

from dataclasses import dataclass

from lbconfig.snapshot import RealServer, VirtualService

MOST = 6  # servers that are drawn; more become one line of text
ROW = 34  # height of a server, in units of the drawing
TOP = 12


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
    shown = service.real_servers[:MOST]
    more = len(service.real_servers) - len(shown)
    rows = max(1, len(shown) + bool(more))
    height = 2 * TOP + rows * ROW
    boxes = tuple(
        Box(TOP + index * ROW, TOP + index * ROW + ROW // 2, f"{server.address}:{server.port}", server.enabled)
        for index, server in enumerate(shown)
    )
    targets = ", ".join(map(_words, service.real_servers))
    where = f"{service.address} port {service.port}"
    label = f"Clients connect to {where}; the box sends them on to {targets or 'no server yet'}."
    return Picture(height, height // 2, service.address, service.port, service.protocol.upper(), boxes, more, label)


def _words(server: RealServer) -> str:
    return f"{server.address} port {server.port}{'' if server.enabled else ' (disabled)'}"
