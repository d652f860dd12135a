"""From the set-up code on the console to a balanced packet, by a person with a browser."""

import time

import pytest
from board.machines.director import VIP
from board.machines.spent import WEB, spent
from board.machines.wait import found
from board.machines.world import SERVERS
from playwright.sync_api import Page, expect
from tests import texts
from tests.lab.fixtures import thorough
from tests.lab.hand import PHONE, WIDE, Hand, opened

pytestmark = pytest.mark.timeout(900)

APPLY = 90_000  # milliseconds


@pytest.fixture
def page(director):
    with opened(director) as [page]:
        yield page


def until_applied(page: Page) -> None:
    expect(page.get_by_role("heading", name=texts.APPLIED)).to_be_visible(timeout=APPLY)


def begin(hand: Hand, console: str) -> None:
    """From the page that a new box shows to a service that balances, by what the screens say."""
    page = hand.page
    page.goto("/")
    expect(page.get_by_role("heading", name=texts.SET_UP)).to_be_visible()
    hand.shoot("1-set-up")
    hand.type("Set-up code", found(r"Set-up code +(\S+)", console))  # as a person reads it off the screen
    hand.type("User name", "kim")
    hand.type("New password", "rope and tide")
    hand.type("New password again", "rope and tide")
    hand.click("button", texts.SET_UP_AND_LOG_IN)
    hand.shoot("2-overview-empty")

    hand.click("link", "Network")
    for name, address in (("eth1", "10.2.0.1/24"), ("eth2", "10.1.0.1/24")):
        card = page.locator("section.interface", has=page.get_by_role("heading", name=name))
        hand.type("Fixed addresses", address, card)
    hand.shoot("3-network")
    hand.click("button", texts.SAVE)
    expect(page.get_by_text(texts.SAVED)).to_be_visible()
    hand.shoot("4-network-saved")

    hand.click("link", texts.ADD_SERVICE)
    hand.click("link", "Web site")
    hand.type("Name", "web", page.locator("section.card").first)
    hand.type("Virtual address (VIP)", VIP)
    for row, address in enumerate(SERVERS.values()):
        if row >= page.locator("fieldset.server").count():
            hand.click("button", texts.ADD_SERVER)
        hand.type("Address", address, page.locator("fieldset.server").nth(row))
    hand.shoot("5-service")
    hand.click("button", texts.SAVE)
    hand.shoot("6-service-saved")

    hand.click("link", texts.REVIEW)
    expect(page.get_by_text("Virtual service 'web'")).to_be_visible()
    hand.type("Comment", "the first service")
    hand.shoot("7-review")
    hand.click("button", "Apply")
    until_applied(page)
    hand.shoot("8-applied")
    hand.click("link", texts.BACK)
    expect(page.get_by_text("3 of 3 up")).to_be_visible()
    hand.shoot("9-overview")


@spent(WEB)
def test_from_first_boot_to_a_balanced_packet(lab, director, world, page):
    hand = Hand(page)
    begin(hand, lab.first_console)
    answers = world.count(f"{VIP}:80/", 30)
    # By least connections no server's share is exact, but none is left out of a turn for long.
    assert set(answers) == set(SERVERS) and answers.total() == 30 and min(answers.values()) >= 5, answers
    assert hand.clicks <= 12 and hand.fields <= 12, (hand.clicks, hand.fields)
    assert not director.status()["setup_code_active"]


@thorough
@spent(WEB)
def test_a_day_of_a_new_admin(lab, director, world, page):
    """Each step by what the screen before it says."""
    hand = Hand(page, (WIDE, PHONE))
    started = time.monotonic()
    begin(hand, lab.first_console)
    assert world.get(f"{VIP}:80/")[0] in SERVERS
    minutes = (time.monotonic() - started) / 60  # by a hand that never thinks; a person may take three
    print(f"first boot to a balanced page: {hand.clicks} clicks, {hand.fields} fields, {minutes:.1f} minutes")

    # Take a server out.
    row = page.locator("table.servers tbody tr", has_text=SERVERS["rs1"])
    hand.click("button", "Drain", row)
    hand.shoot("20-draining")
    until_applied(page)
    hand.shoot("21-drained")
    hand.click("link", texts.BACK)
    expect(row).to_contain_text("draining")
    hand.shoot("22-overview-drained")
    assert set(world.count(f"{VIP}:80/", 20)) == {"rs2", "rs3"}
    row.get_by_role("link").first.click()
    hand.shoot("23-server")
    page.go_back()
    hand.click("button", "Resume", row)
    until_applied(page)
    hand.shoot("24-resumed")
    hand.click("link", texts.BACK)
    expect(page.get_by_text("3 of 3 up")).to_be_visible()

    # Why is a server down?
    world.stop_server("rs2")
    row = page.locator("table.servers tbody tr", has_text=SERVERS["rs2"])
    expect(row).to_contain_text("down since")
    expect(row).to_contain_text("refused")
    hand.shoot("30-overview-down")
    row.get_by_role("link").first.click()
    hand.shoot("31-server-down")
    page.go_back()
    page.get_by_role("link", name="web", exact=True).click()
    hand.shoot("32-service-of-a-down-server")
    hand.click("link", "Doctor")
    hand.shoot("33-doctor")
    world.start_server("rs2")
    hand.click("link", "Overview")
    expect(page.get_by_text("3 of 3 up")).to_be_visible()

    # A change that was wrong, and back to what ran before.
    page.get_by_role("link", name="web", exact=True).click()
    hand.type("Port", "81", page.locator("section.card").first)
    hand.click("button", texts.SAVE)
    hand.click("link", texts.REVIEW)
    hand.shoot("40-review-wrong")
    hand.click("button", "Apply")
    until_applied(page)
    assert world.get(f"{VIP}:80/")[0] not in SERVERS
    hand.click("link", "History")
    expect(page.get_by_text("the first service")).to_be_visible()
    hand.shoot("41-history")
    hand.click("link", "1", page.locator("table.history"))
    hand.shoot("42-revision")
    hand.click("link", texts.RESTORE)
    hand.shoot("43-restore")
    hand.click("button", texts.REPLACE)  # it leads on to the review
    hand.shoot("44-review-restored")
    hand.click("button", "Apply")
    until_applied(page)
    hand.shoot("45-back")
    hand.click("link", texts.BACK)
    expect(page.get_by_text("3 of 3 up")).to_be_visible()
    assert world.get(f"{VIP}:80/")[0] in SERVERS


@thorough
def test_a_wrong_code_opens_nothing(director, page):
    page.goto("/set-up/")
    page.get_by_label("Set-up code").fill("AAAA-BBBB-CCCC")
    page.get_by_label("User name").fill("kim")
    page.get_by_label("New password", exact=True).fill("rope and tide")
    page.get_by_label("New password again").fill("rope and tide")
    page.get_by_role("button", name=texts.SET_UP_AND_LOG_IN).click()
    expect(page.get_by_text("This is not the code on the console.")).to_be_visible()
    assert director.status()["setup_code_active"]
