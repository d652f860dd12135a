"""Pages in the middle of something: axe finds nothing on them either, and a keyboard gets everywhere.

Each story leads a browser from one such page to the next and yields what it shows then.
"""

import dataclasses
import socket
from collections.abc import Iterator

import pytest
import stored
from board.machines.wait import until
from django.contrib.auth import get_user_model
from django.core.cache import cache
from django.utils.text import slugify
from playwright.sync_api import Page
from tests import parts, texts
from tests.fake import appliance, capacity, drift
from tests.fake.joining import JoiningBox
from tests.web import axe
from tests.web.browsing import LOOKS, follow
from tests.web.conftest import SCREENSHOTS

from applier.wire.errors import ApplierRefused
from changes import actions
from draft import store as draft
from draft.models import Service
from lbconfig.model.snapshot import FACTORY, CheckKind, HealthCheck, Interface, Snapshot, StaticRoute, to_json
from lbconfig.validate.cards import Card
from system import backupfile

# Window and colours, and whether every rule is asked or only those about colours, which is quick.
VIEWS = [("wide", "light", True), ("phone", "dark", parts.ALL)]
if parts.ALL:
    VIEWS += [("wide", "dark", True), ("phone", "light", True)]
PASSPHRASE = "rope and tide and moon"
OLD_CONNECTION = {"X-Connection-Age": "600"}
# Whatever takes a text gets one that is wrong there, and what takes a number gets none.
SPOIL = """form => {
    form.noValidate = true;
    for (const one of form.querySelectorAll("input, textarea")) {
        if (["text", "url", "password"].includes(one.type) || one.tagName === "TEXTAREA") one.value = "in?? valid";
        if (one.type === "number") one.value = "-7";
    }
}"""
# Page -> the form on it that is spoilt.
FORMS = {
    "/services/1/": "form#service",
    "/network/": "main form",
    "/network/routes/": "main form",
    "/network/names/": "main form",
    "/access/": "main form",
    "/access/certificate/": "main form",
    "/connections/": "main form",
    "/firewall/add/": "main form.rule",
    "/system/hardware/settings/": "main form",
    "/password/": "main form",
    "/system/api/": "#tokens details > form",
    "/system/backup/": "main form",
    "/system/backup/restore/": "main form",
    "/system/reset/": "main form",
    "/system/pair/join/": "main form",
    "/system/capacity/": "#measure form",
    "/changes/": "main form.narrow",
}


def apply(page: Page) -> None:
    page.goto("/changes/")
    follow(page, "main button:text-is('Apply')")


def with_gateway(last: int) -> Snapshot:
    """The draft with a change that has to be confirmed."""
    now = draft.current()
    return dataclasses.replace(now, network=dataclasses.replace(now.network, gateway=f"192.168.10.{last}"))


def naming(*cards: str) -> Snapshot:
    """The draft with addresses on cards that the box may not have."""
    now = draft.current()
    more = tuple(Interface(name, addresses=(f"10.{place}.0.1/24",)) for place, name in enumerate(cards, 20))
    return dataclasses.replace(
        now, network=dataclasses.replace(now.network, interfaces=(*now.network.interfaces, *more))
    )


def an_apply(page: Page) -> Iterator[str]:
    box = appliance.box
    box.instant = False
    stored.change(1, name="shop two")
    apply(page)
    yield "an apply that runs"
    page.goto("/")
    yield "the overview while an apply runs"
    box.finish()
    box.instant = True
    box.failing_step = "ldirectord-start"
    stored.change(1, name="shop three")
    apply(page)
    yield "an apply that was undone"
    box.run.state = "failed"
    page.reload()
    yield "an apply that could not be undone"
    page.goto("/changes/progress/apply-2/")
    yield "an apply of the past"
    page.goto("/changes/")
    stored.change(1, name="shop four")
    follow(page, "main button:text-is('Apply')")
    yield "a review that somebody else overtook"
    box.cards = ("eth0", "eth1", "enp3s0")
    draft.replace(naming("eth7", "eth8"), "admin")
    page.goto("/changes/")
    for name in ("eth7", "eth8"):
        page.select_option(f"[name=card-{name}]", "enp3s0")
    follow(page, "button:text('Use these cards')")
    yield "a review with missing cards, and one card for two"
    box.refuse = ApplierRefused("busy", "Right now an update is being installed; wait until that has ended.")
    page.goto("/changes/")
    yield "a review that is not to be had"


