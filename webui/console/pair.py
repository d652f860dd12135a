"""The pair at the console: who leads, the update of both boxes, and how two boxes are joined and parted."""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

from applier.wire.client import ApplierDown, ApplierRefused, Client, connect
from applier.wire.shapes_joining import Invitation, JoinedBoxes, Joining
from applier.wire.shapes_pair import PairState
from applier.wire.shapes_rolling import Rolling
from console.changing import followed
from console.dialogue import NOTHING_DONE, Ask, Dialogue, Pause, numbered

USER = "console"  # who did it, in the log and in the history
DRILL = 180.0  # seconds after which a drill is no longer waited for
POLL = 1.0
OTHER = "the other box"

Found = TypeVar("Found")


class Choice(NamedTuple):
    title: str
    act: Callable[[], Dialogue]
    asks: bool = False  # it asks by itself, for more than a yes
    means: str = ""  # what is good to know before the yes


def change() -> Dialogue:
    try:
        found, update, joining = connect().pair(), connect().pair_update(), connect().pair_joining()
        yield f"{found['sentence']}\n"
        if not found["boxes"]:
            choices = yield from _without(joining)
        else:
            choices = yield from _within(found, update, joining)
        yield "".join(f"  {number}  {one.title}\n" for number, one in enumerate(choices, 1))
        chosen = choices[(yield from numbered("Number", [True] * len(choices)))]
        if chosen.means:
            yield f"{chosen.means}\n"
        if not chosen.asks and (yield Ask(f"{chosen.title}. Type yes to do it; an empty line cancels: ")) != "yes":
            yield NOTHING_DONE
            return
    except (ApplierDown, ApplierRefused) as error:
        yield f"{error}\n"
        return
    try:
        yield from chosen.act()
    except (ApplierDown, ApplierRefused) as error:
        text = error.in_full if isinstance(error, ApplierRefused) else error
        yield f"Nothing was done. {text}\n"


# --- which choices there are -------------------------------------------------------------------------


def _within(found: PairState, update: Rolling, joining: Joining) -> Generator[str, None, list[Choice]]:
    """In a pair."""
    if update["state"] in ("running", "stopped"):
        yield f"Update to version {update['version']}: {update['sentence']}\n"
    own, other = sorted(found["boxes"], key=lambda box: not box["own"])
    here, there = own["hostname"], other["hostname"]
    new = f"the new box that takes the place of {there}"
    yield from _shown(joining["invitation"], new)
    return [
        Choice("Hand over: let the other box lead", _said(lambda box: box.pair_hand_over(USER))),
        Choice("Hold this box: it does not lead until it is released", _said(lambda box: box.pair_hold(0, USER))),
        Choice("Release this box", _said(lambda box: box.pair_release(USER))),
        Choice("Try a hand-over, measure it, and hand over back", _drill),
        Choice("Stop the update of both boxes", _said(lambda box: box.pair_update_choose("stop", USER))),
        Choice(
            "End the update of both boxes, and leave them as they are",
            _said(lambda box: box.pair_update_choose("leave", USER)),
        ),
        Choice(
            f"Take this box out of the pair; {there} goes on alone",
            _change(lambda box: box.pair_leave(USER)),
            means=f"{here} keeps its own addresses. Its services are switched off.",
        ),
        Choice(
            f"Go on without {there}",
            _change(lambda box: box.pair_alone(USER)),
            means=f"{here} gets all services and all addresses that float now. If {there} is dead, it must stay off: "
            "it would take the same addresses.",
        ),
        Choice(f"Put a new box in the place of {there}: show a code", _invite(lambda box: box.pair_replace(USER), new)),
    ]


def _without(joining: Joining) -> Generator[str, None, list[Choice]]:
    """In no pair, but perhaps on the way to one."""
    joined = joining["joined"]
    if joined is not None:
        yield _met(joined, joining)
        return [Choice(f"Forget {joined['other']}", _forget)]
    yield from _shown(joining["invitation"], OTHER)
    if joining["invitation"] is None and joining["said"]:
        yield f"{joining['said']}\n"
    choices = [
        Choice("Make a pair: show a code for the other box", _invite(lambda box: box.pair_invite(USER))),
        Choice("Join the box that shows a code", _join, asks=True),
    ]
    if joining["invitation"] is not None:
        choices.append(Choice("Wait for no other box any more", _forget))
    return choices


def _met(joined: JoinedBoxes, joining: Joining) -> str:
    link = joining["link"]
    heard = "" if link is None else f" It is {'' if link['heard'] else 'not '}heard."
    where = joined["other"] if joined["box"] else "this box"
    return (
        f"This box and {joined['other']} have joined.{heard} Go on at the web page of {where}: Pair shows what both "
        "boxes become.\n"
    )


def _shown(invitation: Invitation | None, for_whom: str) -> Generator[str, None, None]:
    if invitation is not None:
        minutes, tries = max(1, round(invitation["seconds"] / 60)), invitation["tries"]
        yield (
            f"The code for {for_whom}: {invitation['code']}\n"
            f"The address of this box: {' or '.join(invitation['addresses'])}\n"
            f"It is good for {minutes} more minute{'s' * (minutes != 1)}, and for {tries} "
            f"{'tries' if tries != 1 else 'try'}.\n"
        )


# --- what they do ------------------------------------------------------------------------------------


def _said(act: Callable[[Client], PairState | Rolling]) -> Callable[[], Dialogue]:
    def done() -> Dialogue:
        yield f"{act(connect())['sentence']}\n"

    return done


def _change(act: Callable[[Client], object]) -> Callable[[], Dialogue]:
    def done() -> Dialogue:
        yield from _meanwhile(lambda: act(connect()))
        yield from followed()

    return done


def _invite(act: Callable[[Client], Joining], for_whom: str = OTHER) -> Callable[[], Dialogue]:
    def done() -> Dialogue:
        found = yield from _meanwhile(lambda: act(connect()))
        yield from _shown(found["invitation"], for_whom)
        yield "Enter both there: on its web page under Pair, or here on its console. Then choose this again.\n"

    return done


def _join() -> Dialogue:
    address = yield Ask("Address of the box that shows the code; an empty line cancels: ")
    code = yield Ask("The code; an empty line cancels: ")
    yield "Joining …\n"
    found = yield from _meanwhile(lambda: connect().pair_join(address or "", code or "", USER))
    if found["joined"] is not None:
        yield _met(found["joined"], found)


def _forget() -> Dialogue:
    connect().pair_forget(USER)
    yield "This box waits for no other one, and knows none.\n"


def _meanwhile(act: Callable[[], Found]) -> Generator[Pause, None, Found]:
    """Do what takes seconds, while the other terminal goes on."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(act)
        while not future.done():
            yield Pause(POLL)
        return future.result()


def _drill() -> Dialogue:
    known = {one["id"] for one in connect().pair_drills()["drills"]}
    said = ""
    found = connect().pair_drill(True, USER)
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
