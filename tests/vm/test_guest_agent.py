"""What QEMU's guest agent does for whoever holds its socket."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from board.machines.channel import ChannelError
from board.machines.director import Director
from board.machines.machine import OPEN_AGENT
from board.machines.wait import until
from board.pc import layout

pytestmark = pytest.mark.timeout(900)

VERBS = {
    "guest-info",
    "guest-network-get-interfaces",
    "guest-ping",
    "guest-shutdown",
    "guest-sync",
    "guest-sync-delimited",
}
# What would make its holder root, or show him files.
REFUSED = {
    "guest-exec": {"path": "/bin/true"},
    "guest-file-open": {"path": "/etc/shadow"},
    "guest-set-user-password": {"username": "root", "password": "eA==", "crypted": False},
    "guest-ssh-add-authorized-keys": {"username": "root", "keys": []},
    "guest-fsfreeze-freeze": {},
    "guest-set-time": {},
}
# A service that writes on the disk when it ends, and takes its time for it.
LAST_WORDS = """#!/bin/sh
trap 'sleep 1; echo written >/disk/last-words; exit' TERM
sleep 3600 &
wait
"""
DOWN = 60.0  # seconds that it may take; a service may have five to end


def refused(director, verb: str) -> bool:
    try:
        director.agent().ask_with(verb, REFUSED[verb])
    except ChannelError as error:
        if "disabled" in str(error):
            return True
        director.leave_agent()  # it is being started
    return False


def on_disk(director: Director, folder: Path) -> tuple[str, str]:
    """Of a box that is off: what its data partition says of itself, and the last words of the service."""
    assert director.data is not None
    raw = folder / "disk.raw"
    subprocess.run(["qemu-img", "convert", "-O", "raw", director.data, raw], check=True, timeout=120)
    place = f"{raw}?offset={layout.offset('data') if director.firmware else 0}"
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"  # Debian keeps them where an ordinary user does not look
    said = [
        subprocess.run([shutil.which(words[0], path=path) or words[0], *words[1:], place], capture_output=True,
                       text=True, check=True, timeout=120).stdout
        for words in (["dumpe2fs", "-h"], ["debugfs", "-R", "cat /last-words"])
    ]  # fmt: skip
    return said[0], said[1]


def test_a_hypervisor_may_turn_the_box_off_and_ask_for_its_addresses_and_nothing_else(director, tmp_path):
    """Without the word for tests, which this story takes away: the agent is started as it is on any box."""
    director.succeed("mkdir /run/service/last-words")
    director.write("/run/service/last-words/run.new", LAST_WORDS)
    director.succeed("cd /run/service/last-words && chmod +x run.new && mv run.new run")
    director.wait_until_succeeds("sv status /run/service/last-words | grep -q ^run:")
    director.succeed(f"sed s/{OPEN_AGENT}// /proc/cmdline >/run/words && mount --bind /run/words /proc/cmdline")
    director.succeed("(sleep 1; sv restart /run/service/guest-agent) >/dev/null 2>&1 &")
    until("the agent to refuse commands", lambda: refused(director, "guest-exec"), 60)
    agent = director.agent()
    known = {one["name"]: one["enabled"] for one in agent.ask("guest-info")["supported_commands"]}
    assert {name for name, enabled in known.items() if enabled} == VERBS
    assert all(refused(director, verb) for verb in known.keys() & REFUSED.keys())
    found = {one["name"]: one for one in agent.ask("guest-network-get-interfaces")}
    assert "10.0.2.15" in {one["ip-address"] for one in found["eth0"]["ip-addresses"]}

    # In good order: services first, then the disk, which has nothing to repair.
    agent.send({"execute": "guest-shutdown"})
    try:
        director.running.wait(DOWN)
    except subprocess.TimeoutExpired:
        pytest.fail(f"still on after {DOWN:g} s; the console: {director.console[-1500:]}")
    features, last_words = on_disk(director, tmp_path)
    assert "has_journal" in features and "needs_recovery" not in features
    assert last_words == "written\n"