def a_confirmation(page: Page) -> Iterator[str]:
    box = appliance.box
    draft.replace(with_gateway(254), "admin")
    apply(page)
    yield "an apply that waits"
    page.goto("/history/")
    yield "the history while an apply waits"
    page.goto("/changes/confirm/")
    yield "the question whether to keep what another admin has applied"
    place = f"/confirm/{box.change.secret}/?decide=1"
    page.goto(place)
    yield "the arrival"
    page.set_extra_http_headers(OLD_CONNECTION)
    follow(page, f"button:text('{texts.KEEP_BUTTON}')")
    yield "the arrival over an old connection"
    page.set_extra_http_headers({})
    follow(page, f"button:text('{texts.KEEP_BUTTON}')")
    yield "the arrival that kept the changes"
    page.goto(place)
    follow(page, f"button:text('{texts.KEEP_BUTTON}')")
    yield "an arrival that comes too late"
    draft.replace(with_gateway(253), "admin")
    apply(page)
    box.expire()
    page.reload()
    yield "an apply that nobody confirmed"
    draft.replace(with_gateway(252), "admin")
    apply(page)
    box.run.user = "alice"
    box.run.id = "apply-of-alice"
    page.goto("/changes/progress/apply-of-alice/")
    yield "an apply of another admin that waits"


def a_repair(page: Page) -> Iterator[str]:
    box = appliance.box
    box.drift.found = drift.sample()
    page.goto("/drift/")
    box.instant = False
    follow(page, "button:text('Repair')")
    yield "a repair that runs"
    box.failing_step = "ipvs"
    box.finish()
    page.reload()
    yield "a repair that failed"
    page.goto("/drift/")
    yield "what differs"
    page.goto("/services/1/doctor/")
    yield "what the doctor found"
    page.goto("/services/1/")
    page.click(f"text={texts.TRY_IT}")
    page.locator(".trial").first.wait_for()
    yield "a check that was tried"


def a_replacement(page: Page) -> Iterator[str]:
    box = appliance.box
    box.cards = ("eth0", "eth1", "enp3s0", "enp4s0")
    wrong = to_json(draft.current()).replace('"port": 80', '"port": 80000')
    choose(page, wrong)
    yield "an import with errors"
    choose(page, "neither this nor that")
    yield "an import that cannot be read"
    first, *others = draft.current().services
    secret = dataclasses.replace(first, check=HealthCheck(CheckKind.IMAP, login="kim", password="rope and tide"))
    imported = dataclasses.replace(naming("eth7", "eth8"), services=tuple(others))
    draft.replace(dataclasses.replace(draft.current(), services=(secret, *others)), "alice")
    choose(page, to_json(imported))
    yield "an import with missing cards"
    for name in ("eth7", "eth8"):
        page.select_option(f"[name=card-{name}]", "enp3s0")
    follow(page, "button:text('Show the draft with these cards')")
    yield "an import with one card for two"
    page.select_option("[name=card-eth8]", "enp4s0")
    stored.change(2, name="mail of alice")
    draft.replace(draft.current(), "alice")
    follow(page, "button:text('Replace the draft')")
    yield "an import while somebody else saved"
    page.goto("/history/3/restore/")
    yield "a revision that is restored"


def choose(page: Page, text: str) -> None:
    """Import a file."""
    page.goto("/configuration/")
    page.set_input_files("[name=file]", {"name": "night.json", "mimeType": "", "buffer": text.encode()})
    follow(page, "button:text('Preview')")


def a_backup(page: Page) -> Iterator[str]:
    draft.replace(naming("eth7"), "admin")
    with backupfile.make(PASSPHRASE) as file:
        sealed = {"name": "box.fairlead-backup", "mimeType": "", "buffer": file.read()}
    appliance.box.cards = ("eth0", "eth1")
    for words, what in (("not this one at all", "a backup file that does not open"), (PASSPHRASE, "a backup file")):
        page.goto("/system/backup/restore/")
        page.set_input_files("[name=file]", sealed)
        page.fill("[name=passphrase]", words)
        follow(page, f"button:text('{texts.OPEN_FILE}')")
        yield what
    draft.replace(with_gateway(251), "alice")
    follow(page, "button:text-is('Restore')")
    yield "a backup file while somebody else saved"
    follow(page, "button:text-is('Restore')")
    yield "the log-in after a restore"
    page.fill("[name=username]", "admin")
    page.fill("[name=password]", "a good password")
    follow(page, "button:text('Log in')")
    yield "a box that was restored"


