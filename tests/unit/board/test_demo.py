"""The demo of `make run` is a configuration that this software reads, and finds no problem in."""

from board.lab.build import TOP

from lbconfig.model.snapshot import from_json
from lbconfig.validate.services import validate


def test_the_demo_is_a_configuration_of_today():
    demo = from_json((TOP / "board/lab/demo.json").read_text())
    assert demo.services and validate(demo) == []
