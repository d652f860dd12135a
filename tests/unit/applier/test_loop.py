"""The loop of the applier's threads: no error ends it, what lasts is logged once, and it says when it came round."""

import logging

import pytest

from applier.host.host import HostError
from applier.kept.loop import Loop


class Ended(BaseException):
    """The test is over."""


def looked(errors, **options):
    """A loop whose looks raise these, one after the other; None: it is well."""
    rest = list(errors)

    def look():
        if error := rest.pop(0):
            raise error

    def wait():
        if not rest:
            raise Ended

    loop = Loop("the cable", look, wait, **options)
    with pytest.raises(Ended):
        loop.run()
    return loop


def test_what_lasts_is_logged_once_and_what_comes_back_again(caplog):
    gone, other = HostError("ip", 1, "no such device"), HostError("ip", 1, "no buffer space")
    looked([gone, gone, other, None, other])
    assert [record.getMessage() for record in caplog.records] == [f"the cable: {one}" for one in (gone, other, other)]
    assert {record.levelname for record in caplog.records} == {"ERROR"}


def test_a_mistake_is_logged_with_its_place_and_does_not_end_it(caplog):
    caplog.set_level(logging.INFO)
    looked([KeyError("x"), None, ValueError("y")], expected=(ValueError,), level=logging.INFO)
    assert [(record.getMessage(), record.levelname, bool(record.exc_info)) for record in caplog.records] == [
        ("the cable: the look has failed", "ERROR", True),
        ("the cable: y", "INFO", False),
    ]


def test_it_is_late_only_while_a_look_does_not_end():
    now = [100.0]
    loop = Loop("the cable", lambda: now.__setitem__(0, now[0] + 40), lambda: None, clock=lambda: now[0])
    now[0] = 107.0
    assert loop.late == 7.0
    loop.turn()
    assert (now[0], loop.late) == (147.0, 0.0)
