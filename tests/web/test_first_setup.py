"""What a sysadmin does who has never seen the box, and in how many clicks: words are typed, the rest is clicked."""

from dataclasses import replace

import pytest
from playwright.sync_api import Page, expect
from tests import texts
from tests.fake import appliance
from tests.web.browsing import NEW_CONNECTION, follow

from lbconfig.model import canonical
from lbconfig.model.snapshot import FACTORY, Forwarding

# A key that presses a button is no click.
COUNT = """addEventListener("click", (event) => {
    if (event.isTrusted && event.detail) sessionStorage.clicks = Number(sessionStorage.clicks || 0) + 1;
}, true);"""


@pytest.fixture
def newcomer(open_page):
    """newcomer(user=None) -> a page that counts."""

    def begin(user=None) -> Page:
        page = open_page(user)
        page.context.add_init_script(COUNT)
        return page

    return begin


def clicks(page: Page) -> int:
    return int(page.evaluate("sessionStorage.clicks || 0"))


def test_from_the_first_boot_to_balanced_traffic(newcomer, transactional_db):
    box = appliance.reset(instant=True, snapshot=FACTORY, confirmed=None)
    page = newcomer()
    page.goto("/")
    for field, text in (("code", box.setup_code), ("username", "kim"), ("password", "rope and tide")):
        page.fill(f"[name={field}]", text)
    page.fill("[name=again]", "rope and tide")
    follow(page, page.get_by_role("button", name=texts.SET_UP_AND_LOG_IN))
    follow(page, page.get_by_role("link", name=texts.ADD_SERVICE))
    follow(page, page.get_by_role("link", name="Web site", exact=True))
    page.fill("[name=name]", "shop")
    page.fill("[name=address]", "10.0.2.100")
    page.fill("[name=servers-0-address]", "10.0.2.11")
    page.fill("[name=servers-1-address]", "10.0.2.12")
    page.get_by_role("button", name=texts.TRY_IT).click()
    expect(page.locator(".trial details")).to_have_count(2)
    follow(page, texts.SAVE_BUTTON)
    follow(page, page.get_by_role("link", name=texts.REVIEW))
    expect(page.get_by_text("Virtual service 'shop'")).to_be_visible()
    follow(page, texts.APPLY_BUTTON)
    expect(page.get_by_text(texts.APPLIED)).to_be_visible()
    follow(page, page.get_by_role("link", name=texts.BACK))
    expect(page.get_by_text("2 of 2 up")).to_be_visible()
    [shop] = box.snapshot.services
    assert (shop.name, shop.forwarding) == ("shop", Forwarding.SNAT)  # what works on the one network of a new box
    assert clicks(page) <= 12


def test_a_server_is_drained_for_maintenance(newcomer, admin):
    page = newcomer(admin)
    page.goto("/")
    row = page.get_by_role("row", name="10.2.0.21:25")
    for word, state in (("Drain", "draining"), ("Halt", "disabled"), ("Resume", "up")):
        follow(page, row.get_by_role("button", name=word))
        expect(page.get_by_text(texts.APPLIED)).to_be_visible()
        follow(page, page.get_by_role("link", name=texts.BACK))
        expect(row).to_contain_text(state)
    assert clicks(page) == 6


def test_why_a_server_is_down_stands_on_the_first_page(newcomer, admin):
    page = newcomer(admin)
    page.goto("/")
    expect(page.get_by_role("row", name="10.2.0.12:80")).to_contain_text("503 Service Unavailable")
    follow(page, page.get_by_role("link", name="Ask the doctor about shop"))
    expect(page.get_by_role("heading", name="Doctor: shop")).to_be_visible()
    assert clicks(page) == 1


def test_what_ran_yesterday_is_brought_back(newcomer, admin, box):
    """With a change that must be confirmed, which the page does by itself."""
    yesterday = box.snapshot
    box.generations[1]["text"] = canonical.text(yesterday)
    box.snapshot = replace(
        yesterday,
        services=tuple(replace(one, name=f"{one.name} of today") for one in yesterday.services),
        network=replace(yesterday.network, gateway="192.168.10.254"),
    )
    page = newcomer(admin)
    page.goto("/")
    expect(page.get_by_role("heading", name="shop of today")).to_be_visible()
    follow(page, page.get_by_role("link", name="History"))
    follow(page, page.get_by_role("row", name="mail added").get_by_role("link"))
    follow(page, page.get_by_role("link", name=texts.RESTORE))
    follow(page, page.get_by_role("button", name=texts.REPLACE))
    follow(page, texts.APPLY_BUTTON)
    expect(page.get_by_text(texts.KEEP_IT)).to_be_visible()
    page.set_extra_http_headers(NEW_CONNECTION)
    box.run.deadline.begun -= 30
    expect(page.get_by_text(texts.APPLIED)).to_be_visible()
    assert box.snapshot == yesterday
    assert clicks(page) == 5
