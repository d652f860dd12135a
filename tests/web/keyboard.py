"""A page that is gone through by the Tab key alone."""

from playwright.sync_api import Page

# Where the Tab key should stop: a group of radio buttons is one stop. What stands there is noted before each press of
# the key, when the browser has scrolled to it. Nothing fades in meanwhile, and nothing is fetched anew under the focus.
# The header is the same on most pages: of one that is known, the way begins at its last stop.
BEGIN = """(known) => {
    const still = new CSSStyleSheet();
    still.replaceSync("* { transition: none !important; }");
    document.adoptedStyleSheets = [still];
    document.body.addEventListener("htmx:beforeRequest", (event) => event.preventDefault());
    const called = (one) => one.outerHTML.replace(/\\s+/g, " ").slice(0, 110);
    const group = (one) => one.type === "radio" ? `radio ${one.name} ${one.form?.action}` : one;
    const header = document.querySelector("header.side");
    const head = (header?.outerHTML ?? "").replace(/ aria-current="page"|name="csrf[^>]*/g, "");
    const wanted = new Map();
    let first;
    for (const one of document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")) {
        if (one.tabIndex >= 0 && !one.disabled && one.checkVisibility({visibilityProperty: true})) {
            const gone = known.includes(head) && header?.contains(one);
            if (gone) wanted.clear();
            if (gone || !wanted.size) first = one;
            wanted.set(group(one), called(one));
        }
    }
    const met = [];
    const marked = (one) => {
        const style = getComputedStyle(one);
        return (style.outlineStyle !== "none" && style.outlineWidth !== "0px") || style.boxShadow !== "none";
    };
    const note = () => {
        const one = document.activeElement;
        if (!one || one === document.body || met.some((stop) => stop.one === one)) return;
        if (first?.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_PRECEDING) return; // from the end to the top
        const box = one.getClientRects()[0], label = one.closest("label");
        const across = Math.min(Math.max(box.left + box.width / 2, 0), innerWidth - 1);
        const down = box.top + Math.min(box.height / 2, 20);
        const top = document.elementFromPoint(across, down);
        const faults = [];
        const seen = top && (one.contains(top) || label?.contains(top));
        if (!seen) faults.push(`is behind ${top ? called(top) : "the edge"}`);
        if (!marked(one) && !(label && marked(label))) faults.push("does not show the focus");
        if (one.tabIndex > 0) faults.push("jumps the queue");
        if (met.length && !(met.at(-1).one.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING)) {
            faults.push(`comes after ${called(met.at(-1).one)}`);
        }
        met.push({one, faults: faults.map((fault) => `${called(one)} ${fault}`)});
        wanted.delete(group(one));
    };
    document.addEventListener("keydown", (event) => { if (event.key === "Tab") note(); }, true);
    window.tabbed = () => {
        note();
        const left = [...wanted.values()].map((one) => `${one} is not reached`);
        return [...left, ...met.flatMap((stop) => stop.faults)];
    };
    first?.focus();
    return {stops: wanted.size, head};
}"""


def faults(page: Page, known: set[str] | None = None) -> list[str]:
    """Hold Tab from the first thing to the last: what is not reached, out of order, or hidden.

    `known`: headers that were gone through in this window; that of this page is added.
    """
    page.bring_to_front()
    begun = page.evaluate(BEGIN, [*(known or ())])
    if known is not None:
        known.add(begun["head"])
    for _ in range(begun["stops"] + 2):  # what scrolls is a stop, too
        page.keyboard.down("Tab")  # held, it repeats; to let it go each time takes half as long again
    page.keyboard.up("Tab")
    return page.evaluate("tabbed()")


def tab_to(page: Page, selector: str, most: int = 60) -> None:
    """Press Tab until the element has the focus, as a person without a mouse does."""
    for _ in range(most):
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{selector} is not reached within {most} steps of the Tab key")
