"""Nothing that a snapshot holds can act as anything but a value in a rendered file."""

import dataclasses
import functools
import re

import pytest
from lbconfig_samples import (
    DNS,
    EVERY_NAT,
    EVERY_RULE,
    NO_STATES,
    RULES_NO_STATES,
    SAMPLE,
    SORRY_PAGE,
    WEB,
    with_check,
    with_network,
    with_service,
)
from lbconfig_strategies import examples, of_snapshots

from lbconfig.model.checks import KINDS
from lbconfig.model.snapshot import (
    FACTORY,
    CheckKind,
    HealthCheck,
    HttpMethod,
    Interface,
    Management,
    Matching,
    Network,
    RealServer,
    Scheduler,
    ServerState,
    Snapshot,
    from_json,
    to_json,
)
from lbconfig.render import RENDERERS, files_digest, ldirectord, nftables, render, web
from lbconfig.wanted import network as interfaces
from lbconfig.wanted import settings as sysctl

IPV4, IPV6 = r"\d{1,3}(?:\.\d{1,3}){3}", r"[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}"
ADDRESS = rf"(?:{IPV4}|{IPV6})"
ENDPOINT = rf"(?:{IPV4}|\[{IPV6}\]):\d+"
NAME = r"[^\W_](?:[\w .-]*[\w.-])?"
PLACE = rf"{ADDRESS} \. (?:tcp|udp|sctp) \. \d+"
RANGE = rf"{PLACE}(?:-\d+)?"

LDIRECTORD_GLOBAL = (
    "supervised=yes",
    'logfile="daemon"',
    "quiescent=yes",
    "readdquiescent=yes",
    "cleanstop=no",
    "fork=yes",
    "autoreload=no",
)
LDIRECTORD_BLOCK = {
    "real": rf"{IPV4}:\d+ (?:masq|gate|ipip) \d+(?: l:\d+ u:\d+)?",
    "real6": rf"\[{IPV6}\]:\d+ (?:masq|gate|ipip) \d+(?: l:\d+ u:\d+)?",
    "fallback": rf"{IPV4}:\d+ (?:masq|gate|ipip)",
    "fallback6": rf"\[{IPV6}\]:\d+ (?:masq|gate|ipip)",
    "protocol": "tcp|udp|fwm",
    "scheduler": "[a-z]+",
    "quiescent": "no",
    "checktype": r"connect|negotiate|ping|\d+",
    "checktimeout": r"\d+",
    "negotiatetimeout": r"\d+",
    "checkinterval": r"\d+",
    "failurecount": r"\d+",
    "checkport": r"\d+",
    "service": "none|[a-z]+",
    "request": r'"/[^"#\\\s]*"|"hex:[0-9a-f]+"',
    **dict.fromkeys(("login", "passwd", "secret", "database"), '"hex:[0-9a-f]+"'),
    "virtualhost": r'"[A-Za-z0-9._-]+(?::\d+)?"',
    "receive": r'"\(\?:vs\d+\)\{0\}(?:[A-Za-z0-9 ]|\\x[0-9a-f]{2})*"',
}
IPVS_SERVICE = rf"(?:-[tu] {ENDPOINT}|-f \d+(?: -6)?)"
TUNNEL = r"--tun-type (?:gre|gue --tun-port 6080) --tun-(?:no)?csum"
BALANCE_COMMENT = re.compile(
    r"    # balance -[tuf] \S+(?: -6)? id=\d+ agent=(?:off|text|http|response) port=\d+ interval=\d+ floor=\d+ "
    r"slow=\d+ least=\d+ then=(?:tell|keep|aside) again=\d+"
)
MORE_WORDS = re.compile(r"    # check vs\d+(?: [a-z_]+=(?:[a-z0-9.:+-]+|hex:[0-9a-f]+))+")
TUNNEL_COMMENT = re.compile(rf"    # tunnel {IPVS_SERVICE} -r {ENDPOINT} {TUNNEL}")


