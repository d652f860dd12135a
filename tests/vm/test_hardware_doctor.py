"""A box with two CPUs whose hardware somebody has spoiled: the doctor names exactly that, and the button fixes it.

Its card towards the admin is VMware's, which has several queues in QEMU and merges packets where it is told to.
"""

import dataclasses
import json
import shutil
import ssl
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from board.machines.accelerator import TCG
from board.machines.director import ANSWER, Director, wish
from board.machines.lab import OF_DIRECTOR, director_disk
from board.machines.link import Forward, UserNetwork, free_port
from tests import texts
from tests.lab.fixtures import thorough

from lbconfig.model.snapshot import Interface, Network

pytestmark = pytest.mark.timeout(900)

ADMIN, PASSWORD = "kim", "rope and tide"
NETWORK = Network(interfaces=(Interface("eth0", dhcp=True), Interface("eth1", addresses=("10.2.0.1/24",))))
# Packets out by both CPUs, each by its own queue, so that both queues are busy.
BUSY = """
import os, socket
for number in range(4000):
    os.sched_setaffinity(0, {number % 2})
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x" * 64, ("10.0.2.2", 9))
"""
# It does nothing but bear the name.
MEDDLER = 'import os, sys; os.execv(sys.executable, ["irqbalance", "-c", "import time; time.sleep(600)"])'
# By finding: what somebody does, and what the kernel shows once it is fixed.
PLANTED = {
    ("queues-together", "eth0"): (
        "for irq in $(sed -n 's/^ *\\([0-9]*\\):.*eth0-rxtx-[01]$/\\1/p' /proc/interrupts); do "
        "echo 1 > /proc/irq/$irq/smp_affinity_list; done",
        "cat $(sed -n 's#^ *\\([0-9]*\\):.*eth0-rxtx-[01]$#/proc/irq/\\1/smp_affinity_list#p' /proc/interrupts)",
        "0\n1\n",
    ),
    ("lro", "eth0"): (
        "ethtool -K eth0 lro on",
        "ethtool -k eth0 | grep large-receive-offload",
        "large-receive-offload: off\n",
    ),
    ("one-queue", "eth1"): (
        "echo 0 > /sys/class/net/eth1/queues/rx-0/rps_cpus",
        "cat /sys/class/net/eth1/queues/rx-0/rps_cpus",
        "3\n",
    ),
    ("meddler", "irqbalance"): (
        f"setsid python3 -c '{MEDDLER}' >/dev/null 2>&1 &",
        "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -c '^irqbalance$' || true",
        "0\n",
    ),
}


class Spoiled(Director):
    def command_line(self) -> list[str]:
        """Without the clock that the other stories need for going back, which is a fault of its own."""
        words = [word.replace("clocksource=hpet", "tsc=reliable") for word in super().command_line()]
        # With a thread for each of two CPUs the emulated kernel falls now and then: one boot of 26, when measured.
        return [f"{word},thread=single" if word.split(",")[0] == TCG else word for word in words]


@pytest.fixture
def box(image) -> Iterator[Director]:
    folder = Path(tempfile.mkdtemp(prefix="fairlead-"))
    forward = Forward(free_port(), "10.0.2.15", 443)
    nics = (UserNetwork((forward,)), UserNetwork())
    made = Spoiled(
        "box",
        folder,
        image,
        nics=nics,
        data=director_disk(folder),
        cpus=2,
        firmware=OF_DIRECTOR,
        cards={0: "vmxnet3"},
    )
    made.url = f"https://127.0.0.1:{forward.host_port}"
    try:
        with made:
            made.wait_until_up()
            yield made
    finally:
        shutil.rmtree(folder)


def ask(box: Director, method: str, path: str, token: str) -> tuple[int, dict]:
    """The API from outside, as a script of the admin's has it."""
    headers = {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(f"{box.url}/api/v1{path}", headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=ANSWER, context=ssl._create_unverified_context()) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def found(said: dict) -> set[tuple[str, str]]:
    return {(one["code"], one["object"]) for one in said["findings"]}


def token_for(box: Director, may: str) -> str:
    return box.succeed(["fairlead", "token", "create", may, "--may", may]).strip()


@thorough
def test_what_somebody_spoils_is_named_and_mended(box):
    assert box.set_up(ADMIN, PASSWORD)[0] == 200
    box.apply(dataclasses.replace(wish(), network=NETWORK))
    viewer, admin = token_for(box, "read"), token_for(box, "read,apply")
    status, said = ask(box, "GET", "/hardware", viewer)
    assert status == 200 and found(said) == set(), said["findings"]
    assert box.succeed("fairlead hardware").startswith(texts.HEALTHY)

    box.succeed(["python3", "-c", BUSY])
    for spoil, _, _ in PLANTED.values():
        box.succeed(spoil)
    _, said = ask(box, "GET", "/hardware", viewer)
    assert found(said) == PLANTED.keys(), said["findings"]
    assert all(one["button"] for one in said["findings"])
    assert "COSTS  irqbalance runs." in box.fail("fairlead hardware")

    assert ask(box, "POST", "/hardware/tune", viewer)[0] == 403
    status, said = ask(box, "POST", "/hardware/tune", admin)
    assert status == 200 and found(said) == set(), said["findings"]
    for finding, (_, look, mended) in PLANTED.items():
        assert box.succeed(look) == mended, finding
    assert not [one for one in said["actions"] if one["state"] != "done"]
