"""Keeps what each test spent its time on in build/times/, for `make test-times`; counts what was tried once more."""

import json
import os
import sys
import time
from pathlib import Path

import pytest
from board.machines import spent
from tests import parts

BUILD = Path(__file__).parents[1] / "build"
# Each process that runs tests would compile all of the tree anew: `make` lets no byte code be written into it. Only for
# this process: what a test starts may build an image, where byte code must lie beside its source.
sys.pycache_prefix, sys.dont_write_bytecode = str(BUILD / "pycache"), False

PART = os.environ.get("FAIRLEAD_PART", "")
TIMES = BUILD / "times"
RAN = pytest.StashKey[bool]()
retries: list[str] = []  # of this run, with the names of the tests


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Leave out what only a full run has, and what belongs to another part of it."""
    if not parts.ALL:
        skip = pytest.mark.skip(reason="long, or a variant; make test-long or ALL=1 runs it")
        for item in items:
            if item.get_closest_marker("thorough"):
                item.add_marker(skip)
    order = parts.longest_first([item.nodeid.partition("::")[0] for item in items], parts.read_table())
    items[:] = [items[place] for place in order]
    if PART:
        try:
            number, count = parts.read_part(PART)
        except ValueError as error:
            raise pytest.UsageError(str(error)) from None
        own = parts.part_of([item.nodeid for item in items], number, count, parts.read_table())
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in own])
        items[:] = [item for item in items if item.nodeid in own]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """A machine that is booted for all tests counts for the first that asks for it; what is skipped counts for none."""
    spent.take()
    began = time.monotonic()
    result = yield
    seconds, retries, close = spent.take()
    if not item.stash.get(RAN, False):
        return result
    record = {"test": item.nodeid, "at": round(time.time()), "seconds": round(time.monotonic() - began, 2)}
    record |= {"spent": seconds, "retries": retries, "close": close}
    TIMES.mkdir(parents=True, exist_ok=True)
    speed = Path(item.nodeid).parts[1]
    with (TIMES / f"{speed}.jsonl").open("a") as file:
        file.write(json.dumps(record) + "\n")
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """A report travels from the worker to the one who prints."""
    report = yield
    if report.when == "call":
        item.stash[RAN] = not report.skipped
    if report.when == "teardown":
        report.user_properties.extend(("retried", what) for what in spent.retries)
    return report


def pytest_runtest_logreport(report):
    if report.outcome == "rerun" and not hasattr(report, "node"):  # in the process that ran it
        spent.retried(f"after {str(report.longrepr).splitlines()[-1]}")
    if os.environ.get("PYTEST_XDIST_WORKER") is None and report.when == "teardown":
        found = [what for name, what in report.user_properties if name == "retried"]
        retries.extend(f"{report.nodeid}: {what}" for what in found)


def pytest_terminal_summary(terminalreporter):
    for report in terminalreporter.getreports("rerun"):
        terminalreporter.section(f"failed, and was run once more: {report.nodeid}")
        report.toterminal(terminalreporter._tw)
    if retries:
        terminalreporter.section(f"tried once more: {len(retries)}")
        for line in retries:
            terminalreporter.line(line)
