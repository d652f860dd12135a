"""The two directors of pair_guest.py as a pair that elects: the real keepalived and floater, and what may befall them.

Each director's services run in its network with /run/fairlead of its own. Hand-overs, readiness and telling of
connections are the product's (Pairs, Watch). The channel alone is played: what one box says of itself is put into the
other one's memory, as long as there is a cable between them.
"""

import contextlib
import dataclasses
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.lab import pair_guest as guest
from tests.lab.pair_guest import (
    BACK,
    BACK6,
    BOXES,
    FOLDER,
    FRONT,
    FRONT_PREFIX,
    GATEWAY6,
    HOST,
    KINDS,
    MORE,
    NAT,
    NETWORKS,
    PATIENCE,
    PORT,
    ROUTED,
    TUNNEL,
    inside,
    paths,
    plug,
    service,
    sh,
    target,
)

from applier.apply.deadline import boottime
from applier.base.paths import Paths
from applier.host import ipvs_sync
from applier.host.host import Host, HostError
from applier.host.ipvs_listing import Listing
from applier.kept.events import Events
from applier.kept.faults import Faults
from applier.kept.generations import Generations
from applier.kept.turn import Turn
from applier.pair import client, ready, roles
from applier.pair.own import Own
from applier.pair.peer import Peer
from applier.pair.verbs import Pairs
from applier.pair.watch import APART, Watch
from applier.parts import table
from applier.parts.pair import daemons, link
from applier.wire.errors import ApplierRefused
from lbconfig.model.snapshot import Forwarding, Protocol
from lbconfig.pair import heartbeats
from lbconfig.target import Target
from lbconfig.wanted.pair_link import CHANNEL_PORT, LINK_PORT

SERVICES = ("floater", "vrrp")
SAYS = 0.2  # seconds between two words of a box
LOOKS = 0.02  # seconds between two looks who leads
PROBED = 7001  # a port of one server
VRRP = 112  # the protocol
NEW = 0.05  # seconds between two new connections
# Whose address they have: with NAT, two connections of one client to different VIPs reach the server with the same
# ports where the client's kernel chose the same one for both, and one of them ends.
YOUNG = "10.1.0.12"

# Of a client everything but the SYN is lost.
MUTE = (
    "table inet mute { chain output { type filter hook output priority 0; "
    f"tcp dport {guest.PORT} tcp flags & (syn | ack) == ack drop; }}; }}\n"
)
ROUTED6, TUNNEL6, SNAT, SNAT6 = "2001:db8:1::101", "2001:db8:1::102", "10.1.0.108", "2001:db8:1::108"
FRONT6 = ("2001:db8:1::21", "2001:db8:1::22")
# Each side of a split has a client and a server: VIPs of these servers alone, with NAT and persistence, and routed.
SIDES = {"near": ("10.1.0.110", "10.1.0.111"), "far": ("10.1.0.112", "10.1.0.113")}
FAR = ("A", "cl2", "s2")  # who is on the far side


# --- more services, clients and servers --------------------------------------------------------------------------


def patient():
    """A death is noticed eight times later than by itself, and no machine is so slow that this moves the lead."""
    guest.ADVERT[0] = 2000


