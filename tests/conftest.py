"""Keeps what each test spent its time on in build/times/, for `make test-times`; counts what was tried once more."""

import json
import os
import time
from pathlib import Path

import pytest
from tests.lab import spent

TIMES = Path(__file__).parents[1] / "build" / "times"
RETRIES = pytest.StashKey[list]()


def pytest_configure(config):
    config.stash[RETRIES] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """A machine that is booted for all tests counts for the first that asks for it."""
    spent.take()
    began = time.monotonic()
    result = yield
    seconds, retries = spent.take()
    record = {"test": item.nodeid, "at": round(time.time()), "seconds": round(time.monotonic() - began, 2)}
    record |= {"spent": seconds, "retries": retries}
    TIMES.mkdir(parents=True, exist_ok=True)
    speed = Path(item.nodeid).parts[1]
    with (TIMES / f"{speed}.jsonl").open("a") as file:
        file.write(json.dumps(record) + "\n")
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """A report travels from the worker to the one who prints."""
    report = yield
    if report.when == "teardown":
        report.user_properties.extend(("retried", what) for what in spent.retries)
    return report


def pytest_runtest_logreport(report):
    if os.environ.get("PYTEST_XDIST_WORKER") is None and report.when == "teardown":
        found = [what for name, what in report.user_properties if name == "retried"]
        _retries.extend(f"{report.nodeid}: {what}" for what in found)


_retries: list[str] = []


def pytest_terminal_summary(terminalreporter):
    if _retries:
        terminalreporter.section(f"tried once more: {len(_retries)}")
        for line in _retries:
            terminalreporter.line(line)
