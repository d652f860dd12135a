"""A person with a browser at the pages of boxes that run, and what that person has to do."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from board.machines.director import Director
from board.machines.spent import retried
from playwright.sync_api import Locator, Page, expect, sync_playwright

PICTURES = Path(__file__).parents[2] / "build" / "screenshots" / "appliance"
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium-headless-shell")
FLAGS = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]
PATIENCE = 30_000  # milliseconds; an emulated processor serves these pages
# What htmx says of a live part of a page that had no answer in its five seconds: on a slow host that happens during an
# apply. The page says so and asks again by itself.
UNANSWERED = ("htmx:timeout,", "htmx:afterRequest,")
WIDE, PHONE = 1280, 390  # pixels of a window


@contextlib.contextmanager
def opened(*boxes: Director) -> Iterator[list[Page]]:
    """A page at each box's own TLS port, as in windows of one browser; at the end, that they asked nobody else.

    The certificate is the box's own, so nobody has signed it. AssertionError for what a page complains of.
    """
    PICTURES.mkdir(parents=True, exist_ok=True)
    flags = FLAGS + (["--no-sandbox"] if os.getuid() == 0 else [])
    asked: list[str] = []
    complaints: list[str] = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=flags)
        pages = []
        for box in boxes:
            context = browser.new_context(base_url=box.url, ignore_https_errors=True)
            context.set_default_timeout(PATIENCE)
            page = context.new_page()
            page.on("request", lambda request: asked.append(request.url))
            page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
            pages.append(page)
        expect.set_options(timeout=PATIENCE)
        yield pages
        browser.close()
    assert {url for url in asked if not url.startswith((*(box.url for box in boxes), "data:"))} == set()
    assert [said for said in complaints if not said.startswith(UNANSWERED)] == []
    for _ in (said for said in complaints if said.startswith(UNANSWERED[0])):
        retried("the page had no answer to a live request in time, and asked again")


class Hand:
    """What a person does with a page: counted, as each click and each field is one more place to be unsure."""

    def __init__(self, page: Page, looks: tuple[int, ...] = (WIDE,)) -> None:
        self.page = page
        self.looks = looks
        self.clicks = 0
        self.fields = 0

    def click(self, role: Literal["button", "link"], name: str, within: Locator | None = None) -> None:
        (within or self.page).get_by_role(role, name=name).first.click()
        self.clicks += 1

    def type(self, label: str, text: str, within: Locator | None = None) -> None:
        """Into the field with that label, reached by the Tab key."""
        field = (within or self.page).get_by_label(label, exact=True)
        field.focus()
        field.press("Control+a")
        self.page.keyboard.type(text)
        self.fields += 1

    def shoot(self, name: str) -> None:
        """The whole page: build/screenshots/appliance is what a person looks through."""
        self.page.wait_for_load_state()
        usual = self.page.viewport_size
        assert usual
        for width in self.looks:
            self.page.set_viewport_size({"width": width, "height": usual["height"]})
            look = "" if width == WIDE else "-phone"
            self.page.screenshot(path=PICTURES / f"{name}{look}.png", full_page=True)
        self.page.set_viewport_size(usual)
