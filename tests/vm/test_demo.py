"""The first promise of the README: one command boots the appliance, and its demo answers."""

import contextlib
import http.cookiejar
import os
import re
import ssl
import subprocess
import sys
import urllib.parse
import urllib.request

import pytest
from board.lab.build import TOP
from board.machines.link import free_port
from board.machines.wait import until

pytestmark = pytest.mark.timeout(1200)

READY = 900.0  # seconds until both machines are up and all is set up, on a busy machine


def first_look(url: str, user: str, password: str) -> tuple[str, str]:
    """What an admin sees who logs in: the overview, and the line about the hardware that comes after it."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # the box's own certificate
    cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
    browser = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), cookies)

    def ask(path: str, **fields: str) -> str:
        body = urllib.parse.urlencode(fields).encode() if fields else None
        request = urllib.request.Request(f"{url}{path}", body, {"Referer": f"{url}{path}"})
        with browser.open(request, timeout=60) as answer:
            return answer.read().decode()

    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', ask("/login/"))
    assert token
    ask("/login/", csrfmiddlewaretoken=token[1], username=user, password=password)
    return ask("/"), ask("/live/hardware/")


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
            told = re.search(r"log in as (\S+) with the password (\S+)", log.read_text())
            assert told
            overview, hardware = first_look(f"https://127.0.0.1:{page}", *told.groups())
            assert "Virtual services" in overview and 'class="banner' not in overview
            assert 'class="banner' not in hardware, hardware
        finally:
            stopped = subprocess.run(
                [*program, "--stop"], cwd=TOP, capture_output=True, text=True, timeout=300, check=False
            )
            with contextlib.suppress(ProcessLookupError):
                demo.terminate()
    assert stopped.stdout.endswith("stopped\n"), stopped
    assert demo.wait(60) == 0, log.read_text()
    assert log.read_text().endswith("stopped\n")