def an_update(page: Page) -> Iterator[str]:
    box = appliance.box
    update = box.update
    page.goto("/system/updates/")
    page.get_by_role("button", name=texts.LOOK_FOR_BUNDLES).click()
    page.get_by_text("fairlead-0.2.0.raucb").first.wait_for()
    yield "bundles on a stick"
    update.incoming = "0.0.9"
    page.goto(f"/system/updates/review/?source=upload:{'0' * 32}")
    yield "an older version before it is installed"
    update.refuse = ApplierRefused("bundle-signature", "The bundle was changed after it was signed.")
    page.reload()
    yield "a bundle that was refused"
    update.refuse, update.incoming, box.instant = None, "0.2.0", False
    page.reload()
    follow(page, "button:text('Install version 0.2.0')")
    yield "an update that is being checked"
    update._job_began -= 6
    page.reload()
    yield "an update that is being installed"
    update._job_began -= 60
    page.reload()
    yield "an update that waits for the restart"
    page.goto("/system/updates/restart/B/")
    update.fails, box.instant = "the web page answers with 502", True
    follow(page, "main form button")
    yield "a box that is back with the old version"
    page.goto("/system/updates/")
    yield "an update that failed"


def a_measurement(page: Page) -> Iterator[str]:
    box = appliance.box
    box.instant = False
    page.goto("/system/capacity/")
    follow(page, "button:text('Start counting')")
    yield "a measurement that runs"
    box.capacity.now = None
    box.capacity.end()
    page.reload()
    yield "a measurement that measured nothing"
    box.capacity.measured = [capacity.sample(), capacity.sample() | {"same": False}]
    page.reload()
    yield "measurements, some of other hardware"


def a_pair(page: Page) -> Iterator[str]:
    with socket.create_server(("", 0)) as free:
        port = appliance.box.joining.port = free.getsockname()[1]
    other = JoiningBox(appliance.sample_snapshot, lambda: (Card("eth0"), Card("eth1")), port)
    page.goto("/system/pair/make/")
    follow(page, "#invite")
    yield "a code for another box"
    other.verbs.pair_join("127.0.0.2", page.locator("code.big").inner_text(), "admin")
    until("the other box is known", lambda: appliance.Fake().pair_joining()["joined"])
    page.goto("/system/pair/make/")
    yield "the proposal of a pair"
    page.fill("[name=hostname]", appliance.box.snapshot.network.hostname)  # which the first box has
    follow(page, "form#pair button:text-is('Save to the draft')")
    yield "the proposal of a pair with errors"
    page.fill("[name=hostname]", "sample2")
    follow(page, "form#pair button:text-is('Save to the draft')")
    yield "the review of a pair"
    page.goto("/network/?box=1")
    yield "the network of the other box"
    appliance.box.joining.close()
    draft.replace(appliance.box.snapshot, "admin")


def forms(page: Page) -> Iterator[str]:
    routed = dataclasses.replace(draft.current().network, routes=(StaticRoute("10.9.0.0/16", "10.2.0.254"),))
    draft.replace(dataclasses.replace(draft.current(), network=routed), "admin")
    for address, form in FORMS.items():
        page.goto(address)
        page.locator(form).first.evaluate(SPOIL)
        with page.expect_navigation():
            page.locator(form).first.evaluate("form => form.requestSubmit()")
        assert page.locator("main .wrong, main p.error, main .banner.error").count(), address
        yield f"{address} with errors"
    page.goto("/services/1/")
    row = Service.objects.get(pk=1)
    draft.write_service(dataclasses.replace(row.wish, name="shop of alice"), row, "alice")
    page.fill("[name=name]", "shop of kim")
    follow(page, texts.SAVE_BUTTON)
    yield "a service that somebody else has saved"


