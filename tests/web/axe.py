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
WITHOUT_COLOURS = {"rules": {"color-contrast": {"enabled": False}}}
# What axe makes of a text's colours depends on its letters and on the backgrounds under it. Texts that are alike in
# that are one kind, and it is enough to look at one of each. Where axe cannot say, the next one of its kind is asked.
NEW_COLOURS = """async (known) => {
    const below = ["backgroundColor", "backgroundImage", "opacity", "filter", "mixBlendMode"];
    const letters = ["color", "fontSize", "fontWeight", "textShadow", "position"];
    const stacks = new Map([[null, ""]]);
    const stack = (one) => {
        if (!stacks.has(one)) {
            const style = getComputedStyle(one), drawn = below.map((name) => style[name]).join();
            const above = stack(one.parentElement);
            stacks.set(one, above.endsWith(drawn) ? above : `${above}/${drawn}`);
        }
        return stacks.get(one);
    };
    const off = (one) => one.matches(":disabled") || one.closest("label")?.control?.disabled || one.closest("[inert]");
    const kinds = new Map(), told = new Set(known);
    for (const one of document.querySelectorAll("body, body *")) {
        const text = [...one.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.data);
        const field = one.matches("input, textarea, select");
        if (!(field || text.join("").trim()) || !one.checkVisibility({visibilityProperty: true})) continue;
        const style = getComputedStyle(one), word = /[\\p{L}\\p{N}].*[\\p{L}\\p{N}]/su.test(text.join(""));
        const kind = [one.tagName, one.className, word, off(one), ...letters.map((name) => style[name]), stack(one)];
        if (!told.has(kind.join(";"))) kinds.set(one, kind.join(";"));
    }
    if (!kinds.size) return {faults: [], told: []};
    const first = new Map([...kinds].reverse().map(([one, kind]) => [kind, one]));
    const found = await axe.run({include: [...first.values()]}, {
        runOnly: ["color-contrast"], resultTypes: ["violations", "passes"], elementRef: true,
    });
    const nodes = (results) => results.flatMap((result) => result.nodes);
    return {
        faults: nodes(found.violations).map((node) => `color-contrast: ${node.target} ${node.failureSummary}`),
        told: nodes([...found.violations, ...found.passes]).map((node) => kinds.get(node.element)).filter(Boolean),
    };
}"""
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
    return page.evaluate(LOOK, {}) + _unreached(page)


def colours(page: Page) -> list[str]:
    """What is too faint on an unfolded page."""
    return page.evaluate(LOOK, COLOURS)


def everything_but_colours(page: Page) -> list[str]:
    return page.evaluate(LOOK, WITHOUT_COLOURS) + _unreached(page)


def new_colours(page: Page, known: set[str]) -> list[str]:
    """What is too faint on an unfolded page, of texts that are of no kind `known`; adds those that it has."""
    found = page.evaluate(NEW_COLOURS, [*known])
    known.update(found["told"])
    return found["faults"]


def _unreached(page: Page) -> list[str]:
    return [f"not by the keyboard: {one}" for one in page.evaluate(UNREACHED)]
