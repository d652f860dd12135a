"""Nothing that a snapshot holds can act as anything but a value in a rendered file."""

import dataclasses
import os
import re
import shutil
import subprocess

import pytest
from hypothesis import HealthCheck as Slow
from hypothesis import example, given, settings
from lbconfig_samples import DNS, SAMPLE, WEB, with_check, with_network, with_service
from lbconfig_strategies import snapshots

from lbconfig.render import RENDERERS, files_digest, interfaces, ldirectord, nftables, render, sysctl
from lbconfig.snapshot import FACTORY, CheckKind, HealthCheck, Interface, Management, RealServer, Scheduler, Snapshot

ADDRESS = r"\d{1,3}(?:\.\d{1,3}){3}"
NAME = r"[A-Za-z0-9](?:[A-Za-z0-9 ._-]*[A-Za-z0-9._-])?"
PLACE = rf"{ADDRESS} \. (?:tcp|udp) \. \d+"

LDIRECTORD_GLOBAL = (
    "supervised=yes",
    'logfile="daemon"',
    "quiescent=yes",
    "readdquiescent=yes",
    "cleanstop=no",
    "fork=no",
    "autoreload=no",
    r"checkinterval=\d+",
)
LDIRECTORD_BLOCK = {
    "real": rf"{ADDRESS}:\d+ masq \d+",
    "protocol": "tcp|udp",
    "scheduler": "[a-z]+",
    "checktype": "connect|negotiate|ping",
    "checktimeout": r"\d+",
    "negotiatetimeout": r"\d+",
    "failurecount": r"\d+",
    "checkport": r"\d+",
    "service": "none|http",
    "request": r'"/[^"#\\\s]*"',
    "virtualhost": r'"[A-Za-z0-9.-]+"',
    "receive": r'"\(\?:vs\d+\)\{0\}(?:[A-Za-z0-9 ]|\\x[0-9a-f]{2})*"',
}
many = settings(max_examples=100, deadline=None, suppress_health_check=list(Slow))


@many
@given(snapshots)
@example(FACTORY)
def test_ldirectord_reads_every_line_as_it_was_meant(snapshot):
    head, *blocks = ldirectord.render(snapshot).split("\n\n")
    assert len(head.splitlines()) == len(LDIRECTORD_GLOBAL)
    assert all(map(re.fullmatch, LDIRECTORD_GLOBAL, head.splitlines()))
    expected = [
        service
        for service in snapshot.services
        if service.check.kind != CheckKind.OFF and any(server.enabled for server in service.real_servers)
    ]
    assert len(blocks) == len(expected)
    for service, block in zip(expected, blocks, strict=True):
        comment, virtual, *lines = block.rstrip("\n").split("\n")
        assert comment == f"# {service.name}"
        assert virtual == f"virtual={service.address}:{service.port}"
        for line in lines:
            key = line.strip().partition("=")[0]
            assert re.fullmatch(f"    {key}=(?:{LDIRECTORD_BLOCK[key]})", line), line
            assert "#" not in line
        if service.check.kind == CheckKind.HTTP:
            assert meaning(lines[-1]) == service.check.expect


def meaning(line: str) -> str:
    """The text that the pattern of a receive line matches."""
    pattern = re.fullmatch(r'    receive="\(\?:vs\d+\)\{0\}(.*)"', line)[1]
    return re.sub(rb"\\x(..)", lambda found: bytes.fromhex(found[1].decode()), pattern.encode()).decode()


NFT_ELEMENT = re.compile(rf'\t\t\t(?:{ADDRESS}(?:/\d+)?|{PLACE} comment "{NAME}"),')
NFT_DHCP = re.compile(r'\t\tiifname \{ "[A-Za-z0-9._-]+"(?:, "[A-Za-z0-9._-]+")* \} udp sport 67 udp dport 68 accept')


@many
@given(snapshots)
def test_nftables_takes_values_only_as_elements(snapshot):
    fixed = set(nftables.render(SAMPLE).splitlines()) | {"\t\telements = {", "\t\t}"}
    for line in nftables.render(snapshot).splitlines():
        if line in fixed or line.startswith("\t\ticmp type {"):
            continue
        assert NFT_ELEMENT.fullmatch(line) or NFT_DHCP.fullmatch(line), line
        for comment in re.findall(r'comment "(.*)"', line):
            assert len(comment) <= 127


LINES = {
    "ipvs.rules": rf"-A -[tu] {ADDRESS}:\d+ -s [a-z]+|-a -[tu] {ADDRESS}:\d+ -r {ADDRESS}:\d+ -m -w \d+",
    "interfaces": r"hostname [A-Za-z0-9.-]+|link [\w.-]+ up|dhcp [\w.-]+|"
    rf"address {ADDRESS}/\d+ on [\w.-]+|gateway {ADDRESS}",
    "sysctl.conf": r"# [ -~]+|net/ipv[46]/[a-z0-9_/]+ = \d+|net/ipv4/conf/[A-Za-z0-9._-]+/send_redirects = 0",
}


@pytest.mark.parametrize("name", LINES)
@many
@given(snapshots)
def test_plain_files_have_only_lines_of_known_form(name, snapshot):
    for line in RENDERERS[name](snapshot).splitlines():
        assert re.fullmatch(LINES[name], line), line


@many
@given(snapshots)
def test_rendering_is_repeatable_and_ends_with_a_newline(snapshot):
    files = render(snapshot)
    assert files == render(snapshot)
    assert all(text == "" or (text.endswith("\n") and "\r" not in text) for text in files.values())
    assert files_digest(files) == files_digest(dict(reversed(files.items())))


