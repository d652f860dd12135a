"""What the boot scripts do before Python is loaded (/etc/init.d/S30early), in a room with its own network.

nft and ip are the image's and act; there is no IPVS, so ipvsadm and what drivers do is written down.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest
from board.lab import build
from tests.peers.room import CLEAN, Room

from applier.apply import early
from lbconfig.hardware.actions import Ethtool
from lbconfig.model.snapshot import (
    Bridge,
    CheckKind,
    HealthCheck,
    Interface,
    Management,
    Network,
    Pair,
    PairBox,
    PolicyRoute,
    RealServer,
    Snapshot,
    SorryPage,
    Tuning,
    VirtualService,
)
from lbconfig.target import Target
from lbconfig.validate.services import validate
from lbconfig.wanted.netstate import Link

OVERLAY = build.TOP / "overlay"
SERVICE = VirtualService(
    1, "site", "10.1.0.100", 80, real_servers=(RealServer(1, "10.2.0.11", 80),),
    check=HealthCheck(CheckKind.HTTP, path="/", host="secret.example.org"),
)  # fmt: skip
SNAPSHOT = Snapshot(
    services=(SERVICE,),
    network=Network(
        interfaces=(
            Interface("eth0", addresses=("10.1.0.2/24", "2001:db8:1::2/64")),
            Interface("office", addresses=("10.2.0.1/24",), mtu=1400, bridge=Bridge(("eth1",))),
        ),
        gateway="10.1.0.1",
        policies=(PolicyRoute("2001:db8:1::2", "2001:db8:1::1"),),
        dns=("10.1.0.53",),
    ),
    management=Management(allow=("10.0.0.0/8",)),
    sorry=SorryPage("file 1 table"),
)
assert not validate(SNAPSHOT), validate(SNAPSHOT)


def box_of_a_pair(number: int) -> PairBox:
    card, office = SNAPSHOT.network.interfaces
    own = (
        dataclasses.replace(card, addresses=(f"10.1.0.{3 + number}/24",), floating=("10.1.0.2/24",)),
        dataclasses.replace(office, addresses=(f"10.2.0.{2 + number}/24",), floating=office.addresses),
        Interface("eth2", addresses=(f"192.0.2.{1 + number}/30",)),
    )
    network = Network(hostname=f"lb{1 + number}", interfaces=own, gateway="10.1.0.1")
    return PairBox(network, Tuning(), "eth2", f"192.0.2.{1 + number}/30", KEYS[number])


PRIVATE, *KEYS = (base64.b64encode(bytes([number]) * 32).decode() for number in range(3))
PAIR = dataclasses.replace(
    SNAPSHOT,
    network=Network(),
    pair=Pair("0123456789abcdef" * 2, (box_of_a_pair(0), box_of_a_pair(1))),
)
assert not validate(PAIR), validate(PAIR)
ALONE = Target(12, SNAPSHOT)
STANDS_IN = '#!/bin/sh\necho "${0##*/} $*" >>/run/told\n[ "$*" != -R ] || cat >>/run/told\n[ ! -e /run/refused ]\n'
# What wg answers; the kernel of this machine may have no WireGuard.
WG = f"""#!/bin/sh
case $* in
pubkey) grep -q {PRIVATE} && echo {KEYS[0]} ;;
*) echo "wg $*" >>/run/told && cat >>/run/told ;;
esac
"""
CARDS = ("eth0", "eth1")


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Box(Room):
    def __init__(self, tree: Path) -> None:
        super().__init__("early", OVERLAY, tree)
        self.stand_in("usr/sbin/ipvsadm", "usr/sbin/ethtool", "usr/sbin/modprobe")
        self.stand_in("usr/bin/wg", text=WG)
        self.do("mkdir -p /sys /run/fairlead/faults && mount -t sysfs room /sys")
        self.state, self.run = self.root / "data/applier", self.root / "run/fairlead"

    def stand_in(self, *places: str, text: str = STANDS_IN) -> None:
        for place in places:
            (self.root / place).unlink(missing_ok=True)
            (self.root / place).write_text(text)
            (self.root / place).chmod(0o755)

    def do(self, line: str) -> str:
        words = self.inside("sh", "-c", line)
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, env=CLEAN, check=False)
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
        return done.stdout

    def reset(self) -> None:
        """As at a boot, with all that was kept of SNAPSHOT on the disk."""
        self.do("rm -rf /run/* /data/* /disk /dev/kmsg; mkdir -p /run/fairlead/faults /data/applier/generations/000012")
        self.do(
            "for one in office pair0 eth0 eth1 eth2; do ip link del $one; done 2>/dev/null\n"
            "echo 0 >/proc/sys/net/ipv4/ip_forward"
        )
        self.do(
            "ip -6 rule flush; ip -6 rule add from all lookup main; nft flush ruleset; nft -f /etc/fairlead/closed.nft"
        )
        for number, name in enumerate((*CARDS, "eth2")):
            self.do(f"ip link add {name} address 52:54:00:00:00:0{number} type veth peer name far{number}")
        os.symlink("generations/000012", self.state / "confirmed")
        (self.state / "generations/000012/snapshot.json").write_text("the snapshot\n")
        self.keep()

    def keep_pair(self) -> None:
        (self.root / "data/pair").mkdir()
        (self.root / "data/pair/key").write_text(f"{PRIVATE}\n")
        self.keep((*CARDS, "eth2"), Target(12, PAIR, 0), key=KEYS[0])

    def keep(self, names: tuple[str, ...] = CARDS, target: Target = ALONE, **others: object) -> None:
        version = (OVERLAY / "usr/lib/fairlead/VERSION").read_text().strip()
        memory = int(Path("/proc/meminfo").read_text().split()[1]) // early.BLOCK
        cards = tuple(Link(name, mac=f"52:54:00:00:00:0{number}") for number, name in enumerate(names))
        given = {"version": version, "generation": 12, "snapshot": digest(b"the snapshot\n"), "memory": memory}
        more = {"options": "options ip_vs conn_tab_bits=12\n", "modules": "ip_vs ip_vs_rr\n", "nftables.seen": "{}\n"}
        files = early.files(target, cards, (Ethtool(("-K", "eth0", "gro", "on")),))
        # The kernel of this machine may have no IPVS.
        settings = [line for line in files["settings"].splitlines(keepends=True) if "/vs/" not in line]
        others_here = {"settings": "".join(settings)}
        if "pair-link" in files:
            others_here["pair-link"] = files["pair-link"].replace("type wireguard", "type bridge")
        text = early.text(early.Kept(**given | {"cards": cards} | others), more | files | others_here).encode()
        (self.state / "early").write_bytes(text)
        self.seal()

    def seal(self) -> None:
        (self.state / "early.sha256").write_text(f"{digest((self.state / 'early').read_bytes())}  early\n")

    def start(self) -> None:
        said = self.do("/etc/init.d/S30early start 2>&1")
        assert said == "", "boot scripts are silent on the console"
        assert not (self.run / "early").exists()

    def word(self) -> str:
        """What is in the kernel's log about it; "" where it had nothing to do."""
        log = self.root / "dev/kmsg"
        return log.read_text() if log.exists() else ""

    def told(self) -> list[str]:
        """What the programs were told that act nowhere here."""
        told = self.root / "run/told"
        return told.read_text().splitlines() if told.exists() else []

    def addresses(self) -> set[str]:
        listed = json.loads(self.do("ip -json address show"))
        return {one["local"] for link in listed for one in link["addr_info"] if one["scope"] == "global"}

    def setting(self, key: str) -> str:
        return self.do(f"cat /proc/sys/{key}").strip()


