"""Services: what their ports, fallbacks, options and checks cannot be, alone and beside another service."""

import dataclasses
import subprocess

import pytest
from lbconfig_samples import DNS, SAMPLE, WEB, problems_at, with_server, with_service
from tests.texts import no_address, within

from lbconfig.model.checks import KINDS, SQL_CHECKS, using, without_unused, worst_case_detection
from lbconfig.model.problem import written_as
from lbconfig.model.snapshot import (
    CheckKind,
    Fallback,
    FallbackCheck,
    FallbackKind,
    Forwarding,
    HealthCheck,
    HttpMethod,
    Matching,
    Protocol,
    RealServer,
    Request,
    Snapshot,
    SorryPage,
)
from lbconfig.validate.services import validate


def several(more_ports: str = "443,8000-8100", port: int = 80, server_port: int = 0, **fields) -> Snapshot:
    servers = (RealServer(7, "10.2.0.11", server_port),)
    return with_service(more_ports=more_ports, port=port, real_servers=servers, **fields)


def test_a_service_of_several_ports_or_protocols():
    for snapshot in (several(), several("", protocol=Protocol.TCP_UDP), several(protocol=Protocol.TCP_UDP)):
        assert validate(snapshot) == []
        assert snapshot.services[0].by_mark
    assert several().services[0].port_ranges == ((80, 80), (443, 443), (8000, 8100))
    assert not WEB.by_mark


@pytest.mark.parametrize(
    ("snapshot", "field", "words"),
    [
        (several("443, 8000"), "more_ports", written_as("443,8000")),
        (several("8000,443"), "more_ports", written_as("443,8000")),
        (several("443,444"), "more_ports", written_as("443-444")),
        (several("443-440"), "more_ports", "ends before it begins"),
        (several("0"), "more_ports", "not 1 to 65535"),
        (several("65536"), "more_ports", "not 1 to 65535"),
        (several("99999999999999"), "more_ports", "ports and ranges such as"),
        (several("http"), "more_ports", written_as("80")),
        (several("gopher"), "more_ports", "ports and ranges such as"),
        (several("443;reboot"), "more_ports", "ports and ranges such as"),
        (several("٤٤٣"), "more_ports", "ports and ranges such as"),
        (several(",".join(str(n) for n in range(1000, 1400, 2))), "more_ports", "more than 64"),
        (several("79-81"), "more_ports", "must not contain 80"),
        (several(server_port=80), "port", "must be empty"),
        (several("53", protocol=Protocol.UDP), "port", "is 10.0.2.100 port 53 udp already"),
        (several("50-60", protocol=Protocol.TCP_UDP), "port", "is 10.0.2.100 port 53 udp already"),
        (several("442-444", address="10.0.2.15"), "port", "is the web UI of this box"),
        (with_server(port=0), "port", within(1, 65535, 0)),
    ],
)
def test_what_several_ports_cannot_be(snapshot, field, words):
    found = [problem.message for problem in validate(snapshot) if problem.field == field]
    assert any(words in message for message in found), validate(snapshot)


def test_an_id_that_is_no_mark_is_refused():
    assert [one.field for one in validate(several(id=2**31))] == ["id"]
    assert validate(with_service(id=2**31)) == []


def falling_back(address="10.2.0.99", port=0, kind=FallbackKind.SERVER, **fields):
    return with_service(fallback=Fallback(kind, address, port), **fields)


TAKES_CONNECTIONS = Fallback(FallbackKind.SERVER, "10.2.0.99", check=FallbackCheck.CONNECT)


def test_a_fallback_server_of_udp_can_have_the_check_of_its_service():
    own = dataclasses.replace(TAKES_CONNECTIONS, check=FallbackCheck.SAME)
    assert validate(with_service(fallback=own, protocol=Protocol.UDP, check=HealthCheck(port=80))) == []


def asking(*requests, kind=CheckKind.HTTP, **more):
    return with_service(check=HealthCheck(kind, more_requests=tuple(Request(*one) for one in requests), **more))


def test_a_web_check_may_have_several_requests():
    assert validate(asking(*[("/api/health?a=b", "all is well")] * 5, kind=CheckKind.HTTPS)) == []
    assert validate(asking(("/",), method=HttpMethod.HEAD)) == []


