"""The scripts for real servers, each on its own; two of them really run, in namespaces of this machine.

Tunnels need modules that only guests have: tests/vm/test_forwarding.py.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from balancing.server_setup import ServerSetup, script
from balancing.server_systems import PLAIN, SYSTEMS, System
from lbconfig.model.snapshot import Forwarding

NO_TUNNEL = {"tunnel": (), "tunnels": frozenset()}
FOUR = ServerSetup(
    "10.2.0.11",
    (),
    ("192.0.2.100", "192.0.2.101"),
    ("192.0.2.103",),
    ("tcp/80",),
    ("10.2.0.1",),
    tunnels=frozenset({Forwarding.TUNNEL}),
)
SIX = replace(
    FOUR,
    address="2001:db8:2::11",
    direct=("2001:db8:1::100",),
    tunnel=("2001:db8:1::103",),
    ports=("tcp/80", "udp/80"),
    directors=("2001:db8:2::1",),
)
AGENT = {
    "4": replace(FOUR, direct=(), ports=(), agent_ports=(3333, 3334), askers=("10.2.0.1", "10.2.0.9"), **NO_TUNNEL),
    "6": replace(SIX, ports=(), agent_ports=(3333,), askers=("2001:db8:2::1",), **NO_TUNNEL),
}
DIRECT = {"4": replace(FOUR, ports=(), **NO_TUNNEL), "6": replace(SIX, ports=(), **NO_TUNNEL)}
FOR_SH = {key: system for key, system in SYSTEMS.items() if system.file.endswith(".sh")}
NETWORKD = "/lib/systemd/systemd-networkd"

# As much of it as the scripts need: it writes down what it was told.
SYSTEMCTL = """#!/bin/sh
echo "$*" >>/run/told
case "$*" in
--version) echo "systemd 252 (252.1)" ;;
*is-active*) [ -e /run/active ] ;;
start*|restart*) touch /run/active ;;
*disable*) rm /run/active ;;
esac
"""

CONNECT = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], 9), 1)
except OSError as error:
    print(type(error).__name__)
"""

LISTEN = """
import socket, time
here = socket.create_server(("0.0.0.0", 8000))
time.sleep(60)
"""

for_sh = pytest.mark.parametrize("system", FOR_SH.values(), ids=FOR_SH)
by_family_of_agents = pytest.mark.parametrize("setup", AGENT.values(), ids=AGENT)
by_family = pytest.mark.parametrize("setup", DIRECT.values(), ids=DIRECT)


# --- as texts ---


