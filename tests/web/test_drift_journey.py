"""A box that does not run what it should, in a real browser: from the banner to the repair, with pictures."""

from playwright.sync_api import expect
from tests import texts
from tests.fake import drift as fake_drift
from tests.web.browsing import LOOKS


def test_from_the_banner_to_the_repair(open_page, admin, box, look, shoot):
    page = open_page(admin, **LOOKS[look])
    page.goto("/")
    expect(page.get_by_text(texts.DIFFERS)).to_have_count(0)
    box.drift.found = fake_drift.sample()
    expect(page.get_by_text("The box does not run what it should: 2 differences.")).to_be_visible()  # by itself
    shoot(page, "drift-overview", look)
    page.locator("#to-drift").click()
    expect(page.get_by_role("heading", name="2 differences")).to_be_visible()
    shoot(page, "drift", look)
    box.drift.found, box.drift.fresh = box.drift.found[:1], 1
    expect(page.get_by_text("1 more was seen just now")).to_be_visible()
    page.get_by_role("button", name="Look again").click()
    expect(page.get_by_role("heading", name="1 difference", exact=True)).to_be_visible()
    box.drift.fresh, box.instant = 0, False
    page.get_by_role("button", name="Repair").click()
    expect(page.get_by_role("heading", name="Repairing…")).to_be_visible()
    box.finish()
    expect(page.get_by_role("heading", name=texts.REPAIRED)).to_be_visible()
    shoot(page, "drift-repaired", look)
    page.goto("/drift/")
    expect(page.get_by_role("heading", name="It does")).to_be_visible()
    shoot(page, "drift-none", look)
