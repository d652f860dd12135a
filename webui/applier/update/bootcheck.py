"""Whether the slot that has just started does its work: `python3 -m applier.update.bootcheck`, once a boot, as root.

It looks at the box from outside the applier: does it answer, is the kernel's table what the confirmed generation
says, does the web page come? Then the slot is marked good. A slot on trial for which that does not become true in
time says why in the update's record and restarts the box; the boot loader gives it three tries, then the other
slot starts, and there this program tells what happened. A slot that was good once never restarts the box.
It begins once the web process listens, or a minute later (overlay/etc/sv/bootcheck/run).
"""

from __future__ import annotations

import http.client
import logging
import re
import ssl
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from applier.base.paths import Paths
from applier.disk import bootstate
from applier.disk.bootstate import BootStateError
from applier.host.host import Host, HostError, Live, run
from applier.parts import table
from applier.update import least_version
from applier.update import record as update_record
from applier.update.record import Record
from applier.update.slots import Slots
from applier.wire.client import ApplierDown, ApplierRefused, Client
from applier.wire.shapes import Status
from lbconfig.model.snapshot import SnapshotError, from_data
from lbconfig.target import Target
from lbconfig.wanted import table as ipvs

log = logging.getLogger("bootcheck")

PATIENCE = 180.0  # seconds from its own start; the kernel command line can say otherwise: fairlead.patience=SECONDS
PAUSE = 2.0  # seconds between two looks
ANSWER = 20.0  # seconds for one answer
OURS = "Fairlead"  # stands on every page of ours
FORWARDING = "net/ipv4/ip_forward"
# Faults that say nothing about whether this version works on this box. Where the other box of a pair is away, this one
# serves alone, and must not be restarted for that.
OF_THE_PAIR = frozenset({"pair-away", "pair-both", "pair-step", "pair-clocks", "pair-forked", "pair-behind"})
ELSEWHERE = frozenset({"update-failed", "data-full", "memory", "not-in-pair"}) | OF_THE_PAIR


@dataclass(frozen=True)
class Box:
    """What is looked at. Tests put other things here."""

    paths: Paths
    host: Host
    status: Callable[[], Status]
    page: Callable[[int], tuple[int, str]]  # by its port


def look(box: Box, known: tuple[str, ...] = ()) -> str:
    """What is wrong, as the end of a sentence; empty: nothing. `known`: codes of faults from before."""
    try:
        status = box.status()
        target = Target(status["generation"], from_data(status["snapshot"]), status["box"])
        return (
            wrong_in(status, known)
            or wrong_with_forwarding(box.host, target, status["generation"])
            or wrong_with_page(*box.page(target.snapshot.management.port))
        )
    except (ApplierDown, ApplierRefused) as error:
        return f"the service that applies configurations does not answer ({_trimmed(error)})"
    except SnapshotError as error:
        return f"it cannot read its own configuration ({_trimmed(error)})"
    except HostError as error:
        return f"the kernel could not be asked ({_trimmed(error)})"
    except (OSError, http.client.HTTPException) as error:
        return f"the web page does not come ({_trimmed(getattr(error, 'reason', None) or error)})"


def wrong_in(status: Status, known: tuple[str, ...]) -> str:
    start = status["start"]
    if start is None or start["state"] == "running":
        return "the configuration was not loaded in time"
    new = [fault for fault in status["faults"] if fault["code"] not in {*known, *ELSEWHERE}]
    if new:
        return _trimmed(new[0]["message"])
    if status["generation"] != status["confirmed"]:
        return f"it runs revision {status['generation']} and not {status['confirmed']}, the confirmed one"
    return ""


def wrong_with_forwarding(host: Host, target: Target, number: int | None) -> str:
    """The kernel is asked itself. Raises HostError."""
    for setting in target.settings:
        if setting.key == FORWARDING and host.setting(FORWARDING) != setting.value:
            return f"the kernel's setting {FORWARDING} is {host.setting(FORWARDING)} and not {setting.value}"
    lines = ipvs.difference(table.read_table(host), target.table, target.checked)
    if lines:
        return f"the kernel's table of virtual services is not that of revision {number}: {'; '.join(lines[:3])}"
    return ""


