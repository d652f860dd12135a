"""Two boxes are joined by a code that one shows and the other one is given."""

import json
import os
import threading
from pathlib import Path

import pytest
from board.machines.wait import PATIENCE
from tests.fake.joining import JoiningBox
from tests.peers.joining_boxes import CARDS, FIRST, OTHER, SECOND, agreed

from applier.host.host import Live
from applier.kept import pair_key
from applier.pair.joining import messages, proof, record, verbs
from applier.pair.joining.verbs import SECONDS, _certificate, confined
from applier.pair.joining.worker import Waits
from applier.wire.errors import ApplierRefused
from lbconfig.joining import Facts, joined, proposed
from lbconfig.model.reading import build
from lbconfig.model.snapshot import Interface, Network, Snapshot
from lbconfig.validate.services import validate


def test_a_code_makes_two_boxes_know_each_other(two):
    two.first.host.answering.add("10.0.2.16")
    two.second.host.answering.add("10.0.2.17")
    here = two.join(two.invite().lower().replace("-", " "))["joined"]
    there = two.settled()["joined"]
    assert (here["box"], there["box"]) == (1, 0) and here["id"] == there["id"] and here["keys"] == there["keys"]
    assert (here["other"], there["other"]) == ("lb1", "lb2") and here["facts"] is None
    assert (here["address"], there["address"]) == (OTHER, "127.0.0.1"), "where the link will be"
    assert there["taken"] == ["10.0.2.16", "10.0.2.17"]
    facts = build(Facts, there["facts"])
    pair = joined(FIRST, facts, proposed(FIRST, facts, there["taken"]), there["id"], tuple(there["keys"]))
    assert validate(pair) == [] and pair.pair.boxes[0].network.interfaces[0].addresses == ("10.0.2.18/24",)
    assert any("add element inet fairlead joining" in one for one in two.first.host.opened)
    assert "delete element" in two.first.host.opened[-1]


