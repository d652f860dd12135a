"""What both boxes of a pair say about it, in one sentence and in faults, and when a hand-over is refused."""

import itertools
from dataclasses import replace

import pytest

from applier.pair import roles, standing
from applier.pair.beat import Beat
from applier.pair.roles import FAULTY, HELD, LEADS, STANDS_BY
from applier.pair.standing import Pair

OLD, NEW, OTHER = "a" * 64, "b" * 64, "c" * 64
LB1 = Beat("lb1", LEADS, 60.0, "", "1.4", 12, NEW, (NEW, OLD), True, 100, 1_790_000_000)
LB2 = replace(LB1, hostname="lb2", role=STANDS_BY)
BEHIND = replace(LB2, digest=OLD, lineage=(OLD,))


def pair(own: Beat = LB1, peer: Beat | None = LB2, silent: float | None = 0.2, clock: float = 0.0) -> Pair:
    return Pair(own, "lb2", peer, silent if peer else None, "12:03 UTC" if peer else "", clock)


@pytest.mark.parametrize(
    ("seen", "sentence"),
    [
        (pair(), "lb1 leads, lb2 stands by and is in step; it knows 100 of 100 connections."),
        (
            pair(replace(LB1, role=STANDS_BY, connections=1238), replace(LB2, role=LEADS, connections=1240)),
            "lb2 leads, lb1 stands by and is in step; it knows 1,238 of 1,240 connections.",
        ),
        (pair(peer=BEHIND), "lb1 leads, lb2 stands by and is behind."),
        (
            pair(replace(LB1, digest=OLD, lineage=(OLD,))),
            "lb1 leads, lb2 stands by; the one that leads is behind.",
        ),
        (
            pair(replace(LB1, digest=OLD, lineage=(OLD,)))._replace(working=True),
            "lb1 leads, lb2 stands by and runs the new configuration already.",
        ),
        (pair(peer=BEHIND)._replace(working=True), "lb1 leads, lb2 stands by and is behind."),
        (
            pair(replace(LB1, role=STANDS_BY, digest=OLD, lineage=(OLD,)), replace(LB2, role=LEADS)),
            "lb2 leads, lb1 stands by and is behind.",
        ),
        (
            pair(peer=replace(LB2, version="1.3")),
            "lb1 leads, lb2 stands by and is in step; it knows 100 of 100 connections; lb2 runs 1.3, lb1 1.4.",
        ),
        (pair(peer=replace(LB2, role=HELD, reason="by admin")), "lb1 leads, lb2 is held (by admin) and is in step."),
        (
            pair(peer=replace(LB2, role=HELD, reason=roles.handing_over("held by ann"))),
            "lb1 leads, lb2 is handing over (held by ann) and is in step.",
        ),
        (
            pair(peer=replace(LB2, role=HELD, reason=roles.handing_over(""))),
            "lb1 leads, lb2 is handing over and is in step.",
        ),
        (
            pair(silent=60.0),
            "lb2 has been away since 12:03 UTC; if it is running, both lead; it follows when it is back.",
        ),
        (
            pair(replace(LB1, role=HELD, reason="by admin"), silent=60.0),
            "lb2 has been away since 12:03 UTC; it follows when it is back.",
        ),
        (
            pair(replace(LB1, role=STANDS_BY), silent=60.0),
            "lb2 has been away since 12:03 UTC; lb1 stands by, so lb2 still leads, "
            "and only the link between the boxes is down.",
        ),
        (
            pair(peer=None),
            "lb2 is away: it has not been heard since this box started; if it is running, both lead; "
            "it follows when it is back.",
        ),
        (pair(peer=replace(LB2, role=LEADS)), "Both lead: neither box hears the VRRP of the other one (protocol 112)."),
        (
            pair(replace(LB1, role=HELD, reason="by admin"), replace(LB2, role=FAULTY, reason="no link")),
            "Neither box leads: lb1 is held (by admin), lb2 cannot lead (no link).",
        ),
        (
            pair(peer=replace(LB2, digest=OTHER, lineage=(OTHER, OLD))),
            "lb1 and lb2 run configurations that were made apart.",
        ),
    ],
)
def test_the_sentence_on_every_page(seen, sentence):
    assert standing.sentence(seen) == sentence


def test_all_is_well_only_where_one_leads_and_the_other_one_can():
    assert standing.good(pair())
    assert standing.good(pair(peer=replace(LB2, version="1.3")))
    for seen in (
        pair(silent=60.0),
        pair(peer=None),
        pair(peer=replace(LB2, role=LEADS)),
        pair(peer=replace(LB2, role=HELD)),
        pair(peer=BEHIND),
        pair(clock=-2.5),
        pair(peer=replace(LB2, digest=OTHER, lineage=(OTHER, OLD))),
    ):
        assert not standing.good(seen), seen


