"""Who leads, in a real browser: from a box that is alone to a hand-over and a hold, with pictures."""

import re
from dataclasses import replace

from playwright.sync_api import expect
from tests import texts
from tests.fake import pair as fake_pair
from tests.fake import rolling
from tests.web import axe, keyboard
from tests.web.browsing import LOOKS

from applier.pair.fitness import Observed
from applier.pair.roles import LEADS
from applier.update.rolling.course import Phase


def looked_at(page) -> None:
    """By the keyboard, and by axe in light and in dark mode."""
    assert not keyboard.faults(page)
    axe.unfold(page)
    assert not axe.everything(page)
    page.emulate_media(color_scheme="dark")
    assert not axe.colours(page)
    page.emulate_media(color_scheme="light")


def test_the_page_of_a_pair(open_page, admin, box, look, shoot):
    page = open_page(admin, **LOOKS[look])
    page.goto("/system/pair/")
    expect(page.get_by_role("heading", name="This box is alone")).to_be_visible()
    shoot(page, "pair-alone", look)
    box.pair = fake_pair.sample()
    page.goto("/")
    expect(page.locator("#strip")).to_contain_text("lb1 leads, lb2 stands by and is in step; it knows")
    shoot(page, "pair-strip", look)
    page.locator("#strip a").click()
    expect(page.get_by_role("heading", name="lb2", exact=True)).to_be_visible()
    assert page.evaluate("navigator.language") == "en-US"
    expect(page.locator("#lead-changes")).to_contain_text(re.compile(r"Jan 31, 2026, \d\d:00:"))
    shoot(page, "pair", look)
    looked_at(page)


def test_hand_over_and_hold(open_page, admin, box, look, shoot):
    box.pair = fake_pair.sample()
    page = open_page(admin, **LOOKS[look])
    page.goto("/system/pair/")
    page.get_by_role("link", name="Try a hand-over").click()
    page.get_by_label("Hand over back to lb1 afterwards").check()
    shoot(page, "pair-drill", look)
    looked_at(page)
    page.get_by_role("button", name="Hand over now").click()
    expect(page.locator("#drills")).to_contain_text("The addresses answered at lb1 after 31 ms")
    shoot(page, "pair-drilled", look)
    page.locator("#hand-over").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Let lb2 lead?")).to_be_visible()
    shoot(page, "pair-hand-over", look)
    looked_at(page)
    page.get_by_role("button", name="Hand over now").click()
    expect(page.locator("#sentence")).to_contain_text("lb2 leads, lb1 stands by and is in step; it knows")
    page.get_by_role("link", name="Hold this box").click()
    page.get_by_label("For how long").select_option("4 hours")
    shoot(page, "pair-hold", look)
    looked_at(page)
    page.get_by_role("button", name="Hold it").click()
    expect(page.get_by_text(texts.HOLDS)).to_be_visible()
    shoot(page, "pair-held", look)
    page.get_by_role("link", name="Release this box").click()
    shoot(page, "pair-release", look)
    page.get_by_role("button", name="Release it").click()
    expect(page.locator("#sentence")).to_contain_text("lb1 stands by")


def test_trouble_is_seen_without_reloading(open_page, admin, box, look, shoot):
    box.pair = fake_pair.sample()
    page = open_page(admin, **LOOKS[look])
    page.goto("/system/pair/")
    box.pair.silent = 700.0
    expect(page.get_by_text("was: stands by")).to_be_visible()
    shoot(page, "pair-away", look)
    box.pair = fake_pair.sample()
    box.pair.peer = replace(box.pair.peer, role=LEADS, lacks=(0, 1, 0, 2), version="0.1.9")
    box.pair.observed = Observed(gateways=("192.168.10.1",), services=("shop",))
    box.pair.clock = 61.0
    expect(page.locator("#sentence")).to_contain_text(
        "Both lead: neither box hears the VRRP of the other one (protocol 112)."
    )
    expect(page.get_by_text("61.0 seconds ahead of this box")).to_be_visible()
    shoot(page, "pair-both-lead", look)
    looked_at(page)
    page.goto("/")
    expect(page.locator("#strip.bad")).to_be_visible()
    shoot(page, "pair-strip-bad", look)
    box.pair = fake_pair.sample()
    box.pair.peer = replace(box.pair.peer, digest="c" * 64, lineage=("c" * 64,), revision=4)
    page.goto("/system/pair/")
    page.get_by_role("link", name="Keep this box's configuration").click()
    expect(page.get_by_role("heading", name="Keep the configuration of lb1?")).to_be_visible()
    shoot(page, "pair-choose", look)
    looked_at(page)


def test_the_update_of_both_boxes(open_page, admin, box, look, shoot):
    box.pair = fake_pair.sample()
    page = open_page(admin, **LOOKS[look])
    page.goto(f"/system/updates/review/?source=upload:{'0' * 32}")
    shoot(page, "pair-update-review", look)
    looked_at(page)
    page.get_by_role("button", name="Update both boxes").click()
    expect(page.get_by_text("The bundle is sent to lb2: 50 %.")).to_be_visible()
    shoot(page, "pair-update", look)
    box.rolling.peer = replace(box.rolling.peer, version="0.2.0")
    box.rolling.course = rolling.sample(Phase.LEARNS, stopped="lb2 knows only 1,003 of 1,240 connections.")
    expect(page.get_by_role("heading", name="The update to version 0.2.0 has stopped")).to_be_visible()
    shoot(page, "pair-update-stopped", look)
    looked_at(page)
    page.goto("/system/pair/")
    page.get_by_role("button", name="Go back").click()
    expect(page.get_by_text("lb2 goes back to its version before.")).to_be_visible()
    box.rolling.course = rolling.sample(Phase.DONE)
    expect(page.get_by_text("Both boxes run version 0.2.0.")).to_be_visible()
    shoot(page, "pair-update-done", look)
