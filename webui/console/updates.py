"""The dialogues about updates: install one from a USB stick, and go back to the other version."""

from __future__ import annotations

from applier.disk.disks import amount, printable
from applier.wire.client import ApplierDown, ApplierRefused, connect
from applier.wire.shapes import BundleReview, BundleSource, SlotStatus, UpdateState
from console.dialogue import Ask, Cancelled, Dialogue, Pause, numbered, one_line

USER = "console"  # who did it, in the history
NO_SLOTS = "This box does not run from a disk with two slots, so it cannot be updated.\n"
POLL = 1.0  # seconds between two looks at an install
BREAK = "Connections through the box are lost, and none is served until it is up again."


def install_from_stick() -> Dialogue:
    try:
        yield from _install_from_stick()
    except (ApplierDown, ApplierRefused) as error:
        yield f"\n{error}\n"


def go_back() -> Dialogue:
    try:
        yield from _go_back()
    except (ApplierDown, ApplierRefused) as error:
        yield f"{error}\n"


def _install_from_stick() -> Dialogue:
    applier = connect()
    if not applier.slots()["present"]:
        yield NO_SLOTS
        return
    yield "Looking at the USB sticks …\n"
    bundles = applier.update_sources()
    yield listing(bundles)
    if not bundles:
        return
    chosen = yield from numbered("Number of the update", [not bundle["problem"] for bundle in bundles])
    source = bundles[chosen]["source"]
    yield review(applier.update_check(source))
    if (yield Ask("Type yes to install it; an empty line cancels: ")) != "yes":
        raise Cancelled
    applier.update_install(source, USER)
    job = applier.slots()["job"]
    while job is not None and job["state"] == "running":
        yield one_line(f"{job['message']} … {job['percent']} %")
        yield Pause(POLL)
        job = applier.slots()["job"]
    if job is None:
        raise ApplierDown("The applier restarted, and the installation ended with it. Begin again.")
    yield f"\n{job['message']}\n"
    if job["state"] == "done" and (yield Ask(f"{BREAK}\nRestart into it now, yes or no? [yes] ", "yes")) == "yes":
        applier.boot_slot(job["slot"], USER)
        yield "The box restarts.\n"


def _go_back() -> Dialogue:
    applier = connect()
    state = applier.slots()
    if not state["present"]:
        yield NO_SLOTS
        return
    slot = the_other(state)
    if not slot["can_start"]:
        yield f"Slot {slot['name']} holds nothing that can be started.\n"
        return
    yield described(slot)
    if (yield Ask(f"{BREAK}\nType yes to restart into slot {slot['name']}; an empty line cancels: ")) != "yes":
        raise Cancelled
    applier.boot_slot(slot["name"], USER)
    yield "The box restarts.\n"


def the_other(state: UpdateState) -> SlotStatus:
    return next(slot for slot in state["slots"] if not slot["booted"])


def described(slot: SlotStatus) -> str:
    lines = [f"Slot {slot['name']} holds version {printable(slot['version'])}."]
    if slot["installed"]:
        lines.append(f"It was installed at {slot['installed']} by {printable(slot['user'])}.")
    if not slot["good"]:
        lines.append("It has not come up yet; if it does not, the box returns to this version by itself.")
    kept = slot["configuration"]
    if kept and not kept["number"]:
        lines.append("It has a configuration of its own: as delivered, with nothing configured.")
    elif kept:
        comment = f", {printable(kept['comment'])}" if kept["comment"] else ""
        lines.append(f"It has a configuration of its own: revision {kept['number']} of {kept['created']}{comment}.")
    else:
        lines.append("It begins with a copy of the current configuration.")
    return "\n".join([*lines, ""])


def listing(bundles: list[BundleSource]) -> str:
    if not bundles:
        return "There is no update on any USB stick. It must be a .raucb file in the top folder.\n"
    lines = []
    for number, bundle in enumerate(bundles, 1):
        mark = "-" if bundle["problem"] else number
        name = f"{printable(bundle['name'], 60)} on {printable(bundle['stick'])}"
        lines.append(f"  {mark}  version {printable(bundle['version'])}, {amount(bundle['size'])}, {name}")
        if bundle["problem"]:
            lines[-1] = f"  {mark}  {name}\n       it cannot be installed: {printable(bundle['problem'], 300)}"
    return "\n".join([*lines, ""])


def review(bundle: BundleReview) -> str:
    replaced = f" and replaces version {printable(bundle['replaces'])}" if bundle["replaces"] else ""
    lines = [f"Version {printable(bundle['version'])} goes into slot {bundle['slot']}{replaced}."]
    lines += [printable(note, 300) for note in bundle["notes"]]
    lines.append("The box keeps working meanwhile. The new version runs after a restart.")
    return "\n".join([*lines, ""])
