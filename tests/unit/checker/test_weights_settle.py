"""What becomes of figures that change all the time (Fairlead::Weights): of what agents say by the load they get."""

import pytest
import unequal_servers as model
from hypothesis import example, given, settings
from hypothesis import strategies as st
from weighing import ONE, THREE, TWO

WARM, SECONDS = 40, 160  # of the model's time
EQUAL = (100, 100)
POINTS = 5  # no weight is farther from what an agent goes on saying
LONG = 30  # answers after which a weight has settled


def answers(world, weigh):
    """How many all servers give in SECONDS, if `weigh(now, figures)` says their weights."""
    turns, before = model.RoundRobin(EQUAL), 0
    for now, servers, figures in world(turns):
        wanted = weigh(now, figures)
        if wanted != turns.weights:
            turns.change(wanted)
        total = sum(server.answers for server in servers)
        if now == WARM:
            before = total
        if now == WARM + SECONDS:
            break
    return total - before


# The lab's agent, and one that says how many processors are idle, as often as the box asks where nothing is said.
@pytest.mark.parametrize(
    ("agent", "memory", "interval", "clients"),
    [(model.queue, 5, 2, 12), (model.queue, 5, 5, 24), (model.idle, 10, 5, 12), (model.idle, 10, 5, 24)],
)
def test_agents_of_unequal_servers_are_worth_nearly_half_as_much_again(checks, agent, memory, interval, clients):
    """Weights that follow each figure by itself swing: they gave 1.48, 1.28, 1.18 and 1.38 times as much."""
    one = checks("wrr")
    one.step(THREE, "down")

    def weigh(now, figures):
        for place, (server, figure) in enumerate(zip((ONE, TWO), figures, strict=True)):
            if (now + place * interval / 2) % interval == 0:  # one after the other
                one.step(server, f"{figure:.0f} -")
        one.step(seconds=model.LOOK)
        weights = one.weights()
        return tuple(weights.get(server, 100) for server in (ONE, TWO))

    def world(turns):
        return model.serve(turns, agent, clients, memory)

    assert answers(world, weigh) >= 1.4 * answers(world, lambda *_: EQUAL)


def test_an_average_is_bounded_goes_one_way_and_comes_to_rest(checks):
    one = checks()

    @settings(max_examples=8)
    @given(st.lists(st.integers(0, 100), min_size=1, max_size=6))
    @example([0, 100, 0, 100])
    @example([0, 30, 60, 100])
    @example([100, 51, 2])
    def tried(figures):
        one.step(ONE, "100 drain", 2)
        begun = len(one.writes())
        for figure in figures:
            one.step(ONE, f"{figure} -", 2)
        one.step()
        weights = [write[ONE] for write in one.writes()[begun:]]
        least, most = (max(10, bound(figures)) for bound in (min, max))
        assert weights[0] == max(10, figures[0])
        assert all(least <= weight <= most for weight in weights)
        if figures in (sorted(figures), sorted(figures, reverse=True)):
            assert weights in (sorted(weights), sorted(weights, reverse=True))
        for _ in range(LONG):
            one.step(ONE, f"{figures[-1]} -", 2)
        settled = len(one.writes())
        assert abs(one.weights()[ONE] - max(10, figures[-1])) <= POINTS
        for _ in range(LONG):
            one.step(ONE, f"{figures[-1]} -", 2)
        assert len(one.writes()) == settled

    tried()


@pytest.mark.parametrize("word", ["drain", "maint", "down"])
def test_what_is_said_of_a_server_without_clients_is_no_part_of_the_average(checks, word):
    one = checks()
    one.step(ONE, "20 -", 2)
    one.step()
    one.step(ONE, f"100 {word}", 2)
    one.step(ONE, "90 -", 2)
    one.step()
    assert one.writes() == [{ONE: 20}, {ONE: 0}, {ONE: 90}]