@for_sh
@pytest.mark.parametrize("setup", [FOUR, SIX], ids=["4", "6"])
def test_each_is_good_for_sh_and_shellcheck(tmp_path, system, setup):
    path = tmp_path / system.file
    path.write_text(script(setup, system))
    subprocess.run(["sh", "-n", path], check=True)
    checked = subprocess.run(["shellcheck", path], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


@for_sh
def test_each_says_how_it_is_used(tmp_path, system):
    path = tmp_path / system.file
    path.write_text(script(FOUR, system))
    wrong = subprocess.run(["sh", path, "whatever"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert "[verify|undo]" in wrong.stderr


@for_sh
def test_what_is_filled_in_is_text_for_the_shell_and_no_command(tmp_path, system):
    made = tmp_path / "made"
    command = f"touch {made}"
    odd = ServerSetup(
        f"$({command})", (), (f"';{command};'",), (f'";{command};"',), (f"`{command}`",), (f";{command}",)
    )
    subprocess.run(["sh", "-c", script(odd, system), "sh", "whatever"], capture_output=True, check=False)
    assert not made.exists()


@pytest.mark.parametrize("system", SYSTEMS.values(), ids=SYSTEMS)
def test_every_value_has_its_place(system):
    tunnel, gre = (("192.0.2.103",) if kind in system.tunnels else () for kind in (Forwarding.TUNNEL, Forwarding.GRE))
    setup = replace(FOUR, tunnels=system.tunnels, tunnel=tunnel, gre=gre, agent_ports=(3333,), askers=("10.2.0.9",))
    text = script(setup, system)
    assert ("10.2.0.9" in text) == system.agent
    assert all(value in text for value in (*setup.direct, *setup.tunnel, *setup.ports, setup.address))
    assert ('=""\n' in text, "= ''\n" in text) == (False, False)
    assert text.isascii()  # PowerShell reads others by the code page of the machine


def test_quotation_marks_of_powershell():
    text = script(replace(FOUR, tunnel=(), direct=("'; Remove-Item x; \u2019",)), SYSTEMS["windows"])
    assert "\n$direct = '''; Remove-Item x; \u2019\u2019'\n" in text


def test_only_one_system_forgets_and_only_one_has_no_tunnels():
    assert [key for key, system in SYSTEMS.items() if not system.restart_proof] == [PLAIN]
    assert [key for key, system in SYSTEMS.items() if not FOUR.possible_on(system)] == ["windows"]


@pytest.mark.parametrize("key", [PLAIN, "networkd", "netplan", "networkmanager"])
def test_a_tunnels_settings_come_after_those_of_udev(key):
    """udev sets rp_filter of an interface that has just been made, and did so after the script (Debian 13)."""
    text = script(FOUR, SYSTEMS[key])
    assert "udevadm settle" in text
    assert -1 < text.rfind("\tsettle\n") < text.rfind("\tchange_settings")


# --- at work ---


class Server:
    """A machine of its own as far as its network and the folders of its settings go; "s0" leads out of it."""

    def __init__(self, opened: contextlib.ExitStack, folder) -> None:
        self._opened = opened
        self._folder = folder
        self._client = f"fl{os.getpid()}-client"
        keeper = subprocess.Popen(["unshare", "--mount", "--net", "sh", "-c", "echo made; exec sleep 300"], stdout=-1)
        opened.callback(keeper.wait, 10)
        opened.callback(keeper.kill)
        assert keeper.stdout.readline() == b"made\n"
        self._inside = ["nsenter", "-t", str(keeper.pid), "--mount", "--net"]
        for place in ("/run", "/etc/systemd/network", "/etc/systemd/system", "/etc/sysctl.d", "/var/lib"):
            self.do(f"[ ! -d {place} ] || mount -t tmpfs none {place}")
        run(["ip", "netns", "add", self._client])
        opened.callback(subprocess.run, ["ip", "netns", "del", self._client], check=False)
        run(["ip", "link", "add", "c0", "netns", self._client, "type", "veth", "peer", "s0", "netns", str(keeper.pid)])
        self.do(
            "ip link set lo up; ip link set s0 addrgenmode none; ip link set s0 up; ip addr add 10.2.0.11/24 dev s0; "
            "ip addr add 2001:db8:2::11/64 dev s0 nodad; echo 0 >/proc/sys/net/ipv4/conf/all/arp_ignore"
        )
        self.client("link", "set", "c0", "up")
        self.client("address", "add", "10.2.0.1/24", "dev", "c0")
        self.client("address", "add", "2001:db8:2::1/64", "dev", "c0", "nodad")

    def do(self, line: str) -> str:
        return run([*self._inside, "sh", "-c", line])

    def start(self, *words: str) -> None:
        process = subprocess.Popen([*self._inside, *words], stderr=subprocess.DEVNULL)
        self._opened.callback(process.wait, 10)
        self._opened.callback(process.send_signal, signal.SIGTERM)

    def run_script(self, setup: ServerSetup, system: System, *verb: str) -> subprocess.CompletedProcess:
        path = self._folder / system.file
        path.write_text(script(setup, system))
        words = [*self._inside, "sh", str(path), *verb]
        found = {"PATH": f"{self._folder}:{os.environ['PATH']}"}
        return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False, env=os.environ | found)

    def has_systemd(self) -> None:
        (self._folder / "systemctl").write_text(SYSTEMCTL)
        (self._folder / "systemctl").chmod(0o755)
        self.do("mkdir -p /run/systemd/system")

    def told(self) -> list[str]:
        """What systemctl was told to change since it was asked last."""
        lines = self.do("cat /run/told; : >/run/told").splitlines()
        return [line for line in lines if "is-active" not in line and "--version" not in line]

    def state(self) -> str:
        """All that an undo has to restore."""
        return self.do(
            "ip -o addr; grep . /proc/sys/net/ipv4/conf/*/arp_* /proc/sys/net/ipv4/conf/*/rp_filter; "
            "find /etc/systemd/network /etc/systemd/system /etc/sysctl.d /var/lib -type f; find /run -name 'fairlead*'"
        )

    def client(self, *words: str) -> str:
        return run(["ip", "-n", self._client, *words])

    def answered(self, vip: str) -> bool:
        """Whether the client gets an answer to a connection; nothing listens, so it is a refusal."""
        command = ["ip", "netns", "exec", self._client, sys.executable, "-I", "-c", CONNECT, vip]
        return run(command).strip() == "ConnectionRefusedError"

    def answers_as_neighbour(self, vip: str) -> bool:
        """ARP or neighbour discovery for an address in the middle of the network."""
        family = "-6" if ":" in vip else "-4"
        self.client(family, "route", "replace", vip, "dev", "c0")
        try:
            return self.answered(vip)
        finally:
            self.client(family, "route", "del", vip, "dev", "c0")

    def takes_packets_for(self, vip: str, address: str) -> bool:
        """As they come from a load balancer: to the server's MAC address, with the virtual one in it."""
        family = "-6" if ":" in vip else "-4"
        self.client(family, "route", "replace", vip, "via", address)
        try:
            return self.answered(vip)
        finally:
            self.client(family, "route", "del", vip, "via", address)


def run(words: list[str]) -> str:
    done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stdout


@pytest.fixture
def server(tmp_path) -> Iterator[Server]:
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "--net", "true"], check=False).returncode:
        pytest.skip("only root may make namespaces with mounts in them")
    with contextlib.ExitStack() as opened:
        yield Server(opened, tmp_path)


