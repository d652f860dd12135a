"""The services of the box, as their supervisor finds them (overlay/etc/sv)."""

import re
import socket
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
OVERLAY = TOP / "overlay"


def test_every_script_can_be_run():
    scripts = [*OVERLAY.glob("etc/sv/*/run"), *OVERLAY.glob("etc/sv/*/finish"), *OVERLAY.glob("etc/sv/*/log/run")]
    assert len(scripts) > 10
    for script in scripts:
        target = OVERLAY / script.readlink().relative_to("/") if script.is_symlink() else script
        assert target.stat().st_mode & 0o111, script


def test_what_starts_later_does_not_start_by_itself():
    """A file "down" keeps a service from starting: the applier's own two apart, later/finish removes it."""
    down = {path.parent.name for path in OVERLAY.glob("etc/sv/*/down")}
    [line] = [one for one in (OVERLAY / "etc/sv/later/finish").read_text().splitlines() if one.startswith("for ")]
    assert down == {"pair", "time", *line.removeprefix("for service in ").removesuffix("; do").split()}


def test_the_kernels_messages_wait_for_the_log(tmp_path):
    """Of what klogd sends before syslogd listens nobody reads anything: the messages of the boot."""
    text = (OVERLAY / "etc/sv/klogd/run").read_text()
    assert text.count("/dev/log") == 1
    text = text.replace("/dev/log", str(tmp_path / "log")).replace("exec klogd -n", "echo begins")
    with subprocess.Popen(["sh", "-c", text], stdout=subprocess.PIPE) as begun, socket.socket(socket.AF_UNIX) as log:
        try:
            with pytest.raises(subprocess.TimeoutExpired):
                begun.communicate(timeout=0.5)
            log.bind(str(tmp_path / "log"))
            assert begun.communicate(timeout=20)[0] == b"begins\n"
        finally:
            begun.kill()


def test_who_waits_for_the_end_of_a_service_says_stop():
    """`sv -w 5 down` waits with runit's own sv only: to BusyBox's, on the image, -w says only how long."""
    places = [*TOP.glob("webui/**/*.py"), *TOP.glob("board/**/*.py"), *TOP.glob("tests/**/*.py")]
    places += [one for one in (TOP / "overlay").rglob("*") if one.is_file() and not one.is_symlink()]
    waits = re.compile(r"\bsv\b[\"', ]+-w[^;&|\n]*\b(up|down)\b")
    found = [f"{one}: {line}" for one in places for line in _lines(one) if waits.search(line)]
    assert not found, "\n".join(found)
    assert waits.search('["sv", "-w", str(ENDS), "down", folder]') and waits.search("sv -w 20 up ./web")


def _lines(path: Path) -> list[str]:
    if path == Path(__file__).resolve():
        return []
    return path.read_text(errors="replace").splitlines()
