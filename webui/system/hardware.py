"""The hardware: what is wrong with it, who does its work, and how it is set."""

from __future__ import annotations

import logging
import time

from django.contrib import messages
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from applier.wire.client import ApplierDown, ApplierRefused, connect
from applier.wire.shapes_machine import ActionStatus, MachineStatus, SeatStatus, SettingStatus, WorkStatus

# CPUs of the picture; of larger machines those with work are shown first.
SHOWN = 32
# Seconds for which the overview believes what it was told: a look asks every card, and takes a moment.
FRESH = 60.0
STATES = {
    "done": ("✓", "as planned", "good"),
    "differs": ("≠", "differs", "bad"),
    "refused": ("!", "refused", "wait"),
    "absent": ("–", "this kernel has none", "off"),
}
TOLD = 6  # things that a message names

log = logging.getLogger(__name__)

_seen: dict[str, float | int] = {}  # how many findings somebody can act on, as of the last look, and when that was


def overview(request):
    try:
        found = _look()
    except (ApplierDown, ApplierRefused) as error:
        return render(request, "system/hardware.html", {"refused": str(error)})
    rows = [_row(one) for one in found["settings"]] + [_row(one) for one in found["actions"]]
    context = {
        "found": found,
        "seats": _seats(found),
        "more_seats": max(0, len(found["layout"]) - SHOWN),
        "nodes": len({seat["node"] for seat in found["layout"]}) > 1,
        "settings": [row for row in rows if "key" in row],
        "actions": [row for row in rows if "key" not in row],
        "differing": sum(row["state"] == "differs" for row in rows),
        "open_rows": [row for row in rows if row["state"] in ("differs", "refused")],
    }
    return render(request, "system/hardware.html", context)


def live_findings(request):
    """The line of the overview; it comes after the page, so that no card is waited for."""
    if time.monotonic() - _seen.get("at", -FRESH) > FRESH:
        try:
            _look()
        except (ApplierDown, ApplierRefused):
            _seen.clear()
    return render(request, "system/hardware_line.html", {"count": _seen.get("count", 0)})


@require_POST
def tune(request):
    """Everything, whichever finding was clicked at: what is in its place already stays untouched."""
    user = request.user.get_username()
    try:
        before = connect().hardware()
        after = connect().tune("", user)
    except (ApplierDown, ApplierRefused) as error:
        messages.error(request, f"Nothing was fixed. {error}")
        return redirect("hardware")
    _seen.clear()
    log.info("user %s has the hardware tuned", user)
    mended = _mended(before, after)
    refused = [f"{name} ({message})" for name, message in _of_state(after, "refused")]
    if mended:
        messages.success(request, f"Done: {_some(mended)}.")
    elif not refused:
        messages.info(request, "There was nothing to do: all that the box can set by itself is set as planned.")
    if refused:
        messages.warning(request, f"Refused by the kernel or the card: {_some(refused)}.")
    return redirect("hardware")


def _look() -> MachineStatus:
    found = connect().hardware()
    _seen.update(at=time.monotonic(), count=sum(one["actionable"] for one in found["findings"]))
    return found


def _seats(found: MachineStatus) -> list[dict]:
    """The CPUs as they are shown: at most SHOWN of them, those without any work last."""
    ranked = sorted(found["layout"], key=lambda seat: (not seat["work"], seat["cpu"]))[:SHOWN]
    return [_seat(seat) for seat in sorted(ranked, key=lambda seat: (seat["node"], seat["cpu"]))]


def _seat(seat: SeatStatus) -> dict:
    chips = [{"kind": work["kind"], "text": _words(work)} for work in seat["work"]]
    return {**seat, "percent": round(100 * seat["share"]), "chips": chips}


def _words(work: WorkStatus) -> str:
    queue = "" if work["queue"] is None else f" queue {work['queue']}"
    end = {"sends": ", sending", "helps": ", helps"}.get(work["kind"], "")
    return f"{work['device']}{queue}{end}"


def _row(one: SettingStatus | ActionStatus) -> dict:
    sign, word, tone = STATES[one["state"]]
    return {**one, "sign": sign, "word": word, "tone": tone}


def _mended(before: MachineStatus, after: MachineStatus) -> list[str]:
    """What is so now and was not before, in words."""
    done = {name for name, _ in _of_state(after, "done")}
    open_ = [name for state in ("differs", "refused") for name, _ in _of_state(before, state)]
    gone = {one["object"] for one in before["findings"] if one["code"] == "meddler"}
    gone -= {one["object"] for one in after["findings"] if one["code"] == "meddler"}
    return [f"{name} ended" for name in sorted(gone)] + [name for name in open_ if name in done]


def _of_state(found: MachineStatus, state: str) -> list[tuple[str, str]]:
    """What is in it, and the message about it."""
    return [
        *((f"{one['key'].replace('/', '.')}: {one['wanted']}", one["message"])
          for one in found["settings"] if one["state"] == state),
        *((f"{one['object']}: {one['what']}", one["message"])
          for one in found["actions"] if one["state"] == state),
    ]  # fmt: skip


def _some(names: list[str]) -> str:
    more = len(names) - TOLD
    return "; ".join(names[:TOLD]) + (f"; and {more} more" if more > 0 else "")
