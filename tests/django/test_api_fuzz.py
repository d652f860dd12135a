"""Requests out of the OpenAPI document, good ones and wrong ones: none is a crash, none changes what it may not.

make fuzz COUNT=20000      so many requests, other ones each time; `make test` takes 400 that are always the same
"""

from __future__ import annotations

import io
import json
import os
from collections import Counter

import pytest
import schemathesis
from api_robot import Robot, robot
from django.contrib.auth import get_user_model
from django.core.cache import cache
from django.test import Client
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from tests.fake import appliance

from accounts import tokens
from accounts.models import ApiToken
from accounts.scopes import SCOPES
from api.document import document
from draft import store as draft
from draft.models import Draft
from lbconfig.model.canonical import digest
from lbconfig.model.snapshot import from_data, to_data
from system import backupfile

COUNT = int(os.environ.get("FAIRLEAD_FUZZ", "400"))
BY_HAND = "FAIRLEAD_FUZZ" in os.environ
SCHEMA = schemathesis.openapi.from_dict(json.loads(json.dumps(document())))
OPERATIONS = [result.ok() for result in SCHEMA.get_all_operations()]
KNOWN = {"service": [1, 2, 3], "server": [1, 2, 4], "number": [1, 2, 3], "apply": ["apply-4"]}
FEW = settings(
    deadline=None,
    database=None,
    derandomize=not BY_HAND,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)

HEADERS = st.sampled_from(
    [{}, {"If-Match": "*"}, {"If-Match": '"x"'}, {"X-Real-IP": "10.0.0.1"}, {"Cookie": "fairlead=x"}]
)
JUNK = st.one_of(
    st.binary(max_size=200),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    ).map(lambda data: json.dumps(data).encode()),
)

# What somebody means who knows the box; one field of it may be junk.
SERVER = {"address": "10.2.0.61", "port": 7000, "weight": 2, "state": "quiesced"}
MEANT = [
    {"name": "lines", "address": "192.168.10.70", "port": 7000, "real_servers": [SERVER]},
    {"name": "other", "address": "192.168.10.71", "port": 53, "protocol": "tcp+udp", "check": {"kind": "dns"}},
    SERVER,
    {"scheduler": "lc", "enabled": False, "check": {"kind": "http", "path": "/up"}},
    {"operation": "drain", "address": "10.2.0.11", "service": 1},
    {"name": "monitor", "scopes": ["read"], "days": 3, "networks": ["10.0.0.0/8"]},
    {"hostname": "north", "gateway": "192.168.10.1"},
    {"allow": ["192.168.0.0/16", "127.0.0.0/8"]},
    {"title": "Soon", "paragraphs": ["Back at nine."]},
    {"source": "10.2.0.11", "destination": "192.168.10.80", "interface": "eth0", "port": 80},
    {"cards": [{"name": "eth1", "take": "eth0"}]},
    {"passphrase": "a good passphrase"},
    {"hostname": "fairlead"},
    to_data(appliance.sample_snapshot()),
]


@st.composite
def meant(draw) -> bytes:
    data = json.loads(json.dumps(draw(st.sampled_from(MEANT))))
    if draw(st.booleans()):
        place = data
        while True:
            name = draw(st.sampled_from(sorted(place)))
            inner = place[name][0] if isinstance(place[name], list) and place[name] else place[name]
            if not isinstance(inner, dict) or draw(st.booleans()):
                break
            place = inner
        place[name] = draw(st.none() | st.integers() | st.text() | st.sampled_from([[], {}, True, "10.2.0.1", 0, "*"]))
    return json.dumps(data).encode()


def requests_of(operation):
    """(method, path, query, headers, body, content type) of one route."""
    cases = st.one_of(
        operation.as_strategy(generation_mode=GenerationMode.POSITIVE),
        operation.as_strategy(generation_mode=GenerationMode.NEGATIVE),
    )
    return st.builds(
        request_of, cases, st.booleans(), st.randoms(use_true_random=False), HEADERS, st.none() | JUNK | meant()
    )


