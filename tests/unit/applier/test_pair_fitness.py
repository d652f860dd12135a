"""When a box hands over because the other one is fitter, and how often that can happen whatever they see."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from applier.pair import fitness
from applier.pair.fitness import EVERY, USUAL, Course, Lacks, Observed

WELL = Lacks()
LONG_AGO = -USUAL.apart


def looks(*seen: tuple[Lacks, Lacks | None], begin: float = 1000.0, leads_since: float = LONG_AGO) -> list[bool]:
    """Whether the box hands over at each look; (own, peer), one look every two seconds."""
    course, found = Course(), []
    for at, (own, peer) in enumerate(seen):
        course = fitness.after(course, begin + at * EVERY, own, peer)
        found.append(fitness.due(course, own, leads_since))
    return found


@pytest.mark.parametrize(
    ("own", "after"),
    [(Lacks(links=1), 2.0), (Lacks(gateways=1), 8.0), (Lacks(services=3), 8.0)],
)
def test_a_peer_that_is_fitter_for_a_while_leads(own, after):
    seen = looks(*[(own, WELL)] * 8)
    assert seen.index(True) * EVERY == after


def test_the_first_difference_counts():
    """A gateway more outweighs no link, whatever else there is."""
    assert not any(looks(*[(Lacks(gateways=1, services=9), Lacks(links=1))] * 20))
    assert looks(*[(Lacks(links=1), Lacks(gateways=2, services=9))] * 2)[-1]


def test_a_break_begins_anew():
    unfit, well = (Lacks(gateways=1), WELL), (WELL, WELL)
    assert not any(looks(*([unfit] * 4 + [well]) * 10))
    assert not any(looks(*([unfit] * 4 + [(unfit[0], None)]) * 10))  # the peer was not ready in between


def test_nobody_knows_what_was_between_two_looks_that_are_far_apart():
    course = fitness.after(Course(), 1000.0, Lacks(gateways=1), WELL)
    course = fitness.after(course, 1000.0 + USUAL.steady, Lacks(gateways=1), WELL)
    assert not fitness.due(course, Lacks(gateways=1), LONG_AGO)


def test_who_has_not_led_for_long_leads_on():
    assert not any(looks(*[(Lacks(links=3), WELL)] * 20, leads_since=1000.0))


def test_a_box_that_cannot_serve_hands_over_at_once():
    calm = [(WELL, WELL)] * 5
    assert looks(*calm, (Lacks(able=1), WELL), leads_since=999.0)[-1]
    assert not looks(*calm, (Lacks(able=1), Lacks(able=1)))[-1]
    assert not looks(*calm, (Lacks(able=1), None))[-1]
    flapping = [(Lacks(able=1), Lacks(able=1)), (Lacks(able=1), WELL)]
    assert not any(looks(*flapping * 9))  # able again only a moment ago


LACKS = st.builds(
    Lacks, st.sampled_from([0, 0, 0, 1]), st.integers(0, 1), st.integers(0, 1), st.sampled_from([0, 0, 2])
)
SEEN = st.tuples(LACKS, LACKS, st.sampled_from([True, True, True, False]))
# Whatever they see stays for some looks, as short as one and longer than any limit.
STRETCHES = st.lists(st.tuples(SEEN, st.sampled_from([1, 2, 5, 6, 7, 40, 160])), min_size=1, max_size=40)


@given(STRETCHES)
@settings(max_examples=60)
def test_however_they_flap_the_roles_move_no_more_often_than_promised(stretches):
    """Both boxes look, and the one that leads decides."""
    courses, leads, since, moves = [Course(), Course()], 0, 0.0, []
    now = 0.0
    for (*lacks, ready), looks_ in stretches:
        for _ in range(looks_):
            now += EVERY
            for box in (0, 1):
                peer = lacks[1 - box] if ready else None
                courses[box] = fitness.after(courses[box], now, lacks[box], peer)
            own, peer = lacks[leads], lacks[1 - leads]
            if fitness.due(courses[leads], own, since):
                assert ready and peer < own
                assert fitness.reason(own, peer)
                moves.append((now, bool(own.able)))
                leads, since = 1 - leads, now
    for (before, _), (later, unable) in itertools.pairwise(moves):
        assert later - before >= (USUAL.steady if unable else USUAL.apart)


@given(LACKS)
def test_of_two_that_are_unfit_alike_nobody_moves(both):
    assert not any(looks(*[(both, both)] * 200))


def test_what_a_box_lacks_is_said_in_words():
    seen = Observed("its rules are not loaded", ("eth1",), ("10.1.0.254",), ("a", "b", "c", "d", "e"))
    assert fitness.sentences(seen) == [
        "It cannot serve: its rules are not loaded.",
        "No link: eth1.",
        "No answer from the gateway 10.1.0.254.",
        "No live server: a, b, c and 2 more.",
    ]
    assert fitness.counted(seen.lacks) == [
        "It cannot serve.",
        "1 interface has no link.",
        "1 gateway does not answer.",
        "5 services have no live server.",
    ]
    assert fitness.sentences(Observed()) == fitness.counted(WELL) == []
    assert fitness.reason(Lacks(gateways=1), WELL) == "the other box reaches more gateways"
