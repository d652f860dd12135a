"""Run inside a network namespace of its own: what a neighbour hears when addresses come and move."""

import socket
import subprocess
import sys
import time

from applier.host.host import Live
from applier.parts.announce import announce, changed, places

KEPT, NEW, NEW6, MOVED = "10.0.0.1/24", "10.0.0.2/32", "2001:db8::2/128", "10.0.1.1/24"


def ip(*words: str) -> None:
    if subprocess.run(["ip", *words], check=False).returncode:
        sys.exit(77)


for name in ("c0", "c1"):
    ip("link", "add", name, "type", "veth", "peer", "name", f"far-{name}")
    for end in (name, f"far-{name}"):
        ip("link", "set", end, "up")
ip("address", "add", KEPT, "dev", "c0")
ip("address", "add", MOVED, "dev", "c0")
time.sleep(0.5)  # until the kernel's own first words are over

host = Live()
before = places(host)
ears = {}
for name in ("c0", "c1"):
    ears[name] = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    ears[name].bind((f"far-{name}", 0))
    ears[name].settimeout(1)
ip("address", "add", NEW, "dev", "c0")
ip("address", "add", NEW6, "dev", "c0", "nodad", "preferred_lft", "0")
ip("address", "del", MOVED, "dev", "c0")
ip("address", "add", MOVED, "dev", "c1")
ours = {("c0", KEPT), ("c0", NEW), ("c0", NEW6), ("c1", MOVED)}
now = places(host)
announce(host, changed(before, now, ours))


def heard(name: str) -> list[bytes]:
    found = []
    try:
        while True:
            found.append(ears[name].recv(2000))
    except TimeoutError:
        return found


def asked(frames: list[bytes]) -> list[tuple[str, str, str]]:
    """Sender's MAC, sender's address, wanted address of each ARP request."""
    return [
        (one[22:28].hex(":"), socket.inet_ntoa(one[28:32]), socket.inet_ntoa(one[38:42]))
        for one in frames
        if one[12:14] == b"\x08\x06" and one[20:22] == b"\x00\x01"
    ]


def advertised(frames: list[bytes]) -> list[bytes]:
    return [one for one in frames if one[12:14] == b"\x86\xdd" and one[20] == 58 and one[54] == 136]


here, there = heard("c0"), heard("c1")
assert asked(here) == [(now["c0", NEW], "10.0.0.2", "10.0.0.2")] * 3, asked(here)
assert asked(there) == [(now["c1", MOVED], "10.0.1.1", "10.0.1.1")] * 3, asked(there)
own = [one for one in advertised(here) if one[62:78] == socket.inet_pton(socket.AF_INET6, "2001:db8::2")]
assert len(own) == 3 and not advertised(there)
one = own[0]
assert one[:6] == b"\x33\x33\x00\x00\x00\x01" and one[21] == 255  # to all, and not from beyond a router
assert one[58] & 0x20, "it overrides"
assert one[80:86] == bytes.fromhex(now["c0", NEW6].replace(":", ""))
assert changed(now, places(host), ours) == {}

# The checksum is right where a kernel believes it: a neighbour that knew another MAC takes the new one.
subprocess.run(
    ["ip", "neighbour", "replace", "2001:db8::2", "lladdr", "02:00:00:00:00:99", "dev", "far-c0", "nud", "stale"],
    check=True,
)
announce(host, {("c0", NEW6): now["c0", NEW6]})
shown = subprocess.run(["ip", "neighbour", "show", "dev", "far-c0"], capture_output=True, text=True, check=True).stdout
assert now["c0", NEW6] in shown, shown
