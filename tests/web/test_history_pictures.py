"""The history, import and export, backup files and the factory reset in a real browser: journeys and pictures."""

import dataclasses

import pytest
from playwright.sync_api import expect
from tests import texts
from tests.fake import appliance
from tests.web.browsing import LOOKS, follow

from changes import actions
from draft import store as draft
from lbconfig.model.snapshot import FACTORY, CheckKind, HealthCheck, Interface, Scheduler, to_json

PASSPHRASE = "rope and tide and moon"


pytestmark = pytest.mark.usefixtures("opens_backup_files")


@pytest.fixture
def past(admin, box):
    """Revisions that differ, one that failed, and a draft that does not run."""
    actions.fill_if_empty()
    first, second, third = box.snapshot.services
    old = dataclasses.replace(box.snapshot, services=(dataclasses.replace(first, scheduler=Scheduler.LC), second))
    for entry in box.generations:
        if entry["number"] < 3:
            entry["text"] = to_json(old)
    box.generations.insert(0, box.generations[0] | {"number": 4, "outcome": "rolled back", "comment": "too early"})
    check = HealthCheck(CheckKind.IMAP, login="kim", password="rope and tide")
    waits = dataclasses.replace(box.snapshot, services=(first, dataclasses.replace(second, check=check), third))
    draft.replace(waits, "alice")
    return old


def test_pages_of_the_history(open_page, admin, past, look, shoot):
    page = open_page(admin, **LOOKS[look])
    page.goto("/history/")
    page.get_by_label("from revision 2").check()
    page.locator("summary", has_text="of at most").click()
    shoot(page, "history-compare", look)
    page.get_by_role("button", name="Compare the two").click()
    page.locator(".files details").first.evaluate("one => one.open = true")
    shoot(page, "compare", look)
    for name, url in (
        ("revision-compared", "/history/2/"),
        ("restore", "/history/2/restore/"),
        ("transfer", "/configuration/"),
        ("backup", "/system/backup/"),
        ("factory-reset", "/system/reset/"),
        ("system", "/system/"),
    ):
        page.goto(url)
        shoot(page, name, look)


def test_an_import_that_is_wrong_and_one_that_is_not(open_page, admin, past, look, shoot):
    page = open_page(admin, **LOOKS[look])
    page.goto("/configuration/")
    data = to_json(past).replace('"port": 80', '"port": 80000')
    page.set_input_files("[name=file]", {"name": "night.json", "mimeType": "", "buffer": data.encode()})
    page.get_by_role("button", name="Preview").click()
    page.get_by_text("Nothing was imported").wait_for()
    shoot(page, "import-wrong", look)
    page.set_input_files("[name=file]", {"name": "night.json", "mimeType": "", "buffer": to_json(past).encode()})
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("heading", name="What is lost").wait_for()
    shoot(page, "import", look)
    page.get_by_role("button", name=texts.REPLACE).click()
    expect(page.get_by_text("The draft is the configuration of night.json now")).to_be_visible()
    assert draft.same(draft.current(), past)


def test_a_backup_file_from_download_to_log_in(open_page, admin, past, look, shoot, tmp_path):
    page = open_page(admin, **LOOKS[look])
    page.goto("/system/backup/")
    for name in ("passphrase", "again"):
        page.fill(f"[name={name}]", PASSPHRASE)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download the backup file").click()
    download.value.save_as(tmp_path / "box.fairlead-backup")
    draft.replace(dataclasses.replace(draft.current(), services=()), "alice")
    appliance.box.snapshot = dataclasses.replace(
        appliance.box.snapshot,
        network=dataclasses.replace(appliance.box.snapshot.network, interfaces=(Interface("eth0"),)),
    )
    page.goto("/system/backup/restore/")
    page.set_input_files("[name=file]", tmp_path / "box.fairlead-backup")
    page.fill("[name=passphrase]", "not this one at all")
    page.get_by_role("button", name=texts.OPEN_FILE).click()
    page.get_by_text("The passphrase is wrong").wait_for()
    shoot(page, "restore-wrong", look)
    page.set_input_files("[name=file]", tmp_path / "box.fairlead-backup")
    page.fill("[name=passphrase]", PASSPHRASE)
    page.get_by_role("button", name=texts.OPEN_FILE).click()
    page.get_by_role("heading", name="What is in it").wait_for()
    shoot(page, "restore-review", look)
    page.get_by_role("button", name="Restore", exact=True).click()
    page.fill("[name=username]", "admin")
    page.fill("[name=password]", "a good password")
    follow(page, texts.LOG_IN_BUTTON)
    page.get_by_role("heading", name=texts.RESTORED).wait_for()
    shoot(page, "restored", look)
    page.get_by_role("link", name=texts.REVIEW).last.click()
    expect(page.get_by_role("heading", name=texts.REVIEW)).to_be_visible()


def test_a_new_box_offers_it(open_page, transactional_db, look, shoot):
    box = appliance.reset(instant=True, snapshot=FACTORY, confirmed=None)
    page = open_page(**LOOKS[look])
    page.goto("/")
    follow(page, page.get_by_role("link", name=texts.RESTORE_A_FILE))  # both pages ask for a code
    shoot(page, "set-up-restore-code", look)
    page.fill("[name=code]", box.setup_code)
    page.get_by_role("button", name="Go on").click()
    page.locator("[name=file]").wait_for()
    shoot(page, "set-up-restore", look)


def test_the_reset_in_a_browser(open_page, admin, look, shoot):
    page = open_page(admin, **LOOKS[look])
    page.goto("/system/reset/")
    page.fill("[name=hostname]", "simple")
    page.get_by_role("button", name="Forget everything and restart").click()
    page.get_by_text("This is not the host name").wait_for()
    shoot(page, "factory-reset-wrong", look)
    page.fill("[name=hostname]", "sample")
    page.get_by_role("button", name="Forget everything and restart").click()
    page.get_by_role("heading", name="The box forgets everything").wait_for()
    shoot(page, "resetting", look)
