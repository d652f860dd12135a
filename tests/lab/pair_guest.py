"""Two directors, a client and two servers as network namespaces of one machine, driven by one process in there.

It runs in a guest of the developer image (Python 3.13, the product's modules, root), and is told what to do by files:
FOLDER/in.N has a list of a function's name and its arguments as JSON, FOLDER/out.N gets what it gives, or {"error": …}.
See tests/lab/pair_room.py. What it has for who leads, and for deaths and splits, is in pair_elects.py.

    cl ── front (10.1.0.0/24, 2001:db8:1::/64) ── A, B ── back (10.2.0.0/24, 2001:db8:2::/64) ── s1, s2
    A, B ── cable (10.9.0.0/29)                          s1 and s2 are in front, too: direct routing and tunnels

What joins the directors is the product's own: the files and settings of a pair, the link, the daemons, retelling.
"""

import contextlib
import dataclasses
import functools
import json
import logging
import os
import resource
import selectors
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from pathlib import Path

from applier.base.paths import Paths
from applier.host import ipvs_connections, ipvs_netlink, ipvs_sync
from applier.host.host import Live, run
from applier.host.ipvs_netlink import Daemon
from applier.kept import pair_key
from applier.parts import table
from applier.parts.pair import daemons, link
from applier.parts.pair.retell import retell
from lbconfig.model.snapshot import (
    CheckKind,
    Forwarding,
    HealthCheck,
    Interface,
    Management,
    Network,
    Pair,
    PairBox,
    Protocol,
    RealServer,
    Scheduler,
    Snapshot,
    Tuning,
    VirtualService,
)
from lbconfig.pair import floating
from lbconfig.target import Target
from lbconfig.validate.services import validate
from lbconfig.wanted import table as ipvs

FOLDER = Path("/run/pair")
OF_PROCESS, OF_THREAD = Path("/proc/net"), Path("/proc/thread-self/net")


class OfThread(Live):
    """/proc/net is the network of the process's first thread, whichever one reads it; here each has its own."""

    def read(self, path):
        return super().read(_of_thread(path))

    def lines(self, path, seconds):
        return super().lines(_of_thread(path), seconds)


def _of_thread(path):
    return OF_THREAD / path.relative_to(OF_PROCESS) if path.is_relative_to(OF_PROCESS) else path


HOST = OfThread()
PORT = 7000
PATIENCE = 20.0  # seconds for an answer
NAMESPACED = ("net/ipv4/", "net/ipv6/conf/", "net/netfilter/")
FIRST_RULE = 'udp dport 8848 iifname != "pair0" counter drop\n'
# What a kernel has by itself.
STOCK = {"sync_threshold": "3 50", "sync_refresh_period": "0", "sync_retries": "0", "sync_version": "1"}

NAT, ROUTED, TUNNEL, MARK, MARK2, STICKY, OTHER, CALLS = (f"10.1.0.{number}" for number in range(100, 108))
NAT6, GATEWAY, GATEWAY6 = "2001:db8:1::100", "10.2.0.254", "2001:db8:2::254"
BACK, BACK6, FRONT = ("10.2.0.11", "10.2.0.12"), ("2001:db8:2::11", "2001:db8:2::12"), ("10.1.0.21", "10.1.0.22")
KINDS = {  # of connections: where the client goes
    "TCP4": (socket.SOCK_STREAM, NAT),
    "UDP4": (socket.SOCK_DGRAM, NAT),
    "TCP6": (socket.SOCK_STREAM, NAT6),
    "routed": (socket.SOCK_STREAM, ROUTED),
    "tunnel": (socket.SOCK_STREAM, TUNNEL),
    "mark": (socket.SOCK_STREAM, MARK),
    "mark2": (socket.SOCK_STREAM, MARK2),
    "sticky": (socket.SOCK_STREAM, STICKY),
    "other": (socket.SOCK_STREAM, OTHER),
}


def service(number, address, servers, to=PORT, **fields):
    real = tuple(RealServer(10 * number + place, one, to) for place, one in enumerate(servers))
    off = HealthCheck(CheckKind.OFF)
    plain = VirtualService(number, f"s{number}", address, PORT, scheduler=Scheduler.RR, check=off, real_servers=real)
    return dataclasses.replace(plain, **fields)


