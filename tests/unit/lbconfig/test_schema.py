"""The published schema: what the box takes validates, and what the schema refuses the box refuses, too."""

import dataclasses
import json
import random
import typing
from pathlib import Path

import jsonschema
import pytest
from lbconfig_mutations import mutated
from lbconfig_strategies import drawn, of_snapshots

from lbconfig import schema
from lbconfig.model.snapshot import Snapshot, SnapshotError, from_data, to_data
from lbconfig.validate.services import validate

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
VALIDATOR = jsonschema.Draft202012Validator(schema.schema())


def test_it_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(schema.schema())
    assert json.loads(schema.to_json()) == schema.schema()


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*/snapshot.json")), ids=lambda path: path.parent.name)
def test_every_golden_configuration_validates(path):
    VALIDATOR.validate(json.loads(path.read_text()))


@of_snapshots(60)
def test_every_configuration_that_is_valid_validates(snapshot):
    VALIDATOR.validate(to_data(snapshot))


def test_what_the_schema_refuses_the_box_refuses_too():
    chance, refused = random.Random(5), 0
    valid = [to_data(snapshot) for snapshot in drawn(20) if snapshot.services]
    assert valid
    for data in valid * 25:
        mutation = mutated(data, chance)
        if not validates(mutation.data):
            refused += 1
            assert problems(mutation.data), mutation
    assert refused > 100


@pytest.mark.parametrize(
    "broken",
    [
        [],
        {"services": {}},
        {"services": [{"id": 1, "name": "web", "address": "10.0.0.1"}]},
        {"services": [{"id": 1, "name": "web", "address": "10.0.0.1", "port": "80"}]},
        {"services": [{"id": 1, "name": "web", "address": "10.0.0.1", "port": 65536}]},
        {"services": [{"id": 1, "name": "web", "address": "10.0.0.1", "port": 80, "execute": "sh"}]},
        {"services": [{"id": 1, "name": "web", "address": "10.0.0.1", "port": 80, "scheduler": "fair"}]},
        {"network": {"hostname": "x" * 1025}},
        {"schema": 10**30},
    ],
)
def test_the_schema_refuses(broken):
    assert not VALIDATOR.is_valid(broken)
    assert problems(broken)


def test_tables_name_fields_that_exist():
    fields = {f"{kind.__name__}.{field.name}" for kind in kinds(Snapshot) for field in dataclasses.fields(kind)}
    assert not {*schema.RANGES, *schema.SENTENCES} - fields


def validates(data) -> bool:
    try:
        return VALIDATOR.is_valid(data)
    except ValueError:  # Python does not write down a number of more than 4300 digits, which its message would need
        return False


def problems(data) -> list:
    try:
        return validate(from_data(data))
    except SnapshotError as error:
        return [error]


def kinds(kind: type) -> set[type]:
    """The dataclass and those inside it."""
    found = {kind}
    for hint in typing.get_type_hints(kind).values():
        inner = [one for one in (hint, *typing.get_args(hint)) if dataclasses.is_dataclass(one)]
        found |= {deeper for one in inner for deeper in kinds(one)}
    return found