def every_kind():
    """All ways over TCP and UDP, IPv4 and IPv6; source NAT; and services of one server for probes and for splits."""
    MORE.extend(
        (
            service(10, ROUTED6, FRONT6, forwarding=Forwarding.DIRECT),
            service(11, TUNNEL6, FRONT6, forwarding=Forwarding.TUNNEL),
            service(12, ROUTED, FRONT, forwarding=Forwarding.DIRECT, protocol=Protocol.UDP),
            service(13, TUNNEL, FRONT, forwarding=Forwarding.TUNNEL, protocol=Protocol.UDP),
            service(14, SNAT, BACK, forwarding=Forwarding.SNAT),
            service(15, SNAT6, BACK6, forwarding=Forwarding.SNAT),
            service(16, NAT, BACK[:1], PROBED, port=PROBED, protocol=Protocol.UDP),
        )
    )
    for number, (nat, routed) in enumerate(SIDES.values()):
        MORE.append(service(20 + number, nat, BACK[number : number + 1], persistence=600))
        MORE.append(service(22 + number, routed, FRONT[number : number + 1], forwarding=Forwarding.DIRECT))
    KINDS.update(
        {
            "routed6": (socket.SOCK_STREAM, ROUTED6),
            "tunnel6": (socket.SOCK_STREAM, TUNNEL6),
            "routedU": (socket.SOCK_DGRAM, ROUTED),
            "tunnelU": (socket.SOCK_DGRAM, TUNNEL),
            "snat": (socket.SOCK_STREAM, SNAT),
            "snat6": (socket.SOCK_STREAM, SNAT6),
            **{name: (socket.SOCK_STREAM, nat) for name, (nat, _) in SIDES.items()},
            **{f"{name} routed": (socket.SOCK_STREAM, routed) for name, (_, routed) in SIDES.items()},
        }
    )


def a_thousand():
    """As many services, each with a VIP of its own."""
    every_kind()
    FRONT_PREFIX[0] = 16
    for number in range(1000):
        MORE.append(service(100 + number, f"10.1.{4 + number // 250}.{number % 250 + 1}", BACK))


def build():
    """Also a client and networks for another side, and a neighbour on each network."""
    guest.build()
    for bridge in ("front2", "back2"):
        sh(f"ip -n sw link add {bridge} type bridge forward_delay 0 mcast_snooping 0; ip -n sw link set {bridge} up")
    sh("ip netns add cl2; ip -n cl2 link set lo up; ip netns add wire; ip -n wire link set lo up")
    plug("cl2", "eth0", "front")
    plug("wire", "eth0", "cable")
    sh("ip -n cl2 address add 10.1.0.11/24 dev eth0; ip -n wire address add 10.9.0.3/29 dev eth0")
    sh(f"ip -n cl address add {YOUNG}/24 dev eth0")
    for number, name in ((1, "s1"), (2, "s2")):
        at = f"ip -n {name}"
        sh(
            f"{at} address add {FRONT6[number - 1]}/64 dev eth0 nodad; {at} address add {ROUTED6}/128 dev lo; "
            f"{at} link add six type ip6tnl mode ip6ip6 local {FRONT6[number - 1]}; {at} link set six up; "
            f"{at} address add {TUNNEL6}/128 dev six nodad; {at} -6 rule add from 2001:db8:2::/64 lookup 9; "
            f"{at} -6 route add 2001:db8:2::/64 dev eth1 table 9; "
            f"{at} -6 route add default via {GATEWAY6} dev eth1 table 9"
        )
        for _, routed in SIDES.values():
            sh(f"{at} address add {routed}/32 dev lo")
        guest.serve_datagrams(name, ROUTED, TUNNEL)
    # What no client may see.
    sh(
        "ip netns exec cl nft -f - <<'.'\n"
        "table inet seen { counter rst { }\nchain input { type filter hook input priority 0; "
        "tcp flags & rst == rst counter name rst; }\n}\n.\n"
    )


def resets():
    """How many the client has got of its connections."""
    said = subprocess.run(
        ["ip", "netns", "exec", "cl", "nft", "-j", "list", "counters"], capture_output=True, text=True, check=True
    )
    return next(one["counter"]["packets"] for one in json.loads(said.stdout)["nftables"] if "counter" in one)


# --- the boxes -------------------------------------------------------------------------------------------------


class Asks:
    """What a box asks the other one: here both are one process."""

    def __init__(self, name: str) -> None:
        self._name = name

    def ask(self, verb: str, arguments: Mapping[str, object], within: float) -> dict[str, Any]:
        asked = other(PAIR[self._name])
        with inside(asked.name):
            return getattr(asked.pairs, verb)(**arguments)


