"""A box burns, and another one takes its place out of a backup file."""

import contextlib
import hashlib
import json
import ssl

import pytest
from board.machines.director import VIP
from board.machines.lab import BALANCED
from board.machines.updating import Page, set_up
from board.machines.wait import until
from tests import texts
from tests.lab.fixtures import FRESH, thorough
from tests.lab.keeping import log_in_after, restore_at_set_up, take

from lbconfig.model.snapshot import from_json, to_json

pytestmark = [pytest.mark.timeout(1800), pytest.mark.usefixtures("balanced")]

SITE = f"{VIP}:80"
EVEN = {"rs1": 4, "rs2": 4, "rs3": 4}
DRAFT = [
    "fairlead-web-user", "python3", "manage.py", "shell", "-c",
    "from draft import store; from lbconfig.model.snapshot import to_json; print('DRAFT', to_json(store.current()))",
]  # fmt: skip


def fingerprint(director) -> str:
    """Of the certificate that a browser gets."""
    host, _, port = director.url.removeprefix("https://").partition(":")
    return hashlib.sha256(ssl.get_server_certificate((host, int(port))).encode()).hexdigest()


def draft(director):
    return from_json(director.succeed(DRAFT, 180).partition("DRAFT ")[2])


@pytest.fixture
def kept(director):
    """A backup file of a box that balances, its certificate, and how many generations it had."""
    set_up(director)
    content = take(Page(director))
    return content, fingerprint(director), director.status()["confirmed"]


def test_a_new_box_takes_over_from_a_backup_file(lab, director, world, kept):
    content, certificate, newest = kept
    lab.go_back(FRESH)
    until("the web page", lambda: director.page()[0] == 200)
    director.succeed(
        "rm /data/tls/*; . /etc/fairlead/environment; rm /run/fairlead/tls; /usr/lib/fairlead/own-certificate; "
        "sv hup /run/service/nginx"
    )
    until("another certificate", lambda: fingerprint(director) != certificate)

    status, text = restore_at_set_up(director, content, director.setup_code())
    assert status == 200 and texts.RESTORED in text, text
    until("the old certificate", lambda: fingerprint(director) == certificate)
    assert not director.status()["setup_code_active"]
    assert director.status()["generation"] is None  # nothing of it runs yet

    assert "What is next" in log_in_after(director)
    restored = draft(director)
    assert {one.name for one in restored.services} == {one.name for one in BALANCED.services}
    director.apply(restored)
    assert director.status()["confirmed"] == newest + 1
    director.wait_until_healthy("rs1", "rs2", "rs3")
    assert world.count(f"{SITE}/", 12) == EVEN
    history = Page(director).get("/history/")
    assert f">{newest}</a>" in history and f">{newest + 1}</a>" in history


@thorough
def test_an_altered_file_and_a_wrong_passphrase_leave_the_box_new(lab, director, kept):
    content, *_ = kept
    lab.go_back(FRESH)
    altered = bytearray(content)
    altered[len(altered) // 2] ^= 1
    for sent, passphrase, words in (
        (bytes(altered), "rope and tide and moon", "damaged"),
        (content[:-1], "rope and tide and moon", "damaged"),
        (content, "another passphrase", "passphrase is wrong"),
    ):
        status, text = restore_at_set_up(director, sent, director.setup_code(), passphrase)
        assert status == 422 and words in text, text
    assert director.status()["setup_code_active"]
    assert director.succeed("ls -A /data/web/incoming").strip() == ""


@thorough
@pytest.mark.parametrize("pause", [0.0, 0.3, 1.0, 2.0, 4.0])
def test_power_cut_in_the_middle_of_a_restore(lab, director, kept, pause):
    """The new box is new, or it is the old one; its web page opens in both cases."""
    content, *_ = kept
    lab.go_back(FRESH)
    director.write("/run/cut.py", CUT.format(pause=pause))
    director.succeed("cp /run/cut.py /tmp/cut.py; (sleep 1; python3 /tmp/cut.py) >/dev/null 2>&1 &")
    with_cut(director, content)
    director.start()
    director.wait_until_up()
    status, text = director.page()
    assert status == 200, text
    if texts.SET_UP in text:
        assert director.status()["setup_code_active"]
        status, text = restore_at_set_up(director, content, director.setup_code())
        assert status == 200, text
    assert "What is next" in log_in_after(director)
    assert json.loads(to_json(draft(director)))["services"]


# Wait until the database of the web page grows by the restore, and then for a moment more.
CUT = """
import os, time
path = "/data/web/fairlead.sqlite3-wal"
before = os.stat(path).st_size if os.path.exists(path) else 0
end = time.monotonic() + 120
while time.monotonic() < end and not os.path.exists("/data/web/incoming"):
    time.sleep(0.01)
while time.monotonic() < end and (os.stat(path).st_size if os.path.exists(path) else 0) <= before:
    time.sleep(0.01)
time.sleep({pause})
open("/proc/sysrq-trigger", "w").write("o")
"""


def with_cut(director, content) -> None:
    with contextlib.suppress(OSError, AssertionError):  # the power has gone
        restore_at_set_up(director, content, director.setup_code())
    director.kill()
