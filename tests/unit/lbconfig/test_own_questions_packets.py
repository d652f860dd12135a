"""What the box itself asks for comes back, and only a box that routes tracks connections: real packets.

The namespaces and their rules are those of test_nftables_packets.py.
"""

import dataclasses
import subprocess

import pytest
from test_nftables_packets import NFT, SEND, SNAPSHOT, lab, python, rules  # noqa: F401 (fixtures)

from lbconfig.model.firewall import Firewall, Rule, Where
from lbconfig.render import nftables

# What is routed is tracked, so a box that routes tracks.
ROUTES = Firewall((Rule(1, "out", where=Where.THROUGH, destinations=("198.51.100.9/32",)),))
TRACKING = dataclasses.replace(SNAPSHOT, firewall=ROUTES)
LAST_ACK = "09"  # in /proc/net/tcp: waits for the other end to have seen that it closed, too
# Takes a connection, waits until the other end has closed it, and closes a moment later, too.
CLOSES_LATER = """
    import socket, time
    one = socket.create_server(("10.2.0.11", 8000))
    print("listening", flush=True)
    one.settimeout(20)
    conversation, _ = one.accept()
    conversation.settimeout(20)
    assert conversation.recv(1) == b""
    time.sleep(0.3)
    conversation.close()
    time.sleep(0.7)
"""
ECHO = """
    import socket
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.bind(("10.2.0.11", 53))
    one.settimeout(20)
    print("listening", flush=True)
    for _ in range(2):
        text, whom = one.recvfrom(100)
        one.sendto(text, whom)
"""
# A resolver of one C library asks by a connected socket, that of another by one that is open to all.
ASK = """
    import socket
    for connects in (True, False):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.settimeout(20)
            if connects:
                one.connect(("10.2.0.11", 53))
                one.send(b"?")
            else:
                one.sendto(b"?", ("10.2.0.11", 53))
            assert one.recv(100) == b"?"
"""
PING = """
    import socket, struct
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as one:
        one.settimeout(20)
        one.sendto(struct.pack("!BBHHH", 8, 0, 0xF7FF, 0, 0), ("10.2.0.11", 0))
        while one.recv(100)[20] != 0:
            pass
"""
SYSLOG = """
    import socket, sys
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.bind(("10.2.0.1", 514))
    print("listening", flush=True)
    one.settimeout(1)
    try:
        one.recv(100)
        print("arrived")
    except TimeoutError:
        print("nothing")
"""


@pytest.fixture
def server(lab):  # noqa: F811
    """Starts a program on the server and waits until it listens; "who" may be another machine."""
    started = []

    def start(code: str, who: str = "server") -> subprocess.Popen:
        process = subprocess.Popen(lab.command(who, python(code)), stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout.readline() == "listening\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def stray(lab, kind: str, port: int) -> None:  # noqa: F811
    """A bare packet from that port of the server to port 40000 of the box, where nothing is."""
    lab.inside("server", python(SEND, kind, "10.2.0.11", "10.2.0.1", port))


def test_a_server_sees_the_end_of_a_check_that_the_box_ended_first(lab, rules, server):  # noqa: F811
    """Its last packet comes when the box's socket is closed already; unanswered, the server keeps its own open."""
    process = server(CLOSES_LATER)
    lab.inside("box", python("import socket; socket.create_connection(('10.2.0.11', 8000), 20).close()"))
    assert process.wait(60) == 0
    states = [line.split()[3] for line in lab.inside("server", ["cat", "/proc/net/tcp"]).splitlines()[1:]]
    assert LAST_ACK not in states


def test_answers_by_udp_come_back(lab, rules, server):  # noqa: F811
    process = server(ECHO)
    lab.inside("box", python(ASK))
    assert process.wait(60) == 0


def test_answers_to_a_ping_come_back(lab, rules):  # noqa: F811
    lab.inside("box", python(PING))


@pytest.mark.parametrize("kind", ["tcp-syn-ack", "udp"])
def test_an_answer_that_nobody_asked_for_is_dropped(lab, rules, kind):  # noqa: F811
    before = lab.dropped("input")
    stray(lab, kind, 8000)
    assert lab.dropped("input") == before + 1


def test_a_program_that_listens_at_a_known_port_hears_nothing_by_udp(lab, rules, server):  # noqa: F811
    process = server(SYSLOG, "box")
    code = "import socket; socket.socket(2, 2).sendto(b'x', ('10.2.0.1', 514))"
    lab.inside("server", python(code))
    assert process.stdout.readline() == "nothing\n"


@pytest.mark.parametrize(("tracks", "more"), [(False, 0), (True, 1)])
def test_only_a_box_that_routes_keeps_a_table_of_connections(lab, server, tracks, more):  # noqa: F811
    lab.load(nftables.render(TRACKING if tracks else SNAPSHOT))
    count = ["cat", "/proc/sys/net/netfilter/nf_conntrack_count"]
    before = int(lab.inside("box", count))
    process = server(CLOSES_LATER)
    lab.inside("box", python("import socket; socket.create_connection(('10.2.0.11', 8000), 20).close()"))
    assert process.wait(60) == 0
    assert int(lab.inside("box", count)) == before + more


def test_connections_to_the_web_page_fill_no_table(lab):  # noqa: F811
    """Without the rule for it each is there for two minutes after its end, or for one when nobody goes on with it."""
    lab.load(nftables.render(TRACKING))
    tracked = "cat /proc/sys/net/netfilter/nf_conntrack_count"
    before = int(lab.inside("box", ["sh", "-c", tracked]))
    for _ in range(3):
        assert lab.connect("192.168.50.2", "192.168.50.1", 443) == "open"
    assert int(lab.inside("box", ["sh", "-c", tracked])) <= before
    for chain in ("prerouting", "untracked_web_answers"):
        lab.inside("box", [NFT, "flush", "chain", "inet", "fairlead", chain])
    for _ in range(3):
        assert lab.connect("192.168.50.2", "192.168.50.1", 443) == "open"
    assert int(lab.inside("box", ["sh", "-c", tracked])) >= before + 3
