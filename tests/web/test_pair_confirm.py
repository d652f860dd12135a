"""A change of the own addresses of both boxes, made and confirmed by the address that floats, in a real browser.

The pretended boxes stand for both: that both follow one decision, tests/unit/applier/test_both.py shows with two
appliers, and tests/peers/test_pair_channel.py with two channels.
"""

import dataclasses
from urllib.parse import urlsplit

import pytest
from lbconfig_pairs import PAIR
from playwright.sync_api import expect
from tests import texts
from tests.fake import appliance
from tests.fake.pair import sample
from tests.web.browsing import NEW_CONNECTION, follow
from tests.web.conftest import FLOATING, TIMEOUT, log_in

from draft import store as draft
from lbconfig.model.snapshot import Management

OURS = dataclasses.replace(PAIR, management=Management(("127.0.0.0/8", "10.0.2.0/24", "2001:db8::/32")))
BEFORE, AFTER = ("10.0.2.21/24", "10.0.2.22/24"), ("10.0.2.31/24", "10.0.2.32/24")


@pytest.fixture
def page(chromium, live_server, admin, box):
    """At the floating address of a box that runs the pair."""
    assert f"{FLOATING}/24" in OURS.pair.boxes[0].network.interfaces[0].floating
    box.snapshot, box.pair = OURS, sample()
    draft.replace(OURS, "admin")
    url = f"http://{FLOATING}:{urlsplit(live_server.url).port}"
    context = chromium.new_context(base_url=url)
    context.set_default_timeout(TIMEOUT)
    log_in(context, admin, url)
    yield context.new_page()
    context.close()


def own(snapshot) -> tuple[str, ...]:
    return tuple(one.network.interfaces[0].addresses[0] for one in snapshot.pair.boxes)


def change_own_addresses(page) -> None:
    """Of both boxes, and begin to apply it."""
    for number, (before, after) in enumerate(zip(BEFORE, AFTER, strict=True)):
        page.goto(f"/network/?box={number}")
        fields = page.locator("textarea[name$=addresses]")
        place = next(one for one in fields.all() if before in one.input_value())
        page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        place.fill(place.input_value().replace(before, after))
        follow(page, texts.SAVE_BUTTON)
    page.goto("/changes/")
    for name in ("lb1", "lb2"):
        expect(page.get_by_text(f"{name}: The addresses of eth0 change.")).to_be_visible()
    page.click(texts.APPLY_BUTTON)
    expect(page.get_by_text(texts.KEEP_IT)).to_be_visible()
    assert own(appliance.box.snapshot) == AFTER and appliance.box.run.state == "waiting"


def test_reaching_the_floating_address_anew_keeps_the_new_addresses_of_both(page):
    change_own_addresses(page)
    appliance.box.run.deadline.begun -= 30
    page.set_extra_http_headers(NEW_CONNECTION)
    expect(page.get_by_text(texts.APPLIED)).to_be_visible()
    assert urlsplit(page.url).hostname == FLOATING
    assert own(appliance.box.snapshot) == AFTER and appliance.box.run.state == "done"


def test_without_a_confirmation_both_have_their_former_addresses(page):
    change_own_addresses(page)
    appliance.box.expire()
    expect(page.get_by_role("heading", name=texts.WENT_BACK)).to_be_visible()
    assert urlsplit(page.url).hostname == FLOATING
    assert own(appliance.box.snapshot) == BEFORE and own(draft.current()) == AFTER