@dataclasses.dataclass
class Core:
    """What of the daemon the pair needs."""

    paths: Paths
    running: Target
    errands: Any
    generations: Generations
    reasons: Events
    host: Host = HOST
    confirmed: int | None = 1
    loaded: bool = True
    faults: Faults = dataclasses.field(default_factory=Faults)
    turn: Turn = dataclasses.field(default_factory=Turn)
    peer: Peer = dataclasses.field(default_factory=Peer)
    lineage: tuple = ()

    def __post_init__(self) -> None:
        self.own = Own(self, boottime)

    @property
    def ready(self) -> bool:
        """Nothing holds it."""
        found = client.role(self.host, self.paths)
        return found is not None and found.role in (roles.LEADS, roles.STANDS_BY)

    def connections(self) -> int:
        return 0

    def established(self) -> int:
        servers = Listing()(table.listing(self.host)).values()
        return sum(one.active for found in servers for one in found.values())


class Box:
    def __init__(self, name):
        self.name = name
        self.core = Core(
            paths(name), target(name), Asks(name), Generations(FOLDER / name), Events(FOLDER / name / "events")
        )
        self.pairs = Pairs(self.core, boottime)
        self.watch = Watch(self.core, boottime)
        self.services = []

    @property
    def role(self):
        return client.role(HOST, self.core.paths)

    def leads(self):
        found = self.role
        return found is not None and found.role == roles.LEADS

    def begin(self):
        """Start the services as the box does: held until it is ready."""
        run, folder = self.core.paths.run, FOLDER / self.name / "service"
        run.mkdir(parents=True, exist_ok=True)
        for path, text in (
            (self.core.paths.nftables, target(self.name).rules),
            (self.core.paths.hold, roles.hold_text(ready.NOT_YET)),
            (self.core.paths.floating, target(self.name).floating),
            (self.core.paths.keepalived, target(self.name).keepalived),
        ):
            path.write_text(text)
        sh(f"rm -rf {folder}; mkdir {folder}")
        for one in SERVICES:
            sh(f"cp -Rp /etc/sv/{one} {folder}/")
            inner = f"mount --bind {run} /run/fairlead; exec runsv {folder}/{one}"
            self.services.append(subprocess.Popen(["ip", "netns", "exec", self.name, "sh", "-ec", inner]))

    def end(self):
        """Everything at one moment, as when its power is cut: it says nothing any more, then it is not there."""
        found = subprocess.run(["ip", "netns", "pids", self.name], capture_output=True, text=True, check=True)
        processes = [int(one) for one in found.stdout.split()]
        for how in (signal.SIGSTOP, signal.SIGKILL):
            for process in processes:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, how)
            if how is signal.SIGSTOP:
                ports = "".join(f"link set {self.name}-{one} down\n" for one in NETWORKS)
                subprocess.run(["ip", "-n", "sw", "-batch", "-"], input=ports, text=True, check=True)
        for one in self.services:
            one.wait()
        self.services.clear()
        self.core.paths.role.unlink(missing_ok=True)

    def says(self):
        other(self).core.peer.says(self.core.own.beat(self.name.lower()), boottime())

    def tick(self):
        with inside(self.name), contextlib.suppress(HostError):  # its floater starts at the moment
            self.watch.tick()


PAIR: dict[str, Box] = {}
CUT: set[str] = set()  # networks that are split
BOTH = [0.0]  # seconds for which both led


def other(box):
    return next(one for one in PAIR.values() if one is not box)


def elect():
    """Start both boxes; the first one leads, unless the machine stands still meanwhile."""
    PAIR.update({name: Box(name) for name in BOXES})
    for box in PAIR.values():
        box.begin()
    for work in (speak, look):
        threading.Thread(target=work, daemon=True).start()
    settle()


def speak():
    while True:
        time.sleep(SAYS)
        if "cable" in CUT or not all(box.services for box in PAIR.values()):
            continue
        for box in PAIR.values():
            with contextlib.suppress(OSError):
                box.says()


def look():
    last = time.monotonic()
    while True:
        time.sleep(LOOKS)
        now = time.monotonic()
        if all(box.leads() for box in PAIR.values()):
            BOTH[0] += now - last
        last = now


def both():
    """Seconds for which both led, since this was asked last."""
    found, BOTH[0] = BOTH[0], 0.0
    return round(found, 2)


