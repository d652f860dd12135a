"""The page "Updates" in a real browser: the upload with its bar, the install, the restart, by mouse and by keyboard."""

import re

import pytest
from playwright.sync_api import expect
from tests import texts
from tests.fake import appliance
from tests.fake import updates as fake_updates
from tests.web.browsing import LOOKS, follow
from tests.web.keyboard import tab_to

from applier.wire.client import ApplierRefused

BUNDLE = {"name": "fairlead-0.2.0.raucb", "mimeType": "application/octet-stream", "buffer": b"hsqs" + bytes(3_000_000)}


@pytest.fixture(autouse=True)
def spool(settings, tmp_path):
    settings.UPLOADS = tmp_path / "uploads"
    return settings.UPLOADS


def test_from_the_file_to_the_new_version_and_back(open_page, admin, spool):
    page = open_page(admin)
    page.goto("/system/")
    page.get_by_role("link", name="Updates").click()
    page.get_by_label("Bundle").set_input_files(BUNDLE)
    page.get_by_role("button", name="Upload and check").click()
    expect(page.get_by_role("heading", name="Install version 0.2.0?")).to_be_visible()
    (path,) = spool.iterdir()
    assert path.read_bytes() == BUNDLE["buffer"]
    page.get_by_role("button", name="Install version 0.2.0").click()
    expect(page.get_by_role("heading", name="Version 0.2.0 is installed and waits for a restart")).to_be_visible()
    page.get_by_role("link", name="Restart into version 0.2.0…").first.click()
    page.get_by_role("button", name="Restart now into version 0.2.0").click()
    expect(page.get_by_text("The box restarts…").or_(page.get_by_text("is back with"))).to_be_visible()
    page.goto("/system/updates/")
    expect(page.get_by_role("heading", name="Runs now: version 0.2.0")).to_be_visible()
    page.get_by_role("link", name="Back to version 0.1.0…").click()
    follow(page, page.get_by_role("button", name="Go back to version 0.1.0 now"))
    page.goto("/system/updates/")
    expect(page.get_by_role("heading", name="Runs now: version 0.1.0")).to_be_visible()


def test_the_bar_shows_what_is_sent_and_can_be_stopped(open_page, admin):
    """The network is slow here, so that there is something to see."""
    page = open_page(admin)
    page.goto("/system/updates/")
    network = page.context.new_cdp_session(page)
    network.send("Network.enable")
    slow = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 100_000}
    network.send("Network.emulateNetworkConditions", slow)
    page.get_by_label("Bundle").set_input_files(BUNDLE)
    page.get_by_role("button", name="Upload and check").click()
    expect(page.locator("#sent-words")).to_contain_text("of 3.0 MB")
    expect(page.locator("#sent-words")).to_contain_text(re.compile(r"^(0\.[1-9]|[12]\.\d) MB of"))
    assert 0 < page.evaluate("document.getElementById('sent').value") < 100
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Stopped. Nothing was installed.")).to_be_visible()
    expect(page.get_by_role("button", name="Upload and check")).to_be_enabled()


def test_a_file_that_is_too_large_is_not_even_sent(open_page, admin, spool, monkeypatch):
    monkeypatch.setattr(fake_updates.FakeUpdates, "slots", lambda self: state(self) | {"limit": 1000})
    page = open_page(admin)
    page.goto("/system/updates/")
    page.get_by_label("Bundle").set_input_files(BUNDLE)
    page.get_by_role("button", name="Upload and check").click()
    expect(page.get_by_text("This file has 3.0 MB")).to_be_visible()
    assert not spool.exists()


state = fake_updates.FakeUpdates.slots


def test_a_refusal_stays_on_the_page(open_page, admin, monkeypatch):
    monkeypatch.setattr("web.room.HEADROOM", 1 << 60)
    page = open_page(admin)
    page.goto("/system/updates/")
    page.get_by_label("Bundle").set_input_files(BUNDLE)
    page.get_by_role("button", name="Upload and check").click()
    expect(page.get_by_role("alert").get_by_text("There is no room for this file")).to_be_visible()


