"""The kernel's side of generic netlink for IPVS, built from the tables of linux/ip_vs.h by hand.

It does not use the product's encoder, so that a number that is wrong there shows here.
"""

import socket
import struct

FAMILY = 29
DONE = struct.pack("=IHHIIi", 20, 3, 2, 1, 0, 0)


def attr(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + b"\0" * (-len(value) % 4)


def message(command: int, payload: bytes, kind: int = FAMILY, flags: int = 2) -> bytes:
    body = struct.pack("=BBH", command, 1, 0) + payload
    return struct.pack("=IHHII", 16 + len(body), kind, flags, 1, 0) + body


def error(code: int) -> bytes:
    return struct.pack("=IHHIIi", 36, 2, 0, 1, 0, -code) + b"\0" * 16


def family() -> bytes:
    return message(1, attr(2, b"IPVS\0") + attr(1, struct.pack("=H", FAMILY)), kind=16, flags=0)


def service(
    protocol, address, port, scheduler, flags=2, timeout=0, af=socket.AF_INET, mask=b"\xff\xff\xff\xff"
) -> bytes:
    return attr(
        0x8001,
        attr(1, struct.pack("=H", af))
        + attr(2, struct.pack("=H", protocol))
        + attr(3, socket.inet_pton(af, address).ljust(16, b"\0"))
        + attr(4, struct.pack("!H", port))
        + attr(6, scheduler.encode() + b"\0")
        + attr(7, struct.pack("=II", flags, 0xFFFFFFFF))
        + attr(8, struct.pack("=I", timeout))
        + attr(9, mask)
        + attr(0x800A, attr(1, struct.pack("=I", 5))),
    )


def timeouts(tcp, fin, udp) -> bytes:
    return b"".join(attr(kind, struct.pack("=I", seconds)) for kind, seconds in ((4, tcp), (5, fin), (6, udp)))


def fwmark_service(mark, scheduler, af=socket.AF_INET) -> bytes:
    parts = [(1, struct.pack("=H", af)), (5, struct.pack("=I", mark)), (6, scheduler.encode() + b"\0")]
    parts += [(7, struct.pack("=II", 2, 0xFFFFFFFF)), (8, struct.pack("=I", 0)), (9, b"\xff" * 4)]
    return attr(0x8001, b"".join(attr(*part) for part in parts))


def dest(
    address, port, weight, method=0, active=0, inactive=0, af=socket.AF_INET, with_af=True, upper=0, lower=0, tunnel=()
) -> bytes:
    parts = [
        (1, socket.inet_pton(af, address).ljust(16, b"\0")),
        (2, struct.pack("!H", port)),
        (3, struct.pack("=I", 0x100 | method)),
        (4, struct.pack("=i", weight)),
        (5, struct.pack("=I", upper)),
        (6, struct.pack("=I", lower)),
        (7, struct.pack("=I", active)),
        (8, struct.pack("=I", inactive)),
        (9, struct.pack("=I", 0)),
        (0x800A, attr(1, struct.pack("=I", 7))),
    ]
    if tunnel:
        kind, to, flags = tunnel
        parts += [(13, bytes([kind])), (14, struct.pack("!H", to)), (15, struct.pack("=H", flags))]
    if with_af:
        parts.append((11, struct.pack("=H", af)))
    return attr(0x8002, b"".join(attr(*part) for part in parts))


def daemon(state, interface, sync_id, largest, group="224.0.0.81", port=8848) -> bytes:
    parts = [(1, struct.pack("=I", state)), (2, interface.encode() + b"\0"), (3, struct.pack("=I", sync_id))]
    parts += [(4, struct.pack("=H", largest)), (7, struct.pack("=H", port)), (8, b"\1")]
    parts.append((5, socket.inet_aton(group)))
    return attr(0x8003, b"".join(attr(*part) for part in parts))
