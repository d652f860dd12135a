"""Stories on booted machines. Each starts from two boxes that have just come up for the first time."""

import functools
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from board.common import report as release
from board.lab.build import TOP
from board.machines.director import Director
from board.machines.lab import FIRMWARE, GIVEN_IMAGE
from board.machines.machine import GuestPanic
from tests.lab.fixtures import balanced, box, director, flashed, fresh, image, lab, moments, world  # noqa: F401
from tests.lab.reasons import reason

LINES = 40  # of each log that a failed test shows
FAILED = TOP / "build/failed"
LONGEST = "test_update.py"


REST = bool(os.environ.get("FAIRLEAD_REST"))


def pytest_collection_modifyitems(config, items):
    """The longest stories first: at the end of a run nobody waits for them alone. REST=1: those not told yet."""
    items.sort(key=lambda item: item.path.name != LONGEST)
    if REST:
        if not GIVEN_IMAGE:
            raise pytest.UsageError("REST=1 goes on with the stories of an image: name it with IMAGE=")
        told = {name for name, one in told_of_image().items() if one["outcome"] != "failed"}
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in told])
        items[:] = [item for item in items if item.nodeid not in told]


def told_of_image() -> dict[str, dict]:
    """What the stories have said of this very image with this firmware: name of the test -> its last result."""
    return release.results(Path(GIVEN_IMAGE).parent, image_digest()).get(FIRMWARE, {})


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Show the end of what the machines said when a story fails, and keep all of it in build/failed/."""
    report = (yield).get_result()
    if not report.failed:
        return
    folder = FAILED / re.sub(r"[^\w.-]+", "-", f"{item.nodeid.rpartition('/')[2]}-{call.when}")
    for name, text in said(item.funcargs):
        report.sections.append((name, tail(text)))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name.replace(' ', '-')}.txt").write_text(text)
    if folder.exists():
        report.sections.append(("all of it", str(folder)))


def said(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What the machines of these fixtures have on their consoles, and the boxes in their logs: name and text."""
    if "box" in found:
        yield "console of the box", found["box"].console
    directors, others = [], []
    if alone := found.get("lab"):
        directors, others = [alone.director], [alone.world]
    elif machines := found.get("machines"):
        directors, others = machines.boxes, [machines.world]
    for machine in (*directors, *others):
        yield f"console of {machine.name}", machine.console
    for machine in directors:
        try:
            yield f"log of {machine.name}", machine.log()
        except (OSError, AssertionError, GuestPanic) as error:
            yield f"log of {machine.name}", f"cannot be had: {error}"


@pytest.fixture(scope="session", autouse=True)
def of_the_given_image():
    """What is told of an image was seen on it: no director of such a run starts from anything else."""
    start = Director.start

    def checked(made):
        assert made.firmware, f"{made.name} starts from the developer image"
        start(made)

    with pytest.MonkeyPatch.context() as patch:
        if GIVEN_IMAGE:
            patch.setattr(Director, "start", checked)
        yield


@functools.cache
def image_digest() -> str:
    return release.digest(Path(GIVEN_IMAGE))


def pytest_runtest_logreport(report):
    """Keep what the stories say of an image that somebody wants to release, for its report."""
    if not GIVEN_IMAGE or os.environ.get("PYTEST_XDIST_WORKER"):
        return
    if report.when == "call" or report.outcome != "passed":
        figures = [text for name, text in report.user_properties if name == "figures"]
        more = {"firmware": FIRMWARE, "seconds": round(report.duration, 1), "why": reason(report), "figures": figures}
        release.note(Path(GIVEN_IMAGE), image_digest(), report.nodeid, report.outcome, **more)


def tail(text: str) -> str:
    return "\n".join(text.splitlines()[-LINES:])
