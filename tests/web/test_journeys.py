"""What an admin does, from end to end, in a real browser."""

import re

import pytest
from playwright.sync_api import expect
from tests import texts
from tests.fake import run as fake_run
from tests.texts import on_screen, within
from tests.web.browsing import follow
from tests.web.keyboard import tab_to

from changes import actions
from draft import store as draft
from draft.merge import changed_to


def fill_service(page, name="web", address="10.0.2.100"):
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Virtual address (VIP)").fill(address)
    page.locator("[name=port]").fill("80")


def test_with_the_keyboard_alone(open_page, admin):
    page = open_page(admin)
    page.goto("/")
    page.keyboard.press("Tab")
    expect(page.get_by_text(texts.SKIP)).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name=texts.ADD_SERVICE)).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url("**/services/add/")
    tab_to(page, "[name=name]")
    page.keyboard.type("night")
    for text in ("192.168.10.99", "8080"):
        page.keyboard.press("Tab")
        page.keyboard.type(text)
    page.keyboard.press("Tab")  # protocol: one stop, arrows choose
    page.keyboard.press("Tab")
    page.keyboard.type("10.2.0.77")
    page.keyboard.press("Tab")
    page.keyboard.type("8080")
    tab_to(page, "[name=add_server]")
    page.keyboard.press("Enter")
    expect(page.locator("[name=servers-2-address]")).to_be_focused()
    # htmx sets the focus once more when the new row has settled
    expect(page.locator(".htmx-request, .htmx-added, .htmx-settling")).to_have_count(0)
    tab_to(page, "[name=check_kind]:checked")
    page.keyboard.press("ArrowDown")
    expect(page.locator("[name=check_path]")).to_be_visible()
    tab_to(page, "[name=save]")
    page.keyboard.press("Enter")
    expect(page.get_by_text("night: saved to the draft")).to_be_visible()
    tab_to(page, "#to-review")
    page.keyboard.press("Enter")
    page.wait_for_url("**/changes/")
    tab_to(page, "[name=comment]")
    page.keyboard.type("by hand")
    page.keyboard.press("Enter")
    expect(page.get_by_text(texts.APPLIED)).to_be_visible()


def test_what_is_typed_while_another_row_is_fetched_stays(open_page, admin):
    page = open_page(admin)
    page.goto("/services/2/")
    asked = []

    def hold(route):  # the driver wants a function of Python, and no method of a list
        asked.append(route)

    page.route("**/services/2/", hold)
    with page.expect_request("**/services/2/"):
        page.get_by_role("button", name=texts.ADD_SERVER).click()
    page.locator("[name=servers-0-weight]").fill("7")
    page.locator("[name=servers-1-address]").fill("10.2.0.")
    with page.expect_response("**/services/2/"):
        asked[0].continue_()
    page.unroute_all()
    expect(page.locator("[name=servers-2-address]")).to_be_visible()
    expect(page.locator(".htmx-request, .htmx-added, .htmx-settling")).to_have_count(0)
    expect(page.locator("[name=servers-1-address]")).to_be_focused()
    page.keyboard.type("29")
    page.locator("[name=servers-2-address]").fill("10.2.0.23")
    page.locator("[name=servers-2-port]").fill("25")
    follow(page, texts.SAVE_BUTTON)
    servers = [(one.address, one.weight) for one in draft.current().services[1].real_servers]
    assert servers == [("10.2.0.21", 7), ("10.2.0.29", 1), ("10.2.0.23", 1)]


def test_enter_in_a_field_saves_and_adds_no_row(open_page, admin):
    page = open_page(admin)
    page.goto("/services/2/")
    page.locator("[name=name]").fill("mail in")
    page.keyboard.press("Enter")
    expect(page.get_by_text("mail in: saved to the draft")).to_be_visible()


def test_an_address_is_readable_at_every_width(open_page, admin):
    page = open_page(admin)
    page.goto("/services/1/")
    for width in (360, 768, 800, 1000, 1100, 1200, 1280, 1300, 1600):
        page.set_viewport_size({"width": width, "height": 860})
        for name in ("name", "address", "port", "servers-0-address", "servers-0-port", "servers-0-state"):
            least = 60 if name.endswith("port") else 120
            assert page.locator(f"[name={name}]").bounding_box()["width"] >= least, f"{name} at {width}"


