"""Snapshots of older schemas; and what is no snapshot at all."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lbconfig_samples import SAMPLE

from lbconfig.migrate import read, upgrade
from lbconfig.model.snapshot import SCHEMA, SnapshotError, to_data, to_json
from lbconfig.validate.services import validate


def test_the_current_schema_is_read_as_it_is():
    assert read(to_json(SAMPLE)) == SAMPLE


def test_each_step_leads_to_the_next_schema():
    steps = {1: lambda data: {**data, "seen": [1]}, 2: lambda data: {**data, "seen": [*data["seen"], 2]}}
    assert upgrade({"schema": 1}, steps, newest=3) == {"schema": 3, "seen": [1, 2]}
    assert upgrade({"schema": 2, "seen": []}, steps, newest=3) == {"schema": 3, "seen": [2]}
    assert upgrade({"schema": 3}, steps, newest=3) == {"schema": 3}


def test_a_schema_without_a_step_is_refused():
    with pytest.raises(SnapshotError, match="schema: is 0; this software cannot read it any more"):
        upgrade({"schema": 0}, {}, newest=1)
    with pytest.raises(SnapshotError, match="schema"):
        read(json.dumps({**to_data(SAMPLE), "schema": SCHEMA + 1}))


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "3", '{"schema": "1"}', '{"schema": true}', '{"x": 1}', "[" * 100_000]
)
def test_what_is_no_snapshot_is_refused(text):
    with pytest.raises(SnapshotError):
        read(text)


def test_a_snapshot_from_before_the_port_of_the_web_page_could_be_chosen():
    old = to_data(SAMPLE)
    del old["management"]["port"], old["management"]["certificate"], old["management"]["key"]
    assert read(json.dumps(old)) == SAMPLE


def test_schema_1_knew_enabled_and_disabled_servers():
    old = to_data(SAMPLE)
    old["schema"] = 1
    for service in old["services"]:
        for name in ("enabled", "note", "hash_port", "hash_next", "persistence", "persistence_prefix", "one_packet"):
            del service[name]
        for server in service["real_servers"]:
            del server["upper"], server["lower"]
            server["enabled"] = server.pop("state") == "enabled"
    assert read(json.dumps(old)) == SAMPLE


def test_schema_2_took_fields_that_a_check_does_not_use_and_followed_redirects():
    old = to_data(SAMPLE)
    old["schema"] = 2
    checks = [service["check"] for service in old["services"]]
    for check in checks:
        del check["method"], check["statuses"]
    checks[0] |= {"ask": "x", "authority": "x", "login": "x"}
    checks[1] |= {"kind": "ping", "port": 53, "path": "/x"}
    new = read(json.dumps(old))
    assert new == SAMPLE and validate(new) == validate(SAMPLE)
    checks[0]["expect"] = ""
    assert read(json.dumps(old)).services[0].check.statuses == "200-399"


@pytest.mark.parametrize("schema", [1, 2])
@pytest.mark.parametrize(
    "services", [None, 3, "x", {}, [3], [[]], [{"check": 3}], [{"check": {"kind": []}}], [{"check": {"verify": 3}}]]
)
def test_an_old_snapshot_that_is_none_is_refused_and_no_crash(schema, services):
    with pytest.raises(SnapshotError):
        read(json.dumps({"schema": schema, "services": services}))


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(st.data(), plain)
def test_any_value_in_any_place_is_refused_or_validated(data, value):
    """One leaf or branch of a good snapshot is replaced by anything."""
    whole = to_data(SAMPLE)
    part = whole
    while True:
        key = data.draw(st.sampled_from(sorted(part) if isinstance(part, dict) else range(len(part))))
        if not isinstance(part[key], dict | list) or not part[key] or data.draw(st.integers(0, 4)) == 0:
            break
        part = part[key]
    part[key] = value
    try:
        snapshot = read(json.dumps(whole))
    except SnapshotError as error:
        assert error.message
    else:
        assert all(problem.message and problem.path for problem in validate(snapshot))