@of_snapshots(100, first=[FACTORY])
def test_ldirectord_reads_every_line_as_it_was_meant(snapshot):
    head, *blocks = ldirectord.render(snapshot).split("\n\n")
    assert len(head.splitlines()) == len(LDIRECTORD_GLOBAL)
    assert all(map(re.fullmatch, LDIRECTORD_GLOBAL, head.splitlines()))
    expected = [
        service
        for service in snapshot.enabled_services
        if service.check.kind != CheckKind.OFF and any(server.in_table for server in service.real_servers)
    ]
    assert len(blocks) == len(expected)
    for service, block in zip(expected, blocks, strict=True):
        comment, virtual, *lines = block.rstrip("\n").split("\n")
        assert comment == f"# {service.name}"
        assert virtual == front(service)
        for line in lines:
            if any(comment.fullmatch(line) for comment in (TUNNEL_COMMENT, BALANCE_COMMENT, MORE_WORDS)):
                continue
            key = line.strip().partition("=")[0]
            assert re.fullmatch(f"    {key}=(?:{LDIRECTORD_BLOCK[key]})", line), line
            assert "#" not in line
        if "expect" in KINDS[service.check.kind].fields:
            assert meaning(lines[-1]) == service.check.expect


def front(service) -> str:
    if ":" in service.address:
        return f"virtual6={service.id}" if service.by_mark else f"virtual6=[{service.address}]:{service.port}"
    return f"virtual={service.id}" if service.by_mark else f"virtual={service.address}:{service.port}"


def meaning(line: str) -> str:
    """The text that the pattern of a receive line matches."""
    pattern = re.fullmatch(r'    receive="\(\?:vs\d+\)\{0\}(.*)"', line)[1]
    return re.sub(rb"\\x(..)", lambda found: bytes.fromhex(found[1].decode()), pattern.encode()).decode()


MASQUERADED = rf"{ADDRESS} \. (?:tcp|udp) \. {ADDRESS} \. \d+|\d+ \. {ADDRESS}"
NFT_ELEMENT = re.compile(
    rf'\t\t\t(?:{ADDRESS}(?:/\d+)?|{RANGE}|{RANGE} comment "{NAME}" : \d+|(?:{PLACE}|{MASQUERADED}) comment "{NAME}"),'
)
ARRIVES = r'iifname \{ "[A-Za-z0-9._-]+"(?:, "[A-Za-z0-9._-]+")* \}'
NFT_DHCP = re.compile(rf"\t\t{ARRIVES} udp sport 67 udp dport 68 accept")
NFT_WEB = re.compile(
    rf"\t\t(?:{ARRIVES} )?"
    r"ip6? saddr @management_v[46] ip6? daddr != @vips6? tcp dport \d+ (?:accept|tcp flags & "
    r"\(syn \| ack\) == syn update @web_clients6? \{ ip6? saddr (?:& [0-9a-f:]+ )?limit rate over 20/second burst 40 "
    r"packets \} counter drop)|\t\ttcp dport \{ \d+, \d+ \} return|"
    r"\t\ttcp dport \d+ ip6? daddr != @vips6? fib daddr type local notrack|\t\ttcp sport \d+ notrack|"
    r"\t\ttcp dport != \d+ tcp flags & \(syn \| ack\) != syn (?:socket transparent 0 accept|counter drop)"
)
NFT_SIZE = re.compile(r"\t\tsize [1-9]\d*")

NET = rf"{ADDRESS}/\d+"
OWN_NAME = r"rule_\d+_(?:from|to|rate)6?"
OWN_MATCH = (
    r'(?:iifname "[A-Za-z0-9._-]+" )?'
    rf"(?:ip6? saddr (?:{NET}|@{OWN_NAME}) )?(?:ip6? daddr (?:{NET}|@{OWN_NAME}) )?"
    r"(?:(?:icmp|icmpv6) type echo-request |meta l4proto (?:\w+|\{ [a-z0-9-]+, [a-z0-9-]+ \}) )?"
    r"(?:th dport \{ \d+(?:-\d+)?(?:, \d+(?:-\d+)?)* \} )?"
)
OWN_LIMIT = r"limit rate over \d+/(?:second|minute) burst \d+ packets"
# What the admin's own rules may look like, whole lines.
NFT_OWN = re.compile(
    "|".join(
        (
            rf"\t(?:set {OWN_NAME}|chain rule_\d+) \{{",
            r"\t\ttimeout \d+s",
            rf'\t\tcomment "{NAME}: (?:from|to|who came lately)"',
            rf"\t\t{OWN_MATCH}counter (?:meta mark set 0x80000000 )?(?:accept|drop|goto (?:refuse|rule_\d+)) "
            r'comment "rule \d+"',
            rf'\t\t{OWN_MATCH}limit rate 5/second burst 20 packets log prefix "fairlead rule \d+ [a-z]+: "',
            rf"\t\t(?:{OWN_LIMIT}|update @{OWN_NAME} \{{ ip6? saddr (?:& [0-9a-f:]+ )?{OWN_LIMIT} \}}) "
            r'counter drop comment "rule \d+ over"',
        )
    )
)


