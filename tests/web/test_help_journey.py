"""Help from a form: read, follow a link, come back to what was typed."""

from tests.web.browsing import LOOKS, follow

HERE = {"wide": "#help", "phone": "header .help-here"}  # what leads to the help for the page


def test_help_beside_a_form(open_page, admin, look, shoot):
    page = open_page(admin, **LOOKS[look])
    page.goto("/services/add/")
    page.fill("[name=name]", "shop of tomorrow")
    with page.context.expect_page() as opened:
        page.click(HERE[look])
    reading = opened.value
    reading.wait_for_load_state()
    reading.get_by_role("heading", name="Your first service in three minutes").wait_for()
    assert not reading.evaluate("[...document.images].filter(one => !one.complete || !one.naturalWidth).length")
    shoot(reading, "help-first-service", look)
    follow(reading, "main >> text=how packets reach the servers")
    reading.get_by_role("heading", name="Direct routing").wait_for()
    shoot(reading, "help-forwarding", look)
    reading.close()
    assert page.input_value("[name=name]") == "shop of tomorrow"
    if look == "wide":
        follow(page, "header >> text=Help")
    else:  # the one link is the page's own
        page.goto("/help/")
    page.get_by_role("heading", name="When something is wrong").wait_for()
    shoot(page, "help", look)
    follow(page, "main >> text=Plan the network")
    page.get_by_role("heading", name="Before you begin").wait_for()
    shoot(page, "help-plan", look)
    follow(page, ".crumb a")
    page.get_by_role("heading", name="Guide", exact=True).wait_for()
