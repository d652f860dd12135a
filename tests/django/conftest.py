"""The web UI with the pretended appliance: one test file for each module of views."""

import os
import shutil
import tempfile
from pathlib import Path

FOLDER = Path(tempfile.mkdtemp(prefix="fairlead-django-"))
os.environ |= {
    "DJANGO_SETTINGS_MODULE": "fairlead.settings",
    "FAIRLEAD_DATA": str(FOLDER),
    "FAIRLEAD_RUN": str(FOLDER / "run"),
    "FAIRLEAD_GUIDE": str(FOLDER / "guide.json"),
    "FAIRLEAD_PLAIN_HTTP": "1",
}

import django  # noqa: E402

django.setup()

import pytest  # noqa: E402
from board.common import guide  # noqa: E402
from django.conf import settings  # noqa: E402
from django.contrib.auth import get_user_model  # noqa: E402
from django.core.cache import cache  # noqa: E402
from django.test import Client  # noqa: E402
from tests.fake import appliance  # noqa: E402

from accounts import ledger  # noqa: E402
from applier.wire import client  # noqa: E402
from changes import actions  # noqa: E402

client.dial = appliance.Fake
PASSWORD = "a good password"


def pytest_unconfigure():
    shutil.rmtree(FOLDER, ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def rendered_guide():
    """Help as the guide is now, and not as somebody built it once."""
    guide.main([str(settings.GUIDE)])


@pytest.fixture(autouse=True)
def quick(settings, tmp_path, monkeypatch):
    """Passwords that hash in no time, and folders of the test's own."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.BACKUPS = tmp_path / "backups"
    settings.INCOMING = tmp_path / "incoming"
    settings.LEDGER = tmp_path / "shared" / "ledger.json"
    monkeypatch.setattr(ledger, "sync", lambda path: None)
    settings.FAULT_FILE = tmp_path / "run" / "web" / "fault"
    settings.CONSOLE_TOKEN_FILE = tmp_path / "run" / "web" / "console-token"
    cache.clear()


@pytest.fixture(autouse=True)
def box():
    """A sample box that somebody has set up; applies end at once."""
    return appliance.reset(instant=True, setup_done=True)


@pytest.fixture
def admin(db):
    return get_user_model().objects.create_user("admin", password=PASSWORD)


@pytest.fixture
def client(admin) -> Client:
    """Logged in, with the draft that the sample box runs."""
    actions.fill_if_empty()
    return _logged_in(admin)


@pytest.fixture
def alice(db) -> Client:
    """A second admin at another desk."""
    return _logged_in(get_user_model().objects.create_user("alice", password=PASSWORD))


@pytest.fixture
def stranger(db) -> Client:
    """Somebody who is not logged in."""
    return Client()


def _logged_in(user) -> Client:
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    client.raise_request_exception = False
    return client
