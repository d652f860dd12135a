"""A new version comes, and goes again where it is no good; the box forwards with the one or with the other.

FAIRLEAD_CUTS: how often the power is cut in the middle of an install (make power-cuts: 50 times).
"""

import dataclasses
import json
import os
import random
import shutil
import tempfile
import time
from pathlib import Path

import pytest
from board.machines.director import VIP, service, wish
from board.machines.lab import BALANCED, FIRMWARE, boot, make_lab
from board.machines.machine import flash
from board.machines.updating import SELDOM, Api, Page, make_stick, plugged_in, set_up
from board.machines.wait import until
from board.machines.world import SERVERS
from tests import texts
from tests.lab.bundles import Bundles
from tests.lab.fixtures import FRESH, thorough

pytestmark = pytest.mark.timeout(1200)

SITE = f"{VIP}:80"
READY, UPLOADED = "ready", "uploaded"
ROOM = 448  # MiB by which the disk is larger than the image: two configurations, and a bundle
BACK = 480.0  # seconds from the command to restart until clients get answers
LOOKED_AT = 480.0  # seconds until a slot is known to be good
GIVEN_UP = 600.0  # seconds for three tries of a version that does not come up
CUTS = int(os.environ.get("FAIRLEAD_CUTS") or "3")
WRITING = 120.0  # seconds that an install may take
STILL = 5.0  # seconds without a byte for the disk: it is over
IN_GUEST = ["env", "PYTHONPATH=/usr/lib/fairlead/webui", "python3"]
BOOT_STATE = [*IN_GUEST, "-m", "applier.disk.bootstate", "show"]
TELL = [*IN_GUEST, "-c", "import json; from applier.wire.client import connect; print(json.dumps(connect().slots()))"]
# Whether IPVS believes that a flood takes its memory (2, else 1), and KiB that are free, once a second. Then it closes
# quiet connections.
WATCH_MEMORY = (
    "while sleep 1; do echo $(cat /proc/sys/net/ipv4/vs/drop_entry) $(awk '/^MemFree/ { print $2 }' /proc/meminfo); "
    "done >/run/free 2>/dev/null &"
)
# As much of it as a bundle would have written.
READ_SLOT_B = "open('/run/fairlead/disk/slot-b', 'rb').read(96 << 20)"
HASH_SLOT_B = [*IN_GUEST, "-c", f"import hashlib; print(hashlib.md5({READ_SLOT_B}).hexdigest())"]


@pytest.fixture(scope="module")
def bundles(flashed) -> Bundles:
    return Bundles(flashed)


@pytest.fixture(scope="module")
def lab(image, flashed, bundles):
    """The director runs from a disk here, and somebody has left a stick in it."""
    folder = Path(tempfile.mkdtemp(prefix="fairlead-"))
    try:
        made = make_lab(folder, image)
        director = made.director
        director.data = flash(flashed, folder / "disk.qcow2", ROOM)
        director.firmware, director.may_panic = FIRMWARE, True
        director.devices = plugged_in(make_stick(folder / "stick.img", {"NEW.RAUCB": bundles.good()}))
        with made.world, director:
            boot(made)
            until_good(director, "A")
            made.save(FRESH)
            yield made
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def ready(request, lab):
    """It balances, and kim has set it up."""
    if READY not in lab.moments:
        request.getfixturevalue("balanced")
        set_up(lab.director)
        lab.save(READY)
    lab.go_back(READY)
    # The guest's clock may jump by as long as this moment is past, and then its web process starts again.
    until("the web page", lambda: lab.director.page()[0] == 200, LOOKED_AT, 1)
    return lab


@pytest.fixture
def director(ready):
    return ready.director


@pytest.fixture
def world(ready):
    return ready.world


def slot_of(director) -> str:
    return director.read("/run/fairlead/slot").strip()


def boot_state(director) -> dict[str, str]:
    return dict(line.split("=", 1) for line in director.succeed(BOOT_STATE).splitlines() if "=" in line)


def until_good(director, slot: str) -> None:
    until(
        f"slot {slot} good",
        lambda: boot_state(director)[f"{slot}_GOOD"] == "1",
        LOOKED_AT,
        SELDOM,
        (OSError, AssertionError),
    )


def outage(director, world, act) -> float:
    """Do something that makes the box restart; the seconds between two good answers of the site."""
    starts = director.console.count("Fairlead: slot")
    good = [time.monotonic()]
    act()
    until("the next start", lambda: director.console.count("Fairlead: slot") > starts, BACK)

    def answers() -> bool:
        if not world.get(f"{SITE}/")[0].startswith("rs"):
            return False
        good.append(time.monotonic())
        return True

    until("a balanced answer", answers, BACK, 0.1)
    return good[-1] - good[0]


