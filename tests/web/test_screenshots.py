"""Every page, wide, on a phone and in the dark: build/screenshots/ is what a person looks through.

What is asserted is little: the page is there, nothing is wider than the window, nothing complains.
"""

import pytest

from applier import fake
from balancing.models import VirtualService
from lbconfig.snapshot import FACTORY

LOOKS = {
    "wide": {"viewport": {"width": 1280, "height": 860}},
    "phone": {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True},
    "dark": {"viewport": {"width": 1280, "height": 860}, "color_scheme": "dark"},
    "phone-dark": {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "color_scheme": "dark"},
}


@pytest.fixture(params=LOOKS)
def look(request):
    return request.param


def test_log_in_and_password(open_page, admin, look, shoot):
    page = open_page(**LOOKS[look])
    page.goto("/")
    shoot(page, "login", look)
    page.fill("[name=username]", "admin")
    page.fill("[name=password]", "wrong")
    page.click("text=Log in >> nth=-1")
    page.get_by_text("is wrong").wait_for()
    shoot(page, "login-wrong", look)
    page = open_page(admin, **LOOKS[look])
    page.goto("/password/")
    shoot(page, "password", look)


def test_set_up(open_page, transactional_db, look, shoot):
    fake.reset(instant=True, snapshot=FACTORY, confirmed=None)
    page = open_page(**LOOKS[look])
    page.goto("/")
    shoot(page, "set-up", look)
    fake.box.setup_done = True
    page.goto("/set-up/")
    shoot(page, "set-up-closed", look)


def test_first_steps(open_page, admin, look, shoot):
    fake.reset(instant=True, snapshot=FACTORY, confirmed=None, setup_done=True)
    page = open_page(admin, **LOOKS[look])
    for name, url in (("overview-empty", "/"), ("service-add", "/services/add/"), ("history-empty", "/history/")):
        page.goto(url)
        shoot(page, name, look)


def test_pages_of_a_box_at_work(open_page, admin, look, shoot):
    page = open_page(admin, **LOOKS[look])
    for name, url in (
        ("overview", "/"),
        ("service", "/services/1/"),
        ("service-delete", "/services/1/delete/"),
        ("network", "/network/"),
        ("access", "/access/"),
        ("review-nothing", "/changes/"),
        ("history", "/history/"),
        ("revision", "/history/2/"),
        ("system", "/system/"),
    ):
        page.goto(url)
        shoot(page, name, look)


def test_changes_until_they_run(open_page, admin, look, shoot):
    page = open_page(admin, **LOOKS[look])
    page.goto("/services/2/")
    page.fill("[name=name]", "mail in")
    page.check("[name=scheduler][value=wrr]")
    page.click("text=Add a real server")
    page.fill("[name=servers-2-address]", "10.2.0.23")
    page.fill("[name=servers-2-port]", "70000")
    page.click("button:text('Save to the draft')")
    shoot(page, "service-wrong", look)
    page.fill("[name=servers-2-port]", "25")
    page.click("button:text('Save to the draft')")
    page.get_by_text("2 changes are not applied").or_(page.get_by_text("change is not applied")).first.wait_for()
    shoot(page, "overview-waiting", look)
    page.goto("/changes/discard/")
    shoot(page, "discard", look)
    page.goto("/changes/")
    page.locator("details").first.evaluate("one => one.open = true")
    page.fill("[name=comment]", "third mail server")
    shoot(page, "review", look)
    fake.box.instant = False
    page.click("button:text('Apply')")
    page.get_by_text("Applying…").wait_for()
    page.wait_for_timeout(1500)
    shoot(page, "apply-running", look)
    fake.box.finish()
    page.get_by_text("The changes run").wait_for()
    shoot(page, "apply-done", look)


def test_trouble(open_page, admin, look, shoot):
    page = open_page(admin, **LOOKS[look])
    fake.box.fault("data-full", "The data partition is full: changes cannot be applied until there is room.")
    page.goto("/")
    shoot(page, "overview-fault", look)
    fake.box.faults.clear()
    VirtualService.objects.filter(pk=1).update(name="shop two")
    fake.box.failing_step = fake.TITLES and next(iter(list(fake.TITLES)[5:6]))
    page.goto("/changes/")
    page.click("button:text('Apply')")
    page.get_by_text("was undone").wait_for()
    shoot(page, "apply-undone", look)
    fake.box.reachable = False
    page.goto("/")
    shoot(page, "overview-applier-down", look)
    page.goto("/system/")
    shoot(page, "system-applier-down", look)


def test_two_admins(open_page, admin, look, shoot):
    page = open_page(admin, **LOOKS[look])
    page.goto("/services/1/")
    page.fill("[name=name]", "shop new")
    service = VirtualService.objects.get(pk=1)
    service.scheduler, service.name, service.version, service.changed_by = "lc", "shop old", 99, "alice"
    service.save()
    page.click("button:text('Save to the draft')")
    page.get_by_text("alice changed this").first.wait_for()
    shoot(page, "service-two-admins", look)


def test_fault_page(open_page, admin, settings, look, shoot):
    settings.FAULT_FILE.parent.mkdir(parents=True, exist_ok=True)
    settings.FAULT_FILE.write_text("fairlead.sqlite3: database disk image is malformed\n")
    try:
        page = open_page(admin, **LOOKS[look])
        page.goto("/")
        shoot(page, "fault", look)
    finally:
        settings.FAULT_FILE.unlink()
