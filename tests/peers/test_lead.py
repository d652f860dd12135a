"""A box of a pair that leads because nobody else does, before Python is loaded (/etc/sv/lead).

Each case has a room with the cable's interface in it; what wg, nft and sv would say is in files. All of them wait side
by side.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from board.lab import build
from board.machines.wait import until
from tests.peers.room import CLEAN, Room

from applier.pair import ready, roles

OVERLAY = build.TOP / "overlay"
STANDS_IN = {
    "usr/bin/wg": '#!/bin/sh\nprintf "KEY\\t%s\\t148\\n" "$(cat /run/received)"\n',
    "usr/sbin/nft": (
        '#!/bin/sh\n[ "$*" = "list counter inet fairlead adverts" ] || exit 64\ncat /run/adverts || exit 1\n'
    ),
    "usr/bin/sv": '#!/bin/sh\necho "sv $*" >>/run/told\n',
}
HELD = roles.hold_text(ready.NOT_YET)
HELD_ROLE = roles.role_text(roles.Role(roles.HELD, 9.1, ready.NOT_YET))
UNPLUGGED = 6.0  # seconds that a cable without a carrier is given
PLUGGED = 4.0  # seconds after which one gets a carrier
ENDS = 60.0  # seconds


class Box(Room):
    def __init__(self, tree: Path) -> None:
        super().__init__("lead", OVERLAY, tree)
        for place, text in STANDS_IN.items():
            (self.root / place).unlink(missing_ok=True)
            (self.root / place).write_text(text)
            (self.root / place).chmod(0o755)
        self.run = self.root / "run/fairlead"
        self.run.mkdir()
        (self.root / "sys").mkdir(exist_ok=True)
        subprocess.run(self.inside("mount", "-t", "sysfs", "room", "/sys"), check=True, env=CLEAN)
        self.ip("link", "add", "cable", "type", "veth", "peer", "name", "far")
        self.ip("link", "set", "cable", "up")
        self.plug()
        self.receive(0)
        self.advertise(0)
        self.put("may-lead", "cable\n")
        self.put("hold", HELD)
        self.put("role", HELD_ROLE)
        self.put("ldirectord.wanted", "")
        self.put("first-round", "")
        self.log = self.folder / "log"
        self._started: subprocess.Popen | None = None
        self.began = self.plugged = 0.0

    def put(self, name: str, text: str) -> None:
        (self.run / name).write_text(text)

    def drop(self, name: str) -> None:
        (self.run / name).unlink()

    def receive(self, count: int) -> None:
        (self.root / "run/received").write_text(f"{count}\n")

    def advertise(self, count: int) -> None:
        said = f"table inet fairlead {{\n\tcounter adverts {{\n\t\tpackets {count} bytes {count * 40}\n\t}}\n}}\n"
        (self.root / "run/adverts").write_text(said)

    def plug(self, plugged: bool = True) -> None:
        self.ip("link", "set", "far", "up" if plugged else "down")

    def start(self) -> None:
        self.began = time.time()
        self._started = subprocess.Popen(
            self.inside("sh", "-c", "cd /etc/sv/lead && exec ./run"),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=CLEAN,
        )

    def end(self) -> str:
        """What it has said by its end."""
        said, _ = self._started.communicate(timeout=ENDS)
        assert (self.root / "run/told").read_text() == "sv down .\n"
        return said

    def hold(self) -> str:
        return (self.run / "hold").read_text()

    def released(self) -> float:
        """After how many seconds that was, whenever anybody looks."""
        until("the box to be released", lambda: self.hold() == "0\n", ENDS)
        return (self.run / "hold").stat().st_mtime - self.began


CASES = {
    "silent": lambda box: None,
    "nothing is checked": lambda box: (box.drop("first-round"), box.drop("ldirectord.wanted")),
    "not checked yet": lambda box: box.drop("first-round"),
    "no carrier": lambda box: box.plug(plugged=False),
    "carrier later": lambda box: box.plug(plugged=False),
    "no such card": lambda box: box.put("may-lead", "gone\n"),
    "leads later": lambda box: box.drop("role"),  # not to be released before that, however busy this machine is
    "was started too": lambda box: box.receive(148),
    "not checked yet either": lambda box: (box.receive(148), box.drop("first-round")),
    "leads": lambda box: (box.receive(148), box.advertise(1)),
    "leads for long": lambda box: (box.receive(148), box.advertise(100)),
    "nobody counts": lambda box: (box.receive(148), (box.root / "run/adverts").unlink()),
    "held by the floater": lambda box: box.put("hold", roles.hold_text("floating.json: it is not whole")),
    "no role yet": lambda box: box.drop("role"),
    "the applier is there": lambda box: box.put("running.json", "{}\n"),
    "nobody may lead": lambda box: box.drop("may-lead"),
}


@pytest.fixture(scope="module")
def boxes() -> Iterator[dict[str, Box]]:
    if os.geteuid() != 0:
        pytest.skip("not root: there can be no box of its own")
    tree = build.base_tree()
    made = {name: Box(tree) for name in CASES}
    for name, change in CASES.items():
        change(made[name])
    for box in made.values():
        box.start()
    time.sleep(PLUGGED / 2)
    made["leads later"].receive(148)
    made["leads later"].advertise(10)
    made["leads later"].put("role", HELD_ROLE)
    time.sleep(PLUGGED / 2)
    made["carrier later"].plugged = time.time()
    made["carrier later"].plug()
    yield made
    for box in made.values():
        box.end_processes()
        box.close()


@pytest.mark.parametrize("case", ["silent", "nothing is checked"])
def test_it_leads_where_the_other_one_is_silent(boxes, case):
    assert boxes[case].released() >= ready.SILENT
    assert "the other box is silent" in boxes[case].end()


def test_it_leads_where_the_other_one_was_started_too_and_nobody_has_led(boxes):
    assert boxes["was started too"].released() >= ready.SILENT, "a box that leads would be heard by then"
    assert "the other box does not lead" in boxes["was started too"].end()


@pytest.mark.parametrize("case", ["not checked yet", "not checked yet either"])
def test_no_longer_than_that_is_waited_for_a_first_round(boxes, case):
    assert boxes[case].released() >= ready.CHECKS
    boxes[case].end()


@pytest.mark.parametrize("case", ["no carrier", "no such card"])
def test_a_cable_that_nobody_is_at_is_given_more_time(boxes, case):
    assert boxes[case].released() >= UNPLUGGED
    boxes[case].end()


def test_silence_begins_with_the_carrier(boxes):
    box = boxes["carrier later"]
    after = box.plugged - box.began
    if after > UNPLUGGED - 1:
        pytest.skip("this machine was too busy to see it")
    assert box.released() >= after + ready.SILENT, "no word could come until then"
    box.end()


@pytest.mark.parametrize("case", ["leads", "leads for long", "leads later", "the applier is there"])
def test_else_the_applier_decides(boxes, case):
    assert boxes[case].end() == ""
    assert boxes[case].hold() == HELD


def test_a_firewall_that_does_not_count_is_told_and_the_applier_decides(boxes):
    assert "adverts" in (said := boxes["nobody counts"].end()) and "may lead" not in said
    assert boxes["nobody counts"].hold() == HELD


@pytest.mark.parametrize("case", ["held by the floater", "no role yet"])
def test_it_goes_on_until_the_applier_is_there_and_releases_no_other_hold(boxes, case):
    box = boxes[case]
    boxes["silent"].released()
    held = box.hold()
    time.sleep(1)
    assert box.hold() == held != "0\n"
    box.put("running.json", "{}\n")
    assert box.end() == ""


def test_a_box_that_is_in_no_pair_or_held_by_an_admin_has_nothing_to_do(boxes):
    assert boxes["nobody may lead"].end() == "" and boxes["nobody may lead"].hold() == HELD
