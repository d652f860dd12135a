"""What programs rely on in the API: nothing of it goes, or gets another shape, without somebody seeing it.

api.txt has a line for each fact, without the sentences, so that rewording costs nothing here.
FAIRLEAD_GOLDEN_UPDATE=1 rewrites it; a line that goes is a program that breaks: read the difference before committing.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from api.document import document
from api.schemas import REFERENCE

KEPT = Path(__file__).with_name("api.txt")
BOUNDS = ("minimum", "maximum", "maxLength", "maxItems", "default")


def facts(found: dict) -> Iterator[str]:
    """A line for each operation, parameter, body, answer and refusal, and for each field and value of a type."""
    for path, operations in found["paths"].items():
        for method, operation in operations.items():
            yield from _of_operation(f"{method.upper()} {path}", operation)
    for name, schema in found["components"]["schemas"].items():
        yield from _of_type(name, schema)


def _of_operation(name: str, operation: dict) -> Iterator[str]:
    needs = operation["description"].partition(".")[0]
    yield f"{name}: {operation['operationId']}, {needs[:1].lower()}{needs[1:]}"
    for one in operation["parameters"]:
        yield f"{name} {one['in']} {one['name']}: {_shape(one['schema'])}{', required' * one.get('required', False)}"
    for kind, one in operation.get("requestBody", {"content": {}})["content"].items():
        yield f"{name} body {kind}: {_shape(one['schema'])}"
    refusals = [status for status, answer in operation["responses"].items() if "$ref" in answer]
    for status, answer in operation["responses"].items():
        if status not in refusals:
            given = [f"{kind}: {_shape(one['schema'])}" for kind, one in answer.get("content", {}).items()]
            yield f"{name} answer {status} {', '.join([*given, *answer.get('headers', ())]) or 'nothing'}"
    yield f"{name} refusals {' '.join(refusals)}"


def _of_type(name: str, schema: dict) -> Iterator[str]:
    if "properties" not in schema:
        yield f"{name}: {_shape(schema)}"
    for field, one in schema.get("properties", {}).items():
        yield f"{name}.{field}: {_shape(one)}{', required' * (field in schema.get('required', ()))}"


def _shape(schema: dict) -> str:
    if "$ref" in schema:
        return schema["$ref"].removeprefix(REFERENCE)
    if "anyOf" in schema:
        words = " or ".join(_shape(one) for one in schema["anyOf"])
    elif schema.get("type") == "array":
        words = f"list of {_shape(schema['items'])}"
    elif "enum" in schema:
        words = f"one of {' '.join(str(one) for one in schema['enum'])}"
    elif isinstance(schema.get("additionalProperties"), dict):
        words = f"map to {_shape(schema['additionalProperties'])}"
    else:
        words = schema["type"]
    return " ".join([words, *(f"{bound}={schema[bound]!r}" for bound in BOUNDS if bound in schema)])


def test_a_program_written_for_the_api_still_finds_everything():
    now = sorted(facts(document()))
    if os.environ.get("FAIRLEAD_GOLDEN_UPDATE") == "1":
        KEPT.write_text("".join(f"{line}\n" for line in now))
    kept = KEPT.read_text().splitlines()
    gone, new = sorted(set(kept) - set(now)), sorted(set(now) - set(kept))
    assert not gone, f"{len(gone)} facts have gone from the API, or have changed"
    assert not new, "keep these too, with FAIRLEAD_GOLDEN_UPDATE=1"