def wrong_with_page(status: int, text: str) -> str:
    if status != 200:
        return f"the web page answers with {status}"
    return "" if OURS in text else "something else answers in the web page's place"


def judge(box: Box, patience: float, sleep: Callable[[float], None] = time.sleep) -> str:
    """The outcome in a word: "good", "bad" (the box restarts), or "doubtful" (a slot that was good before)."""
    slots = Slots(box.paths, box.host)
    slot = slots.booted
    record = came_back(box.paths, slot)
    known = record.known_faults if record and record.slot == slot else ()
    wrong = "nothing was looked at"
    deadline = box.host.now() + patience
    while wrong and box.host.now() < deadline:
        wrong = look(box, known)
        if wrong:
            sleep(PAUSE)
    if not wrong:
        bootstate.mark_good(slot, box.paths.boot_state)
        arrived(box.paths, slot)
        leave_behind(box.paths, slots)
        log.info("slot %s is good", slot)
        return "good"
    log.error("slot %s is not good after %g seconds: %s", slot, patience, wrong)
    state = bootstate.read(box.paths.boot_state)
    if not state.on_trial(slot) or not slots.version(slots.other):
        return "doubtful"
    if record and (record.slot, record.state) == (slot, "trying"):
        update_record.save(box.paths.update_record, replace(record, reason=wrong))
    run(box.host, ["reboot"])
    return "bad"


def came_back(paths: Paths, slot: str) -> Record | None:
    """The record; and where another slot than this was to be tried, that it failed, and that this one is wanted."""
    record = update_record.load(paths.update_record)
    if record is None or record.state != "trying" or record.slot == slot:
        return record
    tries = bootstate.read(paths.boot_state).slot(record.slot).tries
    reason = record.reason or (update_record.NEVER_SAID if tries else "the other version was chosen at the console")
    failed = record.now("failed", reason)
    update_record.save(paths.update_record, failed)
    if record.kind == "update":  # one that was good before may be so again, and keeps its configuration
        bootstate.set_state(record.slot, "bad", paths.boot_state)
    bootstate.set_primary(slot, paths.boot_state)
    log.error("%s", failed.sentence)
    return failed


def arrived(paths: Paths, slot: str) -> None:
    record = update_record.load(paths.update_record)
    if record and (record.slot, record.state) == (slot, "trying"):
        update_record.save(paths.update_record, record.now("good"))


def leave_behind(paths: Paths, slots: Slots) -> None:
    """What this release says is too old does not start any more, not even where this one fails. Raises OSError."""
    least_version.raise_to_own(paths)
    version = slots.version(slots.other)
    if version and least_version.is_below(paths, version):
        bootstate.set_state(slots.other, "bad", paths.boot_state)
        log.warning("version %s in slot %s is too old to be started again", version, slots.other)


def page(port: int) -> tuple[int, str]:
    """Status and text of the web page as the box itself gets it; the certificate is the box's own."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with urllib.request.urlopen(f"https://127.0.0.1:{port}/", timeout=ANSWER, context=context) as answer:
            return answer.status, answer.read(100_000).decode(errors="replace")
    except urllib.error.HTTPError as error:
        return error.code, ""


def patience(command_line: str) -> float:
    found = re.search(r"(?:^|\s)fairlead\.patience=(\d{1,4})(?:\s|$)", command_line)
    return float(found[1]) if found else PATIENCE


def _trimmed(error: object) -> str:
    return " ".join(str(error).split()).rstrip(".")[:300]


def main() -> int:
    logging.basicConfig(level=logging.INFO, format="bootcheck: %(levelname)s %(message)s")
    paths, host = Paths.from_environment(), Live()
    if not Slots(paths, host).present:
        return 0  # there is nothing to go back to
    box = Box(paths, host, Client(paths.socket, ANSWER).status, page)
    try:
        judge(box, patience(host.read(Path("/proc/cmdline")) or ""))
    except (BootStateError, HostError, OSError) as error:
        log.error("%s", error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