@pytest.fixture(scope="module")
def made():
    if os.geteuid() != 0:
        pytest.skip("not root: there can be no box of its own")
    box = Box(build.base_tree())
    yield box
    box.close()


@pytest.fixture
def box(made):
    made.reset()
    return made


def test_all_of_it_is_brought_up(box):
    box.start()
    assert "generations/000012 runs before the applier is loaded" in box.word()
    assert "10.1.0.100 . tcp . 80" in box.do("nft list table inet fairlead")
    assert box.addresses() >= {"10.1.0.2", "10.1.0.100", "10.2.0.1", "2001:db8:1::2"}
    assert "via 10.1.0.1" in box.do("ip route show default") and "mtu 1400" in box.do("ip link show office")
    assert "from 2001:db8:1::2" in box.do("ip -6 rule show")
    assert (box.setting("net/ipv4/ip_forward"), box.setting("net/ipv4/conf/office/send_redirects")) == ("1", "0")
    target = ALONE
    assert box.told() == [
        "modprobe -q -a ip_vs ip_vs_rr",
        "ethtool -K eth0 gro on",
        f"ipvsadm --set {' '.join(map(str, target.timeouts))}",
        "ipvsadm -R",
        *early.files(target, (), ())["table"].splitlines(),
    ]
    files = {
        "nftables.conf": (target.rules, 0o644),
        "resolv.conf": (target.names, 0o644),
        "names.conf": (target.names, 0o644),
        "sorry/sorry.html": (target.sorry_page, 0o644),
        "ldirectord.cf": (target.checks, 0o600),
        "ldirectord.wanted": ("", 0o644),
        "nftables.seen": ("{}\n", 0o644),
    }
    found = {name: ((box.run / name).read_text(), (box.run / name).stat().st_mode & 0o777) for name in files}
    assert found == files
    assert (box.root / "run/modprobe.d/fairlead.conf").read_text() == "options ip_vs conn_tab_bits=12\n"