@pytest.mark.parametrize(
    ("snapshot", "words"),
    [
        (asking(*[("/",)] * 6), "must be at most 5 beside the first one, not 6"),
        (asking(("/",), ("health",)), "the path of request 2 must begin with /"),
        (asking(("/a b",)), "the path of request 1 must begin with /"),
        (asking(("/", "x" * 201)), "the expected text of request 1 (/) must not be longer than 200"),
        (asking(("/", " x")), "must not begin or end with a blank"),
        (asking(("/", "x"), method=HttpMethod.HEAD), "cannot be combined with HEAD"),
        (asking(("/",), kind=CheckKind.SMTP), "has no effect for this check"),
    ],
)
def test_what_more_requests_cannot_be(snapshot, words):
    found = [one.message for one in validate(snapshot) if one.path == "services[id=3].check.more_requests"]
    assert any(words in message for message in found), validate(snapshot)


def test_who_may_answer_while_all_are_down():
    page = with_service(fallback=Fallback(FallbackKind.PAGE))
    for snapshot in (
        page, falling_back(), falling_back(port=8080), falling_back(port=8080, more_ports="443", real_servers=()),
        falling_back(forwarding=Forwarding.DIRECT, real_servers=()),
    ):  # fmt: skip
        assert validate(snapshot) == []
    assert page.services[0].fallback_server == RealServer(0, "10.0.2.100", 64503, forwarding=Forwarding.NAT)
    assert page.services[0].machines == WEB.real_servers
    assert falling_back().services[0].machines[-1] == RealServer(0, "10.2.0.99", 80)


@pytest.mark.parametrize(
    ("snapshot", "field", "words"),
    [
        (falling_back(""), "address", no_address("")),
        (falling_back("10.2.0.99; reboot"), "address", no_address("10.2.0.99; reboot")),
        (falling_back("2001:db8::1"), "address", "must be an IPv4 address"),
        (falling_back("10.0.2.15"), "address", "this box's own address"),
        (falling_back("10.0.2.100"), "address", "is the address of virtual service"),
        (falling_back("10.2.0.11", 8000), "address", "this service has a real server"),
        (falling_back(port=65536), "port", within(0, 65535, 65536)),
        (falling_back(port=8080, forwarding=Forwarding.DIRECT, real_servers=()), "port", "must be 80, as the service"),
        (falling_back(more_ports="443", real_servers=()), "port", "connections to all ports of this service go there"),
        (falling_back(check=HealthCheck(CheckKind.OFF)), "kind", "needs a health check"),
        (falling_back("", kind=FallbackKind.PAGE, check=HealthCheck(CheckKind.OFF)), "kind", "needs a health check"),
        (falling_back("", kind=FallbackKind.PAGE, protocol=Protocol.UDP), "kind", "is for TCP services"),
        (falling_back(kind=FallbackKind.PAGE), "address", "must be empty"),
        (falling_back("", 80, FallbackKind.NONE), "port", "must be empty"),
        (falling_back("", kind=FallbackKind.PAGE, more_ports="64000-65000"), "kind", "which the sorry page needs"),
        (with_service(fallback=Fallback(check=FallbackCheck.SAME)), "check", "must be off, because nobody answers"),
        (
            with_service(fallback=TAKES_CONNECTIONS, protocol=Protocol.UDP, check=HealthCheck(port=80)),
            "check",
            "UDP servers take no TCP connections",
        ),
    ],
)  # fmt: skip
def test_who_may_not(snapshot, field, words):
    found = [problem.message for problem in validate(snapshot) if problem.path == f"services[id=3].fallback.{field}"]
    assert any(words in message for message in found), validate(snapshot)


