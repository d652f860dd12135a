"""What a person goes through at the console who has forgotten the password."""

import pytest

from console import passwords
from console.dialogue import NOTHING_DONE
from console.programs import run


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Programs of the box in a folder of the test's own; they write down how they were called."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def write(name: str, text: str) -> None:
        path = tmp_path / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >>"{tmp_path}/calls"\n{text}\n')
        path.chmod(0o755)

    write("sv", "exit 0")
    write("fairlead-web-user", '[ "$4" ] && echo "kfwt-3mzp-q7xd-b2na" || printf "alice\\nkim\\n"; echo INFO >&2')
    write.calls = lambda: (tmp_path / "calls").read_text().splitlines()
    return write


def begin(person):
    person.terminal.begin(passwords.reset_password(), True)
    person.work()
    return person.look()


def test_a_new_password_is_shown_and_the_lock_is_taken_off(person, programs):
    shown = begin(person)
    assert "  1  alice\n  2  kim\n" in shown and "INFO" not in shown
    person.type("2")
    assert person.look().endswith("The old password of kim stops working, and its sessions end.\nType yes to go on: ")
    person.type("yes")
    assert "The new password of kim is   kfwt-3mzp-q7xd-b2na\n" in person.look()
    assert programs.calls() == [
        "fairlead-web-user python3 manage.py reset_password",
        "fairlead-web-user python3 manage.py reset_password kim",
        "sv -w 30 restart /run/service/web",
    ]


@pytest.mark.parametrize("last", ["", "no"])
def test_nothing_changes_before_a_yes(person, programs, last):
    begin(person)
    person.type("1")
    person.type(last)
    assert person.look().endswith(NOTHING_DONE) and len(programs.calls()) == 1


def test_without_an_administrator(person, programs):
    programs("fairlead-web-user", "exit 0")
    assert begin(person).endswith("the set-up code creates the first one.\n")


def test_a_database_that_is_damaged(person, programs):
    programs("fairlead-web-user", "echo 'CommandError: The database of the web page: damaged.' >&2; exit 1")
    assert "damaged." in begin(person)
    programs("fairlead-web-user", '[ "$4" ] && { echo "it is full" >&2; exit 1; } || echo kim')
    begin(person)
    person.type("1")
    person.type("yes")
    assert person.look().endswith("it is full\nThe password was not changed.\n")
    assert not any(call.startswith("sv") for call in programs.calls())


def test_a_web_process_that_does_not_restart(person, programs):
    programs("sv", "echo 'timeout: run: web'; exit 1")
    begin(person)
    person.type("1")
    person.type("yes")
    shown = person.look()
    assert "kfwt-3mzp" in shown and "Wait a quarter of an hour" in shown


def test_the_other_terminal_is_served_meanwhile(people, programs, talk, tmp_path):
    served = tmp_path / "served"
    programs("fairlead-web-user", f"until [ -e {served} ]; do sleep 0.05; done; echo kim")
    one, other = people(2)
    one.terminal.begin(passwords.reset_password(), True)
    one.terminal.go_on()
    assert one.terminal.working
    other.terminal.begin(talk(), True)
    assert other.look() == "Your name? "
    served.touch()
    one.work()
    assert "  1  kim\n" in one.look()


def test_a_program_that_hangs_is_ended(person, programs, monkeypatch):
    programs("fairlead-web-user", "exec sleep 60")

    def dialogue():
        yield from run(["fairlead-web-user"], timeout=0.3)

    person.terminal.begin(dialogue(), True)
    person.work()
    assert "That failed: fairlead-web-user did not end within 0.3 seconds" in person.look()
    person.terminal.begin(run(["no-such-program"]), True)
    assert "That failed" in person.look()
