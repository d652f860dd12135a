"""What two boxes say to each other, and what anybody else may send."""

import base64
import dataclasses
import json
import random
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbconfig.agreement import KNOWN, REFUSALS, Job, Part, Revision, Said, Stage
from lbconfig.agreement_lines import MAX_LINE, About, Content, Fetch, LineError, Reader, Writer
from lbconfig.model.problem import UNKNOWN_FIELD, UNPRINTABLE
from lbconfig.model.reading import wrong_type

PAIR = "5" * 32
hexadecimal = st.text("0123456789abcdef", min_size=32, max_size=32)
revisions = st.builds(Revision, hexadecimal, hexadecimal.map(lambda half: half * 2))
lineages = st.lists(revisions, min_size=1, max_size=5, unique_by=lambda one: one.id).map(tuple)
printable = st.text(st.characters(exclude_categories=("C", "Z")), max_size=50)
changes = st.tuples(st.sampled_from(Part), revisions, st.sampled_from(Stage), st.integers(0, 86400), st.booleans())


@st.composite
def said(draw):
    lineage, job = draw(lineages), None
    if draw(st.booleans()):
        part, revision, stage, within, together = draw(changes)
        job = Job(part, revision, (*lineage, revision), stage, 0.0, within, together)
    refused = tuple(draw(st.lists(st.tuples(hexadecimal, printable), max_size=REFUSALS)))
    number = st.integers(0, 2**53)
    return Said(draw(number), draw(number), lineage, job, refused, draw(st.just("") | hexadecimal), draw(st.booleans()))


@given(st.lists(said(), max_size=4))
def test_what_is_written_is_read(states):
    writer, reader = Writer(PAIR, 1), Reader(PAIR, 1)
    assert [reader.line(writer.line(one)) for one in states] == states


def test_a_lineage_is_told_once():
    dice = random.Random(24)
    lineage = tuple(Revision(dice.randbytes(16).hex(), dice.randbytes(32).hex()) for _ in range(KNOWN))
    writer, reader = Writer(PAIR, 0), Reader(PAIR, 0)
    states = [Said(1, number, lineage, None) for number in range(3)]
    lines = [writer.line(one) for one in states]
    assert len(lines[0]) > 50_000 and len(lines[1]) < 300
    assert [reader.line(line) for line in lines] == states


def test_a_snapshot_is_fetched():
    reader, writer = Reader(PAIR, 0), Writer(PAIR, 0)
    for what in (Fetch("a" * 32, True), Content(ABOUT, {"services": ["c" * 64]}, [{"name": "Büro"}])):
        assert reader.line(writer.line(what)) == what


ABOUT = About("a" * 32, "b" * 64, 7, "lb1", "ann", "", "apply-7-00000000", "c" * 64)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("id", "x", "about.id: must be the id of a revision"),
        ("files", "x", "about.files: must be 64 hexadecimal digits"),
        ("secret", "x", "about.secret: must be 64 hexadecimal digits"),
        ("number", 0, "about.number: must be 1 to"),
        ("user", "x" * 151, "about.user: has more than 150 characters"),
        ("comment", "\n", f"comment: {UNPRINTABLE}"),
        ("role", "root", f"role: {UNKNOWN_FIELD}"),
    ],
)
def test_what_goes_with_a_snapshot_is_checked(field, value, message):
    about = dataclasses.asdict(ABOUT) | {field: value}
    line = Writer(PAIR, 0).other("content", {"about": about, "snapshot": {}, "services": []})
    with pytest.raises(LineError) as caught:
        Reader(PAIR, 0).line(line)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({}, "a content has about, snapshot and services"),
        ({"services": {}}, "services: must be a list"),
        ({"services": ["c" * 64]}, "services: must be an object"),
        ({"services": [], "snapshot": []}, "snapshot: must be an object"),
    ],
)
def test_a_snapshot_comes_with_the_services_that_may_be_new(more, message):
    body = {"about": dataclasses.asdict(ABOUT), "snapshot": {}} | more
    with pytest.raises(LineError, match=message):
        Reader(PAIR, 0).line(Writer(PAIR, 0).other("content", body))