def test_faults():
    assert standing.troubles(pair()) == {}
    [(code, message)] = standing.troubles(pair(clock=-61.2)).items()
    assert code == "pair-clocks" and message.startswith(
        "The clocks of the pair differ: that of lb2 is 61 seconds behind."
    )
    assert set(standing.troubles(pair(silent=60.0, clock=99.0))) == {"pair-away"}  # its clock is not known any more
    behind = standing.troubles(pair(peer=BEHIND))
    assert behind == {"pair-step": "lb2 is not in step: it runs an older configuration."}
    assert set(standing.troubles(pair(peer=replace(LB2, role=LEADS)))) == {"pair-both"}


@pytest.mark.parametrize("roles", [*itertools.product((LEADS, STANDS_BY, HELD, FAULTY), repeat=2)])
def test_every_fault_has_a_time_that_it_lasts_before_it_is_told(roles):
    for digest, silent, clock in itertools.product((OLD, NEW, OTHER), (0.1, 9.0), (0.0, 9.0)):
        seen = pair(replace(LB1, role=roles[0]), replace(LB2, role=roles[1], digest=digest, lineage=()), silent, clock)
        assert standing.troubles(seen).keys() <= standing.LASTS.keys()
        assert standing.sentence(seen).endswith(".")


@pytest.mark.parametrize(
    ("seen", "code", "message"),
    [
        (pair(silent=9.0), "peer-away", "lb2 is not heard, so nobody would lead."),
        (pair(peer=None), "peer-away", "lb2 is not heard"),
        (pair(peer=replace(LB2, ready=False)), "peer-not-ready", "lb2 is not ready: its first checks are not over."),
        (
            pair(peer=replace(LB2, role=HELD, reason="by admin")),
            "peer-not-ready",
            "lb2 is held (by admin), so nobody would lead.",
        ),
        (
            pair(peer=replace(LB2, role=FAULTY, reason="keepalived does not run")),
            "peer-not-ready",
            "lb2 cannot lead (keepalived does not run), so nobody would lead.",
        ),
        (pair(peer=replace(LB2, role=LEADS)), "both-lead", "lb2 believes that it leads as well"),
        (
            pair(peer=replace(BEHIND, revision=11)),
            "not-in-step",
            "lb2 is not in step: it runs revision 11, lb1 12.",
        ),
    ],
)
def test_a_hand_over_is_refused_with_its_reason(seen, code, message):
    refusal = standing.refusal(seen)
    assert refusal.code == code and refusal.message.startswith(message)
    assert standing.refusal(pair()) is None


def test_a_box_that_does_not_lead_names_the_one_that_does():
    seen = pair(replace(LB1, role=STANDS_BY), replace(LB2, role=LEADS))
    assert standing.not_leading(seen).message == "lb1 stands by, so it has nothing to hand over. Hand over at lb2."
    alone = pair(replace(LB1, role=FAULTY, reason="no link"), None)
    assert standing.not_leading(alone).message == "lb1 cannot lead (no link), so it has nothing to hand over."


def test_why_the_lead_moved():
    assert standing.why_leads(pair(silent=9.0), "") == "lb2 was not heard"
    assert standing.why_leads(pair(), "handing over: admin asked for it") == "admin asked for it"
    assert standing.why_leads(pair(), "") == "lb2 let go"
    assert standing.why_not(pair(replace(LB1, role=FAULTY, reason="no link")), "") == "no link"
    assert standing.why_not(pair(replace(LB1, role=STANDS_BY)), "") == "lb2 took over"
    assert standing.why_not(pair(replace(LB1, role=STANDS_BY)), "ann asked for it") == "ann asked for it"


def path(interface, alive=True, cable=False, ever=True):
    return {
        "interface": interface, "address": "192.0.2.2", "cable": cable, "silent": 0.0, "ever": ever, "alive": alive,
    }  # fmt: skip


def test_a_box_that_answers_on_a_network_is_on_although_its_word_does_not_come():
    seen = pair(silent=60.0)._replace(paths=(path("eth2", alive=False, cable=True), path("eth0"), path("eth1")))
    assert standing.sentence(seen) == (
        "lb2 has been away since 12:03 UTC; it answers on eth0 and eth1, so it is on, "
        "and follows once it is heard again."
    )
    nothing = pair(silent=60.0)._replace(paths=(path("eth2", alive=False, cable=True), path("eth0", ever=False)))
    assert "; if it is running, both lead; " in standing.sentence(nothing)


def test_a_silent_path_is_a_fault_and_the_other_box_can_take_over_all_the_same():
    seen = pair()._replace(paths=(path("eth2", alive=False, cable=True), path("eth0"), path("eth1", alive=False)))
    assert standing.troubles(seen) == {
        "pair-path": "lb2 does not answer on the pair cable (eth2) and eth1: fewer paths are left by which the boxes "
        "know who leads."
    }
    assert standing.good(seen)
    assert standing.troubles(pair()._replace(paths=(path("eth0", alive=False),))) == {}  # its word comes anyway
