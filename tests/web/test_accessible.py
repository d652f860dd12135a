"""Every page of the web UI, wide, on a phone and in dark mode: axe finds nothing, and a keyboard gets everywhere."""

import pytest
from django.conf import settings
from django.test import Client
from django.urls import get_resolver, reverse
from tests.web.browsing import LOOKS

from draft import firewall as draft_firewall
from draft import store as draft
from draft.models import Rule as Row
from guide import book
from lbconfig.model.firewall import Rule

AXE = settings.ASSETS / "tests/axe.min.js"
# What a page needs in its address, as the sample box has it.
ARGUMENTS = {"pk": 1, "number": 2, "address": "10.2.0.11", "slot": "B", "name": "plan"}
QUERIES = {"compare": "?old=1&new=2", "search": "?q=timeout"}
# They need an apply that is under way, or are no pages.
WITHOUT = {"progress", "live-progress", "arrive", "export", "server-script", "api-v1"}
# All that is folded away or waits for a choice is looked at, too, and no colour on its way to another one.
UNFOLD = """const still = new CSSStyleSheet();
still.replaceSync("* { transition: none !important; }");
document.adoptedStyleSheets = [still];
for (const one of document.querySelectorAll("details")) one.open = true;
for (const one of document.querySelectorAll("[data-when]")) one.hidden = false;"""
LOOK = """async (rules) => (await axe.run(document, {resultTypes: ["violations"], ...rules})).violations
    .flatMap((one) => one.nodes.map((node) => `${one.id}: ${node.target} ${node.failureSummary}`))"""
COLOURS = {"runOnly": ["color-contrast"]}
# What can be used with a mouse alone. What is there for the Enter key only is hidden from everybody else.
UNREACHED = """[...document.querySelectorAll("a, button, input, select, textarea, summary, [onclick]")]
    .filter((one) => one.tabIndex < 0 && one.checkVisibility() && !one.disabled && !one.ariaHidden)
    .map((one) => one.outerHTML.slice(0, 100))"""


def addresses() -> dict[str, str]:
    """Name -> address of whatever can be asked for; a new page is among them by itself."""
    found = {}
    for pattern in get_resolver().url_patterns:
        given = {key: ARGUMENTS.get(key) for key in pattern.pattern.converters}
        if pattern.name not in WITHOUT:
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
    draft_firewall.write(Rule(1, "ping"), Row(), "admin")
    found = {}
    for name, address in addresses().items():
        if name != "logout" and shown(client, address):
            found[name] = (address, True)
        elif name != "logout" and shown(stranger, address):
            found[name] = (address, False)
    return found | {f"help {name}": (reverse("help-page", args=[name]), True) for name in book.pages()}


def test_nothing_that_axe_finds_and_all_by_the_keyboard(open_page, admin, opened, look):
    assert len(opened) > 35 and draft.current().services
    pages = {True: open_page(admin, **LOOKS[look]), False: open_page(**LOOKS[look])}
    axe, faults = AXE.read_text(), []
    for name, (address, logged_in) in opened.items():
        page = pages[logged_in]
        page.emulate_media(color_scheme="light")
        page.goto(address)
        page.evaluate(UNFOLD)
        page.evaluate(axe)
        faults += [f"{name}: {one}" for one in page.evaluate(LOOK, {})]
        faults += [f"{name}: not by the keyboard: {one}" for one in page.evaluate(UNREACHED)]
        page.emulate_media(color_scheme="dark")
        faults += [f"{name}, dark: {one}" for one in page.evaluate(LOOK, COLOURS)]
    assert not faults, "\n".join(faults)


def test_the_tab_key_gets_to_every_page_of_the_navigation(open_page, admin, look):
    page = open_page(admin, **LOOKS[look])
    page.goto("/")
    wanted = page.eval_on_selector_all("body > header a", "all => all.map((one) => one.getAttribute('href'))")
    met = set()
    for _ in range(len(wanted) + 4):  # the way past all this, the field of the search, and a few more
        page.keyboard.press("Tab")
        met.add(page.evaluate("document.activeElement.getAttribute('href')"))
    assert met >= set(wanted) and len(wanted) > 8