def outcome(director, state: str) -> dict:
    """The record of the last update, when it is in that state."""
    return until(
        f"the outcome {state!r}",
        lambda: (found := director.status()["update"]) and found["state"] == state and found,
        LOOKED_AT, SELDOM, (OSError, AssertionError, ValueError),
    )  # fmt: skip


def update(director, world, bundles) -> float:
    """Install the new version and restart into it; the seconds that clients waited."""
    api = Api(director)
    director.succeed(WATCH_MEMORY)
    job, percentages = api.install(bundles.good())
    assert (job["state"], job["percent"]) == ("done", 100), job
    assert percentages == sorted(percentages), percentages
    took_for_floods = director.succeed("grep -c '^2' /run/free; true")
    assert took_for_floods.strip() == "0", director.read("/run/free")
    assert slot_of(director) == "A" and world.count(f"{SITE}/", 6) == dict.fromkeys(SERVERS, 2)
    state = boot_state(director)
    assert (state["ORDER"], state["B_OK"], state["B_GOOD"]) == ("A B", "1", "0")
    seconds = outage(director, world, api.restart)
    director.wait_until_started()
    assert slot_of(director) == "B"
    return seconds


def test_a_new_version(director, world, bundles, capsys):
    seconds = update(director, world, bundles)
    assert director.read("/usr/lib/fairlead/VERSION") == "9.1.0\n"
    found = outcome(director, "good")
    assert found["sentence"] == "Version 9.1.0 came up, passed its checks, and runs."
    assert boot_state(director)["B_GOOD"] == "1" and director.faults() == ""
    director.wait_until_healthy(*SERVERS)
    assert world.count(f"{SITE}/", 6) == dict.fromkeys(SERVERS, 2)  # the configuration came along
    with capsys.disabled():
        print(f"\nclients waited {seconds:.1f} s over the restart into the new version")


@thorough
def test_back_to_the_old_version_and_what_it_had(director, world, bundles, capsys):
    update(director, world, bundles)
    outcome(director, "good")
    director.apply(wish(dataclasses.replace(BALANCED.services[0], port=81), service(7, "newer", port=7000)))
    assert world.get(f"{SITE}/")[0].startswith("error")

    page = Page(director)  # as does the admin, with the same password
    seconds = outage(director, world, lambda: page.restart_into("A"))
    director.wait_until_started()
    assert slot_of(director) == "A"
    assert "went to version 0.1.0" in outcome(director, "good")["sentence"]
    director.wait_until_healthy(*SERVERS)
    assert world.count(f"{SITE}/", 6) == dict.fromkeys(SERVERS, 2)  # and returned with the old version
    assert [one["name"] for one in director.status()["snapshot"]["services"]] == ["site", "lines"]
    assert "Also here: version 9.1.0" in Page(director).get("/system/updates/")
    with capsys.disabled():
        print(f"\nclients waited {seconds:.1f} s over the restart back")


@thorough
def test_bundles_that_are_refused_touch_nothing(director, world, bundles):
    api = Api(director)
    before = director.succeed(HASH_SLOT_B, 120), boot_state(director)
    for bundle, code in (
        (bundles.wrong_signature(), "bundle-signature"),
        (bundles.truncated(), "bundle-incomplete"),
        (bundles.wrong_product(), "wrong-product"),
    ):
        status, answer = api.send(bundle)
        assert (status, answer["error"]["code"]) == (422, code), answer
    job, _ = api.install(bundles.damaged_inside())
    assert job["state"] == "failed" and "damaged" in job["message"] and texts.NOTHING_WRITTEN in job["message"]
    assert (director.succeed(HASH_SLOT_B, 120), boot_state(director)) == before
    assert director.succeed("ls -A /disk/shared/upload /disk/shared/taken | grep -c raucb; true").strip() == "0"
    assert "rauc" not in director.read("/proc/mounts")
    assert world.count(f"{SITE}/", 6) == dict.fromkeys(SERVERS, 2)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        pytest.param("without_init", "it stopped before it could say why", marks=thorough),
        pytest.param("without_applier", "the service that applies configurations does not answer", marks=thorough),
        pytest.param("without_forwarding", "Not all of revision 1 could be brought up", marks=thorough),
    ],
)
def test_a_version_that_does_not_come_up(director, world, bundles, capsys, kind, words):
    api = Api(director)
    bundle = getattr(bundles, kind)()
    api.install(bundle)
    begun = time.monotonic()
    version = api.restart()["version"]
    director.wait_for_console("Fairlead: slot A, try", GIVEN_UP)
    assert [f"Fairlead: slot B, try {number}" in director.console for number in (1, 2, 3)] == [True] * 3
    until("a balanced answer", lambda: world.get(f"{SITE}/")[0].startswith("rs"), BACK, 0.2)
    took = time.monotonic() - begun
    director.wait_until_started()
    assert slot_of(director) == "A"
    said = outcome(director, "failed")["sentence"]
    assert said.startswith(f"Version {version} did not come up: ") and words in said
    assert said.endswith("The box went back to version 0.1.0.")
    assert director.faults().strip() == said
    director.wait_for_console(f"FAULT  {said}")
    state = boot_state(director)
    assert (state["ORDER"], state["B_OK"]) == ("A B", "0")
    director.wait_until_healthy(*SERVERS)
    assert world.count(f"{SITE}/", 6) == dict.fromkeys(SERVERS, 2)
    with capsys.disabled():
        print(f"\n{kind}: balanced again {took:.0f} s after the restart, three tries included")


