"""The report of a release, and how the results of stories get into it."""

import json
import os
import subprocess
import sys

import pytest
from board.common import report


@pytest.fixture
def images(tmp_path):
    """The folder of a build that is done."""
    folder = tmp_path / "images"
    folder.mkdir()
    for name in (report.IMAGE, "fairlead.img.xz", "fairlead-0.1.0.raucb", "rootfs.squashfs"):
        (folder / name).write_text(name)
    bill = [{"name": "linux", "version": "6.18.33"}, {"name": "libmnl", "version": "1.0.5"}]
    (folder / report.BILL).write_text(json.dumps({"components": bill}))
    return folder


def test_the_report_says_what_was_built_and_what_its_stories_said(images, tmp_path, capsys):
    image = images / report.IMAGE
    this = report.digest(image)
    report.note(image, "0" * 64, "tests/vm/test_nat.py::test_of_another_build", "failed", firmware="bios")
    report.note(image, this, "tests/vm/test_nat.py::test_one", "failed", firmware="bios")
    report.note(image, this, "tests/vm/test_nat.py::test_one", "passed", firmware="bios")  # once more
    report.note(image, this, "tests/vm/test_nat.py::test_two", "failed", firmware="uefi")
    report.note(image, this, "tests/vm/test_nat.py::test_three", "skipped", firmware="uefi", why="no such disk")
    report.note(
        image, this, "tests/vm/t.py::test_four", "passed", firmware="bios", figures=["20 connections, 0 broken"]
    )
    assert report.main([str(tmp_path)]) == 0
    assert capsys.readouterr().out.strip() == str(images / report.REPORT)
    text = (images / report.REPORT).read_text()
    assert f"SHA-256 sum `{this}`" in text
    assert f"| fairlead.img.xz | 0.0 | `{report.digest(images / 'fairlead.img.xz')}` |" in text
    assert "| fairlead-0.1.0.raucb |" in text and "rootfs" not in text
    assert "| linux | 6.18.33 |" in text and "| django (Python) | " in text and "2 packages in all" in text
    assert "| bios | 2 | 0 | 0 |" in text and "| uefi | 0 | 1 | 1 |" in text
    assert "- tests/vm/test_nat.py::test_two (uefi)" in text and "test_of_another_build" not in text
    assert "- tests/vm/test_nat.py::test_three (uefi): no such disk" in text
    assert "- 20 connections, 0 broken (bios)" in text


def test_without_stories_the_report_says_so(images, tmp_path):
    report.main([str(tmp_path)])
    assert "None was run." in (images / report.REPORT).read_text()


@pytest.mark.parametrize(("name", "command"), [(report.IMAGE, "make image"), (report.BILL, "make sbom")])
def test_what_is_missing_is_named_with_the_command_that_makes_it(images, tmp_path, capsys, name, command):
    (images / name).unlink()
    assert report.main([str(tmp_path)]) == 1
    assert command in capsys.readouterr().err


def test_stories_on_an_image_leave_their_results_beside_it(images, tmp_path):
    """The hook of tests/vm/conftest.py, in a run of its own with stories that need no machine."""
    stories = tmp_path / "tests/vm"
    stories.mkdir(parents=True)
    (stories / "conftest.py").symlink_to(report.OWN_VERSION.parents[4] / "tests/vm/conftest.py")
    (stories / "test_it.py").write_text(
        "import pytest\n"
        'def test_good(record_property):\n    record_property("figures", "7 of 7")\n'
        "def test_bad():\n    assert False\n"
        'def test_other():\n    pytest.skip("not here")\n'
        "@pytest.fixture\ndef broken():\n    raise OSError\n"
        "def test_never(broken):\n    pass\n"
    )
    environment = os.environ | {"FAIRLEAD_IMAGE": str(images / report.IMAGE), "FAIRLEAD_FIRMWARE": "uefi"}
    environment |= {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path, stories]
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS"):
        environment.pop(name, None)
    done = run(command, environment, tmp_path)
    found = report.results(images, report.digest(images / report.IMAGE))["uefi"]
    said = {name.rpartition("::")[2]: one for name, one in found.items()}
    assert {name: one["outcome"] for name, one in said.items()} == {
        "test_good": "passed", "test_bad": "failed", "test_other": "skipped", "test_never": "failed",
    }, done.stdout + done.stderr  # fmt: skip
    assert said["test_good"]["figures"] == ["7 of 7"] and said["test_other"]["why"] == "not here"
    again = run(command, environment | {"FAIRLEAD_REST": "1"}, tmp_path)
    assert "1 failed, 2 deselected, 1 error" in again.stdout, again.stdout + again.stderr
    other = run(command, environment | {"FAIRLEAD_REST": "1", "FAIRLEAD_FIRMWARE": "bios"}, tmp_path)
    assert "1 failed, 1 passed, 1 skipped, 1 error" in other.stdout, "what UEFI said is nothing that BIOS said"
    none = run(command, environment | {"FAIRLEAD_REST": "1", "FAIRLEAD_IMAGE": ""}, tmp_path)
    assert none.returncode == pytest.ExitCode.USAGE_ERROR and "name it with IMAGE=" in none.stderr


def run(command, environment, folder) -> subprocess.CompletedProcess:
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