@functools.cache
def fixed_lines() -> set[str]:
    """Those of configurations that were written by hand."""
    every = (SAMPLE, EVERY_NAT, EVERY_RULE, NO_STATES, RULES_NO_STATES, SORRY_PAGE)
    return {line for one in every for line in nftables.render(one).splitlines()}


@of_snapshots(100)
def test_nftables_takes_values_only_as_elements(snapshot):
    for line in nftables.render(snapshot).splitlines():
        if line in fixed_lines() or line.startswith("\t\ticmp type {"):
            continue
        assert any(form.fullmatch(line) for form in (NFT_ELEMENT, NFT_SIZE, NFT_DHCP, NFT_WEB, NFT_OWN)), line
        for comment in re.findall(r'comment "(.*)"', line):
            assert len(comment.encode()) <= 127


LINES = {
    "ipvs.rules": r"--set \d+ \d+ \d+|"
    rf"-A {IPVS_SERVICE} -s [a-z]+(?: -p \d+ -M (?:{IPV4}|\d+)(?: --pe sip)?)?(?: -o)?(?: -b flag-[12](?:,flag-2)?)?|"
    rf"-a {IPVS_SERVICE} -r {ENDPOINT} (?:-[mgi]|-i {TUNNEL}) -w \d+(?: -x \d+ -y \d+)?",
    "interfaces": r"hostname [A-Za-z0-9.-]+|dhcp [\w.-]+|"
    r"link [\w.-]+(?: vlan \d+ of [\w.-]+|"
    r" bond mode [a-z0-9.-]+ miimon \d+(?: (?:lacp_rate|xmit_hash_policy|primary) \S+)*"
    r"| bridge stp_state [01])?(?: member of [\w.-]+)?(?: mtu \d+)? (?:up|down)|"
    rf"address {ADDRESS}/\d+ on [\w.-]+|gateway {ADDRESS}|"
    rf"route {ADDRESS}/\d+(?: via {ADDRESS})? on [\w.-]+(?: metric \d+)?|from {ADDRESS} via {ADDRESS} on [\w.-]+",
    "resolv.conf": rf"nameserver {ADDRESS}|search [a-z0-9. -]+",
    "chrony.conf": r"server [a-z0-9.:-]+ iburst|[a-z]+ [ -~]+|rtcsync",
    "sysctl.conf": r"# [ -~]+|net/ipv[46]/[a-z0-9_/]+ = \d+|net/ipv[46]/conf/[A-Za-z0-9._-]+/[a-z_]+ = [012]",
}


@of_snapshots(100)
def test_rendering_is_repeatable_and_plain_files_have_only_lines_of_known_form(snapshot):
    files = render(snapshot)
    for name, form in LINES.items():
        for line in files[name].splitlines():
            assert re.fullmatch(form, line), f"{name}: {line}"
    assert files == render(from_json(to_json(snapshot))), "what is kept with this one has no part in it"
    assert all(text == "" or (text.endswith("\n") and "\r" not in text) for text in files.values())
    assert files_digest(files) == files_digest(dict(reversed(files.items())))


@of_snapshots(examples(100))
def test_nft_itself_accepts_the_file(nft_check, snapshot):
    done = nft_check(nftables.render(snapshot))
    assert (done.returncode, done.stderr) == (0, "")


def test_names_of_the_files():
    names = {"ipvs.rules", "nftables.conf", "ldirectord.cf", "interfaces", "sysctl.conf", "sorry.html"}
    names |= {"resolv.conf", "chrony.conf", "web.conf"}
    assert set(render(SAMPLE)) == names


@of_snapshots(examples(50))
def test_the_web_page_listens_at_its_port_alone(snapshot):
    port = snapshot.management.port
    lines = [f"listen {place} ssl default_server;" for place in (port, f"[::]:{port}")]
    found = web.render(snapshot).splitlines()
    assert found[:2] == lines
    # The box's own certificate stands in nginx.conf itself.
    named = [
        re.fullmatch(r"ssl_certificate(?:_key)? (/run/fairlead/certificates/[0-9a-f]{32}\.pem);", one)
        for one in found[2:]
    ]
    assert all(named) and len({one[1] for one in named}) == (1 if snapshot.management.certificate else 0)


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


def test_what_ldirectord_has_no_word_for_is_in_a_comment_that_ours_reads():
    assert "# check" not in block(with_check())
    assert "    # check vs3 successes=3\n" in block(with_check(successes=3))
    assert "    # check vs3 successes=2 retry=1\n" in block(with_check(successes=2, retry=1))
    assert "    # check vs3 old_tls=1\n" in block(with_check(kind=CheckKind.HTTPS, old_tls=True))
    assert "    # check vs3 matching=lacks\n" in block(with_check(matching=Matching.LACKS))


