"""What the console says of the machine, where somebody asks for the state."""

import pytest

from applier.wire.errors import ApplierDown
from console import actions


class Box:
    def __init__(self, findings: int) -> None:
        self.findings = findings

    def hardware(self) -> dict:
        return {"findings": [{}] * self.findings}


@pytest.mark.parametrize(
    ("findings", "sentence"),
    [(0, "Hardware: no finding."), (1, "Hardware: 1 finding."), (7, "Hardware: 7 findings.")],
)
def test_how_many_findings_there_are(monkeypatch, findings, sentence):
    monkeypatch.setattr(actions, "connect", lambda: Box(findings))
    assert sentence in actions.hardware()


def test_without_the_applier_the_state_is_still_shown(person, monkeypatch):
    def nobody():
        raise ApplierDown("It is being started.")

    monkeypatch.setattr(actions, "connect", nobody)
    monkeypatch.setattr(actions, "gather", lambda: None)
    monkeypatch.setattr(actions, "details", lambda state: "THE STATE\n")
    person.terminal.begin(actions.show_state(), False)
    person.work()
    seen = person.look()
    assert "THE STATE\n" in seen and "cannot be checked: It is being started." in seen
