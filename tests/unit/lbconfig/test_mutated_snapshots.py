"""What does not pass validation is refused by the name of a field; what passes is harmless."""

import dataclasses
import itertools
import random
import re
import types
import typing

import pytest
from lbconfig_mutations import BREACHES, breached, mutated, service_of
from lbconfig_strategies import drawn, examples

from applier.apply.review import parse
from applier.wire.errors import ApplierRefused
from lbconfig.model.problem import Problem
from lbconfig.model.snapshot import Snapshot, from_data, to_data
from lbconfig.render import nftables, render
from lbconfig.validate.services import validate

PER_SNAPSHOT = 50  # mutations, at most about
PER_RULE = 20  # snapshots in which each rule is broken


@pytest.fixture(scope="module")
def valid() -> list[dict]:
    return [to_data(snapshot) for snapshot in drawn(examples(100) // PER_SNAPSHOT + 20)]


def problems(data: dict) -> list[Problem]:
    """As the applier finds them in what it is sent."""
    try:
        return validate(parse(data))
    except ApplierRefused as refused:
        return [Problem(**one) for one in refused.problems]


def names_a_field(path: str, kind: type = Snapshot) -> bool:
    """Whether "services[id=3].port" leads to a field of the model. What stands in brackets may be anybody's text."""
    name, rest = re.fullmatch(r"(\w*)(.*)", path, re.DOTALL).groups()
    hint = typing.get_type_hints(kind).get(name) if dataclasses.is_dataclass(kind) else None
    if hint is None or not rest:
        return hint is not None
    if typing.get_origin(hint) in (tuple, types.UnionType):
        hint = typing.get_args(hint)[0]
    ends = [rest[found.end() :] for found in re.finditer(r"\]", rest)] if rest.startswith("[") else [rest]
    return any(end == "" or (end.startswith(".") and names_a_field(end[1:], hint)) for end in ends)


def test_mutations_are_refused_by_the_name_of_a_field_or_harmless(nft_check, valid):
    wanted, refused, passed = examples(100), 0, 0
    seed = random.randrange(2**32)
    choices = random.Random(seed)
    for data in itertools.cycle(valid):
        if refused == wanted:
            break
        mutation = mutated(data, choices)
        found = problems(mutation.data)
        told = f"seed {seed}: {mutation.what} of {data}\n{found}"
        if found:
            refused += 1
            for problem in found:
                assert problem.object and problem.field and problem.message, told
                assert str(problem).isprintable() and problem.path.isprintable(), told
                if problem.object == "snapshot":  # a wrong shape, which is told at the very place
                    assert problem.path.startswith(mutation.path) and names_a_field(mutation.path), told
                else:  # a value that does not fit, which may show at another one
                    assert names_a_field(problem.path) and problem.path.endswith(f".{problem.field}"), told
        else:
            passed += 1
            snapshot = from_data(mutation.data)
            assert render(snapshot) == render(snapshot), told
            done = nft_check(nftables.render(snapshot))
            assert (done.returncode, done.stderr) == (0, ""), told
    assert refused == wanted
    print(f"{refused} mutations refused, {passed} harmless")


@pytest.mark.parametrize("name", BREACHES)
def test_a_rule_that_is_broken_is_told_by_its_field(valid, name):
    field, breach = BREACHES[name]
    tried = [data for data in valid if service_of(data)]
    assert tried
    for data in tried[:PER_RULE]:
        changed = breached(data, breach)
        found = problems(changed)
        assert field in {re.sub(r"\[.*?\]", "", problem.path) for problem in found}, f"{found}\n{changed}"


def test_the_reader_of_paths_knows_good_from_bad():
    for path in ("services", "services[id=3].check.port", "network.interfaces[a].b].name", "management.allow[0]"):
        assert names_a_field(path), path
    for path in ("", "snapshot", "services[id=3].execute", "services.port.port", "network.interfaces[a].b", "sorry.a"):
        assert not names_a_field(path), path
