"""Questions to the neighbours of a link, ARP and neighbour discovery, and when the kernel saw each answer.

The kernel's own resolution cannot be used: it asks once a second, and answers for an address of the box itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import select
import socket
import struct
import time
from collections.abc import Collection, Iterator

from applier.base.frames import answer

_ARP, _IPV6 = 0x0806, 0x86DD  # linux/if_ether.h
_ATTACH_FILTER, _STAMPS = 26, 35  # asm-generic/socket.h: SO_ATTACH_FILTER, SO_TIMESTAMPNS
_TIMESPEC = struct.Struct("=qq")
_LONGEST = 2048  # bytes of a frame that is looked at
# Of all IPv6 only neighbour advertisements: next header ICMPv6 at byte 20, type 136 at byte 54 (linux/filter.h).
_ADVERTISEMENTS = b"".join(
    struct.pack("=HBBI", *one)
    for one in (
        (0x28, 0, 0, 12), (0x15, 0, 5, _IPV6), (0x30, 0, 0, 20), (0x15, 0, 3, 58), (0x30, 0, 0, 54), (0x15, 0, 1, 136),
        (0x06, 0, 0, _LONGEST), (0x06, 0, 0, 0),
    )
)  # fmt: skip


class LiveNeighbours:
    """To be closed. OSError where an interface is not there."""

    def __init__(self, interfaces: Collection[str]) -> None:
        self._sockets: dict[int, tuple[str, socket.socket]] = {}
        self._by_name: dict[str, socket.socket] = {}
        try:
            for name in interfaces:
                for kind in (_ARP, _IPV6):
                    self._open(name, kind)
        except OSError:
            self.close()
            raise

    def _open(self, name: str, kind: int) -> None:
        # Of no protocol until it is bound: nothing comes before the filter is there.
        raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self._sockets[raw.fileno()] = name, raw
        self._by_name[name] = raw
        raw.setblocking(False)
        raw.setsockopt(socket.SOL_SOCKET, _STAMPS, 1)
        if kind == _IPV6:
            program = ctypes.create_string_buffer(_ADVERTISEMENTS, len(_ADVERTISEMENTS))
            about = struct.pack("@HP", len(_ADVERTISEMENTS) // 8, ctypes.addressof(program))
            raw.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, about)
        raw.bind((name, kind))

    def ask(self, interface: str, frame: bytes) -> None:
        """One that is lost is asked again by the caller."""
        with contextlib.suppress(OSError):
            self._by_name[interface].send(frame)

    def answers(self, seconds: float) -> Iterator[tuple[str, str, float]]:
        """For so long: interface, the address that answers there, and when, on CLOCK_BOOTTIME."""
        end = time.monotonic() + seconds
        while True:
            ready = select.select(list(self._sockets), [], [], max(0.0, end - time.monotonic()))[0]
            for handle in ready:
                yield from self._read(*self._sockets[handle])
            if time.monotonic() >= end:
                return

    def _read(self, name: str, raw: socket.socket) -> Iterator[tuple[str, str, float]]:
        with contextlib.suppress(OSError):  # until there are no more
            while True:
                frame, about, _, _ = raw.recvmsg(_LONGEST, 64)
                address = answer(frame)
                if address is not None:
                    yield name, address, _when(about)

    def close(self) -> None:
        for _, raw in self._sockets.values():
            raw.close()


def _when(about: list[tuple[int, int, bytes]]) -> float:
    """On CLOCK_BOOTTIME; the kernel stamps with the time of day."""
    now = time.clock_gettime(time.CLOCK_BOOTTIME)
    for level, kind, data in about:
        if (level, kind) == (socket.SOL_SOCKET, _STAMPS) and len(data) == _TIMESPEC.size:
            seconds, nanoseconds = _TIMESPEC.unpack(data)
            return float(now - (time.time() - (seconds + nanoseconds / 1e9)))
    return now
