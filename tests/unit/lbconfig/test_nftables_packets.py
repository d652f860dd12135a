"""The rendered firewall in a real kernel: packets between throw-away network namespaces.

    client (192.168.50.2 may manage, 203.0.113.2 may not) --- box --- server 10.2.0.11

The box here has no IPVS. What IPVS would take therefore ends in the chains behind it, and their
counters tell that a packet came through the filter; some tests take these chains away.
Needs root, or a kernel that lets ordinary users make namespaces, and nft; else it says why it skips.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import textwrap

import pytest
from firewall_lab import taken_by_ipvs, within

from applier.pair.joining.verbs import OPENED
from lbconfig.model.snapshot import (
    CheckKind,
    HealthCheck,
    Interface,
    Management,
    Network,
    Protocol,
    RealServer,
    Snapshot,
    VirtualService,
)
from lbconfig.render import nftables
from lbconfig.validate.services import validate

BUSY = 8081  # a port that somebody listens on, and no rule opens
SEARCH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
NFT = shutil.which("nft", path=SEARCH)
IP = shutil.which("ip", path=SEARCH)
INSIDE = "FAIRLEAD_TEST_USER_NAMESPACE"

SNAPSHOT = Snapshot(
    services=(
        VirtualService(1, "web", "192.168.50.100", 80, real_servers=(RealServer(1, "10.2.0.11", 8000),)),
        VirtualService(2, "other", "192.168.50.100", 443, real_servers=(RealServer(2, "10.2.0.11", 8443),)),
        VirtualService(
            3,
            "dns",
            "192.168.50.101",
            53,
            Protocol.UDP,
            check=HealthCheck(CheckKind.PING),
            real_servers=(RealServer(3, "10.2.0.11", 53),),
        ),
    ),
    network=Network(
        interfaces=(
            Interface("up0", addresses=("192.168.50.1/24", "203.0.113.1/24")),
            Interface("down0", addresses=("10.2.0.1/24",)),
        )
    ),
    management=Management(allow=("192.168.50.0/24",)),
)

PATIENCE = 20.0  # seconds for what comes
BRIEFLY = 1.0  # second for what must not come

LISTEN = """
    import socket, sys, time
    held = []
    for port in (80, 443, 8081):
        one = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
        held.append(one)
    print("listening", flush=True)
    sys.stdin.read()
"""
CONNECT = """
    import socket, sys
    source, target, port, patience = sys.argv[1:]
    family, where = socket.getaddrinfo(target, int(port), type=socket.SOCK_STREAM)[0][::4]
    with socket.socket(family, socket.SOCK_STREAM) as one:
        one.settimeout(float(patience))
        one.bind((source, 0))
        try:
            one.connect(where)
        except TimeoutError:
            print("dropped")
        except ConnectionRefusedError:
            print("refused")
        else:
            print("open")
"""
# Sends one bare packet: what it carries is no part of a connection that the box has seen.
SEND = """
    import socket, struct, sys
    kind, source, target, port = sys.argv[1:]
    address = socket.inet_aton
    def checksum(data):
        total = sum(struct.unpack(f"!{len(data) // 2}H", data))
        total = (total >> 16) + (total & 0xFFFF)
        return ~(total + (total >> 16)) & 0xFFFF
    numbers = {"tcp-syn-ack": socket.IPPROTO_TCP, "udp": socket.IPPROTO_UDP, "icmp-error": socket.IPPROTO_ICMP}
    number = numbers[kind]
    def pseudo(body):
        return address(source) + address(target) + struct.pack("!BBH", 0, number, len(body)) + body
    if kind == "tcp-syn-ack":
        body = struct.pack("!HHIIBBHHH", int(port), 40000, 1, 1, 5 << 4, 0x12, 1000, 0, 0)
        body = body[:16] + struct.pack("!H", checksum(pseudo(body))) + body[18:]
    elif kind == "udp":
        body = struct.pack("!HHHH", int(port), 40000, 8, 0)
    else:
        inner = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28, 0, 0, 64, 17, 0, address(target), address(source))
        inner += struct.pack("!HHHH", 40000, int(port), 8, 0)
        body = struct.pack("!BBHI", 3, 3, 0, 0) + inner
        body = body[:2] + struct.pack("!H", checksum(body)) + body[4:]
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, number) as one:
        one.bind((source, 0))
        one.sendto(body, (target, 0))
