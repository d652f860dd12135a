"""What becomes of a DHCP server's answer: the script of the image, in namespaces of its own."""

import shutil
import subprocess
from pathlib import Path

import pytest

OVERLAY = Path(__file__).resolve().parents[3] / "overlay"
SCRIPT = OVERLAY / "usr/share/fairlead/dhcp-event"
ANSWER = "interface=c0 ip=10.9.0.7 mask=24 dns='10.9.0.2 10.9.0.3' ntpsrv=10.9.0.4"


def after(*lines: str) -> str:
    """What the lines print, in a /run and a network of their own."""
    if not shutil.which("unshare") or subprocess.run(["unshare", "-Urmn", "true"], check=False).returncode:
        pytest.skip("no namespaces here")
    before = ["set -e", "mount -t tmpfs tmpfs /run", "mkdir -p /run/fairlead", "ip link add c0 type veth peer name far"]
    done = subprocess.run(
        ["unshare", "-Urmn", "sh", "-c", "\n".join([*before, *lines])], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def bound(answer: str = ANSWER) -> str:
    return f"env {answer} sh {SCRIPT} bound"


def test_an_answer_brings_an_address_names_and_time():
    said = after(bound(), "ip -brief -4 address show c0", "cat /run/fairlead/resolv.conf /run/fairlead/dhcp/c0.sources")
    assert "10.9.0.7/24" in said
    assert said.splitlines()[1:] == ["nameserver 10.9.0.2", "nameserver 10.9.0.3", "server 10.9.0.4 iburst"]


def test_name_servers_that_an_admin_named_count_alone():
    said = after("echo nameserver 192.0.2.53 >/run/fairlead/names.conf", bound(), "cat /run/fairlead/resolv.conf")
    assert said == "nameserver 192.0.2.53\n"


def test_search_domains_of_an_admin_stand_beside_name_servers_of_dhcp():
    said = after("echo search example.org >/run/fairlead/names.conf", bound(), "cat /run/fairlead/resolv.conf")
    assert said == "nameserver 10.9.0.2\nnameserver 10.9.0.3\nsearch example.org\n"


def test_two_interfaces_bring_both_theirs():
    other = "interface=far ip=10.8.0.7 mask=24 dns=10.8.0.2"
    said = after(bound(), bound(other), "cat /run/fairlead/resolv.conf")
    assert sorted(said.split()[1::2]) == ["10.8.0.2", "10.9.0.2", "10.9.0.3"]


UP = "ip link set c0 up; ip link set far up"
C0 = f"{ANSWER} router=10.9.0.1"
FAR = "interface=far ip=10.8.0.7 mask=24 dns=10.8.0.2 ntpsrv=10.8.0.4 router=10.8.0.1"
ORDER = "mkdir -p /run/fairlead/dhcp; echo 100 >/run/fairlead/dhcp/c0.metric; echo 101 >/run/fairlead/dhcp/far.metric"
SHOW = "ip route show default | sed 's/ *$//'"
BOTH = ["default via 10.9.0.1 dev c0 metric 100", "default via 10.8.0.1 dev far metric 101"]


def routes(*lines: str) -> list[str]:
    return after(UP, ORDER, *lines, SHOW).splitlines()


def renewed(answer: str) -> str:
    return f"env {answer} sh {SCRIPT} renew"


def test_of_two_routers_one_is_the_gateway_whoever_renews_last():
    assert routes(bound(C0), bound(FAR), renewed(FAR)) == BOTH
    assert routes(bound(FAR), bound(C0), renewed(C0)) == BOTH


def test_a_lease_that_is_lost_takes_its_own_router_names_and_time_along():
    """Also where the interface has an address of its own, with which the kernel would keep the route."""
    lost = f"env interface=c0 sh {SCRIPT} deconfig"
    static = "ip address add 10.9.0.8/24 dev c0"
    said = routes(static, bound(C0), bound(FAR), lost, "cat /run/fairlead/resolv.conf /run/fairlead/dhcp/*.sources")
    assert said == ["nameserver 10.8.0.2", "server 10.8.0.4 iburst", BOTH[1]]
    assert routes(bound(C0), bound(FAR), lost, bound(C0)) == BOTH


def test_a_router_that_dhcp_names_no_more_goes():
    assert routes(bound(C0), bound(FAR), renewed(ANSWER)) == BOTH[1:]


def test_where_nothing_can_be_written_what_was_there_stays():
    """A full /run left an empty resolv.conf and an empty lease behind."""
    full = "dd if=/dev/zero of=/run/full bs=4k 2>/dev/null || :"
    show = "cat /run/fairlead/resolv.conf /run/fairlead/dhcp/c0 /run/fairlead/dhcp/c0.names; ls -A /run/fairlead/dhcp"
    other = "interface=c0 ip=10.9.0.7 mask=24 dns=10.9.0.9 ntpsrv=10.9.0.4"
    said = after("mount -o remount,size=256k /run", bound(), show, full, bound(other), show)
    before, half = said[: len(said) // 2], said[len(said) // 2 :]
    assert before == half and "nameserver 10.9.0.2" in before and "10.9.0.7/24" in before


def test_a_renewal_that_says_the_same_leaves_the_clock_alone():
    tell = "mkdir /run/bin; printf '#!/bin/sh\\necho sv $* >>/run/told\\n' >/run/bin/sv; chmod +x /run/bin/sv"
    path = "export PATH=/run/bin:$PATH"
    said = after(tell, path, bound(), f"env {ANSWER} sh {SCRIPT} renew", "cat /run/told")
    assert said == "sv term /run/service/time\n"


@pytest.mark.parametrize("kept", ["10.9.0.6/24", "10.9.0.7/24"])
def test_the_address_of_before_goes_once_dhcp_gives_another_one(kept):
    """A change was taken back: the applier put the address there that DHCP had given before."""
    there = f"mkdir -p /run/fairlead/dhcp; ip address add {kept} dev c0; echo {kept} >/run/fairlead/dhcp/c0.kept"
    begins = f"env interface=c0 sh {SCRIPT} deconfig"
    show = "ip -brief -4 address show c0; echo; ls /run/fairlead/dhcp"
    said = after(there, begins, "ip -brief -4 address show c0", bound(), show)
    first, *rest = said.splitlines()
    assert kept in first, "until then it is of use"
    assert rest[0].split()[2:] == ["10.9.0.7/24"]
    assert "c0.kept" not in rest


def test_a_lease_that_changes_or_is_lost_leaves_the_own_addresses_of_its_network():
    """By themselves, the kernel would take them along with the first address of the network."""
    kept = f"grep promote_secondaries {OVERLAY}/etc/sysctl.d/fairlead.conf | sysctl -q -p -"
    lost = f"env interface=c0 sh {SCRIPT} deconfig"
    own, show = "ip address add 10.9.0.3/24 dev c0", "ip -brief -4 address show c0"
    other = ANSWER.replace("10.9.0.7", "10.9.0.8")
    changed, gone = after(kept, bound(), own, bound(other), show, lost, show).splitlines()
    assert sorted(changed.split()[2:]) == ["10.9.0.3/24", "10.9.0.8/24"]
    assert gone.split()[2:] == ["10.9.0.3/24"]