def test_from_a_stick_with_the_keyboard_alone(open_page, admin):
    page = open_page(admin)
    page.goto("/system/updates/")
    tab_to(page, "#look")
    page.keyboard.press("Enter")
    expect(page.get_by_text("fairlead-0.2.0.raucb").first).to_be_visible()
    tab_to(page, "#programs a")
    for _ in range(20):
        if page.evaluate("document.activeElement.textContent").startswith("Install…"):
            break
        page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Install version 0.2.0")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text(texts.WAITS_FOR_RESTART)).to_be_visible()
    tab_to(page, "#to-restart")
    page.keyboard.press("Enter")
    page.wait_for_url("**/restart/B/")
    tab_to(page, "main form button")
    page.keyboard.press("Enter")
    page.wait_for_url("**/restarting/B/**")


def test_a_restart_is_followed_to_its_end(open_page, admin, monkeypatch):
    monkeypatch.setattr(fake_updates, "RESTART_SECONDS", 3.0)
    appliance.box.update.other = "0.2.0"
    appliance.box.instant = False
    appliance.box.started -= 1000  # up for a while
    page = open_page(admin)
    page.goto("/system/updates/restart/B/")
    page.get_by_role("button", name="Restart now into version 0.2.0").or_(
        page.get_by_role("button", name="Go back to version 0.2.0 now")
    ).click()
    expect(page.get_by_text("The box restarts…")).to_be_visible()
    expect(page.get_by_text("The box is back with version 0.2.0")).to_be_visible()


def test_screens(open_page, admin, look, shoot):
    page = open_page(admin, **LOOKS[look])
    page.goto("/system/updates/")
    page.get_by_role("button", name=texts.LOOK_FOR_BUNDLES).click()
    page.get_by_text("fairlead-0.2.0.raucb").first.wait_for()
    shoot(page, "updates", look)
    appliance.box.update.incoming = "0.0.9"
    page.goto(f"/system/updates/review/?source=upload:{'0' * 32}")
    shoot(page, "updates-review", look)
    appliance.box.update.refuse = ApplierRefused(
        "bundle-signature",
        "The bundle is not signed with a key that this box trusts, or it was changed after it was signed.",
    )
    page.reload()
    shoot(page, "updates-refused", look)
    appliance.box.update.refuse, appliance.box.update.incoming, appliance.box.instant = None, "0.2.0", False
    page.goto("/system/updates/review/?source=usb:0000000000000001")
    follow(page, page.get_by_role("button", name="Install version 0.2.0"))
    appliance.box.update._job_began -= 6
    page.get_by_text("Writing to slot B").wait_for()
    shoot(page, "updates-installing", look)
    appliance.box.update._job_began -= 60
    page.get_by_text(texts.WAITS_FOR_RESTART).wait_for()
    shoot(page, "updates-installed", look)
    page.goto("/system/updates/restart/B/")
    shoot(page, "updates-restart", look)
    appliance.box.instant = True
    appliance.box.update.fails = "the web page answers with 502"
    follow(page, page.get_by_role("button", name="Restart now"))
    page.goto("/system/updates/")
    shoot(page, "updates-failed", look)
    appliance.box.update.fails = ""
    page.goto("/system/updates/restart/B/")
    follow(page, page.get_by_role("button", name="Restart now"))
    page.goto("/system/updates/")
    shoot(page, "updates-done", look)
    page.goto("/system/updates/restart/A/")
    shoot(page, "updates-back", look)
    appliance.box.update.other_configuration = {"number": 0, "created": "", "comment": ""}
    page.reload()
    shoot(page, "updates-back-as-delivered", look)
    page.goto("/system/updates/")
    shoot(page, "updates-as-delivered", look)
    appliance.box.update.present = False
    page.goto("/system/updates/")
    shoot(page, "updates-no-slots", look)
