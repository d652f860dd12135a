"""Which steps of an apply a page shows at first."""

from changes.steps import Steps, told


def step(name: str, state: str) -> dict:
    return {"name": name, "title": name, "state": state, "seconds": 0.1, "detail": ""}


def names(steps: tuple) -> list[str]:
    return [one["name"] for one in steps]


def test_afterwards_what_did_something_stands_alone():
    steps = [step("store", "done"), step("links", "skipped"), step("ipvs", "failed"), step("verify", "skipped")]
    found = told(steps, ended=True)
    assert (names(found.shown), names(found.skipped)) == (["store", "ipvs"], ["links", "verify"])


def test_while_it_runs_every_step_keeps_its_place():
    steps = [step("store", "done"), step("links", "skipped"), step("ipvs", "running"), step("verify", "waiting")]
    assert told(steps, ended=False) == Steps(tuple(steps))
