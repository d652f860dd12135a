"""The box's own certificate: what it says, and when it is made anew."""

import dataclasses
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from kernel_model import KernelModel
from test_network_plan import ModelNetwork

from applier.base.paths import Paths
from applier.host.host import Output
from applier.kept.turn import Turn
from applier.parts import own_certificate
from lbconfig.model import certificate
from lbconfig.model.snapshot import FACTORY, Interface, Network
from lbconfig.target import Target

SCRIPT = Path(__file__).resolve().parents[3] / "overlay/usr/lib/fairlead/own-certificate"
NAMES = "DNS:fairlead,DNS:lb,IP:127.0.0.1,IP:10.0.0.1,IP:2001:db8::1"


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> str:
    """A certificate of the script's."""
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("tls")
    text = SCRIPT.read_text().rpartition('if [ -n "$1" ]')[0].replace("/run/fairlead", str(folder))
    subprocess.run(["sh", "-c", f"{text}\nmake {folder} {NAMES}"], check=True, capture_output=True)
    return (folder / "cert.pem").read_text()


def test_it_is_no_authority_and_names_the_box(made):
    shown = certificate.first(made)
    assert shown.names == ("fairlead", "lb", "127.0.0.1", "10.0.0.1", "2001:db8::1") and shown.for_servers
    said = subprocess.run(
        ["openssl", "x509", "-noout", "-ext", "basicConstraints,keyUsage"],
        input=made,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "CA:FALSE" in said and "CA:TRUE" not in said and "Certificate Sign" not in said


def test_a_new_one_is_on_the_disk_before_anyone_is_shown_it(tmp_path):
    """First what is in the files, then their names: a power cut brings neither half a one nor the one before."""
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    text = SCRIPT.read_text().rpartition('if [ -n "$1" ]')[0].replace("/run/fairlead", str(tmp_path))
    watched = "\n".join(f'{name}() {{ echo {name} "$@"; command {name} "$@"; }}' for name in ("sync", "mv"))
    line = f"{watched}\n{text.replace('chown 0:991', ': chown')}\nmake {tmp_path} {NAMES}"
    said = subprocess.run(["sh", "-c", line], check=True, capture_output=True, text=True).stdout
    steps = [one.replace(f"{tmp_path}", "tls").split() for one in said.splitlines()]
    files = ["tls/key.pem.new", "tls/cert.pem.new"]
    moved = [["mv", one, one.removesuffix(".new")] for one in files]
    assert steps == [["sync", *files], *moved, ["sync", "tls"]]


def test_at_boot_it_names_the_addresses_that_are_there_and_no_virtual_ones():
    """In a network of its own; the addresses of DHCP may come later."""
    if not shutil.which("unshare") or subprocess.run(["unshare", "-Urn", "true"], check=False).returncode:
        pytest.skip("no namespaces here")
    text = SCRIPT.read_text().rpartition('if [ -n "$1" ]')[0]
    lines = ["ip link add c0 type veth peer name far", "ip link set c0 up", "ip address add 10.0.0.1/24 dev c0"]
    lines += ["ip address add 10.0.0.80/32 dev c0", "ip address add 2001:db8::1/64 dev c0 nodad", text, "names"]
    done = subprocess.run(["unshare", "-Urn", "sh", "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    assert done.stdout == "DNS:fairlead,DNS:localhost,IP:127.0.0.1,IP:10.0.0.1,IP:2001:db8::1"


class Box(ModelNetwork):
    def __init__(self, text: str) -> None:
        super().__init__(KernelModel(("eth0",)))
        self.text, self.asked, self.turn = text, [], Turn()
        self.running = Target(None, FACTORY)
        self.host, self.paths = self, Paths()
        self.kernel.batch(["link set dev eth0 up", "address add 10.0.0.1/24 dev eth0"])

    def read(self, path):
        return self.text if path == self.paths.run / "tls/cert.pem" else None

    def command(self, argv, stdin="", timeout=0.0):
        if argv[0] == "ip":
            return super().command(argv, stdin, timeout)
        self.asked.append(argv)
        return Output(0, "", "")


NOW = datetime(2026, 11, 25, tzinfo=UTC)


def looked(box: Box, right: bool = False, now: datetime = NOW) -> str:
    return own_certificate.look(box, lambda: right, lambda: now)


@pytest.fixture
def shown(monkeypatch):
    """For the names that the box has at first, from 1970 on for ten years."""
    one = SimpleNamespace(begins="1970-01-01T00:00:09Z", ends="1979-12-30T00:00:09Z")
    names = {*own_certificate.ALWAYS, "lb", "10.0.0.1"}
    one.covers = names.__contains__
    monkeypatch.setattr(certificate, "first", lambda text: one if text else None)
    return one


def test_one_that_fits_stays_also_where_the_clock_may_be_wrong(shown):
    box = Box("it")
    assert looked(box, right=False) == "" and box.asked == []
    assert looked(box, right=True, now=datetime(1975, 1, 1, tzinfo=UTC)) == "" and box.asked == []


def test_another_address_makes_it_anew_and_nginx_shows_it(shown):
    box = Box("it")
    box.kernel.batch(["address add 10.0.9.1/24 dev eth0", "address add 10.0.0.80/32 dev eth0"])
    assert looked(box) == "it does not name 10.0.9.1"
    names = "DNS:fairlead,DNS:localhost,IP:127.0.0.1,DNS:lb,IP:10.0.0.1,IP:10.0.9.1"
    assert box.asked == [[own_certificate.MAKER, names], ["sv", "hup", str(box.paths.services / "nginx")]]


def test_a_floating_address_of_the_page_is_named_by_both_boxes_of_a_pair(shown):
    box = Box("it")
    interface = Interface("eth0", addresses=("10.0.0.1/24",), floating=("10.0.0.9/24",))
    box.running = Target(None, dataclasses.replace(FACTORY, network=Network(interfaces=(interface,))))
    assert looked(box) == "it does not name 10.0.0.9"


def test_one_of_1970_is_made_anew_once_the_clock_is_right(shown):
    box = Box("it")
    assert looked(box, right=True).startswith("it is valid from 1970-01-01")
    assert len(box.asked) == 2
    assert looked(box, right=True, now=datetime(1970, 1, 1, tzinfo=UTC)) != "", "nor is one that begins later valid"


def test_not_while_a_change_waits_to_be_confirmed(shown):
    box = Box("it")
    with box.turn.take("a change is under way"):
        assert looked(box, right=True) == "" and box.asked == []


def test_the_first_one_is_made_by_the_boot(shown):
    box = Box("")
    assert looked(box, right=True) == "" and box.asked == []


def test_what_the_script_makes_fits(made):
    box = Box(made)
    assert own_certificate.why_anew(certificate.first(made), ["lb", "10.0.0.1", "2001:db8::1"], None) == ""
    assert "localhost" in looked(box)  # the test has left that name out


@pytest.mark.parametrize(("state", "right"), [(0, True), (4, True), (5, False), (-1, False)])
def test_the_kernel_says_whether_its_clock_is_set(monkeypatch, state, right):
    monkeypatch.setattr(own_certificate.ctypes, "CDLL", lambda name: SimpleNamespace(adjtimex=lambda timex: state))
    assert own_certificate.synchronised() == right
