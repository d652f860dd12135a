"""The dialogue that gives an administrator a new password."""

from __future__ import annotations

from console.dialogue import Ask, Cancelled, Dialogue, numbered
from console.programs import run

RESET = ("fairlead-web-user", "python3", "manage.py", "reset_password")
# Wrong passwords are counted in the memory of the web process.
UNLOCK = ("sv", "-w", "30", "restart", "/run/service/web")


def reset_password() -> Dialogue:
    yield "Looking up the administrators …\n"
    found = yield from run(RESET)
    names = found.output.split()
    if found.exit or not names:
        yield found.errors or "The box has no administrator yet: the set-up code creates the first one.\n"
        return
    yield "".join(f"  {number}  {name}\n" for number, name in enumerate(names, 1))
    name = names[(yield from numbered("Number of the administrator", [True] * len(names)))]
    if (yield Ask(f"The old password of {name} stops working, and its sessions end.\nType yes to go on: ")) != "yes":
        raise Cancelled
    done = yield from run((*RESET, name))
    if done.exit:
        yield f"{done.errors}The password was not changed.\n"
        return
    yield f"The new password of {name} is   {done.output.strip()}\n"
    yield "Write it down now: it is not shown again. Change it on the web page when you have logged in.\n"
    unlocked = yield from run(UNLOCK)
    if unlocked.exit:
        yield f"{unlocked.output}{unlocked.errors}Wait a quarter of an hour if the log-in says that it is locked.\n"
