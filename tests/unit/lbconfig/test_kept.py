"""What is kept of an object is never stale: in any sequence of configurations it is what would be made afresh."""

import copy
import gc
import json
import random
import weakref

import pytest
from lbconfig_mutations import mutated
from lbconfig_samples import SAMPLE
from lbconfig_strategies import drawn, examples

from lbconfig.model import canonical, kept
from lbconfig.model.kept import Reading
from lbconfig.model.snapshot import Snapshot, SnapshotError, from_data, plain, to_data
from lbconfig.render import nftables, render
from lbconfig.validate.services import validate
from lbconfig.wanted import table as ipvs


def everything(snapshot: Snapshot, before: Snapshot | None, rules_of=nftables.render) -> tuple:
    """All that is kept, of a snapshot that may be wrong."""
    problems = validate(snapshot)
    if problems:
        return problems, canonical.digest(snapshot)
    leaving = [before] if before is not None and not validate(before) else []
    rules = rules_of(snapshot, *leaving)
    return problems, canonical.text(snapshot), render(snapshot), rules, ipvs.wanted(snapshot), ipvs.checked(snapshot)


def sent(read: Reading, snapshot: Snapshot) -> Snapshot:
    """As a client sends it: by names, and what is not known yet."""
    named = canonical.named(snapshot)
    by_name = dict(zip(named["services"], snapshot.services, strict=True))
    needed = [plain(by_name[name]) for name in read.missing(by_name)]
    return read(json.loads(json.dumps(named)), json.loads(json.dumps(needed)))


def steps(chance: random.Random, count: int) -> list[dict]:
    """Configurations one after the other: others, the one before with a change, an earlier one, a broken one."""
    fresh = iter([to_data(one) for one in drawn(count)])
    seen = [to_data(SAMPLE)]
    while len(seen) < count:
        data = copy.deepcopy(seen[-1])
        match chance.randrange(6):
            case 0:
                data = next(fresh)
            case 1 if data["services"]:
                data["services"].pop(chance.randrange(len(data["services"])))
            case 2 if data["services"]:
                one = chance.choice(data["services"])
                one["note"] = f"another {len(seen)}"
                one["scheduler"] = chance.choice(["rr", "wlc", "lc"])
                one["enabled"] = chance.random() < 0.9
                for server in one["real_servers"]:
                    server["weight"] = chance.randrange(1, 100)
                    server["state"] = chance.choice(["enabled", "quiesced", "disabled"])
                    server["port"] = chance.choice([server["port"], server["port"] or 80, 8080])
            case 3:
                data = copy.deepcopy(chance.choice(seen))
            case 4:
                data["services"] += [one | {"name": f"{one['name']} again"} for one in next(fresh)["services"]]
            case _:
                chance.shuffle(data["services"])
        seen.append(data)
    return seen


def test_kept_is_what_would_be_made_afresh():
    chance, read, before = random.Random(20), Reading(), None
    good = 0
    for data in steps(chance, examples(60)):
        afresh = from_data(json.loads(json.dumps(data)))
        snapshot = read(data) if chance.random() < 0.5 else sent(read, afresh)
        assert snapshot == afresh
        for _ in range(2):
            found = everything(snapshot, before)
        fresh_before = None if before is None else from_data(to_data(before))
        assert found == everything(afresh, fresh_before, lambda *all_of: nftables._rules.__wrapped__(all_of))
        good += not found[0]
        before = snapshot
    assert good > 10


def test_services_that_stay_are_the_same_objects():
    read, data = Reading(), to_data(SAMPLE)
    first = read(data)
    assert read(json.loads(json.dumps(data))) is first
    data["services"][0]["note"] = "another"
    second = read(data)
    assert second.services[0] is not first.services[0] and second.services[1] is first.services[1]
    data["policy"]["udp_timeout"] += 1
    third = read(data)
    assert third.services[0] is second.services[0] and third != second


@pytest.mark.parametrize("wrong", [True, 1.0, "1", None, [1]])
def test_what_looks_equal_and_is_of_another_type_is_refused(wrong):
    read, data = Reading(), to_data(SAMPLE)
    data["services"][0]["real_servers"][0]["weight"] = 1
    read(data)
    data["services"][0]["real_servers"][0]["weight"] = wrong
    with pytest.raises(SnapshotError, match=r"^services\[0\]\.real_servers\[0\]\.weight: "):
        read(data)


def test_errors_are_those_of_reading_without_knowing_anything():
    chance, read, data = random.Random(7), Reading(), to_data(SAMPLE)
    refused = 0
    for _ in range(200):
        read(data)
        broken = mutated(data, chance).data
        try:
            expected = from_data(broken)
        except SnapshotError as error:
            refused += 1
            with pytest.raises(SnapshotError) as caught:
                read(broken)
            assert str(caught.value) == str(error)
        else:
            assert read(broken) == expected
    assert refused > 20
    for odd in (None, 7, [], {"services": None}, {"services": [{1: object()}]}):
        with pytest.raises(SnapshotError):
            read(odd)


class Made:
    pass


def test_what_is_kept_goes_with_its_object():
    number = kept.kept(lambda snapshot: Made())
    one, equal = from_data(to_data(SAMPLE)), from_data(to_data(SAMPLE))
    first = number(one)
    assert number(one) is first
    assert number(equal) is not first, "an equal one is another object"
    made = weakref.ref(first)
    del one, first
    gc.collect()
    assert made() is None
