"""What a person does with a page, with the wait that a person makes."""

from board.machines import spent
from playwright.sync_api import Error, Locator, Page

# A window, and what its pictures are called in light and in dark mode.
LOOKS = {
    "wide": {"viewport": {"width": 1280, "height": 860}},
    "phone": {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True},
}
IN_THE_DARK = {"wide": "dark", "phone": "phone-dark"}
# As nginx tells it of a connection that was made after the change: that confirms it.
NEW_CONNECTION = {"X-Connection-Age": "0.1"}
PICTURES = 3  # tries of a picture
BUSY = "Unable to capture screenshot"  # Chromium's words when its drawing process does not answer in time


class Window:
    """The window of a page, which becomes another one without a new visit.

    Playwright decides once for all pages of a context whether that is a phone's. What is set here lasts as long as
    its session with the browser, so that stays open. Touch is left out: once it was on, Chromium has no mouse again.
    """

    def __init__(self, page: Page) -> None:
        self._session = page.context.new_cdp_session(page)
        self._look = ""

    def become(self, look: str) -> None:
        if look == self._look:
            return
        self._look = look
        size = LOOKS[look]["viewport"]
        screen = {"screenWidth": size["width"], "screenHeight": size["height"], "deviceScaleFactor": 1}
        mobile = LOOKS[look].get("is_mobile", False)
        self._session.send("Emulation.setDeviceMetricsOverride", {**size, **screen, "mobile": mobile})


def follow(page: Page, what: str | Locator) -> None:
    """Click on what leads to another page, or to the same one with its errors, and wait until that is there.

    A click alone does not always wait: a browser on a busy machine may still show the page before, and if it is sent
    elsewhere meanwhile, what the click should have posted never arrives.
    """
    with page.expect_navigation():
        (page.locator(what).first if isinstance(what, str) else what).click()


def picture(page: Page, path) -> None:
    """Take a picture of what the window shows; the browser may be too busy for the first one."""
    for left in reversed(range(PICTURES)):
        try:
            page.screenshot(path=path, animations="disabled")  # what changes its colour slowly has changed it
        except Error as error:
            if not left or BUSY not in error.message:
                raise
            spent.retried(f"a picture for {path.name}")
        else:
            return
