"""Search from any page: by the keyboard alone, and on a phone."""

from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import expect
from tests.web.browsing import LOOKS


def look_for(page, words: str) -> None:
    """Type it, and wait for what is found of all of it: of its beginning something may be there already."""
    page.keyboard.press("/")
    with page.expect_response(lambda answer: parse_qs(urlsplit(answer.url).query).get("q") == [words]):
        page.keyboard.type(words)
    expect(page.locator(".htmx-request, .htmx-swapping, .htmx-settling")).to_have_count(0)


def test_to_a_setting_without_a_mouse(open_page, admin, look, shoot):
    page = open_page(admin, **LOOKS[look])
    page.goto("/history/")
    look_for(page, "stick")
    expect(page.locator("#found li").first).to_contain_text("Persistence timeout (seconds)")
    shoot(page, "search-list", look)
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert page.url.endswith("/services/1/#at-id_persistence")
    field = page.locator("[name=persistence]")
    expect(field).to_be_focused()  # though it was folded away
    expect(field).to_be_in_viewport()
    page.keyboard.press("/")  # is what somebody types into a field
    assert page.input_value("[name=persistence]") == "/"
    # A field that the chosen kind of check has no use for is shown to whoever looks for it.
    page.locator("h1").click()
    look_for(page, "shared secret")
    expect(page.locator("#found li").first).to_contain_text("Shared secret")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#found a").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("[name=check_secret]")).to_be_focused()
    page.locator("h1").click()
    look_for(page, "zzz")
    expect(page.locator("#found")).to_contain_text("Nothing found for “zzz”.")
    page.keyboard.press("Escape")
    expect(page.locator("#found")).to_be_empty()
    page.goto("/search/?q=timeout")
    shoot(page, "search", look)


def test_without_javascript(open_page, admin):
    page = open_page(admin, java_script_enabled=False, **LOOKS["phone"])
    page.goto("/network/")
    page.fill("#search", "mtu")
    with page.expect_navigation():
        page.press("#search", "Enter")
    with page.expect_navigation():
        page.locator("main .results").get_by_role("link", name="MTU Network interface").click()
    assert page.url.endswith("/network/#at-id_interfaces-0-mtu")