def test_a_program_is_a_comment_and_no_command():
    """ldirectord's own word for it names a file that root runs."""
    text = block(with_check(kind=CheckKind.PROGRAM, program='#!/bin/sh\nexit 0 # "\n', ask="öl"))
    assert "service=simpletcp\n" in text
    assert 'request="hex:c3b66c"\n' in text
    program = b'#!/bin/sh\nexit 0 # "\n'.hex()
    assert f"    # check vs3 vip=10.0.2.100 port=80 protocol=tcp program=hex:{program}\n" in text
    assert "checkcommand" not in text


def test_only_an_http_check_asks_something():
    for kind in (CheckKind.CONNECT, CheckKind.PING):
        text = block(with_check(kind=kind))
        assert "request=" not in text and "virtualhost=" not in text
        assert 'receive="(?:vs3){0}"' in text


def test_what_ldirectord_has_no_words_for_is_in_others():
    text = block(with_check(kind=CheckKind.HTTPS, method=HttpMethod.HEAD, expect="", statuses="200,401"))
    assert f'database="hex:{b"HEAD 200,401".hex()}"' in text
    assert "database=" not in block(with_check(kind=CheckKind.HTTP))
    assert f'database="hex:{b"POST 200-299".hex()}"' in block(with_check(kind=CheckKind.HTTP, method=HttpMethod.POST))
    text = block(with_check(kind=CheckKind.HTTPS, verify=True, authority="PEM", login="kim", password="x"))
    certificate = b"verify\nPEM".hex()
    assert f'secret="hex:{certificate}"' in text
    assert f'login="hex:{b"kim".hex()}"' in text


@pytest.mark.parametrize(
    ("host", "sent"),
    [("a_b.org", "a_b.org"), ("a.org:8080", "a.org:8080"), ("sh\xf6p.org:81", "xn--shp-tna.org:81"), ("", None)],
)
def test_the_name_of_a_web_site_is_sent_as_programs_know_it(host, sent):
    text = block(with_check(kind=CheckKind.HTTP, host=host))
    assert (f'virtualhost="{sent}"' in text) if sent else ("virtualhost" not in text)


def test_plain_connects_stand_between_whole_checks():
    assert "checktype=4\n" in block(with_check(kind=CheckKind.HTTP, connects=4))
    assert "checktype=negotiate\n" in block(with_check(kind=CheckKind.HTTP))
    assert "checktype=connect\n" in block(with_check(kind=CheckKind.CONNECT, connects=4))


def test_each_service_has_its_own_interval():
    assert "checkinterval=7\n" in block(with_check(interval=7))


def test_services_without_a_check_or_servers_stay_out():
    assert ldirectord.watched(with_service(check=HealthCheck(CheckKind.OFF))) == (DNS,)
    disabled = RealServer(7, "10.2.0.11", 80, state=ServerState.DISABLED)
    assert ldirectord.watched(with_service(real_servers=(disabled,))) == (DNS,)
    assert ldirectord.watched(with_service(enabled=False)) == (DNS,)


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
        assert state.dhcp == ("wan",) and [link.name for link in state.links] == ["lan", "wan"]
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
    assert set(sysctl.settings()) <= set(table)
    assert table[0].key == "net/ipv4/ip_forward"
    assert {setting.key for setting in table} >= {f"net/ipv4/conf/eth{n}/send_redirects" for n in (0, 1)}


def test_every_scheduler_can_be_written():
    for scheduler in Scheduler:
        assert f"-s {scheduler}\n" in RENDERERS["ipvs.rules"](with_service(scheduler=scheduler))


def test_whose_router_counts_is_said_where_several_ask_dhcp():
    asks = tuple(Interface(name, dhcp=True) for name in ("eth1", "eth0"))
    assert interfaces.routers_of_dhcp(Network(interfaces=asks)) == (
        "eth1 comes first of the interfaces that ask DHCP, so its router is the default gateway. While DHCP names none "
        "there, the router of eth0 is used."
    )
    set_ = interfaces.routers_of_dhcp(Network(gateway="10.0.0.1", interfaces=asks))
    assert set_.startswith("The default gateway is 10.0.0.1;")
    assert interfaces.routers_of_dhcp(Network(interfaces=(asks[0], Interface("eth0", dhcp=True, on=False)))) == ""