SERVICES = (
    service(1, NAT, BACK),
    service(2, NAT, BACK, protocol=Protocol.UDP),
    service(3, NAT6, BACK6),
    service(4, ROUTED, FRONT, forwarding=Forwarding.DIRECT),
    service(5, TUNNEL, FRONT, forwarding=Forwarding.TUNNEL),
    service(6, MARK, BACK, 0, more_addresses=(MARK2,), persistence=600),
    service(7, STICKY, BACK, persistence=500),
    service(8, OTHER, FRONT, forwarding=Forwarding.DIRECT),
    service(9, CALLS, BACK, protocol=Protocol.UDP, persistence=400, call_id=True),
)


@contextlib.contextmanager
def inside(name):
    """In this network namespace; sockets stay where they were made."""
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{name}", os.O_RDONLY)
    os.setns(there, os.CLONE_NEWNET)  # type: ignore[attr-defined] # Python 3.12, which the guest has
    try:
        yield
    finally:
        os.setns(before, os.CLONE_NEWNET)  # type: ignore[attr-defined]
        os.close(there)
        os.close(before)


def sh(text):
    done = subprocess.run(["sh", "-ec", text], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{text}: {done.stdout}{done.stderr}")


# --- the networks ----------------------------------------------------------------------------------------------


def plug(name, interface, bridge):
    port = f"{name}-{interface}"
    sh(
        f"ip link add {port} netns sw type veth peer name {interface} netns {name}; "
        f"ip -n sw link set {port} master {bridge} up; ip -n {name} link set {interface} up"
    )


def build():
    """Everything but the directors."""
    sh("modprobe -q ipip || true; modprobe ip_vs; ip netns add sw; ip -n sw link set lo up")
    for bridge in ("front", "back", "cable"):
        sh(f"ip -n sw link add {bridge} type bridge forward_delay 0 mcast_snooping 0; ip -n sw link set {bridge} up")
    sh("ip netns add cl; ip -n cl link set lo up")
    plug("cl", "eth0", "front")
    sh("ip -n cl address add 10.1.0.10/24 dev eth0; ip -n cl address add 2001:db8:1::10/64 dev eth0 nodad")
    for number, name in ((1, "s1"), (2, "s2")):
        sh(f"ip netns add {name}; ip -n {name} link set lo up")
        plug(name, "eth0", "front")
        plug(name, "eth1", "back")
        at = f"ip -n {name}"
        sh(
            f"ip netns exec {name} sysctl -q -e -w net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2 "
            "net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0 net.ipv4.conf.eth0.rp_filter=0 "
            f"net.ipv4.conf.eth1.rp_filter=0; {at} link show tunl0 >/dev/null 2>&1 || {at} link add tunl0 type ipip; "
            f"{at} link set tunl0 up; ip netns exec {name} sysctl -q -w net.ipv4.conf.tunl0.rp_filter=0; "
            f"{at} address add 10.1.0.2{number}/24 dev eth0; {at} address add 10.2.0.1{number}/24 dev eth1; "
            f"{at} address add 2001:db8:2::1{number}/64 dev eth1 nodad; {at} address add {ROUTED}/32 dev lo; "
            f"{at} address add {OTHER}/32 dev lo; "
            f"{at} address add {TUNNEL}/32 dev tunl0; {at} rule add from 10.2.0.0/24 lookup 9; "
            f"{at} route add default via {GATEWAY} dev eth1 table 9; {at} -6 route add default via {GATEWAY6} dev eth1"
        )
        serve(name, f"10.2.0.1{number}")


BOXES = {"A": 0, "B": 1}
NETWORKS = {"eth0": "front", "eth1": "back", "eth2": "cable"}


def paths(box):
    return Paths(FOLDER / box / "state", None, FOLDER / box / "run")


# More services than those above, for stories that ask for them before the directors are started.
MORE: list[VirtualService] = []
ADVERT = [250]  # milliseconds between two advertisements
FRONT_PREFIX = [24]  # of the boxes' own addresses on the clients' network


@functools.cache
def target(box):
    """What the director runs, as the product renders it."""
    pair = Pair("0123456789abcdef" * 2, (pair_box("A"), pair_box("B")), ADVERT[0])
    wish = Snapshot(services=(*SERVICES, *MORE), management=Management(("10.1.0.0/16",)), pair=pair)
    return Target(1, wish, BOXES[box])


def pair_box(box):
    own = BOXES[box] + 1
    at_back = f"10.2.0.{own}/24", f"2001:db8:2::{own}/64"
    nets = (
        Interface("eth0", addresses=(f"10.1.0.{own}/{FRONT_PREFIX[0]}", f"2001:db8:1::{own}/64")),
        Interface("eth1", addresses=at_back, floating=(f"{GATEWAY}/24", f"{GATEWAY6}/64")),
        Interface("eth2", addresses=(f"10.9.0.{own}/29",)),
    )
    network = Network(hostname=box.lower(), interfaces=nets)
    return PairBox(network, Tuning(), "eth2", f"10.9.0.{own}/29", pair_key.public(HOST, paths(box)))


def keys():
    for box in BOXES:
        paths(box).state.mkdir(parents=True, exist_ok=True)
        pair_key.make(HOST, paths(box))


def start(box):
    """A director with its addresses, rules, settings and table, joined to nobody."""
    wish = target(box)
    if problems := validate(wish.snapshot):
        raise ValueError(str(problems))
    sh(f"ip netns add {box}; ip -n {box} link set lo up")
    for interface, bridge in NETWORKS.items():
        plug(box, interface, bridge)
    with inside(box):
        run(HOST, ["nft", "-f", "-"], wish.rules)
        for one in wish.settings:
            if one.key.startswith(NAMESPACED) and HOST.setting(one.key) is not None:
                HOST.set(one.key, one.value)
        for interface in wish.own.network.interfaces:
            for address in interface.addresses:
                sh(f"ip address add {address} dev {interface.name} {'nodad' if ':' in address else ''}")
        lines = ipvs.difference(ipvs.Table(), wish.table, wish.checked)
        run(HOST, ["ipvsadm", "-R"], "".join(f"{line}\n" for line in lines))


def tune(values):
    for name, value in values.items():
        HOST.set(f"net/ipv4/vs/{name}", value)


def join(box):
    """The link to the other box and the kernel's daemons over it."""
    with inside(box):
        conf = target(box).pair_conf
        link.put(HOST, paths(box), conf)
        daemons.put(HOST, daemons.wanted(link.wanted(conf)))
        return link.altered(HOST, paths(box), conf) or ""


def joined(box):
    """Whether the link has heard the other box, once it has."""
    end = time.monotonic() + PATIENCE
    with inside(box):
        while time.monotonic() < end:
            peer = link.peer(HOST)
            if peer and peer.handshake and peer.received:
                return True
            time.sleep(0.2)
    return False


def forget(box):
    """A director that has lost everything: its namespace is gone, and made anew."""
    sh(f"ip netns delete {box}")
    end = time.monotonic() + 3 * PATIENCE  # the kernel clears a namespace up in its own time
    port = ["ip", "-n", "sw", "link", "show", f"{box}-eth2"]
    while subprocess.run(port, capture_output=True, check=False).returncode == 0:
        if time.monotonic() > end:
            raise RuntimeError(f"the namespace {box} does not go")
        time.sleep(0.2)
    start(box)


def lead(box):
    """The floating addresses go to this box, and the neighbours hear of it."""
    for one in BOXES:
        for interface, address in floating(target(box).snapshot, BOXES[one]):
            more = "nodad preferred_lft 0" if ":" in address and one == box else ""
            verb = "add" if one == box else "del"
            subprocess.run(
                ["ip", "-n", one, "address", verb, address, "dev", interface, *more.split()],
                capture_output=True, check=False,
            )  # fmt: skip
    for name in ("cl", "s1", "s2"):
        sh(f"ip -n {name} neigh flush all; ip -n {name} -6 neigh flush all")


def hold(box, address):
    """This address on this box alone."""
    for one in BOXES:
        sh(f"ip -n {one} address {'add' if one == box else 'del'} {address}/32 dev eth0")


# --- servers and client ----------------------------------------------------------------------------------------

SELECTOR = selectors.DefaultSelector()
ANSWERING = threading.Lock()  # whoever holds it keeps the servers silent; their kernel still takes connections
FILES = 20_000  # that a process may have open


@dataclasses.dataclass
class Serving:
    one: socket.socket
    name: bytes
    listens: bool = False

    def answer(self) -> None:
        if self.listens:
            register(Serving(self.one.accept()[0], self.name))
        elif self.one.type == socket.SOCK_DGRAM:
            _, sender = self.one.recvfrom(4096)
            self.one.sendto(self.name, sender)
        elif self.one.recv(4096):
            self.one.send(self.name)
        else:
            raise OSError("the client has ended")


def register(serving):
    SELECTOR.register(serving.one, selectors.EVENT_READ, serving)


def serve(name, address):
    """Each line and datagram is answered with the server's name."""
    with inside(name):
        for family, own in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
            one = socket.socket(family, socket.SOCK_STREAM)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            one.bind((own, PORT))
            one.listen(4096)
            register(Serving(one, name.encode(), True))
    serve_datagrams(name, address)


def serve_datagrams(name, *addresses):
    with inside(name):
        for address in addresses:
            one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            one.bind((address, PORT))
            register(Serving(one, name.encode()))


def answer_all():
    while True:
        for key, _ in SELECTOR.select(0.2):
            try:
                with ANSWERING:
                    key.data.answer()
            except OSError:
                SELECTOR.unregister(key.data.one)
                key.data.one.close()


@dataclasses.dataclass(eq=False)
class Held:
    kind: str
    client: socket.socket
    server: bytes


HELD: list[Held] = []


def open_some(counts, who="cl"):
    """So many connections of each kind, each of which was spoken over; the servers that they got."""
    found = {}
    for kind, count in counts.items():
        how, vip = KINDS[kind]
        for _ in range(count):
            with inside(who):
                client = socket.socket(socket.AF_INET6 if ":" in vip else socket.AF_INET, how)
                # With NAT a server tells the connections of one client apart by the client's ports alone, and the
                # kernel gives the same one to connections with different VIPs.
                client.bind(("", 0))
            client.settimeout(PATIENCE)
            client.connect((vip, PORT))
            HELD.append(Held(kind, client, exchange(client)))
        found[kind] = Counter(one.server.decode() for one in HELD if one.kind == kind)
    return found


def exchange(client):
    client.send(b"?")
    return client.recv(100)


def talk(kinds=None):
    """Over every connection at once: how many of each kind got an answer from the server that they had."""
    some = [one for one in HELD if kinds is None or one.kind in kinds]
    good = dict.fromkeys((one.kind for one in some), 0)
    for one in answered(some):
        good[one.kind] += 1
    return good


def answered(some):
    """Those that got an answer from the server that they had.

    A datagram that is lost is sent again, as its client would.
    """
    good, waiting = [], list(some)
    for one in waiting:
        forget_answers(one.client)
        ask(one.client)
    end = time.monotonic() + PATIENCE
    while waiting and time.monotonic() < end:
        heard = ready([one.client for one in waiting], 1.0)
        for one in waiting:
            if one.client in heard:
                with contextlib.suppress(OSError):
                    good += [one] if one.client.recv(100) == one.server else []
        waiting = [one for one in waiting if one.client not in heard]
        for one in () if heard else waiting:
            if one.client.type == socket.SOCK_DGRAM:
                ask(one.client)
    return good


def ask(client):
    with contextlib.suppress(OSError):
        client.send(b"?")


def forget_answers(client):
    """Those to a question that was sent twice."""
    client.setblocking(False)
    with contextlib.suppress(OSError):
        while client.recv(100):
            pass
    client.settimeout(PATIENCE)


def ready(sockets, seconds):
    """Those that have something to be read, once one of them has."""
    with selectors.DefaultSelector() as selector:
        for one in sockets:
            selector.register(one, selectors.EVENT_READ)
        return {key.fileobj for key, _ in selector.select(seconds)}


def ring(call, times):
    """So many messages of one SIP call, each from a port of its own; nobody answers these."""
    for _ in range(times):
        with inside("cl"), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            text = f"OPTIONS sip:a@example.com SIP/2.0\r\nCall-ID: {call}\r\nContent-Length: 0\r\n\r\n"
            client.sendto(text.encode(), (CALLS, PORT))


def pause(seconds):
    time.sleep(seconds)


def quiet(kinds, every, times):
    """Speak over these now and then."""
    for _ in range(times):
        time.sleep(every)
        talk(kinds)


# --- what the directors know -----------------------------------------------------------------------------------


def listed(box):
    with inside(box):
        found = map(ipvs_connections.parse, HOST.lines(ipvs_connections.PATH, PATIENCE))
        return [one for one in found if one]


def known(box, kinds=None):
    """Of the connections that the client holds now, by kind."""
    ends = {(one.client, one.client_port, one.virtual, one.virtual_port) for one in listed(box) if not one.template}
    counts: Counter[str] = Counter()
    for one in HELD:
        own, vip = one.client.getsockname(), KINDS[one.kind][1]
        family = socket.AF_INET6 if ":" in vip else socket.AF_INET
        packed = socket.inet_pton(family, own[0]), own[1], socket.inet_pton(family, vip), PORT
        if kinds is None or one.kind in kinds:
            counts[one.kind] += packed in ends
    return counts


def wait_for(box, total, seconds=PATIENCE, kinds=None):
    """What it knows once that is so many, or when the time is over."""
    end = time.monotonic() + seconds
    while sum((found := known(box, kinds)).values()) < total and time.monotonic() < end:
        time.sleep(0.5)
    return found


def templates(box):
    """Virtual address or mark, server, seconds that are left, and the call where it is one of those."""
    found = (one for one in listed(box) if one.template)
    return sorted((one.virtual.hex(), one.server.hex(), one.seconds, one.engine_data.decode()) for one in found)


def bound(box):
    """Port and mark of each service: connections and templates that belong to its servers."""
    with inside(box):
        found = ipvs_netlink.dump(HOST.netlink)
    return {
        f"{one.service.protocol} {one.service.address}": [
            sum(server.active + server.inactive for server in one.servers.values()),
            sum(server.persistent for server in one.servers.values()),
        ]
        for one in found
    }


def tell(box):
    """Retell; what was told."""
    with inside(box):
        return dataclasses.asdict(retell(HOST, target(box).snapshot, link.wanted(target(box).pair_conf)))


def timeout(seconds):
    for box in BOXES:
        with inside(box):
            table.set_timeouts(HOST, (seconds, 120, 300))


def as_stock(box):
    """Tell connections as a kernel does that nobody told otherwise."""
    with inside(box):
        tune(STOCK)


# --- forged ----------------------------------------------------------------------------------------------------


def forge(count):
    """From the client's network, for both sync ids: records of connections that never were; how many B took."""
    records = [
        ipvs_sync.Record(
            6, bytes([11, 7, 0, 1 + one % 250]), 1024 + one, socket.inet_aton(NAT), PORT,
            socket.inet_aton(BACK[0]), PORT, 0, 1, 0, 900,
        )
        for one in range(count)
    ]  # fmt: skip
    with inside("cl"):
        for sync_id in (1, 2):
            HOST.multicast("eth0", ipvs_sync.GROUP, ipvs_sync.PORT, list(ipvs_sync.datagrams(records, sync_id)))
    end = time.monotonic() + 5  # what is taken is there at once
    while (taken := sum(one.client[:2] == b"\x0b\7" for one in listed("B"))) < count and time.monotonic() < end:
        time.sleep(0.2)
    return taken


def without_rule():
    with inside("B"):
        run(HOST, ["nft", "-f", "-"], target("B").rules.replace(FIRST_RULE, ""))


def listen_in_front():
    """The daemon that takes connections listens on the clients' network, as without a link of its own."""
    with inside("B"):
        daemons.put(HOST, (Daemon("backup", "eth0", 1),))


# --- driven by files -------------------------------------------------------------------------------------------


def main(functions):
    logging.basicConfig(level=logging.INFO)
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
    threading.Thread(target=answer_all, daemon=True).start()
    number = 0
    while True:
        asked = FOLDER / f"in.{number}"
        while not asked.exists():
            time.sleep(0.05)
        name, *arguments = json.loads(asked.read_text())
        try:
            found = {"found": functions[name](*arguments)}
        except Exception:  # noqa: BLE001
            found = {"error": traceback.format_exc()}
        temporary = FOLDER / "out.new"
        temporary.write_text(json.dumps(found))
        temporary.rename(FOLDER / f"out.{number}")
        number += 1


if __name__ == "__main__":
    sys.exit(main(globals()))