def test_other_kinds_of_lines_are_read_by_whoever_knows_them():
    reader, writer = Reader(PAIR, 0, {"beat": len}), Writer(PAIR, 0)
    assert reader.line(writer.other("beat", {"one": 1, "two": 2})) == 2
    with pytest.raises(LineError, match="must be state, fetch, content or beat, not 'tune'"):
        reader.line(writer.other("tune", {}))


GOOD = {
    "version": 1,
    "pair": PAIR,
    "box": 0,
    "kind": "state",
    "body": {
        "epoch": 1,
        "number": 1,
        "job": {
            "part": "desk",
            "stage": "asks",
            "revision": {"id": "a" * 32, "digest": "b" * 64},
            "within": 60,
            "together": False,
        },
        "refused": [{"id": "c" * 32, "why": "a step failed"}],
        "proved": "",
        "chosen": False,
        "lineage": [{"id": "d" * 32, "digest": "e" * 64}],
    },
}
TOO_MANY = [{"id": f"{number:032x}", "digest": "e" * 64} for number in range(KNOWN + 1)]
BAD = [
    (("version",), 2, "version: must be 1"),
    (("version",), True, "version: must be 1"),
    (("pair",), "6" * 32, "pair: must be 555"),
    (("box",), 1, "box: must be 0"),
    (("kind",), "command", "kind: must be state, fetch or content, not 'command'"),
    (("kind",), ["state"], "kind: must be"),
    (("body",), [], "body: must be an object"),
    (("more",), 1, "a line has version, pair, box, kind and body"),
    (("body", "epoch"), -1, "epoch: must be 0 to"),
    (("body", "epoch"), 10**400, "epoch: must be 0 to"),
    (("body", "epoch"), True, f"epoch: {wrong_type(int, True)}"),
    (("body", "number"), "1", f"number: {wrong_type(int, '1')}"),
    (("body", "job", "part"), "boss", "job.part: must be one of desk"),
    (("body", "job", "stage"), None, "job.stage: must be one of asks"),
    (("body", "job", "within"), float("nan"), f"job.within: {wrong_type(int, 1.5)}"),
    (("body", "job", "within"), 10**9, "job.within: must be 0 to 86400 seconds"),
    (("body", "job", "within"), 1.5, f"job.within: {wrong_type(int, 1.5)}"),
    (("body", "job", "revision", "id"), "../../etc", "job.revision.id: must be the id of a revision"),
    (("body", "job", "revision", "digest"), "ö" * 64, "job.revision.digest: must be 64 hexadecimal digits"),
    (("body", "job", "command"), "reboot", f"job.command: {UNKNOWN_FIELD}"),
    (("body", "refused"), [{"id": "c" * 32, "why": ""}] * 9, "refused: has more than 8 entries"),
    (("body", "refused", 0, "why"), "\x1b[2J", UNPRINTABLE),
    (("body", "refused", 0, "id"), "", "refused: must be the id of a revision"),
    (("body", "proved"), "x", "proved: must be the id of a revision"),
    (("body", "chosen"), 0, "chosen: must be"),
    (("body", "lineage"), [], "lineage: is missing"),
    (("body", "lineage"), None, "lineage: is missing"),
    (("body", "lineage"), [{"id": "d" * 32, "digest": "e" * 64}] * 2, "lineage: has a revision twice"),
    (("body", "lineage"), TOO_MANY, "lineage: has more than 1000 revisions"),
    (("body", "lineage", 0, "digest"), "e" * 63, "lineage.digest: must be 64"),
]  # fmt: skip


def changed(place, value):
    data = json.loads(json.dumps(GOOD))
    target = data
    for step in place[:-1]:
        target = target[step]
    target[place[-1]] = value
    return json.dumps(data).encode()


@pytest.mark.parametrize(("place", "value", "message"), BAD)
def test_what_is_wrong_is_named_and_nothing_of_it_stays(place, value, message):
    reader = Reader(PAIR, 0)
    with pytest.raises(LineError) as caught:
        reader.line(changed(place, value))
    assert message in str(caught.value)
    assert reader.line(json.dumps(GOOD).encode()).job.revision.id == "a" * 32


