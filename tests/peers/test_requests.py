"""Several requests in one check: real web servers, and the real ldirectord with our modules."""

from __future__ import annotations

import pytest
from tests.peers.test_weights import ONE, PLACES, TWO, agents, expect, run, tell, told, weights  # noqa: F401 (fixtures)

from lbconfig.model.snapshot import Agent, CheckKind, HealthCheck, RealServer, Request

KNOWN = Request("/x", "nobody you know")


@pytest.mark.parametrize(("kind", "port"), [(CheckKind.HTTP, 80), (CheckKind.HTTPS, 443)])
def test_all_of_them_must_be_good(lab, kind, port):
    def ask(*more):
        check = HealthCheck(kind, expect="nobody", timeout=20, more_requests=more)
        found = lab.ask("nginx", port, check)
        return found["state"], found["message"]

    assert ask(KNOWN, Request("/y"))[0] == "up"
    assert ask(KNOWN, Request("/busy")) == ("down", "/busy: 503 Service Temporarily Unavailable")
    missing = "/y: the answer does not contain what is expected"
    assert ask(Request("/y", "all is well"), KNOWN) == ("down", missing)


def test_they_have_the_time_of_the_check_together(run, tell, told):  # noqa: F811
    """Each of the three is answered in time, for itself."""
    more = (Request("/a"), Request("/b", "ok"))
    check = HealthCheck(CheckKind.HTTP, expect="ok", interval=1, timeout=2, failures=1, more_requests=more)
    pair = tuple(RealServer(number, place, 80) for number, place in enumerate(PLACES[:2], 1))
    one = run(agent=Agent(), check=check, real_servers=pair)
    expect(one, {ONE: 1, TWO: 1})
    tell(ONE, "slow", 0.9)
    one.wait_for("it to leave", lambda: weights(one)[ONE] == 0)
    tell(ONE, "slow", 0)
    expect(one, {ONE: 1, TWO: 1})
    said = [line for line in one.log.read_text().splitlines() if f"The check of {ONE} failed: /" in line]
    assert said and all(": no answer within 2 s (" in line for line in said)