@pytest.mark.parametrize(
    ("page", "path"),
    [
        (SorryPage(title=""), "sorry.title"),
        (SorryPage(title="a" * 101), "sorry.title"),
        (SorryPage(paragraphs=("a", "")), "sorry.paragraphs"),
        (SorryPage(paragraphs=("a" * 501,)), "sorry.paragraphs"),
        (SorryPage(paragraphs=("a",) * 21), "sorry.paragraphs"),
    ],
)
def test_the_sorry_page(page, path):
    assert [problem.path for problem in validate(dataclasses.replace(SAMPLE, sorry=page))] == [path]
    assert validate(dataclasses.replace(SAMPLE, sorry=SorryPage("<b>&", ("\U0001f600 \u4f60", '"')))) == []


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"id": 3}, "services[id=3].id"),
        ({"name": "WEB"}, "services[id=4].name"),
        ({"port": 80, "protocol": Protocol.TCP}, "services[id=4].port"),
        ({"real_servers": WEB.real_servers[:1]}, "services[id=4].real_servers[id=7].id"),
        (
            {"real_servers": (RealServer(20, "10.2.0.13", 53), RealServer(21, "10.2.0.13", 53, weight=5))},
            "services[id=4].real_servers[id=21].address",
        ),
    ],
)
def test_what_must_be_unique(change, path):
    [problem] = validate(dataclasses.replace(SAMPLE, services=(WEB, dataclasses.replace(DNS, **change))))
    assert problem.path == path


def test_same_place_with_another_protocol_is_another_service():
    assert validate(dataclasses.replace(SAMPLE, services=(WEB, dataclasses.replace(DNS, port=80)))) == []


def test_a_disabled_service_may_stand_where_another_one_is_or_belong_to_another_network():
    spare = dataclasses.replace(WEB, id=11, name="spare", enabled=False, real_servers=())
    elsewhere = dataclasses.replace(spare, id=12, name="elsewhere", address="192.0.2.77")
    assert validate(dataclasses.replace(SAMPLE, services=(*SAMPLE.services, spare, elsewhere))) == []


@pytest.mark.parametrize(
    ("snapshot", "field", "words"),
    [
        (with_service(hash_port=True), "hash_port", "source and Maglev hashing (sh, mh), not of wlc"),
        (with_service(hash_next=True), "hash_next", "source and Maglev hashing"),
        (with_service(one_packet=True), "one_packet", "for UDP only"),
        (with_service(call_id=True, persistence=60), "call_id", "SIP over UDP only"),
        (
            with_service(call_id=True, protocol=Protocol.UDP, check=HealthCheck(CheckKind.PING)),
            "call_id",
            "persistence",
        ),
        (with_service(persistence=-1), "persistence", within(0, 2678400, -1)),
        (with_service(persistence=2678401), "persistence", within(0, 2678400, 2678401)),
        (with_service(persistence_prefix=-1), "persistence_prefix", within(0, 32, -1)),
        (with_service(persistence_prefix=33), "persistence_prefix", within(0, 32, 33)),
        (with_service(note="x" * 501), "note", "longer than 500 characters, and has 501"),
        (with_server(upper=-1), "upper", within(0, 2147483647, -1)),
        (with_server(upper=2**31), "upper", within(0, 2147483647, 2147483648)),
        (with_server(lower=5), "lower", "needs an upper threshold"),
        (with_server(upper=5, lower=6), "lower", "must not be above the upper threshold, 5"),
    ],
)
def test_options_that_cannot_be(snapshot, field, words):
    [problem] = validate(snapshot)
    assert problem.field == field
    assert words in problem.message


def test_one_packet_scheduling_and_persistence_exclude_each_other_but_for_calls():
    both = dataclasses.replace(
        WEB, protocol=Protocol.UDP, one_packet=True, persistence=60, check=HealthCheck(CheckKind.PING)
    )
    [problem] = validate(dataclasses.replace(SAMPLE, services=(both,)))
    assert problem.field == "persistence"
    calls = dataclasses.replace(both, call_id=True)
    assert validate(dataclasses.replace(SAMPLE, services=(calls,))) == []


def test_udp_is_checked_by_connecting_to_a_port_that_is_named():
    def udp(**check):
        return with_service(protocol=Protocol.UDP, check=HealthCheck(**check))

    for kind in (CheckKind.CONNECT, CheckKind.HTTP):
        assert problems_at(udp(kind=kind), "services[id=3].check.port")
        assert validate(udp(kind=kind, port=8080)) == []
    assert validate(udp(kind=CheckKind.PING)) == validate(udp(kind=CheckKind.OFF)) == []


