"""How near the box is to its limit, in a real browser: from nothing measured to a bar that warns, with pictures."""

from playwright.sync_api import expect
from tests import texts
from tests.fake import capacity as fake_capacity
from tests.web.browsing import LOOKS


def test_from_nothing_measured_to_a_bar_that_warns(open_page, admin, box, look, shoot):
    box.instant = False
    page = open_page(admin, **LOOKS[look])
    page.goto("/")
    expect(page.locator(".load")).to_have_count(0)
    page.goto("/system/")
    page.get_by_role("link", name="Measure and compare").click()
    expect(page.get_by_role("heading", name=texts.NEVER_MEASURED)).to_be_visible()
    shoot(page, "capacity-never", look)
    page.fill("[name=seconds]", "20")
    page.get_by_role("button", name=texts.START_COUNTING).click()
    expect(page.get_by_role("heading", name="Counting…")).to_be_visible()
    shoot(page, "capacity-counting", look)
    box.capacity.end()
    expect(page.get_by_role("heading", name="100 % of the most that was seen")).to_be_visible()  # by itself
    box.capacity.measured = [fake_capacity.sample(), fake_capacity.sample() | {"same": False}]
    expect(page.get_by_role("heading", name="25 % of the limit")).to_be_visible()
    page.get_by_text("How to send enough").click()
    shoot(page, "capacity", look)
    box.capacity.now = {"connections": 900.0, "packets": 216_000.0, "bytes": 80_000_000.0}
    page.goto("/")
    expect(page.get_by_text("90 % of what this box was measured to forward")).to_be_visible()
    shoot(page, "capacity-overview", look)


def test_stopping(open_page, admin, box):
    box.instant = False
    page = open_page(admin)
    page.goto("/system/capacity/")
    page.get_by_role("button", name=texts.START_COUNTING).click()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("heading", name="Stopped")).to_be_visible()
    expect(page.get_by_role("button", name=texts.START_COUNTING)).to_be_enabled()


def test_between_two_ports_by_keyboard(open_page, admin, box, look, shoot):
    box.instant = False
    page = open_page(admin, **LOOKS[look])
    page.goto("/system/capacity/")
    page.get_by_label("Send from").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowUp")  # from the second port to the first, which sends
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#id_receiver_error")).to_contain_text("must be another port than the sender's")
    shoot(page, "capacity-same-port", look)
    page.get_by_label("To", exact=True).select_option("eth5")
    page.get_by_role("button", name="Send and count").click()
    expect(page.get_by_text("eth4 to eth5")).to_be_visible()
    shoot(page, "capacity-between", look)
    box.capacity.end()
    expect(page.get_by_text("Sent by the box itself")).to_be_visible()
    box.capacity.ports = ["eth4"]
    page.goto("/system/capacity/")
    expect(page.get_by_text("this box has one, eth4")).to_be_visible()