def stands():
    """Role of each box, and since when."""
    return {box.name: list(box.role or ()) for box in PAIR.values()}


def until(what, condition: Callable[[], object]):
    """Wait, and do meanwhile what an applier does once a second."""
    end, due = time.monotonic() + 3 * PATIENCE, 0.0
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(f"{what}: {stands()}, {[box.pairs.line() for box in PAIR.values()]}")
        if time.monotonic() >= due:
            due = time.monotonic() + 1
            for box in PAIR.values():
                if box.services:
                    box.tick()
        time.sleep(LOOKS)


def leader():
    return next((box for box in PAIR.values() if box.leads()), None)


def settle(name=None):
    """Once one box leads, that of this name if there is one, and the other one stands by and was heard."""

    def settled():
        leads = leader()
        if leads is None or name not in (None, leads.name):
            return False
        found = other(leads).role
        return found is not None and found.role == roles.STANDS_BY and leads.pairs.line()["good"]

    until(f"{name or 'one'} to lead and the other one to stand by", settled)
    return leader().name


def hand_over():
    """By the product's verb, from whoever leads; once one leads and the other one stands by again: which.

    A machine that stands still now and then moves the lead by itself, also just before it is handed over.
    """
    end = time.monotonic() + 3 * PATIENCE
    while True:
        old = PAIR[settle()]
        try:
            with inside(old.name):
                old.pairs.pair_hand_over("ann")
            return settle()
        except ApplierRefused:
            if time.monotonic() > end:
                raise


def come_at_a_hand_over(*kinds):
    """Of these clients, who come while the lead is handed over: what each got as an answer.

    The other box has been told all connections just before. They are answered by the server, and whatever they say
    then, that they have heard it as well, passes only once the other box leads.
    """
    old = PAIR[settle()]
    tell = old.pairs._tell
    clients: dict[str, socket.socket] = {}

    def and_they_come(core):
        tell(core)
        if not clients:
            sh(f"ip netns exec cl nft -f - <<'.'\n{MUTE}.\n")
            clients.update((kind, come(kind)) for kind in kinds)

    old.pairs._tell = and_they_come
    try:
        with inside(old.name):
            old.pairs.pair_hand_over("ann")
    finally:
        old.pairs._tell = tell
    assert settle() != old.name
    sh("ip netns exec cl nft delete table inet mute")
    return {kind: client.recv(100).decode() for kind, client in clients.items()}


def come(kind):
    """Connected, as far as the client knows, and his question is on its way."""
    how, vip = KINDS[kind]
    with inside("cl"):
        client = socket.socket(socket.AF_INET6 if ":" in vip else socket.AF_INET, how)
        client.bind(("", 0))
    client.settimeout(2 * PATIENCE)
    client.connect((vip, PORT))
    client.send(b"?")
    return client


def come_back():
    """The box that died: it knows nothing. Once it stands by, and the other one has told it all connections."""
    dead = next(box for box in PAIR.values() if not box.services)
    rest(APART + 2)  # until the other one has noticed
    guest.forget(dead.name)
    guest.join(dead.name)
    PAIR[dead.name] = Box(dead.name)
    PAIR[dead.name].begin()
    return settle(other(PAIR[dead.name]).name)


# --- networks that are split -----------------------------------------------------------------------------------


def cut(*networks):
    """The first box, a client and a server are on their own there, each with its carrier."""
    for network in networks:
        CUT.add(network)
        for name in FAR:
            move(name, network, f"{network}2" if network != "cable" else None)


def heal(*networks):
    """In this order."""
    for network in networks:
        CUT.discard(network)
        for name in FAR:
            move(name, network, network)


def move(name, network, bridge):
    interface = next(one for one, found in NETWORKS.items() if found == network)
    port = f"{name}-{interface}"
    if Path(f"/run/netns/{name}").exists() and port in ports():
        sh(f"ip -n sw link set {port} {f'master {bridge}' if bridge else 'nomaster'}")


def ports():
    found = subprocess.run(["ip", "-n", "sw", "-json", "link", "show"], capture_output=True, text=True, check=True)
    return {one["ifname"] for one in json.loads(found.stdout)}