def test_only_the_fields_of_the_chosen_check_are_shown(open_page, admin):
    page = open_page(admin)
    page.goto("/services/add/")
    expect(page.locator("[name=check_path]")).to_be_hidden()
    page.locator("[name=check_kind][value=http]").check()
    expect(page.locator("[name=check_path]")).to_be_visible()
    page.locator("[name=check_kind][value=off]").check()
    expect(page.locator("summary", has_text="times of the check")).to_be_hidden()


def test_a_program_is_uploaded_into_the_form(open_page, admin):
    page = open_page(admin)
    page.goto("/services/add/")
    expect(page.locator("[name=check_program]")).to_be_hidden()
    page.get_by_text("More kinds").click()
    page.locator("[name=check_kind][value=program]").check()
    text = "#!/bin/sh\n\techo ok\n"
    page.set_input_files("#program-file", {"name": "check.sh", "mimeType": "", "buffer": text.encode()})
    expect(page.locator("[name=check_program]")).to_have_value(text)
    fill_service(page)
    page.get_by_role("button", name=texts.SAVE).click()
    expect(page.get_by_text("web: saved to the draft")).to_be_visible()
    assert draft.current().services[-1].check.program == text


def test_the_time_to_notice_follows_the_form(open_page, admin):
    page = open_page(admin)
    page.goto("/services/1/")
    before = page.locator("#detection").inner_text()
    page.locator("summary", has_text="times of the check").click()
    page.locator("[name=check_failures]").fill("9")
    page.keyboard.press("Tab")
    expect(page.locator("#detection")).not_to_have_text(before)


def test_a_wrong_field_has_the_focus_and_its_reason_beside_it(open_page, admin):
    page = open_page(admin)
    page.goto("/services/1/")
    page.locator("summary", has_text="times of the check").click()
    page.locator("[name=check_timeout]").fill("600")
    page.get_by_role("button", name=texts.SAVE).click()
    field = page.locator("[name=check_timeout]")
    expect(field).to_be_focused()
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(page.locator(f"#{field.get_attribute('id')}_error")).to_contain_text(on_screen(within(1, 60, 600)))


def test_the_overview_refreshes_itself_and_says_when_it_cannot(open_page, admin, box):
    page = open_page(admin)
    page.goto("/")
    expect(page.get_by_text("1 of 2 up")).to_be_visible()
    box.down.clear()
    expect(page.get_by_text("1 of 2 up")).to_be_hidden()
    box.down.add(("10.2.0.12", 80))
    expect(page.get_by_text("1 of 2 up")).to_be_visible()
    since = page.locator("article.service time").first  # the reader's own, also in what was fetched
    expect(since).not_to_have_text(since.get_attribute("datetime"))
    box.down.clear()
    expect(page.get_by_text("1 of 2 up")).to_be_hidden()
    box.fault("data-full", "The data partition is full.")
    expect(page.get_by_text("The data partition is full.")).to_be_visible()
    page.route("**/live/**", lambda route: route.fulfill(status=502))
    expect(page.get_by_text("No answer from the box")).to_be_visible()
    page.unroute_all()
    expect(page.get_by_text("No answer from the box")).to_be_hidden()


def by_mouse(page, button):
    button.hover()
    page.mouse.down()
    yield
    page.mouse.up()


def by_keyboard(page, button):
    button.focus()
    page.keyboard.down("Space")
    yield
    page.keyboard.up("Space")


@pytest.mark.parametrize("press", [by_mouse, by_keyboard])
def test_a_button_that_is_pressed_while_the_page_is_fetched_anew_is_clicked(open_page, admin, box, press):
    page = open_page(admin)
    page.goto("/")
    pressing = press(page, page.get_by_role("row", name="10.2.0.21:25").get_by_role("button", name="Drain"))
    next(pressing)
    for _ in range(2):
        with page.expect_response("**/live/**"):
            pass
    with page.expect_navigation():
        next(pressing, None)
    expect(page.get_by_text(texts.APPLIED)).to_be_visible()
    follow(page, page.get_by_role("link", name=texts.BACK))
    box.down.add(("10.2.0.12", 80))
    expect(page.get_by_text("1 of 2 up")).to_be_visible()  # what was held back comes again