NFT = shutil.which("nft", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
ALONE = ["unshare", "--user", "--map-root-user", "--net"]


@settings(max_examples=40, deadline=None, suppress_health_check=list(Slow))
@given(snapshots)
def test_nft_itself_accepts_the_file(nft_check, snapshot):
    done = nft_check(nftables.render(snapshot))
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def nft_check():
    def check(text):
        words = [*ALONE, NFT, "-c", "-f", "-"]
        return subprocess.run(words, input=text, capture_output=True, text=True, timeout=30, check=False)

    if NFT is None:
        pytest.skip("nft is not installed")
    if (done := check("")).returncode:
        pytest.skip(f"no namespaces here: {done.stderr.strip()}")
    return check


def test_names_of_the_files():
    assert set(render(SAMPLE)) == {"ipvs.rules", "nftables.conf", "ldirectord.cf", "interfaces", "sysctl.conf"}


def test_the_digest_knows_names_from_texts():
    digests = [files_digest(files) for files in ({}, {"a": ""}, {"a": "b"}, {"ab": ""}, {"a": "", "b": ""})]
    assert len(set(digests)) == len(digests)
    assert re.fullmatch("[0-9a-f]{64}", digests[0])


def block(snapshot):
    return ldirectord.render(snapshot).split("\n\n")[1]


def test_the_real_id_differs_between_services_that_share_a_server():
    twin = dataclasses.replace(WEB, id=5, name="twin", address="10.0.2.101")
    both = ldirectord.render(dataclasses.replace(SAMPLE, services=(WEB, twin)))
    assert re.findall(r"\(\?:vs(\d+)\)", both) == ["3", "5"]


def test_the_check_port_is_written_where_it_counts():
    assert "checkport=81" in block(with_check(port=81))
    assert "checkport" not in block(with_check(port=0))
    assert "checkport" not in block(with_check(port=81, kind=CheckKind.PING))


def test_only_an_http_check_asks_something():
    for kind in (CheckKind.CONNECT, CheckKind.PING):
        text = block(with_check(kind=kind))
        assert "request=" not in text and "virtualhost=" not in text
        assert 'receive="(?:vs3){0}"' in text


def test_the_shortest_interval_counts_for_all():
    slow = dataclasses.replace(DNS, check=HealthCheck(CheckKind.PING, interval=60))
    quick = dataclasses.replace(WEB, check=HealthCheck(interval=7))
    assert ldirectord.interval(dataclasses.replace(SAMPLE, services=(slow, quick))) == 7
    assert ldirectord.interval(dataclasses.replace(SAMPLE, services=(slow,))) == 60
    unchecked = dataclasses.replace(quick, check=HealthCheck(CheckKind.OFF, interval=1))
    assert ldirectord.interval(dataclasses.replace(SAMPLE, services=(slow, unchecked))) == 60


def test_services_without_a_check_or_servers_stay_out():
    assert ldirectord.watched(with_service(check=HealthCheck(CheckKind.OFF))) == (DNS,)
    assert ldirectord.watched(with_service(real_servers=(RealServer(7, "10.2.0.11", 80, enabled=False),))) == (DNS,)


def test_where_vips_live():
    two = (Interface("lan", addresses=("10.2.0.1/24",)), Interface("wan", dhcp=True))
    cases = {
        "10.2.0.50": "lan",  # in its static network
        "10.0.2.100": "wan",  # else where DHCP is asked
    }
    for vip, name in cases.items():
        network = with_network(interfaces=two, gateway="").network
        state = interfaces.wanted(Snapshot((dataclasses.replace(WEB, address=vip),), network, SAMPLE.management))
        assert (name, f"{vip}/32") in state.addresses
        assert state.dhcp == ("wan",) and state.links == ("lan", "wan")
    away = interfaces.wanted(with_service(address="198.51.100.7"))  # else on the way to the gateway
    assert ("eth0", "198.51.100.7/32") in away.addresses


def test_a_vip_that_is_an_interface_address_is_not_added_again():
    state = interfaces.wanted(with_service(address="10.0.2.15"))
    assert state.addresses == (("eth0", "10.0.2.15/24"), ("eth0", "10.0.2.100/32"), ("eth1", "10.2.0.1/24"))


def test_the_web_ui_stays_on_an_address_that_is_shared_with_a_service():
    assert "10.0.2.15" not in elements(nftables.render(with_service(address="10.0.2.15")), "vips")
    assert "10.0.2.100" in elements(nftables.render(SAMPLE), "vips")


def elements(rules: str, name: str) -> str:
    return rules.partition(f"set {name} {{")[2].partition("\t}\n")[0]


def test_replies_of_disabled_servers_still_pass():
    assert "10.2.0.12 . udp . 53" in elements(nftables.render(SAMPLE), "replies")


def test_overlapping_management_networks_are_joined():
    wide = dataclasses.replace(SAMPLE, management=Management(("10.128.0.0/9", "10.0.2.0/24", "10.0.0.0/9")))
    assert re.findall(r"[\d.]+/\d+", elements(nftables.render(wide), "management_v4")) == ["10.0.0.0/8"]


def test_kernel_settings_have_reasons_and_no_doubles():
    table = sysctl.settings(SAMPLE)
    assert len({setting.key for setting in table}) == len(table)
    assert all(setting.reason and re.fullmatch(r"net/[A-Za-z0-9/._-]+", setting.key) for setting in table)
    assert table[: len(sysctl.settings())] == sysctl.settings()
    assert table[0].key == "net/ipv4/ip_forward"
    assert {setting.key for setting in table} >= {f"net/ipv4/conf/eth{n}/send_redirects" for n in (0, 1)}


def test_every_scheduler_can_be_written():
    for scheduler in Scheduler:
        assert f"-s {scheduler}\n" in RENDERERS["ipvs.rules"](with_service(scheduler=scheduler))
