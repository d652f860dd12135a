"""Nobody is locked out, as the admin's own browser sees it: Chromium, the box, and a certificate nobody knows.

Every address of the box is a forwarded port of this machine; the browser finds nothing else.
"""

import os
from collections.abc import Iterator
from contextlib import suppress

import pytest
from board.machines.director import VIP
from board.machines.link import free_port
from board.machines.updating import PASSWORD, USER, set_up
from board.machines.wait import until
from playwright.sync_api import Error, Page, expect, sync_playwright
from tests import texts
from tests.lab.fixtures import thorough

from applier.apply.runs import in_vain_sentence
from changes.arrival import PROBE_PORT

pytestmark = [pytest.mark.timeout(1200), pytest.mark.usefixtures("balanced")]

# The headless shell has no page of its own for a certificate that nobody knows.
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
OLD, RIGHT, WRONG = "10.0.2.15", "10.0.2.77", "10.0.99.7"
NOWHERE = "10.0.2.200"  # an address that no machine has: what is sent there is lost
LINES = f"{VIP}:7000"
SLOW = 90_000  # milliseconds; an emulated box draws a page in seconds


@pytest.fixture
def page(director) -> Iterator[Page]:
    """Of a browser that has never seen the box."""
    ways = {}
    for address, port in ((OLD, 443), (RIGHT, 443), (RIGHT, PROBE_PORT), (WRONG, 443), (WRONG, PROBE_PORT)):
        ways[address, port] = free_port()
        there = NOWHERE if address == WRONG else address
        director.monitor.human(f"hostfwd_add net0 tcp:127.0.0.1:{ways[address, port]}-{there}:{port}")
    rules = [f"MAP {address}:{port} 127.0.0.1:{own}" for (address, port), own in ways.items()] + ["MAP * ~NOTFOUND"]
    flags = [f"--host-resolver-rules={','.join(rules)}", *(["--no-sandbox"] if os.getuid() == 0 else [])]
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=flags)
        one = browser.new_context().new_page()
        one.context.set_default_timeout(SLOW)
        expect.set_options(timeout=SLOW)
        yield one
        browser.close()
    for own in ways.values():
        director.monitor.human(f"hostfwd_remove net0 tcp:127.0.0.1:{own}")


def trust(page: Page) -> None:
    """Past the browser's warning of a certificate that it does not know; what one types there to go on."""
    page.get_by_text("Your connection is not private").wait_for()
    page.keyboard.type("thisisunsafe")
    page.get_by_text("Fairlead").first.wait_for()


def logged_in(director, page: Page) -> None:
    set_up(director)
    with suppress(Error):  # the warning is none of the pages that one asks for
        page.goto(f"https://{OLD}/login/")
    trust(page)
    page.fill("[name=username]", USER)
    page.fill("[name=password]", PASSWORD)
    page.click("main button")
    page.get_by_role("button", name=texts.LOG_OUT).wait_for()


def give_it(page: Page, address: str, gateway: str) -> None:
    """The first card's address and the way out, up to the click on Apply."""
    page.goto(f"https://{OLD}/network/")
    card = page.locator("section.interface").filter(has=page.get_by_role("heading", name="eth0"))
    card.get_by_label("Get an address from DHCP").uncheck()
    card.get_by_label("Fixed addresses").fill(f"{address}/24")
    page.fill("[name=gateway]", gateway)
    page.click(texts.SAVE_BUTTON)
    page.goto(f"https://{OLD}/changes/")
    expect(page.get_by_text(texts.ASKS)).to_be_visible()
    page.click(texts.APPLY_BUTTON)


def outcome(director) -> str:
    return director.status()["apply"]["state"]


@thorough
def test_a_wrong_address_comes_back_and_the_page_says_so(director, world, page):
    held = world.hold(LINES, 5)
    logged_in(director, page)
    confirmed = director.status()["confirmed"]
    give_it(page, WRONG, "10.0.99.1")
    expect(page.get_by_text(texts.UNREACHABLE)).to_be_visible()
    # A slow box may leave the page without an answer before it has come so far.
    until("it has the wrong address", lambda: WRONG in director.succeed("ip -brief address show dev eth0"))
    expect(page.get_by_role("heading", name=texts.WENT_BACK)).to_be_visible(timeout=200_000)
    expect(page.get_by_text(in_vain_sentence(90))).to_be_visible()
    expect(page.get_by_text(texts.UNREACHABLE)).to_be_hidden()
    assert page.url.startswith(f"https://{OLD}/")
    status = director.status()
    assert (status["confirmed"], status["generation"], status["faults"]) == (confirmed, confirmed, [])
    page.goto(f"https://{OLD}/history/")
    expect(page.get_by_text("not confirmed").first).to_be_visible()
    page.goto(f"https://{OLD}/network/")
    expect(page.get_by_label("Fixed addresses").first).to_have_value(f"{WRONG}/24")  # the draft is not lost
    assert held.end()["broken"] == []


@thorough
def test_the_page_follows_to_a_right_one_and_confirms_from_there(director, world, page):
    held = world.hold(LINES, 5)
    logged_in(director, page)
    before = director.status()["confirmed"]
    give_it(page, RIGHT, "10.0.2.2")
    trust(page)  # at the new address the browser asks anew
    assert page.url.startswith(f"https://{RIGHT}/confirm/")
    expect(page.get_by_role("heading", name=texts.KEPT)).to_be_visible()
    until("it is confirmed", lambda: outcome(director) == "done")
    assert director.status()["confirmed"] == before + 1
    page.get_by_role("link", name=texts.LOG_IN_HERE).click()
    page.wait_for_url(f"https://{RIGHT}/login/")
    assert held.end()["broken"] == []

    director.kill()
    director.start()
    director.wait_until_started()
    assert RIGHT in director.succeed("ip -brief address show dev eth0")