def lead_apart():
    """Once both lead."""
    until("both to lead", lambda: all(box.leads() for box in PAIR.values()))


def rest(seconds):
    """Meanwhile the appliers do what they do."""
    end = time.monotonic() + seconds
    until("the time to be over", lambda: time.monotonic() >= end)


# --- what a client sees ----------------------------------------------------------------------------------------

PROBE: list[subprocess.Popen] = []


def probe():
    words = [sys.executable, "-m", "tests.lab.pair_probe", "cl", "s1", NAT, str(PROBED), BACK[0]]
    PROBE.append(subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))


def probed():
    """What the probe has counted since it was asked last."""
    asks, says = PROBE[0].stdin, PROBE[0].stdout
    assert asks and says
    asks.write("\n")
    asks.flush()
    return json.loads(says.readline())


class Young(threading.Thread):
    """Opens connections, one after the other, as long as that works."""

    def __init__(self):
        super().__init__(daemon=True)
        self.ended = threading.Event()
        self.opened = []  # (when it was spoken over, socket, server)

    def run(self):
        with inside("cl"):
            while not self.ended.wait(NEW):
                one = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
                one.settimeout(PATIENCE)
                one.bind((YOUNG, 0))
                try:
                    one.connect((NAT, PORT))
                    server = guest.exchange(one)
                except OSError:
                    return
                self.opened.append((time.monotonic(), one, server))


def die():
    """The leading box; when that was, and seconds until the other one leads."""
    old = PAIR[settle()]
    old.end()
    died = time.monotonic()
    until("the other one to lead", other(old).leads)
    return {"at": died, "seconds": round(time.monotonic() - died, 2)}


def die_under_load(seconds):
    """The leading box dies while new connections come: how old they were then, and those of them that were lost."""
    opening = Young()
    opening.start()
    rest(seconds)
    death = die()
    opening.ended.set()
    opening.join()
    died = death["at"]
    some = [(died - when, guest.Held("young", one, server)) for when, one, server in opening.opened if when <= died]
    good = guest.answered([held for _, held in some])
    for _, one, _ in opening.opened:
        one.close()
    lost = [age for age, held in some if held not in good]
    return {"ages": [age for age, _ in some], "lost": lost, "seconds": death["seconds"]}