def the_box_is_away(page: Page) -> Iterator[str]:
    appliance.box.reachable = False
    for address in ("/", "/system/", "/system/updates/", "/system/capacity/", "/access/certificate/", "/changes/"):
        page.goto(address)
        yield f"{address} without an answer from the box"


STORIES = (
    an_apply,
    a_confirmation,
    a_repair,
    a_replacement,
    a_backup,
    an_update,
    a_measurement,
    a_pair,
    forms,
    the_box_is_away,
)


def faults_of(page: Page, name: str, views=VIEWS) -> list[str]:
    """In every window and colour; a full run leaves pictures. The page is left as it was found, but unfolded."""
    before, found = page.viewport_size, []
    axe.unfold(page)
    for window, colours, whole in views:
        page.set_viewport_size(LOOKS[window]["viewport"])
        page.emulate_media(color_scheme=colours)
        found += [f"{name}, {window}, {colours}: {one}" for one in (axe.everything if whole else axe.colours)(page)]
        if parts.ALL:
            SCREENSHOTS.mkdir(parents=True, exist_ok=True)
            shot = f"state-{slugify(name)}-{window}-{colours}.png"
            page.screenshot(path=SCREENSHOTS / shot, full_page=True, animations="disabled")
    page.set_viewport_size(before)
    page.emulate_media(color_scheme="light")
    return found


@pytest.mark.usefixtures("opens_backup_files")
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_pages_in_the_middle_of_something(open_page, admin, story):
    actions.fill_if_empty()
    page = open_page(admin, **LOOKS["wide"])
    # The pages of the forms are looked at in dark mode elsewhere, and an error in other stories.
    views = VIEWS if parts.ALL or story is not forms else VIEWS[:1]
    faults = [fault for name in story(page) for fault in faults_of(page, name, views)]
    assert not faults, "\n".join(faults)


def a_new_box(page: Page) -> Iterator[str]:
    box = appliance.reset(instant=True, snapshot=FACTORY, confirmed=None)
    page.goto("/set-up/")
    yield "set-up"
    page.fill("[name=code]", "WRONG")
    page.fill("[name=username]", "kim")
    page.fill("[name=password]", "short")
    page.fill("[name=again]", "shorter")
    follow(page, "main button")
    yield "set-up with errors"
    page.goto("/set-up/restore/")
    yield "set-up from a backup file, before the code"
    page.fill("[name=code]", "WRONG")
    follow(page, "main button")
    yield "set-up from a backup file, with a wrong code"
    page.fill("[name=code]", box.setup_code)
    follow(page, "main button")
    yield "set-up from a backup file"
    follow(page, "main button")
    yield "set-up from a backup file, without a file"
    box.setup_done = True
    page.goto("/set-up/")
    yield "set-up that is closed"
    box.reachable = False
    page.reload()
    yield "set-up while the box does not answer"


def a_log_in(page: Page) -> Iterator[str]:
    get_user_model().objects.create_user("admin", password="a good password")
    page.goto("/login/?unsaved=yes")
    yield "the log-in after something was not saved"
    follow(page, "main button")
    yield "the log-in with errors"
    for tries in range(6):
        log_in(page, "admin")
        if not tries:
            yield "the log-in with a wrong password"
    page.get_by_role("heading", name="Too many wrong passwords").wait_for()
    yield "the log-in that is locked"
    for _ in range(4):
        page.goto("/login/")
        log_in(page, "kim")
    page.get_by_role("heading", name="Not now").wait_for()
    yield "too many log-ins"
    page.goto("/no/such/page/")
    yield "no such page"
    page.goto("/login/")
    page.context.clear_cookies()
    follow(page, "main button")
    yield "a form that is too old"


def log_in(page: Page, name: str) -> None:
    """With a wrong password."""
    page.fill("[name=username]", name)
    page.fill("[name=password]", "a wrong password")
    follow(page, "main button")


@pytest.mark.parametrize("story", [a_new_box, a_log_in], ids=lambda story: story.__name__)
def test_pages_before_the_log_in(open_page, transactional_db, story):
    page = open_page(**LOOKS["wide"])
    try:
        faults = [fault for name in story(page) for fault in faults_of(page, name)]
    finally:
        cache.clear()  # of lock-outs, which the next test would meet
    assert not faults, "\n".join(faults)
