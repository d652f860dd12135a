"""From the set-up code on the console to a balanced packet, by a person with a browser."""

import os
from pathlib import Path

import pytest
from board.machines.director import VIP
from board.machines.spent import WEB, spent
from board.machines.wait import found
from board.machines.world import SERVERS
from playwright.sync_api import Page, expect, sync_playwright
from tests.lab.fixtures import thorough

pytestmark = pytest.mark.timeout(900)

PICTURES = Path(__file__).parents[2] / "build" / "screenshots" / "appliance"
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium-headless-shell")
FLAGS = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]
PATIENCE = 30_000  # milliseconds; an emulated processor serves these pages
APPLY = 90_000  # milliseconds


@pytest.fixture
def page(director):
    """A browser at the box's own TLS port. The certificate is the box's own, so nobody has signed it."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    flags = FLAGS + (["--no-sandbox"] if os.getuid() == 0 else [])
    asked: list[str] = []
    complaints: list[str] = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=flags)
        context = browser.new_context(base_url=director.url, ignore_https_errors=True)
        context.set_default_timeout(PATIENCE)
        expect.set_options(timeout=PATIENCE)
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        yield page
        browser.close()
    assert {url for url in asked if not url.startswith((director.url, "data:"))} == set()
    assert complaints == []


def shoot(page: Page, name: str) -> None:
    page.screenshot(path=PICTURES / f"{name}.png", full_page=True)


@spent(WEB)
def test_from_first_boot_to_a_balanced_packet(lab, director, world, page):
    page.goto("/")
    expect(page.get_by_role("heading", name="Set up this box")).to_be_visible()
    code = found(r"Set-up code +(\S+)", lab.first_console)  # as a person reads it off the screen
    shoot(page, "1-set-up")
    page.get_by_label("Set-up code").fill(code)
    page.get_by_label("User name").fill("kim")
    page.get_by_label("New password", exact=True).fill("rope and tide")
    page.get_by_label("New password again").fill("rope and tide")
    page.get_by_role("button", name="Set up and log in").click()

    page.get_by_role("link", name="Network").click()
    for name, address in (("eth1", "10.2.0.1/24"), ("eth2", "10.1.0.1/24")):
        page.locator("section.interface", has=page.get_by_role("heading", name=name)).get_by_label(
            "Fixed addresses"
        ).fill(address)
    shoot(page, "2-network")
    page.get_by_role("button", name="Save to the draft").click()

    page.get_by_role("link", name="Overview").click()
    page.get_by_role("link", name="Add a virtual service").first.click()
    page.locator("[name=name]").fill("web")
    page.get_by_label("Virtual address (VIP)").fill(VIP)
    page.locator("[name=port]").fill("80")
    for row, address in enumerate(SERVERS.values()):
        if row and not page.locator(f"[name=servers-{row}-address]").count():
            page.get_by_role("button", name="Add a real server").click()
        page.locator(f"[name=servers-{row}-address]").fill(address)
        page.locator(f"[name=servers-{row}-port]").fill("80")
    page.locator("[name=check_kind][value=http]").check()
    page.locator("[name=check_path]").fill("/health")
    page.locator("[name=check_expect]").fill("ok")
    page.locator("[name=scheduler][value=rr]").check()
    shoot(page, "3-service")
    page.get_by_role("button", name="Save to the draft").click()

    page.get_by_role("link", name="Review changes").first.click()
    expect(page.get_by_text("Virtual service 'web'")).to_be_visible()
    shoot(page, "4-review")
    page.get_by_label("Comment").fill("the first service")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_text("The changes run")).to_be_visible(timeout=APPLY)
    shoot(page, "5-applied")
    page.get_by_role("link", name="Back to the overview").click()
    expect(page.get_by_text("3 of 3 up")).to_be_visible()
    shoot(page, "6-overview")

    assert world.count(f"{VIP}:80/", 30) == {"rs1": 10, "rs2": 10, "rs3": 10}

    page.get_by_role("link", name="History").click()
    expect(page.get_by_text("the first service")).to_be_visible()
    assert not director.status()["setup_code_active"]


@thorough
def test_a_wrong_code_opens_nothing(director, page):
    page.goto("/set-up/")
    page.get_by_label("Set-up code").fill("AAAA-BBBB-CCCC")
    page.get_by_label("User name").fill("kim")
    page.get_by_label("New password", exact=True).fill("rope and tide")
    page.get_by_label("New password again").fill("rope and tide")
    page.get_by_role("button", name="Set up and log in").click()
    expect(page.get_by_text("This is not the code on the console.")).to_be_visible()
    assert director.status()["setup_code_active"]
