"""A clock that shows anything: nothing is lost, nothing counts again, copies and history stay in order."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from board.machines.director import APPLY, Director, read_page
from board.machines.director import browser as new_browser
from board.machines.lab import OF_DIRECTOR, director_disk
from board.machines.link import Forward, UserNetwork, free_port
from board.machines.updating import Page, set_up
from board.machines.wait import found, until
from tests import texts
from tests.lab.fixtures import thorough

from lbconfig.model import certificate

pytestmark = pytest.mark.timeout(2400)

BOOT = 600.0  # seconds
HOUR, YEARS = 3600, 3650 * 24 * 3600
KEPT = 5  # copies of the database
LONG, SHORT = 1800, 10  # seconds within which somebody may confirm
MAKE_TOKENS = """
from datetime import timedelta
from django.contrib.auth import get_user_model
from django.utils import timezone
from accounts import tokens
kim = get_user_model().objects.get()
print("TOKEN", tokens.make(kim, "for ever", ["read", "change", "apply"]))
print("TOKEN", tokens.make(kim, "for an hour", ["read"], timezone.now() + timedelta(hours=1)))
"""
# As the web process does it, and nobody confirms it.
BEGIN = """
import json
from applier.wire.client import connect
applier, snapshot = connect(), json.load(open("/run/wish.json"))
review = applier.check(snapshot)
applier.apply(snapshot, review["digest"], review["base"], "kim", confirm_within={})
"""
# A time server beside the box, at an address that is its own here: what it says does not follow the clock of the box.
RIGHT = "10.77.0.2"
TELLS_THE_TIME = f"""
import socket, struct, sys, time
began = float(sys.argv[1]) - time.clock_gettime(time.CLOCK_BOOTTIME)
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as door:
    door.bind(("{RIGHT}", 123))
    while True:
        asked, client = door.recvfrom(512)
        seconds = began + time.clock_gettime(time.CLOCK_BOOTTIME) + 2208988800
        now = struct.pack("!Q", int(seconds * 2**32))
        # RFC 5905: a server of stratum 1; the client gets its own moment back.
        head = bytes([0x24, 1, asked[2], 0xEC]) + struct.pack("!II", 1, 1) + b"GPS "
        door.sendto(head + now + asked[40:48] + now + now, client)
