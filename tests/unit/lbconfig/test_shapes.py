"""Configurations as people have them, in short: each can be said, is rendered, and is told in words."""

import dataclasses

import pytest
from lbconfig_samples import SAMPLE

from lbconfig.diff.services import summary
from lbconfig.model.checks import uses
from lbconfig.model.snapshot import (
    CheckKind,
    FallbackKind,
    Forwarding,
    HealthCheck,
    Matching,
    Protocol,
    RealServer,
    Scheduler,
    Snapshot,
    VirtualService,
)
from lbconfig.model.snapshot import Fallback as Else
from lbconfig.render import ldirectord, render
from lbconfig.validate.services import validate

SQL = {"login": "monitor", "password": "x"}


def service(number, port, check, **fields) -> VirtualService:
    several = "more_ports" in fields or fields.get("protocol") in (Protocol.TCP_UDP, Protocol.SCTP)
    reals = tuple(
        RealServer(10 * number + n, f"10.2.0.{10 + n}", 0 if several else port, name=f"node {n}") for n in (1, 2)
    )
    return VirtualService(number, f"s{number}", "10.0.2.100", port, check=check, real_servers=reals, **fields)


def many_databases() -> tuple[VirtualService, ...]:
    check = HealthCheck(CheckKind.MYSQL, ask="select 1", database="shop", retry=1, failures=3, **SQL)
    return tuple(service(number, 3306 + number, check, scheduler=Scheduler.TWOS) for number in range(1, 71))


SHAPES = {
    "70 services with MySQL log-ins": many_databases(),
    "telephones": (
        service(1, 5060, HealthCheck(CheckKind.SIP), protocol=Protocol.UDP, persistence=3600, call_id=True),
        service(2, 5060, HealthCheck(CheckKind.SIP), persistence=3600),
    ),
    "passive FTP by mark": (
        service(1, 21, HealthCheck(CheckKind.FTP, **SQL), more_ports="50000-50100", persistence=300),
    ),
    "a Kubernetes API": (
        service(
            1, 6443,
            HealthCheck(CheckKind.HTTPS, path="/readyz", expect="^ok$", matching=Matching.PATTERN, successes=3),
            forwarding=Forwarding.NAT, scheduler=Scheduler.LC,
        ),
    ),
    "UDP with a TCP check": (service(1, 514, HealthCheck(CheckKind.CONNECT, port=601), protocol=Protocol.UDP),),
    "mail": (
        service(1, 25, HealthCheck(CheckKind.SMTP)),
        service(2, 993, HealthCheck(CheckKind.IMAPS, old_tls=True, **SQL)),
        service(3, 587, HealthCheck(CheckKind.SUBMISSION)),
        service(4, 995, HealthCheck(CheckKind.POPS)),
    ),
    "web with status codes": (
        service(
            1, 80, HealthCheck(CheckKind.HTTP, statuses="200,301-302,401", expect="down for", matching=Matching.LACKS),
            more_ports="443", fallback=Else(FallbackKind.PAGE),
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_it_can_be_said(shape):
    snapshot = dataclasses.replace(SAMPLE, services=SHAPES[shape])
    assert validate(snapshot) == []
    assert render(snapshot)["ldirectord.cf"].count("\nvirtual=") == len(snapshot.services)
    told = [change for change in summary(dataclasses.replace(snapshot, services=()), snapshot) if change.service]
    assert len(told) == len(snapshot.services)


def test_what_is_said_of_a_check_gets_to_ldirectord():
    """Each field that is not as it is by default changes the file."""
    for one in (one for services in SHAPES.values() for one in services[:1]):
        for field in dataclasses.fields(HealthCheck):
            if field.name != "kind" and uses(one.check, field.name) and getattr(one.check, field.name) != field.default:
                plain = dataclasses.replace(one.check, **{field.name: field.default})
                files = [
                    ldirectord.render(Snapshot((dataclasses.replace(one, check=check),)))
                    for check in (one.check, plain)
                ]
                assert files[0] != files[1], field.name
