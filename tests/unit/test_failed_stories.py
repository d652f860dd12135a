"""What a story that fails leaves of its machines (tests/vm/conftest.py)."""

import contextlib
from types import SimpleNamespace

from tests.vm import conftest

LONG = "\n".join(f"line {number}" for number in range(100))


def machine(name: str, log: str | None = None) -> SimpleNamespace:
    def read() -> str:
        if log is None:
            raise OSError("it is off")
        return log

    return SimpleNamespace(name=name, console=f"{name} boots\n", log=read)


def after(found: dict[str, object], failed: bool = True) -> list[tuple[str, str]]:
    """The sections that the report of such a story has."""
    report = SimpleNamespace(failed=failed, sections=[])
    item = SimpleNamespace(nodeid="tests/vm/test_pair.py::test_it[a b/ü]", funcargs=found)
    hook = conftest.pytest_runtest_makereport(item, SimpleNamespace(when="call"))
    next(hook)
    with contextlib.suppress(StopIteration):
        hook.send(SimpleNamespace(get_result=lambda: report))
    return report.sections


def test_all_logs_of_a_failed_story_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(conftest, "FAILED", tmp_path / "failed")
    boxes = [machine("lb1", LONG), machine("lb2")]
    shown = dict(after({"machines": SimpleNamespace(boxes=boxes, world=machine("world"))}))
    assert [*shown] == [
        "console of lb1", "console of lb2", "console of world", "log of lb1", "log of lb2", "all of it",
    ]  # fmt: skip
    assert "line 99" in shown["log of lb1"] and "line 0\n" not in shown["log of lb1"]
    assert shown["log of lb2"] == "cannot be had: it is off"
    [folder] = (tmp_path / "failed").iterdir()
    assert str(folder) == shown["all of it"]
    assert (folder / "log-of-lb1.txt").read_text() == LONG

    lab = SimpleNamespace(director=machine("director", "started"), world=machine("world"))
    assert [name for name, _ in after({"lab": lab})][:3] == [
        "console of director", "console of world", "log of director",
    ]  # fmt: skip


def test_a_story_that_passes_or_has_no_machine_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(conftest, "FAILED", tmp_path / "failed")
    assert after({"lab": None}, failed=False) == after({"something": 3}) == []
    assert not (tmp_path / "failed").exists()
