"""While packets flood in, the box answers its admin and serves its clients."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from board.lab.build import Image
from board.machines.director import VIP, Director, service
from board.machines.flood import Flood, cable, joined, wish_flooded
from board.machines.lab import Lab, make_lab
from board.machines.wait import PATIENCE, until
from tests.lab.fixtures import FRESH, thorough
from tests.lab.moments import SharedLab

from lbconfig.model.snapshot import CheckKind, HealthCheck

pytestmark = pytest.mark.timeout(900)

OFF = HealthCheck(CheckKind.OFF)
OWN = "10.1.0.1"  # of the box, where the flood comes in
ALLOWED = "10.64.0.0/10"  # senders that may reach the web page
LOG_A_SECOND = 2000  # bytes: ten lines, where each packet would make one of 150 bytes
SHORT = 30  # MiB that the flood may take in the story of short memory
FILL = "/run/fill"
# What the services get of the processor while one of them, of the web page's priority, always wants it, and in relation
# to what the busiest thread gets that handles packets. The others take their part of it, on a slow host a large one.
SHARE = """
import glob, time
def handled():
    found = {}
    for place in glob.glob("/proc/[0-9]*/stat"):
        name, rest = open(place).read().rsplit(")", 1)
        if "(napi/" in name:
            found[place] = sum(map(int, rest.split()[11:13])) / 100
    return found
def used_by_all():
    return int(open("/sys/fs/cgroup/services/cpu.stat").readline().split()[1]) / 1e6
before, began, used = handled(), time.monotonic(), used_by_all()
while time.monotonic() < began + 8:
    pass
