"""Health checks by an admin's own program, by the real ldirectord: what it gets, and what it cannot do."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from board.machines.wait import until
from tests.peers.test_faults import SOON, VIP, check, known, render, service, web  # noqa: F401 (fixtures)

from lbconfig.model.snapshot import CheckKind, HealthCheck

PATIENCE = 20  # seconds for a program that ends
FIRST_USER = 64_000  # Fairlead/Programs.pm


def program(text, **more):
    return HealthCheck(CheckKind.PROGRAM, program=text, **{"timeout": PATIENCE, **more})


def run(lab, text, **more):
    return lab.ask("nginx", 80, program(text, **more))


def shell(*lines):
    return "\n".join(("#!/bin/sh", *lines, ""))


def python(*lines):
    return "\n".join(("#!/usr/bin/python3", "import os, socket, subprocess, sys", *lines, ""))


def attempts(*pairs):
    """A program that says of each attempt how it ended, as "name: OSError" or "name: done"."""
    tries = [
        line
        for name, statement in pairs
        for line in ("try:", f"    {statement}", f"    print('{name}: done')", "except OSError as error:",
                     f"    print('{name}:', type(error).__name__)")
    ]  # fmt: skip
    return python(*tries)


def test_it_gets_the_arguments_of_external_checks_and_few_variables(lab):
    text = shell('echo "$@"', "env | sort")
    found = run(lab, text, port=8080, login="kim", password='p"#1', ask="a b")
    assert found["state"] == "up", found
    first, *variables = found["received"].splitlines()
    assert first.split() == ["10.2.0.100", "80", "10.2.0.16", "8080"]
    assert [one for one in variables if not one.startswith(("PWD=", "SHLVL=", "_=", "OLDPWD="))] == [
        "FAIRLEAD_ASK=a b", "FAIRLEAD_LOGIN=kim", 'FAIRLEAD_PASSWORD=p"#1', "FAIRLEAD_PROTOCOL=tcp",
        f"FAIRLEAD_TIMEOUT={PATIENCE}", "HOME=/", "LANG=C.UTF-8", "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
    ]  # fmt: skip
    assert 'p"#1' not in found["sent"]


ASKS = """#!{interpreter}
{text}
"""
ASKS_PERL = """use IO::Socket::INET;
my $socket = IO::Socket::INET->new(PeerAddr => $ARGV[2], PeerPort => $ARGV[3]) or die "refused\\n";
print $socket "GET / HTTP/1.0\\r\\n\\r\\n";
print scalar <$socket>;
"""
ASKS_PYTHON = """import sys, urllib.request
\tpass
""".replace("\tpass\n", "print(urllib.request.urlopen(f'http://{sys.argv[3]}:{sys.argv[4]}/', timeout=20).status)\n")


@pytest.mark.parametrize(
    ("interpreter", "text", "reason"),
    [
        ("/usr/bin/perl -w", ASKS_PERL, "HTTP/1.1 200 OK"),
        ("/usr/bin/env python3", ASKS_PYTHON, "200"),
        ("/bin/sh", "echo one | sed s/one/two/\n\techo three >&2", "three"),
    ],
)
def test_what_it_says_last_is_the_reason(lab, interpreter, text, reason):
    found = run(lab, ASKS.format(interpreter=interpreter, text=text))
    assert (found["state"], found["message"]) == ("up", reason), found


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("echo some; echo ' the shop is closed'", "exit 3"), "the shop is closed (exit code 3)"),
        (("exit 1",), "the program said nothing (exit code 1)"),
        (("echo dying; kill -9 $$",), "dying (signal 9)"),
        (("kill -TERM $$",), "the program said nothing (signal 15)"),
    ],
)
def test_any_other_end_than_zero_is_down(lab, lines, message):
    found = run(lab, shell(*lines))
    assert (found["state"], found["message"]) == ("down", message), found


@pytest.mark.parametrize(
    "lines",
    [
        ("echo begun", "trap '' TERM INT HUP", "while :; do sleep 1; done"),
        ("setsid sleep 1000 & setsid sleep 1000 &", "kill -STOP $$"),
    ],
)
def test_one_that_never_ends_is_ended(lab, lines):
    found = run(lab, shell(*lines), timeout=1)
    assert found["state"] == "down"
    assert found["message"] in ("no end of the program within 1 s", "no answer within 1 s")
    until("nothing of it to be left", lambda: not programs(lab), SOON)


def field(number, name):
    """The number in this line of a process's status."""
    return int(re.search(rf"^{name}:\t(\d+)", Path(f"/proc/{number}/status").read_text(), re.MULTILINE)[1])


def send(which, numbers):
    for number in numbers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, which)


def test_one_that_ends_in_time_is_good_although_the_box_stalls(lab):
    with ThreadPoolExecutor() as others:
        found = others.submit(run, lab, shell("sleep 1", "echo fine"), timeout=3)
        until("the program to run", lambda: programs(lab), SOON)
        stalled = {number: field(number, "PPid") for number in lab.box.processes()}
        send(signal.SIGSTOP, stalled)
        time.sleep(5)
        send(signal.SIGCONT, {*stalled, *stalled.values()})  # nsenter stops with its child
    assert (found.result()["state"], found.result()["message"]) == ("up", "fine"), found.result()


def programs(lab):
    """The processes of the box that have the user of a program, without those that nobody has asked how they ended."""
    found = []
    for number in lab.box.processes():
        try:
            status = Path(f"/proc/{number}/status").read_text()
        except OSError:
            continue  # it has just ended
        if "State:\tZ" not in status and int(re.search(r"^Uid:\t(\d+)", status, re.MULTILINE)[1]) >= FIRST_USER:
            found.append(number)
    return found


