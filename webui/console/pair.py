"""Who of a pair leads, at the console: hand over, hold, release, try it; and stop or end an update of both."""

from __future__ import annotations

from collections.abc import Callable

from applier.wire.client import ApplierDown, ApplierRefused, Client, connect
from applier.wire.shapes_pair import PairState
from applier.wire.shapes_rolling import Rolling
from console.dialogue import NOTHING_DONE, Ask, Dialogue, Pause, numbered

DRILL = 180.0  # seconds after which a drill is no longer waited for
POLL = 1.0

CHOICES: tuple[tuple[str, Callable[[Client], PairState | Rolling] | None], ...] = (
    ("Hand over: let the other box lead", lambda box: box.pair_hand_over("console")),
    ("Hold this box: it does not lead until it is released", lambda box: box.pair_hold(0, "console")),
    ("Release this box", lambda box: box.pair_release("console")),
    ("Try a hand-over, measure it, and hand over back", None),
    ("Stop the update of both boxes", lambda box: box.pair_update_choose("stop", "console")),
    (
        "End the update of both boxes, and leave them as they are",
        lambda box: box.pair_update_choose("leave", "console"),
    ),
)


def change_roles() -> Dialogue:
    try:
        found, update = connect().pair(), connect().pair_update()
    except (ApplierDown, ApplierRefused) as error:
        yield f"{error}\n"
        return
    yield f"{found['sentence']}\n"
    if not found["boxes"]:
        return
    if update["state"] in ("running", "stopped"):
        yield f"Update to version {update['version']}: {update['sentence']}\n"
    yield "".join(f"  {number}  {title}\n" for number, (title, _) in enumerate(CHOICES, 1))
    chosen = yield from numbered("Number", [True] * len(CHOICES))
    title, act = CHOICES[chosen]
    if (yield Ask(f"{title}. Type yes to do it; an empty line cancels: ")) != "yes":
        yield NOTHING_DONE
        return
    try:
        if act is None:
            yield from _drill()
        else:
            yield f"{act(connect())['sentence']}\n"
    except (ApplierDown, ApplierRefused) as error:
        yield f"Nothing was done. {error}\n"


def _drill() -> Dialogue:
    known = {one["id"] for one in connect().pair_drills()["drills"]}
    said = ""
    found = connect().pair_drill(True, "console")
    for _ in range(round(DRILL / POLL)):
        if not found["running"]:
            break
        if found["running"] != said:
            said = found["running"]
            yield f"{said}.\n"
        yield Pause(POLL)
        found = connect().pair_drills()
    for one in reversed([one for one in found["drills"] if one["id"] not in known]):
        yield f"{one['sentence']}\n"
    if found["running"]:
        yield "It goes on; the page Pair shows what it has shown.\n"