@pytest.fixture
def networkd(server) -> Server:
    """The same with systemd-networkd and the bus by which it is told of new files."""
    if not os.path.exists(NETWORKD) or not shutil.which("dbus-daemon"):
        pytest.skip("systemd-networkd or dbus-daemon is not installed")
    # A /sys that can be written to means a udev to wait for.
    server.do(
        "mount -t sysfs -o ro none /sys; mkdir -p /run/dbus; install -d -o systemd-network -g systemd-network "
        "/run/systemd/netif /run/systemd/netif/links /run/systemd/netif/leases /run/systemd/netif/lldp"
    )
    server.start("dbus-daemon", "--system", "--nofork", "--nopidfile")
    wait_for(server, "[ -S /run/dbus/system_bus_socket ]")
    server.start(NETWORKD)
    wait_for(server, "networkctl --no-pager status lo")
    return server


def wait_for(server: Server, line: str, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            server.do(line)
            return
        except AssertionError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def goes_well(server: Server, setup: ServerSetup, system: System) -> None:
    """Set up, verified, twice, and everything as before in the end."""
    vip = setup.direct[0]
    before = server.state()
    assert not server.takes_packets_for(vip, setup.address)
    missing = server.run_script(setup, system, "verify")
    assert (missing.returncode, f"missing  {vip} is not on lo" in missing.stdout) == (1, True)
    assert server.state() == before

    for _ in ("once", "twice does no harm"):
        done = server.run_script(setup, system)
        assert (done.returncode, done.stderr, "missing" in done.stdout) == (0, "", False), done
        assert f"ok       {vip} is on lo" in done.stdout
    assert server.takes_packets_for(vip, setup.address)
    assert not server.answers_as_neighbour(vip)

    undone = server.run_script(setup, system, "undo")
    assert (undone.returncode, undone.stdout, undone.stderr) == (0, "", "")
    wait_for(server, "! networkctl --no-pager status lo 2>/dev/null | grep -q fairlead")
    assert server.state() == before


@by_family
def test_plain_ip(server, setup):
    goes_well(server, setup, SYSTEMS[PLAIN])


def test_what_listens_by_ipv4_alone_is_found_and_nothing_else(server):
    server.start(sys.executable, "-c", LISTEN)
    wait_for(server, "ss -Hlnt | grep -q :8000")
    said = server.run_script(replace(DIRECT["4"], ports=("tcp/8000", "tcp/800")), SYSTEMS[PLAIN]).stdout
    assert "ok       something listens on tcp port 8000" in said
    assert "missing  nothing listens on tcp port 800\n" in said


def test_without_the_settings_arp_would_be_answered(server):
    """What the script is for, and that the test would notice."""
    server.do("ip addr add 192.0.2.100/32 dev lo")
    assert server.answers_as_neighbour("192.0.2.100")


def test_what_was_there_before_stays(server):
    server.do("ip addr add 192.0.2.100/32 dev lo; echo 2 >/proc/sys/net/ipv4/conf/all/arp_ignore")
    before = server.state()
    server.run_script(DIRECT["4"], SYSTEMS[PLAIN])
    assert server.run_script(DIRECT["4"], SYSTEMS[PLAIN], "undo").returncode == 0
    assert server.state() == before


def test_a_later_script_takes_back_what_it_does_not_name(server):
    before = server.state()
    server.run_script(DIRECT["4"], SYSTEMS[PLAIN])
    fewer = replace(DIRECT["4"], direct=("192.0.2.101",))
    assert server.run_script(fewer, SYSTEMS[PLAIN]).returncode == 0
    assert not server.takes_packets_for("192.0.2.100", "10.2.0.11")
    assert server.takes_packets_for("192.0.2.101", "10.2.0.11")
    server.run_script(fewer, SYSTEMS[PLAIN], "undo")
    assert server.state() == before


def test_the_script_for_another_system_touches_nothing(server):
    before = server.state()
    for key in ("networkd", "netplan", "networkmanager", "freebsd"):
        refused = server.run_script(FOUR, SYSTEMS[key])
        assert (refused.returncode, "take the script for another system" in refused.stderr) == (2, True), key
    assert server.state() == before


@by_family
def test_networkd(networkd, setup):
    goes_well(networkd, setup, SYSTEMS["networkd"])


def test_networkd_sets_it_up_by_itself_after_a_restart(networkd):
    for setup in DIRECT.values():  # of one machine: both are kept
        assert networkd.run_script(setup, SYSTEMS["networkd"]).returncode == 0
    networkd.do("ip address flush dev lo scope global; networkctl reconfigure lo")
    wait_for(networkd, "ip -o address show dev lo | grep -q 192.0.2.100/32")
    wait_for(networkd, "ip -o address show dev lo | grep -q 2001:db8:1::100/128")
    assert networkd.run_script(DIRECT["4"], SYSTEMS["networkd"], "undo").returncode == 0
    verified = networkd.run_script(DIRECT["6"], SYSTEMS["networkd"], "verify")
    assert verified.returncode == 0, verified.stdout


def test_networkd_leaves_to_others_what_is_theirs_on_lo(networkd):
    networkd.do(
        "printf '[Match]\\nName=lo\\n[Network]\\nAddress=198.51.100.1/32\\n' >/etc/systemd/network/lo.network; "
        "networkctl reload; ip addr add 198.51.100.2/32 dev s0"
    )
    wait_for(networkd, "ip -o address show dev lo | grep -q 198.51.100.1")
    before = networkd.state()
    assert networkd.run_script(DIRECT["4"], SYSTEMS["networkd"]).returncode == 0
    assert "198.51.100.1/32" in networkd.do("ip -o address show dev lo")
    assert networkd.run_script(DIRECT["4"], SYSTEMS["networkd"], "undo").returncode == 0
    wait_for(networkd, "ip -o address show dev lo | grep -q 198.51.100.1")
    assert networkd.state() == before


# --- its agent ---


@by_family_of_agents
def test_the_agent_of_plain_linux(server, setup):
    agent_goes_well(server, setup, SYSTEMS[PLAIN], "/run/systemd/system", f"/run/fairlead-server-{setup.address}")


@by_family_of_agents
def test_the_agent_of_networkd(networkd, setup):
    kept = f"/var/lib/fairlead-server-{setup.address}"
    agent_goes_well(networkd, setup, SYSTEMS["networkd"], "/etc/systemd/system", kept)


def agent_goes_well(server, setup, system, folder, memory):
    """Set up, verified, twice without a restart, and everything as before in the end."""
    server.has_systemd()
    before, name = server.state(), setup.agent_name
    missing = server.run_script(setup, system, "verify")
    assert (missing.returncode, f"missing  {name}.socket is not active" in missing.stdout) == (1, True)
    assert (server.state(), server.told()) == (before, [])

    done = server.run_script(setup, system)
    assert (done.returncode, done.stderr, "missing" in done.stdout) == (0, "", False), done
    told = server.told()
    assert told[-1] == f"restart {name}.socket {name}.service"
    assert any("enable" in line for line in told) == system.restart_proof
    assert server.run_script(setup, system).returncode == 0
    assert "daemon-reload" not in (told := server.told()) and told[-1] == f"start {name}.socket {name}.service"
    assert "net/ipv4" not in done.stdout or setup.direct

    socket = server.do(f"cat {folder}/{name}.socket")
    place = f"[{setup.address}]" if ":" in setup.address else setup.address
    assert [line for line in socket.splitlines() if line.startswith(("Listen", "IPAddress"))] == [
        *(f"ListenStream={place}:{port}" for port in setup.agent_ports),
        f"IPAddressAllow={' '.join(setup.askers)}",
        "IPAddressDeny=any",
    ]
    # systemd splits names of folders at colons.
    assert ":" not in server.do(f"grep -h Directory= {folder}/{name}*.service")
    assert f"ExecStart=/bin/sh {memory}/agent answer {' '.join(setup.askers)}\n" in server.do(
        f"cat {folder}/{name}@.service"
    )
    checked = server.do(f"systemd-analyze verify --man=no {folder}/{name}.socket {folder}/{name}.service 2>&1 || :")
    assert name not in checked

    fewer = replace(setup, agent_ports=())
    assert name not in server.run_script(fewer, system).stdout
    assert not server.do(f"ls {folder}").count(name)
    assert server.run_script(setup, system).returncode == 0
    server.do(f"mkdir -p /run/{name}; touch /run/{name}/drain")
    assert (
        f"ok       its agent says drain, as there is a file /run/{name}/drain"
        in server.run_script(setup, system, "verify").stdout
    )
    undone = server.run_script(setup, system, "undo")
    assert (undone.returncode, undone.stdout, undone.stderr) == (0, "", "")
    assert server.state() == before
    assert server.told()[-1] == "daemon-reload"


def test_a_machine_without_systemd_is_told_so(server):
    server.do("rm -rf /run/systemd")
    said = server.run_script(AGENT["4"], SYSTEMS[PLAIN])
    assert said.returncode == 1
    assert "missing  this machine has no systemd 236 or newer: its agent has to be another program" in said.stdout
    assert server.run_script(AGENT["4"], SYSTEMS[PLAIN], "undo").returncode == 0


def test_who_asks_the_agent_may_come_by_dhcp(server):
    server.has_systemd()
    anybody = replace(AGENT["4"], askers=())
    assert server.run_script(anybody, SYSTEMS[PLAIN]).returncode == 0
    assert "IPAddress" not in server.do("cat /run/systemd/system/fairlead-agent-10.2.0.11.socket")
