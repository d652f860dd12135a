"""Each folder here: a snapshot and every file that it renders to, whole.

FAIRLEAD_GOLDEN_UPDATE=1 pytest tests/golden    rewrites the expected files; read the diff before committing it.
"""

import os
import shutil
from pathlib import Path

import pytest

from lbconfig.migrate import read
from lbconfig.model.snapshot import to_json
from lbconfig.render import render
from lbconfig.validate.services import validate

HERE = Path(__file__).parent
CASES = sorted(path.parent.name for path in HERE.glob("*/snapshot.json"))


def test_there_are_cases():
    assert CASES


@pytest.mark.parametrize("case", CASES)
def test_files_are_exactly_as_expected(case):
    folder = HERE / case
    text = (folder / "snapshot.json").read_text()
    snapshot = read(text)
    assert validate(snapshot) == []
    files = render(snapshot)
    if os.environ.get("FAIRLEAD_GOLDEN_UPDATE") == "1":
        rewrite(folder, to_json(snapshot), files)
    assert to_json(snapshot) == (folder / "snapshot.json").read_text()
    top = folder / "expected"  # of a pair, a folder in it for each box
    expected = {str(path.relative_to(top)): path.read_text() for path in top.rglob("*") if path.is_file()}
    assert sorted(files) == sorted(expected)
    for name, text in files.items():
        assert text == expected[name], f"{case}/expected/{name}"


def rewrite(folder: Path, snapshot: str, files: dict[str, str]) -> None:
    (folder / "snapshot.json").write_text(snapshot)
    expected = folder / "expected"
    shutil.rmtree(expected, ignore_errors=True)
    for name, text in files.items():
        (expected / name).parent.mkdir(parents=True, exist_ok=True)
        (expected / name).write_text(text)