@pytest.mark.parametrize(
    "line",
    [b"", b"\n", b"{", b"null", b"[]", b'"state"', b"\xff\xfe", b"[" * 100_000, b'{"a":' * 100_000, b"1" * 10_000],
)
def test_what_is_no_line(line):
    with pytest.raises(LineError):
        Reader(PAIR, 0).line(line)


def test_a_line_without_an_end():
    with pytest.raises(LineError, match="more than 8388608 bytes"):
        Reader(PAIR, 0).line(b" " * (MAX_LINE + 1))


def servers(count: int) -> dict[str, object]:
    """Each with an address and a name of its own."""
    dice = random.Random(24)
    return {
        "services": [
            {"id": number, "address": f"10.2.{dice.randrange(256)}.{dice.randrange(256)}", "name": f"web-{number}"}
            for number in range(count)
        ]
    }


def test_a_long_line_is_packed():
    content = Content(ABOUT, servers(10_000), [])
    line = Writer(PAIR, 0).line(content)
    assert len(line) < len(json.dumps(content.snapshot)) / 4
    assert Reader(PAIR, 0).line(line) == content
    few = Content(ABOUT, servers(10))
    assert few.snapshot["services"] == json.loads(Writer(PAIR, 0).line(few))["body"]["snapshot"]["services"]


def test_what_does_not_get_shorter_is_not_packed():
    """A piece of a bundle."""
    body = {"data": base64.b64encode(random.Random(24).randbytes(256 << 10)).decode()}
    assert json.loads(Writer(PAIR, 0).other("ask", body))["body"] == body


def packed(line: bytes, pack=zlib.compress) -> str:
    return base64.b64encode(pack(line)).decode()


def line_of(body: dict[str, object]) -> bytes:
    return json.dumps(GOOD | {"kind": "packed", "body": body}).encode()


def test_a_line_is_packed_once_and_comes_from_that_box():
    good = json.dumps(GOOD).encode()
    reader = Reader(PAIR, 0)
    assert reader.line(line_of({"zlib": packed(good)})).job.revision.id == "a" * 32
    for line, message in (
        (line_of({"zlib": packed(good)}), "kind: must be state, fetch or content, not 'packed'"),
        (json.dumps(GOOD | {"box": 1}).encode(), "box: must be 0"),
        (json.dumps(GOOD | {"pair": "6" * 32}).encode(), "pair: must be"),
        (b" " * (MAX_LINE + 1), "more than 8388608 bytes"),
        (b" " * (20 * MAX_LINE), "more than 8388608 bytes"),
        (b"", "not JSON"),
    ):
        with pytest.raises(LineError, match=message):
            reader.line(line_of({"zlib": packed(line)}))


@pytest.mark.parametrize(
    "body",
    [
        {}, {"zlib": None}, {"zlib": 3}, {"zlib": ["eJwDAAAAAAE="]}, {"zlib": "eJwDAAAAAAE=", "more": ""}, {"zlib": ""},
        {"zlib": "é"}, {"zlib": "eJwDAAAAAAE"}, {"zlib": " eJwDAAAAAAE="}, {"zlib": packed(b"{}", bytes)},
        {"zlib": packed(b"{}", lambda line: zlib.compress(line)[:-1])},
        {"zlib": packed(b"{}", lambda line: zlib.compress(line) + b"x")},
        {"zlib": packed(b"{}", lambda line: zlib.compress(line)[:-4] + bytes(4))},
    ],
)  # fmt: skip
def test_what_is_packed_wrongly(body):
    with pytest.raises(LineError, match="zlib"):
        Reader(PAIR, 0).line(line_of(body))


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=8,
)
PLACES = [place for place, _, _ in BAD if place != ("more",)]


@settings(max_examples=300)
@given(st.lists(st.tuples(st.sampled_from(PLACES), anything), min_size=1, max_size=3))
def test_nothing_else_than_a_refusal_comes_of_any_line(changes):
    for place, value in changes:
        try:
            found = Reader(PAIR, 0).line(changed(place, value))
        except LineError as error:
            assert str(error).isprintable() and len(str(error)) < 400
        else:
            assert isinstance(found, Said | Fetch)
