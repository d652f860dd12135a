"""A real browser (Debian's Chromium) against the web UI in this process, with the pretended appliance.

Every page is watched: an error on its console (the content security policy speaks there), a request to
another host or a failed request ends the test.
"""

import os
import shutil
import tempfile
from pathlib import Path

FOLDER = Path(tempfile.mkdtemp(prefix="fairlead-web-"))
os.environ |= {
    "DJANGO_SETTINGS_MODULE": "fairlead.settings",
    "FAIRLEAD_DATA": str(FOLDER),
    "FAIRLEAD_RUN": str(FOLDER / "run"),
    "FAIRLEAD_GUIDE": str(FOLDER / "guide.json"),
    "FAIRLEAD_PLAIN_HTTP": "1",
    # the browser's driver has an event loop in the thread of the tests, which also sets up the database
    "DJANGO_ALLOW_ASYNC_UNSAFE": "1",
}

import django  # noqa: E402
import pytest  # noqa: E402
from board.common import guide  # noqa: E402

django.setup()

from board.machines.wait import PATIENCE  # noqa: E402
from django.conf import settings  # noqa: E402
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user_model  # noqa: E402
from django.contrib.contenttypes.management import create_contenttypes  # noqa: E402
from django.contrib.sessions.backends.db import SessionStore  # noqa: E402
from django.db.models.signals import post_migrate  # noqa: E402
from django.db.utils import ConnectionHandler  # noqa: E402
from playwright.sync_api import Browser, Page, expect, sync_playwright  # noqa: E402
from tests.fake import appliance  # noqa: E402
from tests.web.browsing import IN_THE_DARK, LOOKS, picture  # noqa: E402
from tests.web.late import LATE, SLOW, Late  # noqa: E402

from accounts import sessions  # noqa: E402
from applier.wire import client  # noqa: E402
from system import restoring, sealed  # noqa: E402

client.dial = appliance.Fake
SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium-headless-shell")
FLOATING = "10.0.2.15"  # of the pair in tests/unit/lbconfig/lbconfig_pairs.py: for the browser it is this machine
FLAGS = [
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    f"--host-resolver-rules=MAP {FLOATING} 127.0.0.1",
]
TIMEOUT = PATIENCE * 1000  # milliseconds
# A page that refuses says so by its status, and a busy machine is late: Chromium and htmx write that as well.
EXPECTED = (
    "the server responded with a status of",
    "Response Status Error Code",
    "htmx:timeout",
    "htmx:afterRequest",
    "htmx:sendAbort",
)


# Every test leaves an empty database, and these would fill it again with rows that no page reads.
post_migrate.disconnect(dispatch_uid="django.contrib.auth.management.create_permissions")
post_migrate.disconnect(create_contenttypes)


if LATE:
    settings.MIDDLEWARE.insert(0, f"{Late.__module__}.{Late.__qualname__}")


def pytest_unconfigure():
    shutil.rmtree(FOLDER, ignore_errors=True)


@pytest.fixture(scope="session")
def django_db_modify_db_settings():
    """A file, as in the box: the server's threads and the test have connections of their own."""
    database = settings.DATABASES["default"]
    database.setdefault("TEST", {})["NAME"] = str(FOLDER / "test.sqlite3")
    # No power is cut here, so no commit waits for the disk.
    lasting = database["OPTIONS"]["init_command"]
    assert "synchronous=FULL" in lasting
    database["OPTIONS"]["init_command"] = lasting.replace("synchronous=FULL", "synchronous=OFF")


@pytest.fixture(scope="session")
def chromium():
    flags = FLAGS + (["--no-sandbox"] if os.getuid() == 0 else [])
    expect.set_options(timeout=TIMEOUT)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield browser
        browser.close()


@pytest.fixture(scope="session", autouse=True)
def rendered_guide():
    """Help as the guide is now, and not as somebody built it once."""
    guide.main([str(settings.GUIDE)])


@pytest.fixture(autouse=True)
def quick(settings, tmp_path):
    """Passwords that hash in no time, and folders of the test's own: two processes of tests have the same settings."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.LEDGER = tmp_path / "ledger.json"
    settings.BACKUPS = tmp_path / "backups"
    settings.INCOMING = tmp_path / "incoming"
    settings.UPLOADS = tmp_path / "uploads"
    settings.FAULT_FILE = tmp_path / "run" / "web" / "fault"
    settings.CONSOLE_TOKEN_FILE = tmp_path / "run" / "web" / "console-token"


@pytest.fixture(autouse=True)
def box():
    """A sample box that somebody has set up; applies end at once."""
    return appliance.reset(instant=True, setup_done=True)


@pytest.fixture
def admin(transactional_db):
    return get_user_model().objects.create_user("admin", password="a good password")


@pytest.fixture
def opens_backup_files(transactional_db, monkeypatch):
    """A passphrase costs a guesser nothing, and the database in a backup file may be opened.

    Django's tests admit no databases that are listed and not theirs.
    """
    listed = ConnectionHandler.__iter__
    hidden = lambda handler: (alias for alias in listed(handler) if alias != restoring.ALIAS)  # noqa: E731
    monkeypatch.setattr(ConnectionHandler, "__iter__", hidden)
    monkeypatch.setattr(sealed.Writer.__init__, "__defaults__", (sealed.Cost(4, 8, 1),))


def log_in(context, user, url: str) -> None:
    """A session without the log-in page, which has a test of its own."""
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    sessions.begin(session)
    session.save()
    context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session.session_key, "url": url}])


@pytest.fixture
def open_page(chromium: Browser, live_server):
    """open_page(user=None, **context settings) -> a watched page; what it complained of ends the test."""
    contexts, complaints = [], []

    def open_one(user=None, **options) -> Page:
        context = chromium.new_context(base_url=live_server.url, **options)
        contexts.append(context)
        context.set_default_timeout(TIMEOUT)
        if user is not None:
            log_in(context, user, live_server.url)
        context.on("page", lambda page: _watch(page, live_server.url, complaints))  # a link's new tab, too
        page = context.new_page()
        if SLOW > 1:
            context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": SLOW})
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert not complaints


@pytest.fixture(params=LOOKS)
def look(request):
    return request.param


@pytest.fixture
def shoot():
    """shoot(page, name, look): pictures of the whole page, light and dark; nothing may be wider than the window."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)

    def shoot_one(page: Page, name: str, look: str) -> None:
        page.wait_for_load_state()  # a click may have led to another page
        wide, window, high = page.evaluate(
            "(one => [one.scrollWidth, one.clientWidth, one.scrollHeight])(document.documentElement)"
        )
        before = page.viewport_size
        page.set_viewport_size(
            {"width": before["width"], "height": max(high, before["height"])}
        )  # bars stay at the edge
        picture(page, SCREENSHOTS / f"{name}-{look}.png")
        page.emulate_media(color_scheme="dark")
        picture(page, SCREENSHOTS / f"{name}-{IN_THE_DARK[look]}.png")
        page.emulate_media(color_scheme="light")
        page.set_viewport_size(before)
        assert wide <= window, f"{name} is wider than the {look} window"

    return shoot_one


def _watch(page: Page, own: str, complaints: list[str]) -> None:
    def on_console(message):
        if message.type == "error" and not any(words in message.text for words in EXPECTED):
            complaints.append(f"{page.url}: {message.text}")

    def on_request(request):
        if not request.url.startswith((own, "data:")):
            complaints.append(f"{page.url} asked another host: {request.url}")

    page.on("console", on_console)
    page.on("pageerror", lambda error: complaints.append(f"{page.url}: {error}"))
    page.on("request", on_request)
