"""The firewall's pages in a browser: pictures, and the order of rules by keyboard alone."""

import dataclasses

import pytest
from playwright.sync_api import expect
from tests import texts
from tests.fake import appliance
from tests.web.browsing import LOOKS, follow

from lbconfig.model.firewall import Action, Firewall, RateLimit, Rule, RuleProtocol, Where

RULES = (
    Rule(1, "monitoring", sources=("192.168.10.0/24", "2001:db8::/32"), protocol=RuleProtocol.UDP, ports="161"),
    Rule(2, "no pings from outside", Action.DENY, protocol=RuleProtocol.PING, interface="eth0", log=True),
    Rule(3, "attackers", Action.REJECT, Where.SERVICES, sources=tuple(f"198.51.{n}.0/24" for n in range(40))),
    Rule(
        4,
        "not too many at once",
        where=Where.SERVICES,
        protocol=RuleProtocol.TCP,
        ports="80",
        limit=RateLimit(20, burst=50, each_source=True),
        note="Since the attack in May.",
    ),
    Rule(5, "updates of the servers", where=Where.THROUGH, sources=("10.2.0.0/24",), masquerade=True),
    Rule(6, "kept for later", where=Where.THROUGH, enabled=False, sources=("10.2.0.0/25",)),
)


@pytest.fixture
def ruled(admin):
    appliance.reset(instant=True, setup_done=True)
    appliance.box.snapshot = dataclasses.replace(appliance.box.snapshot, firewall=Firewall(RULES))
    return admin


def test_pictures(open_page, ruled, look, shoot):
    page = open_page(ruled, **LOOKS[look])
    page.goto("/firewall/")
    shoot(page, "firewall", look)
    page.goto("/firewall/4/")
    shoot(page, "firewall-rule", look)
    page.fill("[name=ports]", "80,70000")
    page.fill("[name=sources]", "everybody")
    follow(page, texts.SAVE_BUTTON)
    shoot(page, "firewall-rule-wrong", look)
    page.goto("/firewall/add/?where=through")
    shoot(page, "firewall-add", look)
    page.goto("/firewall/test/?source=198.51.3.9&interface=eth0&destination=192.168.10.80&protocol=tcp&port=80")
    shoot(page, "firewall-test", look)


def test_the_order_is_changed_by_keyboard(open_page, ruled):
    page = open_page(ruled, **LOOKS["wide"])
    page.goto("/firewall/")
    page.get_by_role("button", name="Move no pings from outside up").focus()
    page.keyboard.press("Enter")
    page.get_by_text("change is not applied").wait_for()
    for place, name in enumerate(("no pings from outside", "monitoring")):
        expect(page.locator(".own strong").nth(place)).to_have_text(name)
    page.get_by_role("button", name="Switch monitoring off").focus()
    page.keyboard.press("Space")
    page.get_by_role("button", name="Switch monitoring on").wait_for()  # the last rule was off before


def test_fields_that_a_rule_cannot_have_are_not_shown(open_page, ruled):
    page = open_page(ruled, **LOOKS["wide"])
    page.goto("/firewall/add/")
    page.get_by_text("More: destination").click()
    rate, masquerade = page.locator("[name=rate]"), page.locator("[name=masquerade]")
    expect(rate).to_be_visible()
    expect(masquerade).to_be_hidden()
    page.check("[name=where][value=through]")
    expect(masquerade).to_be_visible()
    page.check("[name=action][value=deny]")
    expect(rate).to_be_hidden()
    expect(masquerade).to_be_hidden()
