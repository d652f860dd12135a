"""The power may go at any moment, and the disk may be in any state: the box forwards, and says what is wrong."""

import dataclasses
import html
import json
import time

import pytest
from board.machines.director import VIP, service, wish
from board.machines.lab import BALANCED
from board.machines.wait import until
from tests.lab.fixtures import thorough

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("balanced")]

EVEN = {"rs1": 4, "rs2": 4, "rs3": 4}
# Another service, and fewer servers of the first: the tables before and after cannot be confused.
CHANGED = wish(
    dataclasses.replace(BALANCED.services[0], real_servers=BALANCED.services[0].real_servers[:2]),
    service(3, "other", port=81, server_port=80, servers=("rs3",)),
)
SITE, LINES, OTHER = f"{VIP}:80", f"{VIP}:7000", f"{VIP}:81"


def power_cut(director):
    director.kill()
    director.start()


def services_in_the_kernel(director):
    return {name for name, _ in director.weights()}


def test_in_the_middle_of_traffic(director, world, capsys):
    confirmed = director.status()["confirmed"]
    held = world.hold(LINES, 10)
    assert held.next_round()["open"] == 10

    power_cut(director)
    until("a balanced answer", lambda: world.get(f"{SITE}/")[0].startswith("rs"), 90, 0.1)
    seconds = time.monotonic() - director.started
    with capsys.disabled():
        print(f"\nfrom power-on to the first balanced answer: {seconds:.1f} s")

    director.wait_until_started()  # services come before it
    director.wait_until_healthy("rs1", "rs2", "rs3")
    assert world.count(f"{SITE}/", 12) == EVEN
    status = director.status()
    assert (status["generation"], status["confirmed"], status["faults"]) == (confirmed, confirmed, [])


@thorough
@pytest.mark.parametrize("step", [*(pytest.param(one, marks=thorough) for one in ("store", "ipvs")), "verify"])
def test_in_the_middle_of_an_apply(director, world, step):
    director.start_apply(CHANGED, step)
    power_cut(director)
    director.wait_until_started()

    status = director.status()
    assert status["generation"] == status["confirmed"]
    assert status["faults"] == []
    outcomes = {one["number"]: one["outcome"] for one in json.loads(director.applier("generations"))}
    assert "applying" not in outcomes.values()
    director.wait_until_healthy("rs1", "rs2")
    if services_in_the_kernel(director) == {SITE, OTHER}:
        assert outcomes[status["confirmed"]] == "confirmed"
        assert world.count(f"{SITE}/", 12) == {"rs1": 6, "rs2": 6}
    else:
        assert "interrupted" in outcomes.values()
        assert services_in_the_kernel(director) == {SITE, LINES}
        assert world.count(f"{SITE}/", 12) == EVEN


@thorough
def test_with_a_full_data_partition(director, world):
    director.execute("dd if=/dev/zero of=/data/full bs=64k; dd if=/dev/zero of=/data/fuller bs=1k; sync")
    assert "data partition is full" in director.refuses(CHANGED)
    assert world.count(f"{SITE}/", 12) == EVEN

    power_cut(director)
    director.wait_until_up()
    assert "data partition is full" in director.faults()
    director.wait_for_console("FAULT  The data partition is full")
    status, text = director.set_up("kim", "rope and tide")
    assert status == 507, text
    assert "The data partition is full" in text
    director.wait_until_healthy("rs1", "rs2", "rs3")
    assert world.count(f"{SITE}/", 12) == EVEN

    director.choose("Free space on a full data partition")
    director.wait_for_console("MB are free now")
    director.apply(CHANGED)


@thorough
def test_with_a_damaged_database(director, world):
    director.succeed(
        "sv -w 20 stop /run/service/web; rm -f /data/web/fairlead.sqlite3-*;"
        "dd if=/dev/urandom of=/data/web/fairlead.sqlite3 bs=4k count=20 conv=notrunc; sync"
    )
    power_cut(director)
    director.wait_until_up()
    status, text = director.page()
    assert status == 503
    assert "database" in text
    director.wait_for_console("FAULT")
    director.wait_until_healthy("rs1", "rs2", "rs3")
    assert world.count(f"{SITE}/", 12) == EVEN

    director.choose("Restore the web page's database from its last backup")
    until("the web page", lambda: director.page()[0] == 200)
    assert services_in_the_kernel(director) == {SITE, LINES}


@thorough
def test_with_a_missing_generation(director, world):
    confirmed = director.status()["confirmed"]
    director.succeed(f"rm -r /data/applier/generations/{confirmed:06}; sync")
    power_cut(director)
    director.wait_until_started()
    fault = director.faults().strip()
    assert f"Revision {confirmed} is missing or damaged" in fault
    director.wait_for_console("FAULT")
    director.wait_until_up()
    status, text = director.set_up("kim", "rope and tide")
    assert status == 200
    assert fault in html.unescape(text)
    director.wait_until_healthy("rs1", "rs2", "rs3")
    assert world.count(f"{SITE}/", 12) == EVEN


@thorough
def test_without_a_data_partition(director):
    disk = director.succeed("grep ' /disk ' /proc/mounts | cut -d ' ' -f 1").strip()
    director.succeed(f"dd if=/dev/zero of={disk} bs=1M count=8 conv=fsync")
    power_cut(director)
    director.wait_until_up()
    director.wait_for_console("FAULT  There is no data partition")
    assert "There is no data partition" in director.faults()
    status, text = director.page()
    assert status == 503
    assert "Traceback" not in text
