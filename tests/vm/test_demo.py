"""The first promise of the README: one command boots the appliance, and its demo answers."""

import contextlib
import os
import subprocess
import sys
import urllib.request

import pytest
from board.lab.build import TOP
from board.machines.link import free_port
from board.machines.wait import until

pytestmark = pytest.mark.timeout(1200)

READY = 900.0  # seconds until both machines are up and all is set up, on a busy machine


def test_the_demo_answers(tmp_path):
    page, site = free_port(), free_port()
    program = [sys.executable, "-m", "board.lab.run", "--in", tmp_path / "run"]
    log = tmp_path / "log"
    ports = {"UI_PORT": str(page), "SITE_PORT": str(site)}
    with (
        log.open("w") as file,
        subprocess.Popen(program, cwd=TOP, env=os.environ | ports, stdout=file, stderr=file) as demo,
    ):
        try:
            until("the demo", lambda: demo.poll() is not None or "\nready: " in log.read_text(), READY, 1)
            assert demo.poll() is None, log.read_text()
            servers = set()
            for _ in range(6):
                with urllib.request.urlopen(f"http://127.0.0.1:{site}/", timeout=60) as answer:
                    servers.add(answer.headers["X-Server"])
            assert servers == {"rs1", "rs2", "rs3"}
        finally:
            stopped = subprocess.run(
                [*program, "--stop"], cwd=TOP, capture_output=True, text=True, timeout=300, check=False
            )
            with contextlib.suppress(ProcessLookupError):
                demo.terminate()
    assert stopped.stdout.endswith("stopped\n"), stopped
    assert demo.wait(60) == 0, log.read_text()
    assert log.read_text().endswith("stopped\n")
