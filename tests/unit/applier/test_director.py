"""What the applier makes of the answers of the program that starts ldirectord; with the real one: tests/peers."""

import pytest

from applier.base.paths import Paths
from applier.host.host import HostError, Live
from applier.parts import director

PATHS = Paths.from_environment()


class Answering:
    def __init__(self, said, wanted=None):
        self.said, self.wanted = said, wanted

    def read(self, path):
        assert path == PATHS.checks_wanted
        return self.wanted

    def ask(self, path, line, timeout):
        if self.said is None:
            raise HostError(line, None, "Connection refused")
        return self.said


@pytest.mark.parametrize(
    ("said", "pid", "active", "checks"),
    [
        ("down 0 5", None, False, False),
        ("again 0 1", None, True, False),
        ("starting 77 0", 77, True, False),
        ("watching 77 1", 77, True, False),
        ("watching 77 3", 77, True, True),
        ("checked 77 0", 77, True, True),
        ("nonsense", None, False, False),
        ("", None, False, False),
        (None, None, False, False),
    ],
)
def test_how_far_the_checks_have_come(said, pid, active, checks):
    found = director.state(Answering(said), PATHS)
    assert (found.pid, found.active, found.checks) == (pid, active, checks)
    assert found.text


def test_checks_whose_program_is_just_being_started_again_are_not_taken_as_stopped():
    assert director.state(Answering(None, wanted=""), PATHS).active


def test_nobody_at_the_socket_is_an_error_that_says_so(tmp_path):
    with pytest.raises(HostError, match=r"nobody\.socket: state: No such file"):
        Live().ask(tmp_path / "nobody.socket", "state", 1)