"""
# Prints "ready", then the first IPv4 packet that comes from the given source, or "nothing".
WATCH = """
    import socket, sys, time
    one = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
    print("ready", flush=True)
    until = time.monotonic() + float(sys.argv[2])
    while (left := until - time.monotonic()) > 0:
        one.settimeout(left)
        try:
            packet, place = one.recvfrom(2000)
        except TimeoutError:
            break
        if place[2] != socket.PACKET_OUTGOING and packet[12:16] == socket.inet_aton(sys.argv[1]):
            print("arrived")
            break
    else:
        print("nothing")
"""


class Lab:
    """Three namespaces and the wires between them; gone when it is closed."""

    def __init__(self) -> None:
        self._names = {who: f"fl{os.getpid()}-{who}" for who in ("client", "box", "server")}
        self._open = contextlib.ExitStack()

    def __enter__(self) -> "Lab":
        for name in self._names.values():
            run([IP, "netns", "add", name])
            self._open.callback(subprocess.run, [IP, "netns", "del", name], check=False)
        for who in self._names:
            self.ip(who, "link", "set", "lo", "up")
        self._wire("client", "c0", "box", "up0")
        self._wire("server", "s0", "box", "down0")
        for who, device, address in (
            ("client", "c0", "192.168.50.2/24"),
            ("client", "c0", "203.0.113.2/24"),
            ("box", "up0", "192.168.50.1/24"),
            ("box", "up0", "203.0.113.1/24"),
            ("box", "up0", "192.168.50.100/32"),
            ("box", "up0", "192.168.50.101/32"),
            ("box", "down0", "10.2.0.1/24"),
            ("server", "s0", "10.2.0.11/24"),
        ):
            self.ip(who, "address", "add", address, "dev", device)
        for device in ("up0", "down0"):
            self.ip("box", "-6", "address", "add", "fd00::1/64", "dev", device, "nodad")
        self.ip("client", "-6", "address", "add", "fd00::2/64", "dev", "c0", "nodad")
        self.ip("client", "route", "add", "default", "via", "192.168.50.1")
        self.ip("server", "route", "add", "default", "via", "10.2.0.1")
        self.inside("box", ["sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"])
        self._listen()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _wire(self, one: str, device: str, other: str, far: str) -> None:
        names = self._names
        run(
            [IP, "link", "add", device, "netns", names[one], "type", "veth", "peer", "name", far, "netns", names[other]]
        )
        self.ip(one, "link", "set", device, "up")
        self.ip(other, "link", "set", far, "up")

    def _listen(self) -> None:
        command = self.command("box", python(LISTEN))
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._open.callback(process.wait, 10)
        self._open.callback(process.stdin.close)
        assert process.stdout.readline() == "listening\n"

    def ip(self, who: str, *words: str) -> None:
        run([IP, "-n", self._names[who], *words])

    def command(self, who: str, words: list[str]) -> list[str]:
        return [*within(self._names[who]), *words]

    def inside(self, who: str, words: list[str], text: str = "") -> str:
        return run(self.command(who, words), text)

    def load(self, rules: str) -> None:
        self.inside("box", [NFT, "-f", "-"], rules)

    def dropped(self, chain: str) -> int:
        """Packets counted in a chain."""
        listing = json.loads(self.inside("box", [NFT, "-j", "list", "chain", "inet", "fairlead", chain]))
        rules = [entry["rule"] for entry in listing["nftables"] if "rule" in entry]
        return sum(part["counter"]["packets"] for rule in rules for part in rule["expr"] if "counter" in part)

    def connect(self, source: str, target: str, port: int, patience: float = PATIENCE) -> str:
        return self.inside("client", python(CONNECT, source, target, port, patience)).strip()

    def drops(self, source: str, target: str, port: int) -> bool:
        """Whether nothing answers. What must not come is waited for as briefly as makes sense on a slow machine."""
        return self.connect(source, target, port, BRIEFLY / 2) == "dropped"

    def send(self, kind: str, port: int, patience: float = PATIENCE) -> str:
        """One bare packet from the server towards the client: "arrived" or "nothing"."""
        watch = self.command("client", python(WATCH, "10.2.0.11", patience))
        with subprocess.Popen(watch, stdout=subprocess.PIPE, text=True) as watcher:
            assert watcher.stdout.readline() == "ready\n"
            self.inside("server", python(SEND, kind, "10.2.0.11", "203.0.113.2", port))
            return watcher.communicate(timeout=2 * PATIENCE)[0].strip() or "nothing"


def python(code: str, *words: object) -> list[str]:
    return [sys.executable, "-I", "-c", textwrap.dedent(code), *map(str, words)]


def run(words: list[str], text: str = "") -> str:
    done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, f"{words[:6]}: {done.stderr}"
    return done.stdout


def namespaces_missing() -> str:
    """Why there can be no namespaces here; "" if there can."""
    if NFT is None or IP is None:
        return "nft or ip is not installed"
    if os.geteuid() != 0:
        return "not root: test_as_an_ordinary_user runs this one in a user namespace"
    name = f"fl{os.getpid()}-probe"
    made = subprocess.run([IP, "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode:
        return f"no network namespaces: {made.stderr.strip()}"
    subprocess.run([IP, "netns", "del", name], check=True)
    return ""


@pytest.fixture(scope="module")
def lab():
    if reason := namespaces_missing():
        pytest.skip(reason)
    assert validate(SNAPSHOT) == []
    with Lab() as lab:
        yield lab


@pytest.fixture
def rules(lab):
    lab.load(nftables.render(SNAPSHOT))


@pytest.fixture
def without_ipvs_chains(lab, rules):
    """As if IPVS had taken every packet that reaches it."""
    lab.load(taken_by_ipvs(nftables.render(SNAPSHOT)))


def test_without_rules_all_is_open(lab):
    """The lab itself works: what the other tests find shut is shut by the rules."""
    lab.inside("box", [NFT, "flush", "ruleset"])
    assert lab.connect("192.168.50.2", "192.168.50.1", 443) == "open"
    assert lab.connect("203.0.113.2", "203.0.113.1", 443) == "open"
    assert lab.connect("192.168.50.2", "192.168.50.100", 80) == "open"
    assert lab.connect("fd00::2", "fd00::1", 443) == "open"
    assert lab.send("udp", 9999) == "arrived"


def test_management_is_open_from_the_allowed_network_only(lab, rules):
    assert lab.connect("192.168.50.2", "192.168.50.1", 443) == "open"
    assert lab.drops("203.0.113.2", "203.0.113.1", 443)
    assert lab.drops("203.0.113.2", "192.168.50.1", 443)
    assert lab.drops("fd00::2", "fd00::1", 443)


def test_a_second_box_may_join_from_the_allowed_network_while_the_port_is_open(lab, rules):
    port = [NFT, *OPENED[1:], f"{{ {BUSY} timeout 600s }}"]
    assert lab.drops("192.168.50.2", "192.168.50.1", BUSY)
    lab.inside("box", port)
    assert lab.connect("192.168.50.2", "192.168.50.1", BUSY) == "open"
    assert lab.drops("203.0.113.2", "203.0.113.1", BUSY)
    assert lab.drops("192.168.50.2", "192.168.50.101", BUSY)
    lab.inside("box", [*port[:1], "delete", *port[2:-1], f"{{ {BUSY} }}"])
    assert lab.drops("192.168.50.2", "192.168.50.1", BUSY)


def test_management_does_not_answer_on_a_vip(lab, rules):
    """Not even while the service on port 443 of that VIP is not in the IPVS table yet."""
    assert lab.drops("192.168.50.2", "192.168.50.101", 443)
    before = lab.dropped("input")
    assert lab.drops("192.168.50.2", "192.168.50.100", 443)
    assert lab.dropped("input") > before


def test_a_service_is_open_to_everybody_and_only_ipvs_answers(lab, rules):
    before = lab.dropped("input")
    assert lab.drops("203.0.113.2", "192.168.50.100", 80)
    assert lab.dropped("input") > before


def test_a_service_port_passes_the_filter(lab, without_ipvs_chains):
    assert lab.connect("203.0.113.2", "192.168.50.100", 80) == "open"
    assert lab.connect("192.168.50.2", "192.168.50.100", 80) == "open"


def test_nothing_else_is_open(lab, rules):
    assert lab.drops("192.168.50.2", "192.168.50.1", 8081)
    assert lab.drops("192.168.50.2", "192.168.50.100", 8081)
    assert lab.drops("192.168.50.2", "192.168.50.1", 80)
    assert lab.drops("192.168.50.2", "10.2.0.11", 8000)


def test_the_box_answers_ping(lab, rules):
    lab.inside("client", python(PING, "192.168.50.1"))


def test_the_box_reaches_its_servers(lab, rules):
    """Health checks: what the box began itself may come back, also from a port that replies to clients."""
    code = """
        import socket, sys
        one = socket.create_server(("10.2.0.11", 8000))
        print("listening", flush=True)
        one.settimeout(20)
        one.accept()
    """
    with subprocess.Popen(lab.command("server", python(code)), stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout.readline() == "listening\n"
        lab.inside("box", python("import socket; socket.create_connection(('10.2.0.11', 8000), 20)"))
        assert server.wait(2 * PATIENCE) == 0


@pytest.mark.parametrize(
    ("kind", "port", "what"),
    [
        ("tcp-syn-ack", 8000, "arrived"),
        ("tcp-syn-ack", 8001, "nothing"),
        ("udp", 53, "arrived"),
        ("udp", 8000, "nothing"),
        ("icmp-error", 53, "arrived"),
    ],
)
def test_replies_of_real_servers_pass_whatever_their_state(lab, without_ipvs_chains, kind, port, what):
    assert lab.send(kind, port, PATIENCE if what == "arrived" else BRIEFLY) == what


def test_a_reply_that_ipvs_did_not_translate_does_not_leave(lab, rules):
    before = lab.dropped("forward")
    assert lab.send("tcp-syn-ack", 8000, BRIEFLY) == "nothing"
    assert lab.dropped("forward") == before + 1


def test_loading_again_replaces_and_a_bad_file_changes_nothing(lab, rules):
    lab.load(nftables.render(SNAPSHOT))
    before = lab.inside("box", [NFT, "-s", "list", "ruleset"])
    bad = nftables.render(SNAPSHOT) + "table inet fairlead { chain x { nonsense } }\n"
    done = subprocess.run(
        lab.command("box", [NFT, "-f", "-"]), input=bad, capture_output=True, text=True, check=False, timeout=30
    )
    assert done.returncode != 0
    assert lab.inside("box", [NFT, "-s", "list", "ruleset"]) == before
    assert lab.inside("box", [NFT, "list", "tables"]).strip() == "table inet fairlead"


PING = """
    import socket, struct, sys
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as one:
        one.settimeout(20)
        one.sendto(struct.pack("!BBHHH", 8, 0, 0xF7FF, 0, 0), (sys.argv[1], 0))
        while one.recv(100)[20] != 0:
            pass
"""


@pytest.mark.skipif(os.geteuid() == 0, reason="root needs no user namespace")
@pytest.mark.skipif(INSIDE in os.environ, reason="is inside it")
def test_as_an_ordinary_user(request):
    """The same tests, as root of a user namespace."""
    enter = ["unshare", "--user", "--map-root-user", "--net", "--mount", "sh", "-c"]
    possible = subprocess.run([*enter, "mount -t tmpfs none /run"], capture_output=True, text=True, check=False)
    if possible.returncode:
        pytest.skip(f"ordinary users may not make namespaces here: {possible.stderr.strip()}")
    tests = [sys.executable, "-m", "pytest", "-q", "-rs", __file__]
    done = subprocess.run(
        [*enter, 'mount -t tmpfs none /run && exec "$@"', "sh", *tests],
        env={**os.environ, INSIDE: "1"},
        cwd=request.config.rootpath,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert " passed" in done.stdout