def test_what_it_leaves_behind_ends_with_it(lab):
    """Also what holds on to its output, has left its session, or has lost its parent."""
    found = run(lab, shell("(setsid sleep 1000 &) ; sleep 1000 &", "echo fine"))
    assert (found["state"], found["message"]) == ("up", "fine")
    until("nothing of it to be left", lambda: not programs(lab), SOON)


def test_a_flood_of_output_is_cut_off(lab):
    found = run(lab, shell("yes"))
    assert (found["state"], found["message"]) == ("down", "the program says more than 65536 bytes")
    until("nothing of it to be left", lambda: not programs(lab), SOON)


def test_a_bomb_of_forks_stays_small(lab):
    text = python(
        "count = 0",
        "while True:",
        "    try:",
        "        if os.fork() == 0:",
        "            import time; time.sleep(1000)",
        "        count += 1",
        "    except OSError:",
        "        break",
        "print('processes', count)",
    )
    found = run(lab, text)
    assert found["state"] == "up"
    assert 1 <= int(found["message"].split()[1]) < 16
    until("nothing of it to be left", lambda: not programs(lab), SOON)


def test_memory_without_end_is_refused(lab):
    found = run(lab, python("kept = []", "while True: kept.append(bytearray(1 << 20))"))
    assert (found["state"], found["message"]) == ("down", "MemoryError (exit code 1)")


def test_it_writes_nowhere(lab):
    """Not where everybody may, either, nor where it lies."""
    places = ("/tmp/x", "/dev/shm/x", "/run/x", "/var/tmp/x", "/x", "/run/program")
    found = run(lab, attempts(*((place, f"open('{place}', 'w')") for place in places)))
    assert found["state"] == "up", found
    assert set(re.findall(r": (\w+)", found["received"])) <= {"OSError", "FileNotFoundError", "PermissionError"}, found
    for place in ("tmp/x", "dev/shm/x", "run/x"):
        assert not (lab.box.root / place).exists()


def test_it_cannot_wait_for_others_or_talk_to_programs_of_the_box(lab):
    (lab.box.root / "run/open.socket").unlink(missing_ok=True)
    folder = os.open(lab.box.root / "run", os.O_RDONLY)  # the whole name may be too long for a socket
    with socket.socket(socket.AF_UNIX) as applier:
        applier.bind(f"/proc/self/fd/{folder}/open.socket")
        os.close(folder)
        (lab.box.root / "run/open.socket").chmod(0o777)
        applier.listen()
        text = attempts(
            ("listen", "s = socket.socket(); s.bind(('', 8000)); s.listen()"),
            ("unix", "socket.socket(socket.AF_UNIX).connect('/run/open.socket')"),
            ("raw", "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)"),
            ("packet", "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)"),
            ("netlink", "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)"),
            ("root", "os.setuid(0)"),
            ("kill", "os.kill(-1, 0)"),
            ("look", "open('/run/open.socket')"),
            ("chroot", "os.chroot('/tmp')"),
            ("unshare", "os.unshare(os.CLONE_NEWUSER)" if hasattr(os, "unshare") else "os.setuid(0)"),
        )
        found = run(lab, text)
    assert found["state"] == "up", found
    assert len(found["received"].splitlines()) == 10
    assert "done" not in found["received"], found


def test_who_it_is(lab):
    # A tab is shown as a dot.
    wanted = "Uid|Gid|Groups|Cap...|NoNewPrivs|Seccomp"
    text = shell(f"grep -E '^({wanted}):' /proc/self/status", "ls /proc | grep -c '^[0-9]'")
    found = run(lab, text)
    assert found["state"] == "up"
    lines = found["received"].splitlines()
    said = dict(re.fullmatch(r"(\w+):\.?(.*)", line).groups() for line in lines[:-1])
    [user] = set(said["Uid"].split("."))
    assert int(user) >= FIRST_USER
    assert set(said["Gid"].split(".")) == {user}
    assert said["Groups"].split() == []
    assert {int(value, 16) for name, value in said.items() if name.startswith("Cap")} == {0}
    assert (said["NoNewPrivs"].strip(), said["Seccomp"].strip()) == ("1", "2")
    assert int(lines[-1]) < 7  # of its own


def test_an_interpreter_that_is_not_there(lab):
    """The form refuses it; a box of another version may not."""
    found = run(lab, "#!/usr/bin/env sh\nexec /usr/bin/ruby\n")
    assert found["state"] == "down"
    assert "(exit code 127)" in found["message"]


def test_servers_follow_what_it_says(check, web, lab):  # noqa: F811
    """In the process that keeps the table, beside other checks; a broker that is killed is started again."""
    good = shell('echo "$3" >&2', f'[ "$3" = {web} ]')
    text = render(service(1, web, check=program(good, interval=1, failures=3)))
    one = check(text, table=known(1, 0, web))
    one.wait_for("the server to be up", lambda: one.table()[VIP] == {f"{web}:80": 1})
    os.kill(one.wait_for("its broker alone", lambda: broker(lab)), 9)
    one.wait_for("it to be started again", lambda: "had ended" in one.log.read_text())
    assert one.table()[VIP] == {f"{web}:80": 1}  # the check that it took along is one of three


def broker(lab):
    """The process that starts programs; None while there is one beside it that is about to become a program."""
    found = []
    for number in lab.box.processes():
        with contextlib.suppress(OSError):  # it has just ended
            if b"starts programs" in Path(f"/proc/{number}/cmdline").read_bytes() and not _user(number):
                found.append(number)
    return found[0] if len(found) == 1 else None


def _user(number):
    return int(re.search(r"^Uid:\t(\d+)", Path(f"/proc/{number}/status").read_text(), re.MULTILINE)[1])
