"""Two pretended appliances become a pair over loopback, in a real browser: from two pages to one review."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from board.machines.wait import PATIENCE, until
from playwright.sync_api import expect
from tests.fake import appliance
from tests.fake.management.commands.devserver import PASSWORD, USER
from tests.web.browsing import LOOKS, follow

from draft import store as draft

TOP = Path(__file__).parents[2]


@pytest.fixture
def port(box) -> int:
    """Where both boxes look for each other."""
    with socket.create_server(("", 0)) as free:
        box.joining.port = free.getsockname()[1]
    yield box.joining.port
    box.joining.close()


@pytest.fixture
def second(tmp_path, port):
    """The address of another pretended appliance, in a process of its own."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "tests.fake.settings",
        "PYTHONPATH": f"{TOP / 'webui'}:{TOP}",
        "FAIRLEAD_DATA": str(tmp_path / "second"),
        "FAIRLEAD_RUN": str(tmp_path / "second" / "run"),
        "FAIRLEAD_SHARED": str(tmp_path / "second" / "shared"),
        "FAIRLEAD_FAKE": "instant",
        "FAIRLEAD_FAKE_JOIN_PORT": str(port),
    }
    argv = [sys.executable, str(TOP / "webui" / "manage.py"), "devserver", address, "--no-reload"]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(argv, env=environment, stdout=log, stderr=log, cwd=TOP)
    try:
        until("the second box answers", lambda: answers(address), 2 * PATIENCE)
        yield f"http://{address}"
    finally:
        process.kill()
        process.wait()


def answers(address: str) -> bool:
    host, _, port = address.partition(":")
    socket.create_connection((host, int(port)), 1).close()
    return True


@pytest.fixture
def both(shoot):
    """both(page, name): pictures in a window and on a phone; a second run would start a second box again."""

    def shoot_both(page, name: str) -> None:
        for look in reversed(LOOKS):
            page.set_viewport_size(LOOKS[look]["viewport"])
            shoot(page, name, look)

    return shoot_both


def test_two_boxes_become_one_draft_in_a_few_clicks(open_page, chromium, admin, second, both):
    page = open_page(admin, **LOOKS["wide"])
    page.goto("/system/pair/make/")
    both(page, "pair-make")
    follow(page, "#invite")
    code = page.locator("code.big").inner_text()
    both(page, "pair-code")

    context = chromium.new_context(base_url=second, **LOOKS["wide"])
    there = context.new_page()
    there.goto("/system/pair/join/")
    there.fill("[name=username]", USER)
    there.fill("[name=password]", PASSWORD)
    follow(there, "main button")
    there.fill("[name=address]", "127.0.0.2")
    there.fill("[name=code]", "AAAA-AAAA-AAAA-AAAA")
    follow(there, "#join")
    expect(there.locator("#id_code_error")).to_contain_text("2 tries are left")
    both(there, "pair-join")
    there.fill("[name=code]", code.lower())
    follow(there, "#join")
    expect(there.get_by_role("heading", name="Joined sample")).to_be_visible()
    both(there, "pair-joined")
    context.close()

    expect(page.locator("form#pair")).to_be_visible()  # by itself
    page.goto("/system/pair/")
    expect(page.locator("#joined .link")).to_contain_text("sample is heard: the link to it has been up for 1 min.")
    both(page, "pair-joined-first")
    appliance.box.joining.box.link = {"heard": False, "lasts": 720.0}
    expect(page.locator("#joined .link")).to_contain_text("has not been heard for 12 min. Check that it is on")
    both(page, "pair-joined-silent")
    page.goto("/system/pair/make/")
    both(page, "pair-proposal")
    page.fill("[name=hostname]", appliance.box.snapshot.network.hostname)
    follow(page, "form#pair button:text-is('Save to the draft')")
    expect(page.locator("#id_hostname_error")).to_contain_text("on both boxes")
    page.fill("[name=hostname]", "sample2")
    both(page, "pair-proposal-wrong")
    follow(page, "form#pair button:text-is('Save to the draft')")
    expect(page.get_by_text("become one director")).to_be_visible()
    both(page, "pair-review")
    assert draft.current().pair is not None and appliance.box.snapshot.pair is None
    page.goto("/network/?box=1")
    expect(page.get_by_role("link", name="sample2", exact=True)).to_have_attribute("aria-current", "page")
    both(page, "pair-network")
