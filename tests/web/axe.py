"""What axe finds on a page as it stands, and what of it cannot be used without a mouse."""

from functools import cache

from django.conf import settings
from playwright.sync_api import Page

# All that is folded away or waits for a choice is looked at, too, and no colour on its way to another one. What asks
# the box again and again stops, or it would change the page under the eyes of axe.
UNFOLD = """const still = new CSSStyleSheet();
still.replaceSync("* { transition: none !important; animation: none !important; }");
document.adoptedStyleSheets = [still];
document.body.addEventListener("htmx:beforeRequest", (event) => event.preventDefault());
for (const one of document.querySelectorAll("details")) one.open = true;
for (const one of document.querySelectorAll("[data-when]")) one.hidden = false;"""
LOOK = """async (rules) => (await axe.run(document, {resultTypes: ["violations"], ...rules})).violations
    .flatMap((one) => one.nodes.map((node) => `${one.id}: ${node.target} ${node.failureSummary}`))"""
COLOURS = {"runOnly": ["color-contrast"]}
# What can be used with a mouse alone. What is there for the Enter key only is hidden from everybody else.
UNREACHED = """[...document.querySelectorAll("a, button, input, select, textarea, summary, [onclick]")]
    .filter((one) => one.tabIndex < 0 && one.checkVisibility() && !one.disabled && !one.ariaHidden)
    .map((one) => one.outerHTML.slice(0, 100))"""


@cache
def _script() -> str:
    return (settings.ASSETS / "tests/axe.min.js").read_text()


def unfold(page: Page) -> None:
    """Open what is folded away, let nothing move any more, and bring axe to the page."""
    page.evaluate(UNFOLD)
    page.evaluate(_script())


def everything(page: Page) -> list[str]:
    """What every rule finds on an unfolded page, and what no keyboard reaches."""
    return page.evaluate(LOOK, {}) + [f"not by the keyboard: {one}" for one in page.evaluate(UNREACHED)]


def colours(page: Page) -> list[str]:
    """What is too faint on an unfolded page."""
    return page.evaluate(LOOK, COLOURS)
