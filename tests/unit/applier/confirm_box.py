"""A box that has one change to confirm: what the tests of the waiting and of its interruption begin with."""

import dataclasses

import pytest
from box import ONE, TWO, WEB, Box, running_one

from applier.apply import deadline
from applier.wire.errors import ApplierRefused
from applier.wire.shapes import ENDED
from lbconfig.model.snapshot import Scheduler

HARMLESS = dataclasses.replace(ONE, services=(dataclasses.replace(WEB, scheduler=Scheduler.RR),))


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(deadline, "TICK", 0.005)


@pytest.fixture
def box(tmp_path):
    return running_one(tmp_path)


def waiting(box: Box, snapshot=TWO, **fields) -> str:
    name = box.begin(snapshot, **fields)
    assert box.until("waiting", *ENDED)["state"] == "waiting"
    return name


def refusal(call, *arguments, **fields) -> ApplierRefused:
    with pytest.raises(ApplierRefused) as caught:
        call(*arguments, **fields)
    return caught.value


def outcome(box: Box, number=2) -> str:
    return box.applier.generations.entry(number)["outcome"]


def is_back(box: Box, before: dict) -> None:
    box.host.sleep(30)
    assert box.host.state() == before
    assert not box.host.violations and not box.faults()
    status = box.applier.status()
    assert (status["generation"], status["confirmed"]) == (1, 1)
    assert box.paths.pending not in box.host.files