@pytest.fixture
def step_by_step(box, monkeypatch):
    """An apply stays at its first step until the test lets it end."""
    monkeypatch.setattr(fake_run, "STEP_SECONDS", 3600.0)
    box.instant = False


def test_the_steps_of_an_apply_as_they_happen(open_page, admin, box, step_by_step):
    page = open_page(admin)
    page.goto("/services/1/")
    page.locator("[name=name]").fill("shop two")
    follow(page, texts.SAVE_BUTTON)
    page.goto("/changes/")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator(".steps .running")).to_have_count(1)
    box.finish()
    expect(page.get_by_text(texts.APPLIED)).to_be_visible()
    expect(page.locator(".steps li:visible")).to_have_count(page.locator(".steps .done").count())
    page.get_by_text(re.compile(r"More: \d+ steps skipped")).click()
    expect(page.locator(".steps .skipped", has_text="Set name and time servers")).to_be_visible()


def test_two_admins_at_once(open_page, admin, django_user_model):
    alice = open_page(django_user_model.objects.create_user("alice"))
    kim = open_page(admin)
    for page in (alice, kim):
        page.goto("/services/1/")
    alice.locator("[name=scheduler][value=lc]").check()
    alice.get_by_role("button", name=texts.SAVE).click()
    expect(alice.get_by_text("saved to the draft")).to_be_visible()
    kim.locator("[name=name]").fill("shop of kim")
    kim.get_by_role("button", name=texts.SAVE).click()
    expect(kim.get_by_text(f"{changed_to('alice')} least connections (lc)")).to_be_visible()
    expect(kim.locator("[name=name]")).to_have_value("shop of kim")
    kim.get_by_role("button", name="Save anyway").click()
    expect(kim.get_by_text("shop of kim: saved")).to_be_visible()
    service = draft.current().services[0]
    assert (service.name, service.scheduler) == ("shop of kim", "lc")


def test_without_javascript(open_page, admin, box, step_by_step):
    page = open_page(admin, java_script_enabled=False)
    page.goto("/services/add/")
    expect(page.locator("[name=check_path]")).to_be_visible()
    fill_service(page, address="192.168.10.99")
    page.get_by_role("button", name=texts.ADD_SERVER).click()
    expect(page.locator("[name=servers-2-address]")).to_be_visible()
    page.locator("[name=servers-2-address]").fill("10.2.0.77")
    page.locator("[name=servers-2-port]").fill("80")
    page.get_by_role("button", name=texts.SAVE).click()
    page.get_by_role("link", name=texts.REVIEW).click()
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_text(texts.APPLYING)).to_be_visible()
    box.finish()
    expect(page.get_by_text(texts.APPLIED)).to_be_visible()  # the page loads itself again
    assert box.snapshot.services[-1].name == "web"


def test_what_an_admin_types_is_text_and_nothing_else(open_page, admin):
    page = open_page(admin)
    actions.fill_if_empty()
    page.goto("/services/1/")
    hostile = '"><img src=x onerror=alert(1)>{{ 7|add:7 }}'
    page.locator("[name=check_expect]").fill(hostile)
    follow(page, texts.SAVE_BUTTON)
    page.goto("/services/1/")
    expect(page.locator("[name=check_expect]")).to_have_value(hostile)
    page.goto("/changes/")
    expect(page.locator("li.change")).to_contain_text(re.compile("onerror"))
    assert page.locator("main img").count() == 0


def test_another_tunnel_is_chosen_with_the_keyboard(open_page, admin):
    page = open_page(admin)
    page.goto("/services/2/")
    page.get_by_text(texts.OTHER_TUNNELS, exact=True).focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Shift+Tab")  # the group is one stop, arrows choose
    assert page.evaluate("document.activeElement.name") == "forwarding"
    for _ in ("source NAT", "direct routing", "IP in IP", "GRE", "GUE"):
        page.keyboard.press("ArrowDown")
    assert page.locator("[name=forwarding]:checked").input_value() == "gue"
    expect(page.get_by_text("GUE, UDP port 6080")).to_be_visible()