def die_in_a_crowd(rate, seconds, large):
    """The leading box dies while so many a second come; what became of them, told in messages of this size."""
    resize(large)
    words = [sys.executable, "-m", "tests.lab.pair_crowd", "cl", YOUNG, NAT, str(PORT), str(rate)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as crowd:
        assert crowd.stdin and crowd.stdout
        with guest.ANSWERING:
            rest(seconds)
            death = die()
            print(file=crowd.stdin, flush=True)
        print(death["at"], file=crowd.stdin, flush=True)
        return json.loads(crowd.stdout.readline())


# --- forged ----------------------------------------------------------------------------------------------------

PLACES = {"clients": ("cl", "10.1.0.{}"), "servers": ("s1", "10.2.0.{}"), "cable": ("wire", "10.9.0.{}")}


def forge_all(count):
    """So many of each kind from each network; entries that either box took of it, and who leads since when."""
    before = stands()
    for place, (name, network) in PLACES.items():
        card = "eth1" if place == "servers" else "eth0"
        with inside(name):
            records = forged_records(count)
            for sync_id in (1, 2):
                HOST.multicast(card, ipvs_sync.GROUP, ipvs_sync.PORT, [*ipvs_sync.datagrams(records, sync_id, 1)])
            forge_adverts(count, [network.format(1 + number) for number in BOXES.values()])
            forge_words(count, [network.format(1 + number) for number in BOXES.values()])
    rest(5)  # what is taken is there at once
    taken = sum(one.client[:2] == b"\x0b\7" for box in BOXES for one in guest.listed(box))
    return {"taken": taken, "before": before, "after": stands(), "both": both()}


def forged_records(count):
    return [
        ipvs_sync.Record(
            6, struct.pack("!BBH", 11, 7, one), 1024, socket.inet_aton(NAT), PORT,
            socket.inet_aton(BACK[0]), PORT, 0, 1, 0, 900,
        )
        for one in range(count)
    ]  # fmt: skip


def forge_adverts(count, boxes):
    """VRRP in the sender's own name: of the highest priority, and of the one that leads no more."""
    numbers = [beat.number for beat in heartbeats(target("A").snapshot.pair, 0)]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
        way.connect((boxes[0], 9))
        sender = way.getsockname()[0]
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
        for one in range(count):
            priority, number, box = (255, 0)[one % 2], numbers[one // 2 % len(numbers)], boxes[one % 2]
            raw.sendto(advert(number, priority, sender, box), (box, 0))


def advert(number, priority, sender, box):
    """A packet of VRRP version 3 (RFC 9568), with the address that the instance has, once in 250 ms."""
    ends = socket.inet_aton(sender) + socket.inet_aton(box)
    body = struct.pack("!BBBBHH4s", 0x31, number, priority, 1, 25, 0, socket.inet_aton(f"169.254.255.{number}"))
    body = body[:6] + checksum(ends + struct.pack("!BBH", 0, VRRP, len(body)) + body) + body[8:]
    return struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(body), 0, 0, 255, VRRP, 0) + ends + body


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    return struct.pack("!H", ~(total + (total >> 16)) & 0xFFFF)


def forge_as_peer(seconds):
    """On the clients' network, to the box that leads and in the name of the other one; who leads then."""
    leads = PAIR[settle()]
    own, peer = (f"10.1.0.{BOXES[box.name] + 1}" for box in (leads, other(leads)))
    number = next(beat.number for beat in heartbeats(target("A").snapshot.pair, 0) if beat.interface == "eth0")
    end = time.monotonic() + seconds
    with inside("cl"), socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
        while time.monotonic() < end:
            raw.sendto(advert(number, 255, peer, own), (own, 0))
            time.sleep(0.05)
    rest(1)
    return {"before": leads.name, "after": settle()}


def forge_words(count, boxes):
    """What the channel and the link would say, to where they listen."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for one in range(count):
            port = (CHANNEL_PORT, LINK_PORT)[one % 2]
            with contextlib.suppress(OSError):
                sender.sendto(b'{"kind":"beat","role":"leads"}\n' + struct.pack("!I", one), (boxes[one // 2 % 2], port))


# --- what passes over the cable --------------------------------------------------------------------------------


class Capture(threading.Thread):
    """All frames of the cable."""

    def __init__(self):
        super().__init__(daemon=True)
        with inside("sw"):
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            self.socket.bind(("A-eth2", 3))
        self.socket.settimeout(0.2)
        self.ended = threading.Event()
        self.frames = []

    def run(self):
        while not self.ended.is_set():
            with contextlib.suppress(TimeoutError):
                self.frames.append(self.socket.recv(2048))


CAPTURES: list[Capture] = []


def capture():
    CAPTURES.append(Capture())
    CAPTURES[-1].start()


def captured():
    """How many frames there were, and how many had an address of a client, a service or a server in them."""
    one = CAPTURES.pop()
    one.ended.set()
    one.join()
    texts = ("10.1.0.10", NAT, ROUTED, TUNNEL, *BACK, *FRONT)
    sixes = ("2001:db8:1::10", ROUTED6, *BACK6)
    secrets = [socket.inet_aton(text) for text in texts] + [socket.inet_pton(socket.AF_INET6, text) for text in sixes]
    return {"frames": len(one.frames), "with": sum(any(secret in frame for secret in secrets) for frame in one.frames)}


def as_stock():
    """Both boxes tell connections as a kernel does that nobody told otherwise."""
    for box in BOXES:
        guest.as_stock(box)
    resize(large=True)


def resize(large):
    """The messages in which both boxes tell connections."""
    for box in BOXES:
        with inside(box):
            daemons.resize(HOST, daemons.wanted(link.wanted(target(box).pair_conf)), large)


if __name__ == "__main__":
    sys.exit(guest.main({**vars(guest), **globals()}))
