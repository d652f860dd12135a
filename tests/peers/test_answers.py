"""Every kind of check against good servers whose first answer goes wrong on the way: only a whole one counts.

In front of each server stand relays (relay.py), one for each fault, at addresses of the box: some servers let nobody
else in.
"""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.peers.lab import NETWORK, address
from tests.peers.test_kinds import ASK_THE_KERNEL, NEEDS, PLACES

from applier.service import trial
from lbconfig.model.snapshot import CheckKind, HealthCheck, Protocol, RealServer, Snapshot, VirtualService

# And where each one is. "almost": all but the last byte, and then nothing.
FAULTS = {"none": 90, "stall": 91, "almost": 92, "drip": 93, "truncate": 94, "reset": 95, "endless": 96}
BAD = [fault for fault in FAULTS if fault != "none"]
KINDS = [kind for kind in PLACES if kind not in ASK_THE_KERNEL]
TIMEOUT = 1  # second for an answer that does not come whole
PATIENCE = 20  # seconds for one that does, and beyond the timeout, on a busy machine
RELAY = Path(__file__).with_name("relay.py")


@pytest.fixture(scope="module")
def found(lab):
    """{kind: {fault: what the box found}}"""
    for number in FAULTS.values():
        lab.box.ip("address", "add", f"{address(number)[0]}/32", "dev", "lan")
    places = {
        (fault, address(number)[0], lab.servers[place.server].addresses[0], place.port, place.protocol)
        for place in (PLACES[kind] for kind in KINDS)
        for fault, number in FAULTS.items()
    }
    folder = lab.certificates / "etc/ssl/lab"
    words = [sys.executable, RELAY, json.dumps(sorted(places)), folder / "www.pem", folder / "www.key"]
    with subprocess.Popen(lab.box.beside(*words), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as relays:
        for _ in places:
            assert relays.stdout.readline() == "listens\n"
        with ThreadPoolExecutor(8) as pool:
            good = {kind: pool.submit(ask, lab, kind, ["none"], PATIENCE) for kind in KINDS}
            bad = {kind: pool.submit(ask, lab, kind, BAD, TIMEOUT) for kind in KINDS}
            yield {kind: good[kind].result() | bad[kind].result() for kind in KINDS}
        relays.stdin.close()
    for number in FAULTS.values():
        lab.box.ip("address", "del", f"{address(number)[0]}/32", "dev", "lan")


def ask(lab, kind, faults, timeout):
    place = PLACES[kind]
    reals = tuple(RealServer(FAULTS[fault], address(FAULTS[fault])[0], place.port) for fault in faults)
    check = HealthCheck(kind, timeout=timeout, **NEEDS.get(kind, {}))
    service = VirtualService(1, "tried", address(100)[0], place.port, place.protocol, check=check, real_servers=reals)
    return dict(zip(faults, trial.ask(lab.box, Snapshot((service,), NETWORK), 1), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_only_a_whole_answer_counts(found, kind):
    for fault in FAULTS:
        one = found[kind][fault]
        # What is expected of any protocol may be there before the end, of which nobody knows what it looks like.
        good = fault == "none" or (kind is CheckKind.SIMPLETCP and fault == "almost")
        assert (one["state"] == "up") is good, (fault, one)
        assert one["seconds"] < TIMEOUT + PATIENCE, (fault, one)
        assert len(one["received"]) <= 4000
    for fault in ("stall", "drip") if PLACES[kind].protocol is Protocol.TCP else ("stall",):
        assert found[kind][fault]["message"] == f"no answer within {TIMEOUT} s"