def test_what_was_agreed_outlives_the_process_and_holds_no_secret(two):
    code = two.invite()
    two.join(code)
    two.settled()
    text = two.first.paths.joined.read_text()
    assert agreed(two.first) == agreed(two.second)
    assert code not in text and proof.plain(code) not in text and two.first.paths.joined.stat().st_mode & 0o77 == 0
    two.first.paths.joined.write_text(text[: len(text) // 2])
    assert record.load(two.first.paths) is None and two.first.verbs.pair_joining()["joined"] is None


def test_a_code_is_good_once(two):
    code = two.invite()
    two.join(code)
    two.settled()
    two.second = JoiningBox(lambda: SECOND, lambda: CARDS, two.port)
    field, said = two.refused(code)
    assert field == "address" and "Make a pair" in said


def test_a_code_that_is_wrong_three_times_is_good_no_longer(two):
    code = two.invite()
    other = proof.new_code()
    assert [two.refused(other)[0] for _ in range(2)] == ["code", "code"]
    two.has_tries(1)
    assert "last try" in two.refused(other)[1]
    assert two.settled()["said"].startswith("The code was entered wrongly too often")
    assert two.refused(code)[0] == "address" and agreed(two.second) is None is agreed(two.first)


def test_a_code_that_comes_late_is_refused(two, monkeypatch):
    code = proof.new_code()
    monkeypatch.setattr(verbs, "SECONDS", 0)
    monkeypatch.setattr(proof, "new_code", lambda: code)
    two.first.verbs.pair_invite("admin")
    assert "in time" in two.settled()["said"]
    assert two.refused(code)[0] == "address"


def test_a_new_code_ends_the_one_before(two):
    code = two.invite()
    two.invite()
    assert two.refused(code)[0] == "code"


@pytest.mark.parametrize(
    ("address", "code", "field", "said"),
    [
        ("10.0.2.30", "AAAA-BBBB-CCCC-DDDD", "address", "of the box itself"),
        ("lb2", "AAAA-BBBB-CCCC-DDDD", "address", "of the box itself"),
        ("not an address", "AAAA-BBBB-CCCC-DDDD", "address", "Enter an address"),
        ("fe80::1%eth0", "AAAA-BBBB-CCCC-DDDD", "address", "link-local"),
        ("nobody.invalid", "AAAA-BBBB-CCCC-DDDD", "address", "no host of this name"),
        (OTHER, "AAAA-BBBB-CCCC-DDDD", "address", "No box waits there"),
        (OTHER, "AAAA-BBBB", "code", "sixteen"),
        (OTHER, "!!!!-BBBB-CCCC-DDDD", "code", "sixteen"),
    ],
)
def test_what_was_entered_wrongly_is_named(two, address, code, field, said):
    found, words = two.refused(code, address)
    assert found == field and said in words


def test_the_code_of_the_box_itself_is_no_code_of_the_other_one(two):
    own = two.second.verbs.pair_invite("admin")["invitation"]["code"]
    assert two.refused(own) == ("code", "This is the code that this box shows. Enter it on the other box.")


def test_a_box_of_a_pair_joins_nobody_and_invites_nobody(two):
    code = two.invite()
    two.join(code)
    found = two.settled()["joined"]
    facts = build(Facts, found["facts"])
    pair = joined(FIRST, facts, proposed(FIRST, facts), found["id"], tuple(found["keys"]))
    two.runs = [pair, pair]
    for ask in (lambda: two.first.verbs.pair_invite("admin"), lambda: two.join(code)):
        with pytest.raises(ApplierRefused) as refusal:
            ask()
        assert refusal.value.code == "paired"


def test_another_version_is_told_on_both(two, tmp_path):
    version = tmp_path / "VERSION"
    version.write_text("9.9\n")
    object.__setattr__(two.second.paths, "version_file", version)
    _, said = two.refused(two.invite())
    assert "'lb2' runs version '9.9'" in said and two.settled()["said"] == said
    assert agreed(two.first) is None is agreed(two.second)


def test_a_box_without_a_fixed_address_makes_no_pair(two):
    two.runs[0] = Snapshot(network=Network("lb1", interfaces=(Interface("eth0", dhcp=True),)))
    with pytest.raises(ApplierRefused, match="no fixed address"):
        two.invite()


def test_forgetting_ends_it(two):
    code = two.invite()
    two.first.verbs.pair_forget("admin")
    assert two.settled()["said"] == "" and two.refused(code)[0] == "address"


def test_the_same_box_gets_the_same_answer_until_it_is_heard(two):
    two.first.udp = two.second.udp = False
    code = two.invite()
    one, again = (two.join(code)["joined"] for _ in range(2))
    assert (one["id"], one["keys"]) == (again["id"], again["keys"]) and agreed(two.first) == agreed(two.second)
    third = JoiningBox(lambda: SECOND, lambda: CARDS, two.port)
    with pytest.raises(ApplierRefused, match="lb2 has joined with this code already"):
        third.verbs.pair_join(OTHER, code, "eve")
    assert two.first.verbs.pair_joining()["invitation"]["code"] == code
    two.first.udp = two.second.udp = True
    two.settled()
    assert two.join(code)["joined"]["id"] == one["id"], "nobody waits any more, and it need not ask"


def test_a_code_that_is_entered_twice_at_once_joins_once(two):
    """A browser or a program that repeats what was not answered in time."""
    code, said = two.invite(), []
    askers = [threading.Thread(target=lambda: said.append(two.join(code)["joined"])) for _ in range(2)]
    for one in askers:
        one.start()
    for one in askers:
        one.join(PATIENCE)
    assert len(said) == 2 and said[0] == said[1] and two.joined()


def test_a_code_that_was_typed_wrongly_forgets_nothing(two):
    two.first.udp = two.second.udp = False
    two.join(two.invite())
    known = agreed(two.second)
    assert two.refused(proof.new_code())[0] == "code" and agreed(two.second) == known
    assert pair_key.public(two.second.host, two.second.paths) in known[1]


def test_the_time_of_a_code_is_over_before_the_box_is_heard(two, monkeypatch):
    """What the first box does with a box that is joined by half: it shows a new code, which is entered there."""
    two.first.udp = two.second.udp = False
    monkeypatch.setattr(verbs, "SECONDS", 2)
    code = two.invite()
    two.join(code)
    assert two.settled()["joined"]["other"] == "lb2" and two.settled()["said"] == ""
    two.first.udp = two.second.udp = True
    record.forget(two.second.paths)  # somebody has reset it, say
    monkeypatch.undo()
    assert two.refused(code)[0] == "address"
    assert two.join(two.invite())["joined"]["other"] == "lb1" and two.joined()


def test_the_program_has_no_rights_and_ends_with_the_applier():
    if os.geteuid() != 0:
        pytest.skip("not root: nobody can become another user")
    program = Live().start(confined("first"))
    certificate, private = _certificate(Live())
    program.say(json.dumps(messages.plain(Waits(0, certificate, private, proof.new_code(), "k", 3, SECONDS))))
    assert json.loads(next(iter(program.lines(PATIENCE))))["kind"] == "listening"
    status = Path(f"/proc/{program._process.pid}/status").read_text()
    assert "Uid:\t986\t986\t986\t986" in status and "CapEff:\t0000000000000000" in status
    assert "NoNewPrivs:\t1" in status and "Groups:\t \n" in status
    program.end()
    assert program._process.returncode == 0
