"""Every page of the web UI, wide, on a phone and in dark mode: axe finds nothing, and a keyboard gets everywhere."""

import re
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.test import Client
from django.urls import get_resolver, reverse
from playwright.sync_api import expect
from tests import texts
from tests.parts import ALL
from tests.web import axe, keyboard
from tests.web.browsing import LOOKS, Window

from draft import firewall as draft_firewall
from draft import store as draft
from draft.models import Rule as Row
from guide import book
from lbconfig.model.firewall import Rule

# What a page needs in its address, as the sample box has it; which service or rule, the draft says.
ARGUMENTS = {"number": 2, "address": "10.2.0.11", "slot": "B", "name": "plan"}
HELP = "help "  # how the names of the guide's pages begin
RULES = "rule-"  # how the names of the pages about one begin
QUERIES = {"compare": "?old=1&new=2", "search": "?q=timeout"}
# They need an apply that is under way, or are no pages.
WITHOUT = {"progress", "live-progress", "arrive", "export", "server-script", "api-v1"}
PARTS = 4  # that are looked at side by side

HALF_DAY = re.compile(r"\d\s?[ap]\.?m\b\.?", re.IGNORECASE)  # a browser of the United States shows 2 p.m. as it is


def addresses(service: int, rule: int) -> dict[str, str]:
    """Name -> address of whatever can be asked for; a new page is among them by itself."""
    found = {}
    for pattern in get_resolver().url_patterns:
        if pattern.name not in WITHOUT:
            examples = ARGUMENTS | {"pk": rule if pattern.name.startswith(RULES) else service}
            given = {key: examples.get(key) for key in pattern.pattern.converters}
            assert None not in given.values(), f"{pattern.name}: give it an example in ARGUMENTS, or name it in WITHOUT"
            found[pattern.name] = reverse(pattern.name, kwargs=given) + QUERIES.get(pattern.name, "")
    return found


def shown(client: Client, address: str) -> bool:
    """Whether a browser is shown a page there: no part of one, nothing to POST to, no way to another page."""
    answer = client.get(address)
    return answer.status_code == 200 and not answer.streaming and b"<main" in answer.content


@pytest.fixture
def opened(admin):
    """Name -> address and whether somebody is logged in, of every page."""
    stranger, client = Client(), Client()
    client.force_login(admin)
    client.get("/")
    rule = draft_firewall.write(Rule(1, "ping"), Row(), "admin")
    found = {}
    for name, address in addresses(draft.current().services[0].id, rule.pk).items():
        if name != "logout" and shown(client, address):
            found[name] = (address, True)
        elif name != "logout" and shown(stranger, address):
            found[name] = (address, False)
    return found | {f"{HELP}{name}": (reverse("help-page", args=[name]), True) for name in book.pages()}


@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_that_axe_finds_and_all_by_the_keyboard(open_page, admin, opened, part):
    """Each page is visited once and looked at in both windows; what Tab does comes first, as axe's look unfolds all.

    What looks alike on several pages is looked at on one of them, in each window; with ALL=1 on each.
    """
    some = {"service-edit", "rule-edit", "rule-delete", "pair", "pair-make", "pair-join", "search", "api"}
    assert len(opened) > 35 and some <= opened.keys()
    styles = Path(finders.find("fairlead/app.css")).read_text()
    assert not re.search(r"\((any-)?(hover|pointer)", styles), "a phone's window has a mouse here"
    pages = {True: open_page(admin, **LOOKS["wide"]), False: open_page(**LOOKS["wide"])}
    windows = {logged_in: Window(page) for logged_in, page in pages.items()}
    known: dict[str, tuple[set[str], set[str]]] = {look: (set(), set()) for look in LOOKS}
    faults = []
    for name, (address, logged_in) in [*opened.items()][part::PARTS]:
        page, window = pages[logged_in], windows[logged_in]
        page.emulate_media(color_scheme="light")
        page.goto(address)
        faults += [f"{name}, half a day: {one}" for one in HALF_DAY.findall(page.locator("body").inner_text())]
        for look in LOOKS:
            window.become(look)
            headers = None if ALL else known[look][0]
            faults += [f"{name}, {look}, by Tab: {one}" for one in keyboard.faults(page, headers)]
        axe.unfold(page)
        # The window becomes another one as seldom as possible: each time Chromium lays out and draws all anew.
        for look in reversed(LOOKS):
            window.become(look)
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                found = axe.colours(page) if ALL else axe.new_colours(page, known[look][1])
                faults += [f"{name}, {look}, {scheme}: {one}" for one in found]
            faults += [f"{name}, {look}: {one}" for one in axe.everything_but_colours(page)]
    assert not faults, "\n".join(faults)


def test_the_first_stop_of_the_tab_key_skips_the_navigation(open_page, admin, look):
    page = open_page(admin, **LOOKS[look])
    page.goto("/network/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name=texts.SKIP)).to_be_focused()
    expect(page.get_by_role("link", name=texts.SKIP)).to_be_in_viewport()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")
