"""Stories on booted machines. Each starts from two boxes that have just come up for the first time."""

import pytest
from tests.lab.fixtures import balanced, box, director, flashed, fresh, image, lab, world  # noqa: F401
from tests.lab.machine import GuestPanic

LINES = 40  # of each log that a failed test shows
LONGEST = "test_update.py"


def pytest_collection_modifyitems(items):
    """The longest stories first: at the end of a run nobody waits for them alone."""
    items.sort(key=lambda item: item.path.name != LONGEST)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Show what the machines said when a story fails."""
    report = (yield).get_result()
    if report.failed and "box" in item.funcargs:
        report.sections.append(("console of the box", tail(item.funcargs["box"].console)))
    machines = item.funcargs.get("lab")
    if not (report.failed and machines):
        return
    for machine in (machines.director, machines.world):
        report.sections.append((f"console of the {machine.name}", tail(machine.console)))
    try:
        report.sections.append(("log of the director", tail(machines.director.log())))
    except (OSError, AssertionError, GuestPanic) as error:
        report.sections.append(("log of the director", f"cannot be had: {error}"))


def tail(text: str) -> str:
    return "\n".join(text.splitlines()[-LINES:])
