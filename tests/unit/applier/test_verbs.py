"""The verbs: what is checked, what is done and what the client asks are the same, by name and by field."""

import inspect
import re
from pathlib import Path

import pytest
from box import ONE, Box

from applier.wire.client import Client
from applier.wire.protocol import FOR_PAIR, FOR_PEER, FOR_ROOT, VERBS

ARCHITECTURE = Path(__file__).resolve().parents[3] / "docs/architecture.md"
BY_THE_WAY = {"missing"}  # the client asks it before it sends a snapshot; nobody else does
METHODS = sorted(name for name, _ in inspect.getmembers(Client, inspect.isfunction) if not name.startswith("_"))


def test_each_verb_that_is_checked_is_done_with_the_same_fields(tmp_path):
    done = Box(tmp_path).applier.verbs
    assert {name: set(inspect.signature(method).parameters) for name, method in done.items()} == {
        name: set(checks) for name, checks in {**VERBS, **FOR_PAIR, **FOR_PEER}.items()
    }


def test_the_client_has_a_method_for_each():
    assert set(METHODS) == set(VERBS) - BY_THE_WAY


@pytest.mark.parametrize("name", METHODS)
def test_a_method_of_the_client_asks_the_verb_of_its_name(name, monkeypatch):
    asked = []

    def ask(self, verb, **fields):
        asked.append((verb, fields))
        return [] if verb in BY_THE_WAY else {"digest": "", "snapshot": None}

    monkeypatch.setattr(Client, "_ask", ask)
    monkeypatch.setattr(Client, "_held", None)
    method = getattr(Client("nowhere"), name)
    method(**{each: ONE if each == "snapshot" else f"the {each}" for each in inspect.signature(method).parameters})
    *before, (verb, fields) = asked
    assert verb == name and set(fields) == set(VERBS[name])
    assert {verb for verb, _ in before} <= BY_THE_WAY
    assert all(
        value == f"the {each}" for each, value in fields.items() if each not in ("snapshot", "services", "known")
    )


def test_the_page_about_the_architecture_names_each():
    table = ARCHITECTURE.read_text().partition("| for | verbs |")[2].partition("\n## ")[0]
    named = re.findall(r"`(\w+)`", table)
    assert sorted(named) == sorted(VERBS)
    for line in table.splitlines():
        ours, _, of_root = line.partition("root alone:")
        assert set(re.findall(r"`(\w+)`", of_root)) <= set(FOR_ROOT)
        assert not set(re.findall(r"`(\w+)`", ours)) & set(FOR_ROOT)
