"""The cable that carries a flood along, between two ends that this test holds itself."""

from __future__ import annotations

import ipaddress
import socket
import struct
import time

import pytest
from board.machines.flood import Flood
from board.machines.wait import PATIENCE, until

DIRECTOR, CLIENT, FLOOD = b"\x52\x54\0\0\0\2", b"\x52\x54\0\0\0\1", b"\2fload"
SYN, ACK = 0x02, 0x10


class Ends:
    def __init__(self, folder):
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(str(folder / "world"))
        self.listening.listen()
        self.flood = Flood(folder / "director", folder / "world")
        self.world, _ = self.listening.accept()
        until("the cable", (folder / "director").exists, PATIENCE, 0.01)
        self.director = socket.socket(socket.AF_UNIX)
        until("its end", lambda: self.director.connect(str(folder / "director")) is None, PATIENCE, 0.01)
        for end in (self.world, self.director):
            end.settimeout(PATIENCE)

    def speak(self) -> None:
        """The director says something, so that the cable knows its address."""
        put(self.director, frame(CLIENT, DIRECTOR, b"hello"))
        assert take(self.world)[14:19] == b"hello"

    def close(self) -> None:
        self.flood.close()
        for one in (self.director, self.world, self.listening):
            one.close()


@pytest.fixture
def ends(tmp_path):
    ends = Ends(tmp_path)
    yield ends
    ends.close()


def test_a_cable_that_has_ended_says_so_at_once(tmp_path):
    flood = Flood(tmp_path / "director", tmp_path / "nobody")
    with pytest.raises(RuntimeError, match=r"the cable has ended: flood: .*nobody: No such file"):
        flood.plugged_in()
    flood.close()


def test_a_cable_whose_other_end_has_ended_says_so_at_once(ends):
    """It leaves with whoever leaves it."""
    ends.flood.plugged_in()
    ends.world.close()
    until("the cable to end", lambda: ends.flood.process.poll() is not None, PATIENCE, 0.01)
    with pytest.raises(RuntimeError, match="the cable has ended: 0"):
        ends.flood.plugged_in()


def frame(to: bytes, source: bytes, body: bytes, kind: int = 0x88B5) -> bytes:
    return (to + source + struct.pack("!H", kind) + body).ljust(60, b"\0")


def packet_to(address: str) -> bytes:
    header = struct.pack("!BBHHHBBH4s", 0x45, 0, 40, 0, 0, 64, 6, 0, socket.inet_aton("10.1.0.100"))
    return frame(CLIENT, DIRECTOR, header + socket.inet_aton(address), 0x0800)


def put(end: socket.socket, whole: bytes) -> None:
    end.sendall(struct.pack("!I", len(whole)) + whole)


def take(end: socket.socket) -> bytes:
    return exactly(end, struct.unpack("!I", exactly(end, 4))[0])


def exactly(end: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        more = end.recv(count - len(found))
        assert more, "the cable is gone"
        found += more
    return found


def checksum(data: bytes) -> int:
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def test_frames_pass_both_ways_whole_and_in_order(ends):
    ends.speak()
    large = frame(DIRECTOR, CLIENT, bytes(range(256)) * 250)
    for whole in (frame(DIRECTOR, CLIENT, b"one"), large, frame(DIRECTOR, CLIENT, b"two")):
        put(ends.world, whole)
        assert take(ends.director) == whole
    put(ends.director, large)
    assert take(ends.world) == large


@pytest.mark.parametrize(("kind", "protocol", "flags"), [("syn", 6, SYN), ("ack", 6, ACK), ("udp", 17, None)])
def test_a_flood_is_of_real_packets_from_its_network_and_ends_at_its_count(ends, kind, protocol, flags):
    ends.speak()
    ends.flood.begin(kind, "10.1.0.100:80", count=300)
    sources = set()
    for _ in range(300):
        whole = take(ends.director)
        assert whole[:14] == DIRECTOR + FLOOD + b"\x08\0"
        ip, segment = whole[14:34], whole[34:]
        assert checksum(ip) == 0xFFFF and ip[9] == protocol and ip[16:] == socket.inet_aton("10.1.0.100")
        sources.add(ipaddress.ip_address(ip[12:16]))
        assert struct.unpack("!H", segment[2:4]) == (80,)
        if flags:
            assert segment[13] == flags
            assert checksum(ip[12:] + struct.pack("!HH", protocol, len(segment)) + segment) == 0xFFFF
    assert ends.flood.end()[0] == 300
    assert len(sources) > 200 and all(one in ipaddress.ip_network("198.18.0.0/15") for one in sources)


def test_port_0_stands_for_any(ends):
    ends.speak()
    ends.flood.begin("udp", "10.1.0.100:0", count=50)
    ports = {struct.unpack("!H", take(ends.director)[36:38])[0] for _ in range(50)}
    assert len(ports) > 40 and 0 not in ports


def test_the_world_s_frames_find_their_way_between_those_of_a_flood(ends):
    ends.speak()
    ends.flood.begin("syn", "10.1.0.100:80")
    put(ends.world, frame(DIRECTOR, CLIENT, b"a client's"))
    seen = 0
    while take(ends.director)[6:12] != CLIENT:
        seen += 1
        assert seen < 5000, "the cable keeps it back"
    assert ends.flood.running


def test_what_goes_to_its_senders_goes_nowhere(ends):
    ends.speak()
    ends.flood.begin("syn", "10.1.0.100:80", count=1)
    take(ends.director)
    ends.flood.end()
    put(ends.director, packet_to("198.19.7.7"))
    put(ends.director, packet_to("198.20.7.7"))
    assert take(ends.world)[30:34] == socket.inet_aton("198.20.7.7")


def test_it_keeps_to_its_rate_and_ends_with_its_seconds(ends):
    ends.speak()
    began = time.monotonic()
    ends.flood.begin("syn", "10.1.0.100:80", rate=100, seconds=1)
    sent, seconds = ends.flood.end()
    assert 1 <= seconds <= time.monotonic() - began + 0.001  # it is told in milliseconds
    assert 0 < sent <= 100 * seconds + 1


@pytest.mark.parametrize(
    "line",
    [
        "", "syn", "syn 10.1.0.100 80 198.18.0.0/15 0 20000001 10", "syn 10.1.0.100 80 198.18.0.0/15 0 1 601",
        "syn 10.1.0.100 80 198.18.0.0/15 0 1 0", "syn 10.1.0.100 80 198.18.0.0/15 0 1 nan",
        "syn 10.1.0.100 80 0.0.0.0/0 0 1 1", "syn 10.1.0.100 65536 198.18.0.0/15 0 1 1",
        "syn 10.1.0.1000 80 198.18.0.0/15 0 1 1", "syn 10.1.0.100 80 198.18.0.0/15 -1 1 1",
        "ping 10.1.0.100 80 198.18.0.0/15 0 1 1",
    ],
)  # fmt: skip
def test_what_is_not_understood_or_too_much_ends_it(ends, line):
    ends.speak()
    ends.flood._say(line)
    assert ends.flood.process.wait(PATIENCE) == 2
    with pytest.raises(OSError, match="the cable has ended: flood: "):
        ends.flood.end()


def test_nothing_floods_who_has_not_spoken(ends):
    ends.flood.begin("syn", "10.1.0.100:80", count=1)
    assert ends.flood.process.wait(PATIENCE) == 2