def request_of(case, known: bool, dice, headers: dict, junk: bytes | None):
    for name in case.path_parameters or {}:
        if known and name in KNOWN:
            case.path_parameters[name] = dice.choice(KNOWN[name])
    body = case.body if isinstance(case.body, bytes) else json.dumps(plain(case.body)).encode()
    if junk is not None and dice.random() < 0.6:
        body = junk
    return case.method.upper(), case.formatted_path, dict(case.query or {}), headers, body, case.media_type or ""


def plain(value: object) -> object:
    """What JSON can say; schemathesis has an object of its own for "no body"."""
    return value if isinstance(value, dict | list | str | int | float | None) else None


def send(client: Client, request) -> int:
    method, path, query, headers, body, kind = request
    text = {name: str(value).encode("ascii", "replace").decode() for name, value in headers.items()}
    words = "&".join(f"{name}={value}" for name, value in query.items())
    answer = client.generic(
        method, f"/api/v1{path}", body, content_type=kind.encode("ascii", "replace").decode(),
        headers=text, QUERY_STRING=words.encode("ascii", "replace").decode(),
    )  # fmt: skip
    assert answer.status_code < 500, (request, answer.content[:500])
    if answer.status_code >= 400 and method != "HEAD":
        assert set(answer.json()["error"]) == {"code", "message", "problems"}, answer.content
    return answer.status_code


def run(check, times: int) -> Counter:
    """`check(request)` with so many requests, evenly from all routes; how often each status came."""
    seen: Counter[int] = Counter()
    for operation in OPERATIONS:

        @settings(FEW, max_examples=max(1, times // len(OPERATIONS)))
        @given(requests_of(operation))
        def one(request):
            seen[check(request)] += 1

        one()
    return seen


def told(title: str, seen: Counter, capsys) -> None:
    with capsys.disabled():
        by_status = ", ".join(f"{status}: {count}" for status, count in sorted(seen.items()))
        print(f"\n{title}: {seen.total()} requests tried, 0 crashes ({by_status})")


@pytest.fixture
def filled(client, box, settings, tmp_path, monkeypatch):
    settings.UPLOADS = tmp_path / "uploads"
    # SQLite copies no database in the middle of a transaction, which every test here is.
    monkeypatch.setattr(backupfile, "make", lambda passphrase: io.BytesIO(passphrase.encode()))
    return box


def test_no_request_is_a_crash(admin, filled, capsys):
    """Whatever is stored is a snapshot that can be read."""

    def check(request) -> int:
        ApiToken.objects.all().delete()  # it may revoke its own
        status = send(robot(admin, *SCOPES).client, request)
        if request[0] != "GET":
            stored = draft.current()
            assert from_data(to_data(stored)) == stored
        return status

    seen = run(check, COUNT)
    told("API, a token that may everything", seen, capsys)
    assert seen[200] + seen[201] + seen[202] + seen[204] > seen.total() / 20  # it got past the door


@pytest.mark.parametrize("scopes", [["read"], ["update"], None], ids=str)
def test_no_request_changes_what_it_may_not(admin, filled, capsys, scopes):
    one = robot(admin, *scopes) if scopes else Robot("fairlead_nobody")
    Robot(tokens.make(admin, "other", ["read"])).get("/history")  # what the box has applied is in the history
    if scopes == ["update"]:
        filled.update.present = False  # what it may, it would do

    def state() -> tuple:
        return (
            digest(draft.current()),
            Draft.objects.get().counter,
            list(get_user_model().objects.values()),
            list(ApiToken.objects.values("pk", "name", "digest", "scopes", "expires", "networks")),
            appliance.box.snapshot,
            len(appliance.box.generations),
            appliance.box.update.job,
            list(appliance.box.update.restarts),
            list(appliance.box.recovery.resets),
        )

    before = state()

    def check(request) -> int:
        cache.clear()  # or most of them would be told that there were too many
        status = send(one.client, request)
        assert state() == before, request
        return status

    seen = run(check, COUNT // 3)
    told(f"API, a token for {scopes}; changes without permission: 0", seen, capsys)
