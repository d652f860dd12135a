"""Who of a pair leads, at the console: hand over, hold, release."""

from __future__ import annotations

from collections.abc import Callable

from applier.wire.client import ApplierDown, ApplierRefused, Client, connect
from applier.wire.shapes_pair import PairState
from console.dialogue import Ask, Dialogue, numbered

CHOICES: tuple[tuple[str, Callable[[Client], PairState]], ...] = (
    ("Hand over: let the other box lead", lambda box: box.pair_hand_over("console")),
    ("Hold this box: it does not lead until it is released", lambda box: box.pair_hold(0, "console")),
    ("Release this box", lambda box: box.pair_release("console")),
)


def change_roles() -> Dialogue:
    try:
        found = connect().pair()
    except (ApplierDown, ApplierRefused) as error:
        yield f"{error}\n"
        return
    yield f"{found['sentence']}\n"
    if not found["boxes"]:
        return
    yield "".join(f"  {number}  {title}\n" for number, (title, _) in enumerate(CHOICES, 1))
    chosen = yield from numbered("Number", [True] * len(CHOICES))
    title, act = CHOICES[chosen]
    if (yield Ask(f"{title}. Type yes to do it; an empty line cancels: ")) != "yes":
        yield "Nothing was done.\n"
        return
    try:
        yield f"{act(connect())['sentence']}\n"
    except (ApplierDown, ApplierRefused) as error:
        yield f"Nothing was done. {error}\n"