"""
TAKE_BACK = """
from applier.wire.client import connect
connect().roll_back(apply=connect().status()["apply"]["id"], user="kim")
"""


@pytest.fixture
def box(image) -> Iterator[Director]:
    """One whose clock has no battery: it begins in 1970."""
    folder = Path(tempfile.mkdtemp(prefix="fairlead-"))
    forward = Forward(free_port(), "10.0.2.15", 443)
    nics, disk, clock = (UserNetwork((forward,)),), director_disk(folder), ("-rtc", "base=1970-01-01T00:10:00")
    box = Director("box", folder, image, nics=nics, data=disk, devices=clock, firmware=OF_DIRECTOR)
    box.url = f"https://127.0.0.1:{forward.host_port}"
    try:
        with box:
            yield box
    finally:
        shutil.rmtree(folder)


class Api:
    def __init__(self, box: Director, token: str) -> None:
        self.url, self.token = f"{box.url}/api/v1", token

    def ask(self, method: str, path: str, data: object = None) -> tuple[int, dict]:
        body = None if data is None else json.dumps(data).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", "If-Match": "*"}
        request = urllib.request.Request(f"{self.url}{path}", body, headers, method=method)
        status, text = read_page(new_browser(), request)
        return status, json.loads(text)

    def apply(self, comment: str, servers: tuple[str, ...] = ()) -> None:
        """Another name for the host, as a change, and these time servers."""
        status, answer = self.ask("PATCH", "/network", {"hostname": comment, "ntp": list(servers)})
        assert status == 200, answer
        review = self.ask("GET", "/draft/review")[1]
        wish = {"digest": review["digest"], "base": review["base"], "comment": comment}
        status, started = self.ask("POST", "/applies", wish)
        assert status == 202, started
        path = f"/applies/{started['apply']}"
        until("the end of the apply", lambda: self.ask("GET", path)[1]["state"] == "done", APPLY, 0.5)


def copies(box: Director) -> list[int]:
    """The numbers of the copies of the database."""
    names = box.succeed("ls /data/web/backups").split()
    return sorted(int(found(r"fairlead-n(\d+)-", name)) for name in names)


def show(box: Director, moment: float) -> None:
    """As a machine without a battery does, or an admin who does not know better."""
    box.succeed("sv -w 20 stop /run/service/time")  # it would know better for some minutes
    box.succeed(["date", "-s", f"@{int(moment)}"])


def serve_time(box: Director, now: float) -> float:
    """Begin to tell the right time to who asks; how much the time since the start of the box is behind it."""
    box.write("/run/right.py", TELLS_THE_TIME)
    box.succeed(f"ip address add {RIGHT}/32 dev lo")
    box.succeed(f"python3 /run/right.py {now} >/run/right.log 2>&1 &")
    return now - running(box)


def running(box: Director) -> float:
    """Seconds since the start of the box."""
    return float(box.read("/proc/uptime").split()[0])


def is_right(box: Director, began: float) -> bool:
    """Whether the clock of the box shows what the time server says."""
    return abs(float(box.succeed("date +%s")) - began - running(box)) < HOUR / 2


def is_valid(box: Director, now: float) -> bool:
    """The certificate of the web page, at the moment."""
    shown = certificate.first(box.read("/data/tls/cert.pem"))
    return shown is not None and shown.begins <= f"{datetime.fromtimestamp(now, UTC):%Y-%m-%dT%H:%M:%SZ}" <= shown.ends


def start_web_again(box: Director) -> None:
    box.succeed("sv -w 60 restart /run/service/web")
    until("the web page", lambda: box.page("/login/")[0] == 200, BOOT, 1)


def begin(box: Director, within: int) -> None:
    """A change that waits to be confirmed."""
    wish = json.loads(box.applier("status"))["snapshot"]
    wish["policy"]["udp_timeout"] += 1
    box.write("/run/wish.json", json.dumps(wish))
    run(box, BEGIN.format(within))
    until("the apply to wait", lambda: state(box) in ("waiting", "not confirmed"), APPLY)


def run(box: Director, script: str) -> None:
    box.write("/run/script.py", script)
    box.succeed(". /etc/fairlead/environment && python3 /run/script.py", APPLY)


def state(box: Director) -> str:
    return (box.status()["apply"] or {"state": "not told yet"})["state"]


@thorough
def test_wherever_the_clock_goes_nothing_is_lost_and_nothing_counts_again(box):
    box.wait_until_up(BOOT)
    assert box.succeed("date +%Y").strip() == "1970"
    set_up(box)
    said = box.succeed(["fairlead-web-user", "python3", "manage.py", "shell", "-c", MAKE_TOKENS], 180)
    for_ever, ended = (Api(box, token) for token in re.findall(r"TOKEN (\S+)", said))
    assert ended.ask("GET", "/status")[0] == 200
    admin, other = Page(box), Page(box)
    boot = running(box)

    now = time.time()
    began = serve_time(box, now)
    # None: chronyd hears of the time server with the change, and leaps while that runs.
    clocks = {
        "ten-years-ahead": now + YEARS,
        "an-hour-back": now + YEARS - HOUR,
        "right": None,
        "nineteen-seventy": 900,
        "right-again": None,
    }
    for_ever.apply("first")
    applied, generation, newest = ["first"], box.status()["generation"], copies(box)[-1]
    for name, moment in clocks.items():
        if moment is None:
            assert not is_right(box, began)
            for_ever.apply(name, (RIGHT,))
            until("chronyd to leap", lambda: is_right(box, began), BOOT, 1)
        else:
            show(box, moment)
            for_ever.apply(name)
        applied.append(name)
        history = for_ever.ask("GET", "/history")[1]
        assert [one["comment"] for one in history if one["comment"] in applied] == applied[::-1], name
        assert [one["number"] for one in history] == sorted((one["number"] for one in history), reverse=True)
        assert box.status()["generation"] > generation, name
        generation = box.status()["generation"]
        assert ended.ask("GET", "/status")[0] == 401, f"{name}: a token that had ended counts again"
        assert texts.LOG_OUT in admin.get("/"), f"{name}: twelve hours have not passed"
        if moment == now + YEARS:
            other.post(f"{box.url}/logout/", {}, other.get("/"))
        assert texts.LOG_OUT not in other.get("/"), name
        start_web_again(box)
        made = copies(box)
        assert made[-1] > newest and made == list(range(max(1, made[-1] - KEPT + 1), made[-1] + 1)), name
        newest = made[-1]

    # Once a time server has set the clock, the box makes a certificate that is valid by it (decision 52).
    until("a certificate that is valid", lambda: is_valid(box, began + running(box)), BOOT, 1)

    # What waits, waits as long as it was told to, and no longer.
    begin(box, LONG)
    for moment in (now + YEARS, now - HOUR):
        show(box, moment)
        assert state(box) == "waiting"
    run(box, TAKE_BACK)
    until("the change taken back", lambda: state(box) == "not confirmed", APPLY)
    begin(box, SHORT)
    show(box, now - YEARS)
    until("the change to go back by itself", lambda: state(box) == "not confirmed", APPLY)
    assert box.status()["generation"] == generation and box.faults() == ""
    assert running(box) > boot  # it is the same start of the box all the while
