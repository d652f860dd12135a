"""What the menu of the console does. Each action is a dialogue; most of them only tell."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from applier.wire.client import ApplierDown, ApplierRefused, connect
from console.dialogue import Ask, Cancelled, Dialogue
from console.passwords import reset_password
from console.screen import details
from console.state import gather
from console.updates import go_back, install_from_stick


@dataclass(frozen=True)
class Action:
    title: str
    run: Callable[[], Dialogue]
    warning: str = ""  # asked for a "yes" first
    menu_after: bool = True

    def dialogue(self) -> Dialogue:
        if self.warning:
            if (yield Ask(f"{self.title}: {self.warning}\nType yes to go on: ")) != "yes":
                raise Cancelled
            yield f"{self.title} …\n"
        yield from self.run()


def show_state() -> Dialogue:
    yield details(gather())
    yield hardware()


def hardware() -> str:
    """How many faults of the machine are known; here alone, as a look takes a moment."""
    try:
        many = len(connect().hardware()["findings"])
    except (ApplierDown, ApplierRefused) as error:
        return f"  The hardware cannot be checked: {error}\n"
    if not many:
        return "  Hardware: no finding.\n"
    return f"  Hardware: {many} finding{'s' * (many != 1)}. See System, Hardware on the web page.\n"


def restore_database() -> Dialogue:
    """The web UI is down meanwhile; the box keeps balancing."""
    steps = (
        ["sv", "-w", "20", "stop", "/run/service/web"],
        ["fairlead-web-user", "python3", "manage.py", "restore_database"],
        ["sv", "up", "/run/service/web"],
    )
    for step in steps:
        yield command(step)


def new_setup_code() -> Dialogue:
    try:
        code = connect().new_setup_code()["code"]
    except (ApplierDown, ApplierRefused) as error:
        yield f"{error}\n"
        return
    yield f"The new set-up code is {code}. The web page asks for it and for a new password.\n"


def take_back() -> Dialogue:
    try:
        run = connect().status()["apply"]
        if not run or run["state"] != "waiting":
            yield "No changes wait to be confirmed.\n"
            return
        connect().roll_back(apply=run["id"], user="console")
    except (ApplierDown, ApplierRefused) as error:
        yield f"{error}\n"
        return
    yield "The box goes back to what it ran before.\n"


def make_room() -> Dialogue:
    try:
        room = connect().make_room()
    except (ApplierDown, ApplierRefused) as error:
        yield f"{error}\n"
        return
    yield f"Freed {room['freed'] / 1e6:.1f} MB; {room['free'] / 1e6:.1f} MB are free now.\n"


def set_address() -> Dialogue:
    from console import addresses  # as below

    yield from addresses.set_address()


def open_all_interfaces() -> Dialogue:
    from console import opening  # as below

    yield from opening.open_all_interfaces()


def go_back_to_a_configuration() -> Dialogue:
    from console import going_back  # as below

    yield from going_back.go_back_to_a_configuration()


def install_on_a_disk() -> Dialogue:
    # Wanted once in the life of a box: until then it takes no memory, and no time at the start.
    from console import installation

    yield from installation.install_on_a_disk()


def pair() -> Dialogue:
    from console import pair as of_pair  # as above: few boxes are in one

    yield from of_pair.change()


def factory_reset() -> Dialogue:
    from console import factory  # as above

    yield from factory.factory_reset()


def reboot() -> Dialogue:
    yield command(["reboot"])


def power_off() -> Dialogue:
    yield command(["poweroff"])


ACTIONS = [
    Action("Show the status", show_state, menu_after=False),
    # These four ask by themselves.
    Action("Set an IP address", set_address),
    Action("Let the web page answer on all interfaces", open_all_interfaces),
    Action("Go back to an earlier configuration", go_back_to_a_configuration),
    Action("Reset an administrator's password", reset_password),
    Action(
        "Restore the web page's database from its last backup",
        restore_database,
        "Changes that were not applied since that backup are lost. The running configuration stays.",
    ),
    Action(
        "New set-up code (forgotten password)",
        new_setup_code,
        "Whoever enters it on the web page becomes its administrator.",
    ),
    Action(
        "Free space on a full data partition",
        make_room,
        "All earlier configurations but the 10 newest are deleted. The running one stays.",
    ),
    # These ask by themselves, too.
    Action("Undo changes that wait to be confirmed", take_back),
    Action("Install on a disk", install_on_a_disk),
    Action("Install an update from a USB stick", install_from_stick),
    Action("Go back to the other version", go_back),
    Action("Pair: join, hand over, hold or leave", pair),
    Action("Factory reset", factory_reset),
    Action("Reboot", reboot, "Connections through the box are lost, and none is served until it is up again."),
    Action("Power off", power_off, "Nothing is balanced until somebody turns the box on again."),
]


def command(words: list[str]) -> str:
    """Run a program and give back what it printed, with its exit code when that is not 0."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{words[0]}: {error}\n"
    failure = f"{words[0]} failed with exit code {done.returncode}.\n" if done.returncode else ""
    return done.stdout + done.stderr + failure