@pytest.mark.parametrize(
    ("protocol", "check", "words"),
    [
        (
            Protocol.UDP,
            HealthCheck(CheckKind.CONNECT),
            "name the TCP port on which they answer the check (TCP connect)",
        ),
        (Protocol.SCTP, HealthCheck(CheckKind.CONNECT), "SCTP servers take no TCP connections"),
        (Protocol.SCTP, HealthCheck(CheckKind.CONNECT, port=80), ""),
        (Protocol.SCTP, HealthCheck(CheckKind.HTTP), "the TCP port on which they answer the check (HTTP)"),
        (Protocol.SCTP, HealthCheck(CheckKind.HTTP, port=80), ""),
    ],
)
def test_sctp_and_udp_are_checked_by_other_ways(protocol, check, words):
    service = dataclasses.replace(WEB, protocol=protocol, check=check, real_servers=())
    problems = validate(dataclasses.replace(SAMPLE, services=(service,)))
    assert [words in problem.message for problem in problems] == ([True] if words else [])
    assert service.by_mark == (protocol is Protocol.SCTP)


@pytest.mark.parametrize(
    ("expect", "words"),
    [
        ("192.0.2.1", ""),
        ("2001:db8::1", ""),
        ("", ""),
        ("192.0.2", no_address("192.0.2")),
        ("2001:DB8::1", written_as("2001:db8::1")),
    ],
)
def test_what_a_name_must_be_is_a_whole_address(expect, words):
    check = HealthCheck(CheckKind.DNS, ask="www.example.org", expect=expect)
    problems = [one for one in validate(with_service(check=check)) if one.field == "expect"]
    assert [words in one.message for one in problems] == ([True] if words else [])


SH = "#!/bin/sh\nexit 0\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (SH, ""),
        ("#! /usr/bin/perl  -w\n\tprint 1;", ""),
        ("#!/usr/bin/env python3\npass\n", ""),
        ("", "must begin with a line such as #!/bin/sh"),
        ("exit 0\n", "must begin with a line such as #!/bin/sh"),
        ("#!/bin/bash\nexit 0\n", "must be run by /bin/sh, "),
        ("#!/bin/sh-x\nexit 0\n", "must be run by /bin/sh, "),
        ("#!/usr/bin/env -S python3 -c 1\nx\n", "must be run by /bin/sh, "),
        ("#!/bin/sh\n \n", "must have more than its first line"),
    ],
)
def test_what_a_program_must_be(text, words):
    check = HealthCheck(CheckKind.PROGRAM, program=text)
    problems = validate(with_service(check=check))
    assert [one.path for one in problems] == (["services[id=3].check.program"] if words else [])
    assert all(words in one.message for one in problems)


def test_all_programs_together_are_bounded(monkeypatch):
    """They are in one file, which is read whenever the checks begin."""
    monkeypatch.setattr("lbconfig.validate.services.MAX_PROGRAMS", 2 * len(SH))
    check = HealthCheck(CheckKind.PROGRAM, program=SH)
    first = with_service(check=check)
    [own] = [one for one in first.services if one.id == 3]
    others = tuple(
        dataclasses.replace(own, id=n, name=f"p{n}", port=9000 + n, real_servers=()) for n in range(101, 104)
    )
    for count, paths in ((1, []), (2, ["services[id=102].check.program"])):
        snapshot = dataclasses.replace(first, services=(*first.services, *others[:count]))
        assert [one.path for one in validate(snapshot)] == paths


SAID = {  # something else than what is there by default
    "port": 81, "path": "/x", "host": "x.org", "expect": "192.0.2.1", "login": "x", "password": "x", "secret": "x",
    "database": "x", "ask": "x.org", "verify": True, "authority": "x", "connects": 1, "method": HttpMethod.HEAD,
    "statuses": "204", "matching": Matching.PATTERN, "old_tls": True,
    "program": "#!/bin/sh\nexit 0\n", "more_requests": (Request("/y"),),
}  # fmt: skip


def test_every_field_of_a_check_has_a_value_above():
    always = {"kind", "interval", "timeout", "failures", "successes", "retry"}
    assert {field.name for field in dataclasses.fields(HealthCheck)} == {*SAID, *always}


