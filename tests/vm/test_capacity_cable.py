"""A box with two CPUs sends to itself by a cable between two of its ports, and has them back whoever ends it."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from board.machines.director import Director, service, wish
from board.machines.lab import OF_DIRECTOR, director_disk
from board.machines.link import Cable, Forward, UserNetwork, free_port
from board.machines.wait import PATIENCE, until
from tests.lab.fixtures import thorough

pytestmark = pytest.mark.timeout(1200)

ANSWER = "/run/between.json"
LONGEST = 300  # seconds of a measurement, emulated
PORTS = ("eth1", "eth2", "eth3", "eth4")  # eth1 and eth2 are joined, eth3 and eth4 are


@pytest.fixture(scope="module")
def box(image) -> Iterator[Director]:
    folder = Path(tempfile.mkdtemp(prefix="fairlead-"))
    ends = (Cable(1), Cable(1), Cable(2), Cable(2))
    forward = Forward(free_port(), "10.0.2.15", 443)
    nics, disk = (UserNetwork((forward,)), *ends), director_disk(folder)
    director = Director("director", folder, image, nics=nics, data=disk, cpus=2, firmware=OF_DIRECTOR)
    director.url = f"https://127.0.0.1:{forward.host_port}"
    try:
        with director:
            director.wait_until_up()
            assert director.set_up("kim", "rope and tide")[0] == 200
            yield director
    finally:
        shutil.rmtree(folder)


def ports(box: Director) -> set[str]:
    return {one["ifname"] for one in json.loads(box.succeed("ip -json link show"))} & {*PORTS}


def begin(box: Director, sender: str, receiver: str) -> None:
    box.succeed(f"rm -f {ANSWER}; fairlead bench --between {sender} {receiver} --json >{ANSWER} 2>/dev/null &")


def end(box: Director) -> dict:
    def ended() -> str:
        text = box.read(ANSWER)
        return text if text.rstrip().endswith("}") else ""

    return json.loads(until("the end of the measurement", ended, LONGEST, 1))


def wait_until_lent(box: Director) -> None:
    until("two ports that are lent", lambda: len(ports(box)) == 2)


def nothing_is_left(box: Director) -> None:
    until("the ports", lambda: ports(box) == {*PORTS})
    assert "198.18" not in box.succeed("ip address; ip neighbour; ipvsadm -Ln; nft list ruleset")


@thorough
def test_what_the_box_forwards_to_itself_is_kept(box):
    found = json.loads(box.succeed("fairlead bench --json"))
    assert found["ports"] == [*PORTS] and found["load"] is None
    begin(box, "eth1", "eth2")
    wait_until_lent(box)
    assert ports(box) == {"eth3", "eth4"}
    assert "measures between eth1 and eth2" in box.refuses(wish(service(1, "site")))
    found = end(box)
    assert found["job"]["state"] == "done", found["job"]
    nothing_is_left(box)
    large, small, new = found["measurements"]
    for one, words, size in (
        (new, "a new connection", 46),
        (small, "small packets", 46),
        (large, "packets of 1,500", 1500),
    ):
        rates = one["limit"]["rates"]
        assert one["traffic"].startswith(f"eth1 to eth2: {words}")
        assert one["limit"]["held"] == "sender" and rates["packets"] > 100
        assert rates["bytes"] == pytest.approx(size * rates["packets"], rel=0.01)
    assert new["limit"]["rates"]["connections"] == pytest.approx(new["limit"]["rates"]["packets"], rel=0.01)
    assert small["limit"]["rates"]["connections"] * 5 < small["limit"]["rates"]["packets"]
    print("packets a second:", *(round(one["limit"]["rates"]["packets"]) for one in (new, small, large)))
    assert {one["figure"] for one in box.status()["load"]["limits"]} == {"connections", "packets", "bytes"}
    assert "eth1 to eth2" in box.succeed("fairlead bench")
    assert not box.succeed("ps -o comm | grep kpktgend || true")


@thorough
def test_ports_that_no_cable_joins(box):
    begin(box, "eth1", "eth3")
    found = end(box)
    assert found["job"]["state"] == "failed"
    assert found["job"]["message"].endswith("Nothing that eth1 sends arrives at eth3: is the cable between these two?")
    nothing_is_left(box)


@thorough
@pytest.mark.parametrize("who", ["applier.daemon", "applier.capacity.between"])
def test_whoever_is_killed_the_ports_come_back(box, who):
    begin(box, "eth3", "eth4")
    wait_until_lent(box)
    box.succeed("sleep 5")
    box.succeed(f"kill -9 $(ps -o pid,args | awk '/[p]ython3.* -m {who}/ {{ print $1 }}')")
    nothing_is_left(box)
    box.wait_until_started()
    until("an applier that measures again", lambda: free(box), PATIENCE, 1)


def free(box: Director) -> bool:
    found = json.loads(box.succeed("fairlead bench --json"))
    return found["ports"] == [*PORTS] and (not found["job"] or found["job"]["state"] != "running")


@thorough
def test_ports_that_the_configuration_uses_are_not_lent(box):
    """The last test of this box: ports that were lent before are set up as any other."""
    box.apply(wish(service(1, "site")))
    assert box.status()["faults"] == []
    assert "eth1 is part of the configuration; remove it there first" in box.fail("fairlead bench --between eth1 eth3")
    assert ports(box) == {*PORTS}
