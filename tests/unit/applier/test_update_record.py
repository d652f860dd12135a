"""What became of the last update, in a file that survives everything."""

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from applier.update import record as update_record
from applier.update.record import Record, load, save

RECORD = Record("B", "0.2.0", "A", "0.1.0", "ann", "update", "installed", "2026-01-01T00:00:00Z", "", ("start",))


def test_it_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "shared/update.json"
    assert load(path) is None
    save(path, RECORD)
    assert load(path) == RECORD


@pytest.mark.parametrize("kind", ["update", "return"])
@pytest.mark.parametrize("state", get_args(update_record.State))
def test_every_state_has_a_sentence(kind, state):
    record = replace(RECORD, kind=kind).now(state)
    assert "0.2.0" in record.sentence and record.sentence.endswith(".")
    assert (record.fault is not None) == (state == "failed")


def test_a_failure_says_why_and_where_the_box_is_now():
    failed = RECORD.now("failed", "the web page answers with 502")
    said = "Version 0.2.0 did not come up: the web page answers with 502. The box went back to version 0.1.0."
    assert failed.sentence == failed.fault == said
    assert replace(failed, seen=True).fault is None
    assert "before it could say why" in RECORD.now("failed").sentence


@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_whatever_is_in_the_file_nothing_fails(data):
    with TemporaryDirectory() as folder:
        path = Path(folder, "update.json")
        path.write_text(json.dumps(data))
        assert load(path) is None


@pytest.mark.parametrize(
    "change", [{"state": "odd"}, {"version": 7}, {"known_faults": [1]}, {"more": 1}, {"reason": None}]
)
def test_a_record_of_another_shape(tmp_path, change):
    path = tmp_path / "update.json"
    save(path, RECORD)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    assert load(path) is None
