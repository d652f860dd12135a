"""A check that is tried: what goes to ldirectord, and what is made of its answer; with the real one in tests/vm."""

import contextlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from applier.daemon import Applier
from applier.host.host import HostError, Output
from applier.service import trial
from applier.wire.errors import ApplierRefused
from lbconfig.model.snapshot import (
    CheckKind,
    Fallback,
    FallbackCheck,
    FallbackKind,
    HealthCheck,
    Interface,
    Network,
    RealServer,
    ServerState,
    Snapshot,
    VirtualService,
)

SERVERS = (RealServer(1, "10.2.0.11", 80), RealServer(2, "10.2.0.12", 80, state=ServerState.DISABLED))
SERVICE = VirtualService(4, "web", "10.2.0.100", 80, real_servers=SERVERS, enabled=False)
OTHER = VirtualService(5, "", "10.2.0.101", 80)  # wrong, but nobody asks for it


class Box:
    def __init__(self, output: Output | None = None):
        self.output = output
        self.file = ""

    def command(self, argv, stdin="", timeout=0):
        assert argv[:2] == ["env", "PERL5OPT=-MFairlead::Once"]
        assert argv[3] == "ldirectord"
        self.file = Path(argv[4]).read_text()
        self.timeout = timeout
        if self.output is None:
            raise HostError("ldirectord", None, "it cannot be run: No such file or directory")
        return self.output


def snapshot(service=SERVICE):
    network = Network(interfaces=(Interface("eth0", addresses=("10.2.0.1/24",)),))
    return Snapshot((service, OTHER), network)


def answer(*servers: str) -> str:
    lines = [json.dumps({"server": one, "state": "up"}) for one in servers]
    return "[date] Starting Linux Director\n" + "".join(f"{line}\n" for line in lines)


def test_every_server_is_asked_whatever_its_state():
    box = Box(Output(0, answer("10.2.0.11", "10.2.0.12"), ""))
    found = trial.ask(box, snapshot(), 4)
    assert [one["server"] for one in found] == ["10.2.0.11", "10.2.0.12"]
    assert "virtual=10.2.0.100:80" in box.file
    assert "real=10.2.0.12:80 masq 1" in box.file
    assert "10.2.0.101" not in box.file
    assert box.timeout > 2 * 2


@pytest.mark.parametrize("how", FallbackCheck)
def test_a_fallback_server_is_asked_where_it_is_checked(how):
    fallback = Fallback(FallbackKind.SERVER, "10.2.0.99", 80, how)
    servers = ["10.2.0.11", "10.2.0.12", *(["10.2.0.99"] if how is not FallbackCheck.OFF else [])]
    box = Box(Output(0, answer(*servers), ""))
    found = trial.ask(box, snapshot(replace(SERVICE, fallback=fallback)), 4)
    assert [one["server"] for one in found] == servers
    assert box.timeout >= SERVICE.check.timeout * len(servers)


def test_a_fallback_server_that_cannot_be_one_is_refused():
    itself = Fallback(FallbackKind.SERVER, SERVICE.address, 80, FallbackCheck.SAME)
    with pytest.raises(ApplierRefused) as caught:
        trial.ask(Box(), snapshot(replace(SERVICE, enabled=True, fallback=itself)), 4)
    [problem] = caught.value.problems
    assert (problem["path"], problem["field"]) == ("services[id=4].fallback.address", "address")


def test_no_more_than_some_trials_at_once():
    with contextlib.ExitStack() as running:
        for _ in range(trial.AT_ONCE):
            running.enter_context(trial.slot())
        with pytest.raises(ApplierRefused) as refused:
            Applier.try_check(None, {}, 4)  # refused before anything is looked at
        assert refused.value.code == "busy"
    with trial.slot():
        pass


def test_no_more_than_some_servers_are_asked():
    many = tuple(RealServer(n, f"10.2.0.{n}", 80) for n in range(2, 90))
    box = Box(Output(0, answer(*(one.address for one in many[: trial.MOST])), ""))
    service = VirtualService(4, "web", "10.2.0.100", 80, real_servers=many)
    assert len(trial.ask(box, snapshot(service), 4)) == trial.MOST
    assert box.file.count("real=") == trial.MOST


@pytest.mark.parametrize(
    ("service", "number", "code"),
    [
        (SERVICE, 9, "unknown-service"),
        (VirtualService(4, "web", "nowhere", 80, real_servers=SERVERS), 4, "problems"),
        (VirtualService(4, "web", "10.2.0.100", 80), 4, "no-trial"),
        (
            VirtualService(4, "web", "10.2.0.100", 80, check=HealthCheck(CheckKind.OFF), real_servers=SERVERS),
            4,
            "no-trial",
        ),
    ],
)
def test_what_cannot_be_tried_is_refused(service, number, code):
    with pytest.raises(ApplierRefused) as caught:
        trial.ask(Box(), snapshot(service), number)
    assert caught.value.code == code


@pytest.mark.parametrize(
    "output",
    [None, Output(2, "Configuration Error\n", ""), Output(0, answer("10.2.0.11"), ""), Output(0, "{broken\n{x\n", "")],
)
def test_an_ldirectord_that_gives_no_answer(output):
    with pytest.raises(ApplierRefused, match="cannot be tried") as caught:
        trial.ask(Box(output), snapshot(), 4)
    assert caught.value.code == "no-trial"
