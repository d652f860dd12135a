"""A box whose programs need all the memory that they may have says so."""

import pytest
from box import Box, running_one

from applier.host.host import HostError
from applier.service import memory
from applier.update.bootcheck import ELSEWHERE

HIGH, STAT = memory.GROUP / "memory.high", memory.GROUP / "memory.stat"


@pytest.fixture
def box(tmp_path) -> Box:
    return running_one(tmp_path)


def told(box, high: str | None, anon: int) -> list[str]:
    """The faults that the box tells with such figures."""
    box.host.files |= {STAT: f"anon {anon}\nfile 90000000\nkernel 5000000\n"}
    box.host.files.pop(HIGH, None)
    if high is not None:
        box.host.files[HIGH] = high
    return [one["message"] for one in box.applier.status()["faults"] if one["code"] == memory.FAULT]


def test_programs_that_fill_their_memory_are_a_fault_until_they_do_not(box):
    [sentence] = told(box, "298844160\n", 230_686_720)
    assert sentence.startswith("The programs of the box fill 220 of the 285 MiB of memory that they may have")
    assert "more than a hundred servers need 1 GB" in sentence
    assert told(box, "298844160\n", 200_000_000) == []


@pytest.mark.parametrize("high", [None, "", "max\n", "many\n"])
def test_where_no_limit_is_known_nothing_is_told(box, high):
    assert told(box, high, 1 << 40) == []


def test_what_cannot_be_read_is_no_fault(box, monkeypatch):
    def refuses(path):
        raise HostError(f"read {path}", None, "Input/output error")

    monkeypatch.setattr(box.host, "read", refuses)
    assert memory.trouble(box.host) is None


def test_a_box_short_of_memory_keeps_its_new_version():
    """More services are no reason to go back to the version before."""
    assert memory.FAULT in ELSEWHERE
