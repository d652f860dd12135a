"""What a box says of its own capacity while clients load it, beside how often they were answered."""

import json

import pytest
from board.machines.director import VIP
from board.machines.wait import PATIENCE, until
from tests.lab.fixtures import thorough

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("balanced")]

SECONDS = 12  # of a measurement
LOAD = 24  # seconds for which clients ask: from before the measurement until after it
ANSWER = "/run/bench.json"
NEVER = "never measured on this hardware"
PACKETS = 4  # that a client sends at least for an answer: SYN, ACK, request, FIN


@thorough
def test_what_clients_got_through_is_the_limit_that_the_box_has_seen(director, world):
    assert director.set_up("kim", "rope and tide")[0] == 200
    assert NEVER in director.succeed("fairlead bench")
    assert director.status()["load"] is None
    director.succeed(f"fairlead bench --watch {SECONDS} --json >{ANSWER} 2>&1 &")
    answers = sum(world.load(f"{VIP}:80/", 4, LOAD).values())
    found = json.loads(until("the end of the measurement", lambda: ended(director), PATIENCE, 1))
    assert found["job"]["state"] == "done", found["job"]
    [measured] = found["measurements"]
    assert measured["same"] and measured["dropped"] == 0 and measured["hardware"]["cpus"] == 1
    rates = measured["limit"]["rates"]
    # No more than the clients were answered in all of their time; and the measurement lay within it.
    assert answers / LOAD / 3 < rates["connections"] < answers / SECONDS
    assert rates["packets"] > PACKETS * rates["connections"] and rates["bytes"] > 40 * rates["packets"]
    limits_are_known(director)
    director.succeed("sv restart /run/service/applier")
    director.wait_until_started()
    limits_are_known(director)


def ended(director) -> str:
    text = director.read(ANSWER)
    return text if text.rstrip().endswith("}") else ""


def limits_are_known(director) -> None:
    load = director.status()["load"]
    assert {one["figure"] for one in load["limits"]} == {"connections", "packets", "bytes"}
    told = director.succeed("fairlead bench")
    assert NEVER not in told and "Connections/s" in told


@thorough
def test_a_box_without_clients_keeps_no_measurement(director):
    """Without traffic nothing is known about what the box can do."""
    assert director.set_up("kim", "rope and tide")[0] == 200
    done = director.execute(f"fairlead bench --watch {SECONDS}")
    assert done.exit == 1 and "nothing was kept" in done.errors and NEVER in done.output