took, used = time.monotonic() - began, used_by_all() - used
print(used / took, used / max(seconds - before[place] for place, seconds in handled().items()))
"""
BEGUN = 3.0  # seconds until a flood is well under way


@pytest.fixture(scope="module")
def flooded(image: Image, lab: SharedLab) -> Iterator[tuple[Lab, Flood]]:
    """The machines of all stories, at the same moment, with another cable between them."""
    with tempfile.TemporaryDirectory(prefix="fairlead-") as name:
        folder = Path(name)
        made = make_lab(folder, image, cable(folder))
        other = SharedLab(made.director, made.world, kept=lab.kept)
        other.prepare(FRESH, already_made)
        with joined(other, FRESH) as flood:
            other.director.apply(wish_flooded(service(1, "site", check=OFF)))
            # The clock of a disk image may jump by as long as the moment is past; then its web process starts again.
            until("the web page", lambda: other.director.page()[0] == 200, PATIENCE, 1)
            other.world.get(f"{VIP}:80/", 3)  # and both know each other's hardware address
            yield other, flood


def already_made(_: Lab) -> None:
    raise AssertionError("the lab of all stories has been there")


@pytest.fixture
def flood(flooded: tuple[Lab, Flood]) -> Iterator[Flood]:
    yield flooded[1]
    if flooded[1].running:
        flooded[1].stop()


@pytest.fixture
def director(flooded: tuple[Lab, Flood]) -> Director:
    return flooded[0].director


@pytest.fixture
def world(flooded: tuple[Lab, Flood]):
    return flooded[0].world


def begin(flood: Flood, kind: str, target: str, **more) -> None:
    flood.begin(kind, target, seconds=200, **more)
    time.sleep(BEGUN)


def counted(director: Director, table: str) -> int:
    """Entries of the connection table of IPVS ("ip_vs") or of connection tracking."""
    if table == "ip_vs":
        return int(director.succeed("grep -c . /proc/net/ip_vs_conn"))
    return int(director.read("/proc/sys/net/netfilter/nf_conntrack_count"))


def wait_for_empty_table(director: Director) -> None:
    """IPVS forgets what a flood before left behind a minute later, and takes its time for so many."""
    until("the connections of a flood before are forgotten", lambda: counted(director, "ip_vs") < 100, 180, 1)


def free(director: Director) -> int:
    """Pages."""
    return int(director.succeed("awk '/^MemFree/ { print $2 }' /proc/meminfo")) // 4


def kept(director: Director) -> int:
    """Bytes of files that the services have in memory."""
    return int(director.succeed("awk '/^file / { print $2 }' /sys/fs/cgroup/services/memory.stat"))


def setting(director: Director, name: str) -> int:
    return int(director.read(f"/proc/sys/net/ipv4/vs/{name}"))


@pytest.mark.parametrize("kind", ["syn", pytest.param("ack", marks=thorough), pytest.param("udp", marks=thorough)])
def test_the_web_page_answers_while_a_service_is_flooded(director, world, flood, kind):
    """By packets that begin connections, that belong to none, and of a protocol that it does not speak."""
    begin(flood, kind, f"{VIP}:80")
    status, page = director.page()
    assert status == 200 and "Set up" in page
    assert world.get(f"{VIP}:80/name", 4).count("error: timed out") < 4
    sent, seconds = flood.stop()
    assert sent > 1000 * seconds  # else it was none
    assert set(world.get(f"{VIP}:80/name", 3)) == {"rs1", "rs2", "rs3"}


@thorough
def test_the_console_answers_while_a_service_is_flooded(director, flood):
    begin(flood, "syn", f"{VIP}:80")
    director.answered = len(director.console)
    director.type("\n")
    until("the console's menu", lambda: director.shown_since("Power off"))
    sent, seconds = flood.stop()
    assert sent > 1000 * seconds


@thorough
def test_services_keep_their_share_of_the_processor(director, flood):
    begin(flood, "syn", f"{VIP}:80")
    share, times = map(float, director.succeed(["nice", "-n", "10", "python3", "-c", SHARE]).split())
    # As much as one such thread. With more, clients of a busy box would notice an apply (decision 36); by nice values
    # alone it would be a tenth.
    assert 0.75 < times < 1.33, (share, times)
    assert share > 0.15


@thorough
def test_a_change_can_be_applied_while_a_service_is_flooded(director, world, flood):
    begin(flood, "syn", f"{VIP}:80")
    director.apply(wish_flooded(service(1, "site", check=OFF, servers=("rs1", "rs2"))))
    flood.stop()
    assert set(world.get(f"{VIP}:80/name", 4)) == {"rs1", "rs2"}
    director.apply(wish_flooded(service(1, "site", check=OFF)))


@thorough
def test_a_flood_to_the_web_page_itself_does_not_lock_the_admin_out(director, world, flood):
    before = counted(director, "nf_conntrack")
    begin(flood, "syn", f"{OWN}:443", sources=ALLOWED)
    assert director.page()[0] == 200
    # By the very card that the flood comes in by, too.
    world.wait_until_succeeds(
        f"ip netns exec client busybox timeout 20 busybox nc {OWN} 443 </dev/null && echo reached", 60
    )
    assert counted(director, "nf_conntrack") < before + 100
    sent, _ = flood.stop()
    assert sent > 10_000


@thorough
def test_the_log_stays_small_while_closed_ports_are_flooded(director, flood):
    log = "cat /var/log/messages* | wc -c"
    began, before = time.monotonic(), int(director.succeed(log))
    begin(flood, "udp", f"{VIP}:0")
    time.sleep(5)
    grown = int(director.succeed(log)) - before
    assert grown < LOG_A_SECOND * (time.monotonic() - began)
    sent, seconds = flood.stop()
    assert sent > 1000 * seconds


@pytest.fixture
def short_memory(director: Director) -> Iterator[None]:
    """Only SHORT MiB more than the table gives way at; the rest belongs to none of the services, and cannot be had."""
    wait_for_empty_table(director)
    fill = free(director) - setting(director, "amemthresh") - SHORT * 256
    assert fill > 0
    director.succeed(f"mkdir -p {FILL} && mount -t tmpfs -o size=90% none {FILL}")
    director.succeed(f"echo 0 >/sys/fs/cgroup/cgroup.procs; head -c {fill * 4096} /dev/zero >{FILL}/all", 60)
    yield
    director.succeed(f"umount {FILL}")


@thorough
def test_the_table_gives_way_before_memory_is_full(director, world, flood, short_memory):
    assert setting(director, "amemthresh") > 1024  # the kernel's own, which a flood is past within a second
    programs = kept(director)
    begin(flood, "syn", f"{VIP}:80")
    until("short memory", lambda: setting(director, "drop_entry") == 2, 90)
    assert (setting(director, "drop_packet"), setting(director, "secure_tcp")) == (2, 0)
    time.sleep(10)  # the table goes on to take what it gets
    assert director.page()[0] == 200
    # Clients come through in waves: free memory goes up and down around where all that is new is turned away.
    assert world.get(f"{VIP}:80/name", 12).count("error: timed out") <= 8
    flood.stop()
    # Nothing that the services have read was pushed out, and none of them was ended.
    assert kept(director) > 0.98 * programs
    assert int(director.succeed("awk '/^oom_kill / { print $2 }' /proc/vmstat")) == 0
    director.succeed(f"rm {FILL}/all")
    until("enough memory", lambda: setting(director, "drop_entry") == 1, 90)
    assert set(world.get(f"{VIP}:80/name", 3)) == {"rs1", "rs2", "rs3"}


@thorough
def test_reading_a_large_file_is_not_taken_for_a_flood(director):
    """What was read stays in memory, but not where IPVS wants it free."""
    wait_for_empty_table(director)
    director.succeed("cat /dev/vd? >/dev/null", 120)
    assert free(director) > setting(director, "amemthresh")
    assert setting(director, "drop_entry") == 1
