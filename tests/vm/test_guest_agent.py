"""What QEMU's guest agent does for whoever holds its socket."""

import pytest
from board.machines.channel import ChannelError
from board.machines.machine import OPEN_AGENT
from board.machines.wait import until

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


def refused(director, verb: str) -> bool:
    try:
        director.agent().ask_with(verb, REFUSED[verb])
    except ChannelError as error:
        if "disabled" in str(error):
            return True
        director.leave_agent()  # it is being started
    return False


def test_a_hypervisor_may_turn_the_box_off_and_ask_for_its_addresses_and_nothing_else(director):
    """Without the word for tests, which this story takes away: the agent is started as it is on any box."""
    director.succeed(f"sed s/{OPEN_AGENT}// /proc/cmdline >/run/words && mount --bind /run/words /proc/cmdline")
    director.succeed("(sleep 1; sv restart /run/service/guest-agent) >/dev/null 2>&1 &")
    until("the agent to refuse commands", lambda: refused(director, "guest-exec"), 60)
    agent = director.agent()
    known = {one["name"]: one["enabled"] for one in agent.ask("guest-info")["supported_commands"]}
    assert {name for name, enabled in known.items() if enabled} == VERBS
    assert all(refused(director, verb) for verb in known.keys() & REFUSED.keys())
    found = {one["name"]: one for one in agent.ask("guest-network-get-interfaces")}
    assert "10.0.2.15" in {one["ip-address"] for one in found["eth0"]["ip-addresses"]}