@thorough
def test_from_a_stick(director, world):
    page = Page(director)
    listed = page.get("/live/updates/sticks/")
    assert "NEW.RAUCB" in listed and "version 9.1.0" in listed, listed
    assert "/run/fairlead/media" not in director.read("/proc/mounts")
    source = listed.partition("?source=")[2].partition('"')[0].replace("%3A", ":")
    form = page.get(f"/system/updates/review/?source={source}")
    assert "Install version 9.1.0?" in form
    page.post(f"{page.url}/system/updates/install/", {"source": source}, form)
    until("the install", lambda: texts.WAITS_FOR_RESTART in page.get("/system/updates/"), 240, 1)
    assert "/run/fairlead/media" not in director.read("/proc/mounts")
    assert boot_state(director)["B_OK"] == "1"
    assert world.count(f"{SITE}/", 6) == dict.fromkeys(SERVERS, 2)


@thorough
@pytest.mark.timeout(1200 + 180 * CUTS)
def test_power_cuts_in_the_middle_of_an_install(ready, director, world, bundles, capsys):
    source = Page(director).upload(bundles.good())
    install = f"from applier.wire.client import connect; connect().update_install({source!r}, 'story')"
    ready.save(UPLOADED)
    whole_install = install_without_a_cut(director, install)
    moments = random.Random(int(os.environ.get("FAIRLEAD_SEED", "3")))
    ends = []
    for number in range(1, CUTS + 1):
        ready.go_back(UPLOADED)
        director.succeed([*IN_GUEST, "-c", install])
        seconds = moments.uniform(0, whole_install * 1.2)  # some cuts come right after its end
        time.sleep(seconds)
        director.kill()
        director.start()
        until("a balanced answer", lambda: world.get(f"{SITE}/")[0].startswith("rs"), BACK, 0.2)
        director.wait_until_started()
        state = boot_state(director)
        assert slot_of(director) == "A" and state["ORDER"] == "A B", state
        slots = {slot["name"]: slot for slot in told(director)["slots"]}  # the web page may take longer to come
        whole = slots["B"]["version"] == "9.1.0"
        assert whole or not slots["B"]["can_start"], slots
        assert whole or slots["B"]["version"] == "", slots
        assert director.faults() == ""
        ends.append("installed" if state["B_OK"] == "1" else "half" if not whole else "whole, not yet allowed")
        with capsys.disabled():
            moment = f"{seconds:.1f} of {whole_install:.1f} s"
            print(f"\ncut {number} after {moment}: boots, forwards; slot B: {ends[-1]}", end="", flush=True)
    assert len(ends) == CUTS


def install_without_a_cut(director, install: str) -> float:
    """Seconds until it has written its last byte: seen from outside, as to ask the box would slow it down."""
    director.succeed([*IN_GUEST, "-c", install])
    begun = last = time.monotonic()
    written = director.written()
    while (now := time.monotonic()) - last < STILL:
        assert now - begun < WRITING
        if (seen := director.written()) != written:
            written, last = seen, now
        time.sleep(0.05)
    assert told(director)["job"]["state"] == "done", told(director)["job"]
    return last - begun


def told(director) -> dict:
    """What the applier says of slots, the job and its outcome."""
    return json.loads(director.succeed(TELL))