@pytest.mark.parametrize("kind", CheckKind)
@pytest.mark.parametrize("field", SAID)
def test_a_field_that_a_check_does_not_use_is_refused_by_its_name(kind, field):
    check = HealthCheck(
        kind, **({"expect": "x"} if field == "matching" and kind in using(field) else {}), **{field: SAID[field]}
    )
    problems = [one for one in validate(with_service(check=check)) if "has no effect" in one.message]
    used = field in KINDS[kind].fields or (field == "port" and kind not in (CheckKind.PING, CheckKind.OFF))
    if field == "authority":  # of whom, where anybody will do?
        used = False
    assert [one.path for one in problems] == ([] if used else [f"services[id=3].check.{field}"])
    assert without_unused(check) == (check if used else HealthCheck(kind))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("^status: (ok|degraded)$", ""),
        (r"load [0-9]{1,2}\.\d+ \\ up", ""),
        (r"(?i)(a)(?=b)(?!c)(?:d)\x41\1", ""),
        ("(", "must be a regular expression, not '('"),
        ("*", "nothing to repeat"),
        ("\xf6", "of ASCII characters"),
        (r"\p{L}", r"without '\\p'"),
        (r"\\\Q", r"without '\\Q'"),
        ("(?{ system })", "not known here"),
        ("(?P<x>a)", "not known here"),
        ("[[:alpha:]]", "must be a regular expression"),
        ("x" * 201, "longer than 200"),
    ],
)
def test_a_pattern_is_one_that_perl_reads_in_the_same_way(text, words):
    check = HealthCheck(CheckKind.HTTP, expect=text, matching=Matching.PATTERN)
    problems = validate(with_service(check=check))
    assert [(one.field, words in one.message) for one in problems] == ([("expect", True)] if words else [])
    if not words:
        subprocess.run(["perl", "-e", "qr/$ARGV[0]/", text], check=True, timeout=30)


def test_a_query_needs_an_account():
    for kind in SQL_CHECKS:
        query = HealthCheck(kind, ask="select 1", password="x", database="shop")
        [problem] = validate(with_service(check=query))
        assert (problem.field, "(ask, password" in problem.message) == ("login", True)
        assert validate(with_service(check=dataclasses.replace(query, login="kim"))) == []


def test_what_an_answer_without_an_end_lacks_is_not_known():
    check = HealthCheck(CheckKind.SIMPLETCP, expect="x", matching=Matching.LACKS)
    assert problems_at(with_service(check=check), "services[id=3].check.matching")


def test_what_a_web_server_may_be_asked():
    check = HealthCheck(
        CheckKind.HTTPS,
        host="sh\xf6p_1.example.org:8443",
        method=HttpMethod.POST,
        statuses="200-299,302,401",
        login="kim",
    )
    assert validate(with_service(check=check)) == []
    [problem] = validate(with_service(check=HealthCheck(CheckKind.HTTP, expect="x", method=HttpMethod.HEAD)))
    assert problem.field == "expect" and "HEAD" in problem.message


def test_worst_case_detection():
    # It dies right after a check began: the next one begins an interval later, and each takes its whole timeout.
    assert worst_case_detection(HealthCheck(interval=2, timeout=1, failures=1)) == 2 + 1
    assert worst_case_detection(HealthCheck(interval=2, timeout=1, failures=3)) == 2 + 2 + 2 + 1
    assert worst_case_detection(HealthCheck(interval=2, timeout=5, failures=3)) == 2 + 5 + 5 + 5
    assert worst_case_detection(HealthCheck(interval=9, timeout=1, failures=3, retry=2)) == 9 + 2 + 2 + 1
    assert worst_case_detection(HealthCheck(interval=9, timeout=3, failures=3, retry=2)) == 9 + 3 + 3 + 3
    assert worst_case_detection(HealthCheck(interval=2, timeout=1, failures=1, successes=9)) == 2 + 1
    assert worst_case_detection(HealthCheck(CheckKind.OFF)) == 0
    # It goes on taking connections: the plain TCP connects in between pass, and the whole check comes after them.
    assert (
        worst_case_detection(HealthCheck(CheckKind.HTTP, interval=2, timeout=1, failures=2, connects=5)) == 12 + 2 + 1
    )
    assert worst_case_detection(HealthCheck(CheckKind.PING, interval=2, timeout=1, failures=1, connects=5)) == 2 + 1
