"""The page of tokens and of the API, as a person uses it, and what a program can do then."""

import json
import urllib.request

from playwright.sync_api import expect
from tests.web.browsing import LOOKS

from accounts import tokens


def test_a_token_by_the_keyboard_alone_opens_the_api(open_page, admin, live_server):
    page = open_page(admin)
    page.goto("/system/")
    page.get_by_role("link", name="Tokens and API").focus()
    page.keyboard.press("Enter")
    page.get_by_label("What is it for?").focus()
    page.keyboard.type("night robot")
    page.keyboard.press("Tab")  # read is chosen already
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    token = page.locator("#new-token").inner_text()
    expect(page.get_by_text("May: Read, Change the draft.")).to_be_visible()
    request = urllib.request.Request(f"{live_server.url}/api/v1/token", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert json.load(answer)["scopes"] == ["change", "read"]
    page.get_by_role("button", name="Revoke night robot").click()
    expect(page.get_by_text("opens nothing any more")).to_be_visible()


def test_what_is_wrong_stands_beside_its_field(open_page, admin):
    page = open_page(admin)
    page.goto("/system/api/")
    page.locator("[name=scopes][value=read]").uncheck()
    page.get_by_text("More", exact=True).click()
    page.get_by_label("It counts only from").fill("10.0.0.1/8")
    page.get_by_role("button", name="Make the token").click()
    expect(page.locator("[data-field=name] .error")).to_contain_text("Fill this in")
    expect(page.locator("[data-field=scopes] .error")).to_contain_text("at least one")
    expect(page.locator("[data-field=networks] .error")).to_contain_text("10.0.0.0/8")


def test_screens(open_page, admin, look, shoot):
    tokens.make(admin, "monitoring", ["read"], tokens.ends(90), ["10.1.0.0/16"])
    tokens.make(admin, "old updates")
    page = open_page(admin, **LOOKS[look])
    page.goto("/system/api/")
    page.get_by_text("Make a token").click()
    shoot(page, "api", look)
    page.get_by_label("What is it for?").fill("night robot")
    page.get_by_role("button", name="Make the token").click()
    page.get_by_text("/services", exact=True).click()
    shoot(page, "api-token", look)
