"""What the other box says of itself is believed only in its shape."""

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applier.pair import beat
from applier.pair.beat import Beat
from applier.pair.peer import Peer
from lbconfig.agreement_lines import LineError
from lbconfig.model.problem import UNKNOWN_FIELD, UNPRINTABLE
from lbconfig.model.reading import wrong_type

BEAT = Beat("lb2", "stands by", 12.0, "", "1.4", 7, "a" * 64, ("a" * 64, "b" * 64), True, 1240, 1_790_000_000)


def through_json(data):
    return json.loads(json.dumps(data))


def test_what_is_written_is_read():
    assert beat.read(through_json(BEAT.to_data())) == BEAT
    assert beat.read(through_json(BEAT.to_data() | {"since": 12})) == BEAT


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("role", "rules", "role: must be one of leads, stands by, held, fault, not 'rules'"),
        ("role", 1, f"role: {wrong_type(str, 1)}"),
        ("hostname", "x" * 254, "hostname: has more than 253 characters"),
        ("hostname", "\x1b[2J", f"hostname: {UNPRINTABLE}"),
        ("reason", "x" * 201, "reason: has more than 200 characters"),
        ("since", -1, "since: must be"),
        ("since", float("nan"), "since: must be 0"),
        ("since", float("inf"), "since: must be 0"),
        ("since", 10**400, "since: must be"),
        ("since", "12", "since: must be"),
        ("revision", -1, "revision: must be 0 to"),
        ("revision", True, f"revision: {wrong_type(int, True)}"),
        ("connections", 2**60, "connections: must be 0 to"),
        ("digest", "x" * 64, "digest: must be 64 hexadecimal digits"),
        ("lineage", ["a" * 64] * 33, "lineage: has more than 32 digests"),
        ("lineage", ["a"], "digest: must be 64"),
        ("lacks", [0, 0, 0], "lacks: must be 4 numbers, each 0 to"),
        ("lacks", [0, 0, 0, -1], "lacks: must be 4 numbers, each 0 to"),
        ("lacks", [0, 0, 0, "x"], "lacks"),
        ("ready", 1, "ready: must be"),
        ("command", "reboot", f"command: {UNKNOWN_FIELD}"),
    ],
)
def test_what_is_wrong_is_named(field, value, message):
    with pytest.raises(LineError) as caught:
        beat.read(BEAT.to_data() | {field: value})
    assert message in str(caught.value)


@given(
    st.sampled_from([field.name for field in dataclasses.fields(Beat)]),
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=300) | st.lists(st.text(max_size=70)),
)
def test_nothing_else_than_a_refusal_comes_of_any_value(field, value):
    try:
        assert isinstance(beat.read(BEAT.to_data() | {field: value}), Beat)
    except LineError as error:
        assert str(error).isprintable() and len(str(error)) < 400


def test_the_peer_is_what_was_heard_last():
    peer = Peer()
    assert peer.known == (None, None)
    peer.says(BEAT, 5.0)
    assert (peer.beat, peer.heard) == (BEAT, 5.0)
    peer.forget()
    assert peer.beat is None and peer.heard is None