def test_a_box_of_a_pair_is_brought_up_and_held(box):
    box.keep_pair()
    box.start()
    assert "generations/000012 runs before the applier is loaded" in box.word()
    target = Target(12, PAIR, 0)
    link = json.loads(box.do("ip -json address show dev pair0"))[0]
    assert (link["mtu"], "UP" in link["flags"]) == (1420, True)
    # It has its own addresses; those that float are the floater's.
    assert box.addresses() >= {"10.1.0.3", "10.2.0.2", "192.0.2.1"}
    assert not box.addresses() & {"10.1.0.2", "10.1.0.100", "10.2.0.1"}
    files = early.files(target, (), ())
    told = box.told()
    synced = told.index("wg syncconf pair0 /proc/self/fd/0")
    assert told[synced + 1 :][: len(target.pair_conf.splitlines()) + 3] == [
        *target.pair_conf.splitlines(), "", "[Interface]", f"PrivateKey = {PRIVATE}",
    ]  # fmt: skip
    # Whoever tells of a connection knows its service.
    assert told[told.index("ipvsadm -R") + 1 :] == [
        *files["table"].splitlines(),
        *(f"ipvsadm {line}" for line in files["daemons"].splitlines()),
    ]
    expected = {
        "pair.conf": target.pair_conf,
        "keepalived.conf": target.keepalived,
        "floating.json": target.floating,
        "hold": "1\nnot ready yet\n",
        "may-lead": "eth2\n",
    }
    assert {name: (box.run / name).read_text() for name in expected} == expected
    assert (box.run / "ldirectord.wanted").exists()


def test_a_box_that_an_admin_holds_does_not_lead_by_itself(box):
    box.keep_pair()
    (box.root / "disk/shared").mkdir(parents=True)
    (box.root / "disk/shared/pair-hold").write_text("{}\n")
    box.start()
    assert (box.run / "hold").read_text() == "1\nnot ready yet\n" and not (box.run / "may-lead").exists()


@pytest.mark.parametrize("key", [None, "", f"{KEYS[1]}\n"], ids=["gone", "empty", "another"])
def test_a_box_with_another_key_is_none_of_the_pair(box, key):
    box.keep_pair()
    path = box.root / "data/pair/key"
    path.unlink() if key is None else path.write_text(key)
    box.start()
    assert box.told() == [] and box.addresses() == set() and box.word() == ""


def shorten(box: Box, name: str, by: int = 1) -> None:
    path = box.state / name
    path.write_bytes(path.read_bytes()[:-by])


UNFIT = {
    "another version": lambda box: box.keep(version="0.0.1"),
    "another memory": lambda box: box.keep(memory=0),
    "another generation is confirmed": lambda box: box.keep(generation=11),
    "none is confirmed": lambda box: (box.state / "confirmed").unlink(),
    "another card": lambda box: box.do("ip link set eth1 address 52:54:00:00:00:77"),
    "a card less": lambda box: box.do("ip link del eth1"),
    "the file is cut short": lambda box: shorten(box, "early", 300),
    "the file is gone": lambda box: (box.state / "early").unlink(),
    "the digest is cut short": lambda box: shorten(box, "early.sha256", 20),
    "the digest is empty": lambda box: (box.state / "early.sha256").write_text(""),
    "the digest is gone": lambda box: (box.state / "early.sha256").unlink(),
    "the snapshot is damaged": lambda box: shorten(box, "generations/000012/snapshot.json"),
    "the disk has a fault": lambda box: (box.run / "faults/data-partition").write_text("It can only be read.\n"),
    "nothing was ever kept": lambda box: box.do("rm -r /data/applier"),
}


@pytest.mark.parametrize("change", UNFIT.values(), ids=UNFIT.keys())
def test_what_does_not_fit_is_not_touched(box, change):
    change(box)
    before = box.do("nft list ruleset")
    box.start()
    assert box.told() == [] and box.addresses() == set() and box.word() == ""
    assert box.do("nft list ruleset") == before
    assert {path.name for path in box.run.iterdir()} == {"faults"}


def test_without_its_rules_the_box_stays_closed(box):
    text = (box.state / "early").read_text()
    (box.state / "early").write_text(text.replace("chain input", "chain 1nput", 1))
    box.seal()
    before = box.do("nft list ruleset")
    box.start()
    assert "the applier goes on from here" in box.word() and "1nput" in box.word()
    assert box.do("nft list ruleset") == before
    assert box.addresses() == set() and box.setting("net/ipv4/ip_forward") == "0"
    assert not (box.run / "nftables.conf").exists() and not (box.run / "ldirectord.wanted").exists()


def test_without_the_table_nothing_is_checked(box):
    (box.root / "run/refused").touch()
    box.start()
    assert "the applier goes on from here" in box.word()
    assert not (box.run / "ldirectord.wanted").exists() and not (box.run / "ldirectord.cf").exists()


def test_the_applier_is_loaded_beside_the_checks_with_less_of_the_processor(box):
    box.stand_in("usr/bin/nice", "usr/bin/python3")
    for marks in ("", "ldirectord.wanted", "running.json"):
        if marks:
            (box.run / marks).touch()
        box.do("/etc/sv/applier/run")
    quick, gentle, again = box.told()
    assert quick == again == "python3 -m applier.daemon"
    assert gentle == f"nice -n 10 {quick}"


def test_what_was_held_back_starts_after_the_first_round_once_the_applier_is_there(box):
    box.stand_in("usr/bin/sv")
    box.do("/usr/lib/fairlead/first-round")
    assert (box.run / "first-round").exists() and box.told() == []
    (box.run / "running.json").touch()
    box.do("/usr/lib/fairlead/first-round")
    assert box.told() == ["sv down /run/service/later"]
