"""How large the messages are in which the other box is told of connections."""

import pytest

from applier.pair.messages import FEW, LATER, MANY, SOON, Course, after


@pytest.mark.parametrize(
    ("course", "rate", "becomes"),
    [
        (Course(False), MANY, Course(False)),
        (Course(False), MANY + 1, Course(False, 1000.0)),
        (Course(False, 1000.0 - SOON + 1), MANY + 1, Course(False, 1000.0 - SOON + 1)),
        (Course(False, 1000.0 - SOON), MANY + 1, Course(True)),
        (Course(False, 1000.0 - SOON), MANY, Course(False)),  # from the beginning the next time
        (Course(True), FEW, Course(True)),
        (Course(True), 0.0, Course(True, 1000.0)),
        (Course(True, 1000.0 - LATER), 0.0, Course(False)),
        (Course(True, 1000.0 - LATER), FEW, Course(True)),
    ],
)
def test_the_size_changes_when_the_rate_has_lasted(course, rate, becomes):
    assert after(course, 1000.0, rate) == becomes
