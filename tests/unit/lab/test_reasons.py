"""What is kept of a story that did not pass."""

from types import SimpleNamespace

import pytest
from tests.lab.reasons import LONGEST, reason


def failed(error: ValueError) -> SimpleNamespace:
    try:
        raise error
    except ValueError:
        longrepr = pytest.ExceptionInfo.from_current().getrepr(style="short")
    return SimpleNamespace(skipped=False, failed=True, longrepr=longrepr)


def test_where_it_failed_and_the_first_line_of_the_error():
    said = reason(failed(ValueError("rs1 got 3 of 4\nand a long table")))
    assert said == f"test_reasons.py:{failed.__code__.co_firstlineno + 2}: ValueError: rs1 got 3 of 4"


def test_a_long_line_is_cut():
    assert len(reason(failed(ValueError("x" * 5000)))) < LONGEST + 40


def test_why_it_was_skipped():
    skipped = SimpleNamespace(skipped=True, failed=False, longrepr=("test_usb.py", 3, "Skipped: needs USB"))
    assert reason(skipped) == "needs USB"


@pytest.mark.parametrize(
    "report",
    [
        SimpleNamespace(skipped=False, failed=False, longrepr=None),
        SimpleNamespace(skipped=False, failed=True, longrepr="the worker died"),
    ],
    ids=["passed", "no traceback"],
)
def test_nothing_to_tell(report):
    assert reason(report) == ""
