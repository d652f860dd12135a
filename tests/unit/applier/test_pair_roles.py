"""Which role a box of a pair has, out of what keepalived says."""

import pytest

from applier.pair import floater, roles
from applier.pair.roles import Event, Heard, Role

GROUP = 'GROUP "pair" {} 254'


def heard(*lines: str) -> Heard:
    known = Heard()
    for line in lines:
        known = roles.after(known, roles.parse(line))
    return known


def test_a_line_of_keepalived():
    assert roles.parse('GROUP "pair" MASTER 254') == Event(True, "pair", "MASTER")
    assert roles.parse('INSTANCE "front" MASTER_RX_LOWER_PRI 254') == Event(False, "front", "MASTER_RX_LOWER_PRI")


@pytest.mark.parametrize("line", ["", "GROUP", 'GROUP "pair"', "VS [10.1.0.100]:tcp:80 UP", "nonsense of some words"])
def test_what_is_no_line_of_a_group_or_an_instance_says_nothing(line):
    assert roles.parse(line) is None


@pytest.mark.parametrize(
    ("lines", "hold", "expected"),
    [
        ((), None, ("fault", "keepalived does not run")),
        (("MASTER",), None, ("leads", "")),
        (("MASTER", "BACKUP"), None, ("stands by", "")),
        (("BACKUP",), "by hand", ("stands by", "")),
        (("MASTER", "FAULT"), "by hand", ("held", "by hand")),
        (("MASTER", "FAULT"), None, ("fault", "")),
        (("MASTER", "STOP"), None, ("fault", "keepalived does not run")),
    ],
)
def test_the_role_follows_the_group(lines, hold, expected):
    assert roles.describe(heard(*(GROUP.format(word) for word in lines)), hold) == expected


def test_a_fault_names_the_instance_that_failed_first():
    """It takes the others of its group along."""
    said = ['INSTANCE "back" FAULT 254', 'INSTANCE "front" FAULT 254', GROUP.format("FAULT")]
    known = heard('INSTANCE "front" MASTER 254', *said)
    assert roles.describe(known, None) == ("fault", "back: its network has no link or no address")
    known = roles.after(known, roles.parse('INSTANCE "back" BACKUP 254'))
    assert known.faulty == ("front",)


@pytest.mark.parametrize("word", ["BACKUP", "FAULT"])
def test_a_leader_whose_instance_leaves_leads_no_more_whatever_its_group_believes(word):
    known = heard('INSTANCE "front" MASTER 254', GROUP.format("MASTER"), f'INSTANCE "front" {word} 254')
    assert (known.state, known.ahead) == (word, True)
    assert not roles.after(known, roles.parse(GROUP.format(word))).ahead
    assert not heard(GROUP.format("BACKUP"), f'INSTANCE "front" {word} 254').ahead


@pytest.mark.parametrize("reason", ["by hand", "the floater died twice within 10 seconds", ""])
def test_a_hold_and_its_reason(reason):
    text = roles.hold_text(reason)
    assert text.startswith("1\n") and roles.hold_reason(text) == reason


@pytest.mark.parametrize("text", ["", "0", "0\n", "0\nby hand\n", "nonsense\n", roles.hold_text(None)])
def test_nobody_holds(text):
    assert roles.hold_reason(text) is None


def test_a_reason_is_one_line_and_keepalived_reads_the_number_before_it():
    assert roles.hold_text("many\nlines " + "x" * 500).count("\n") == 2
    assert len(roles.hold_text("x" * 500)) < 200


def test_the_role_as_it_is_written_down():
    role = Role("held", 12.5, 'by "hand"')
    assert roles.read_role(roles.role_text(role)) == role


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"role": "king", "since": 1, "reason": ""}', "[" * 100_000])
def test_a_role_that_cannot_be_used(text):
    assert roles.read_role(text) is None


def test_a_floater_that_is_started_again_knows_every_role_that_it_can_have_written():
    said = {
        roles.describe(Heard(state), hold)[0]
        for state in ("", "STILL", "MASTER", "BACKUP", "FAULT")
        for hold in (None, "x")
    }
    assert said == roles.RESUMED.keys()
    assert roles.RESUMED[floater.roles.LEADS] == roles.MASTER
