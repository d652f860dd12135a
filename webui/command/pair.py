"""`fairlead pair`: how the pair stands, and who leads."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from command import show, verbs
from command.api import Api, Refused

WORDS = {"leads": "leads", "stands by": "stands by", "held": "HELD", "fault": "CANNOT LEAD", "": "never heard"}
DRILL = 180.0  # seconds after which a drill is no longer waited for
SIGNS = {"done": "+", "now": ">", "stopped": "!", "later": " "}
AWAY = 3.0  # seconds from which on a box was not heard just now


def pair(api: Api, options: argparse.Namespace) -> int:
    if options.what == "update":
        return update(api, options)
    if options.what == "hand-over":
        found = api.post("pair/hand-over")
    elif options.what == "drill":
        return _drill(api, options)
    elif options.what == "hold":
        found = api.post("pair/hold", {"hours": options.hours})
    elif options.what == "release":
        found = api.ask("DELETE", "pair/hold")
    elif options.what == "choose":
        found = api.post("pair/choose")
    elif options.what == "leave":
        return verbs.follow(api, api.ask("DELETE", "pair")["apply"], options)
    elif options.what == "alone":
        return verbs.follow(api, api.post("pair/alone")["apply"], options)
    else:
        found = api.get("pair")
        verbs.out(options, found, text(found))
        return verbs.OK if found["good"] else verbs.FAILED
    return verbs.out(options, found, found["sentence"])


def _drill(api: Api, options: argparse.Namespace) -> int:
    """Begin one, and wait for its end."""
    known = {one["id"] for one in api.get("pair/drills")["drills"]}
    found = api.post("pair/drill", {"back": options.back})
    if not options.json:
        print(verbs.clean(f"{found['running']}."), flush=True)
    end = time.monotonic() + DRILL
    while (found := api.get("pair/drills"))["running"]:
        if time.monotonic() > end:
            print("The drill has not ended in its time; it goes on.", file=sys.stderr)
            return verbs.TIMED_OUT
        time.sleep(verbs.POLL)
    new = [one for one in found["drills"] if one["id"] not in known]
    verbs.out(options, new, "\n".join(one["sentence"] for one in reversed(new)))
    return verbs.FAILED if any(one["failed"] for one in new) else verbs.OK


def update(api: Api, options: argparse.Namespace) -> int:
    """How far the update of both boxes is, once it was begun or decided about; exit 1 where it has stopped."""
    if options.bundle:
        try:
            found = api.send("pair/update", Path(options.bundle))
        except OSError as error:
            raise Refused(0, "no-bundle", f"{options.bundle}: {error.strerror or error}", []) from None
    elif options.decide:
        found = api.post("pair/update/choice", {"choice": options.decide})
    else:
        found = api.get("pair/update")
    verbs.out(options, found, update_text(found))
    return verbs.FAILED if found["state"] == "stopped" else verbs.OK


def update_text(found: dict) -> str:
    """For a person: the sentence, the steps, and what can be decided."""
    if found["state"] == "none":
        return "The two boxes have not been updated together yet."
    lines = [found["sentence"], *(f"  {SIGNS[one['state']]} {one['words']}" for one in found["steps"])]
    if found["choices"]:
        lines.append(f"fairlead pair update --decide {'|'.join(found['choices'])}")
    return "\n".join(lines)


def text(found: dict) -> str:
    """For a person: the sentence, both boxes, and who led when."""
    if not found["boxes"]:
        return found["sentence"]
    lines = [found["sentence"], "", show.columns(map(_row, found["boxes"]), ("BOX", "ROLE", "FOR", "VERSION",
                                                                            "REVISION", "CONNECTIONS"))]  # fmt: skip
    for one in found["boxes"]:
        lines += [f"{one['hostname']}: {one['reason']}"] if one["reason"] else []
        lines += [f"{one['hostname']}: {sentence}" for sentence in one["lacks"]]
    for path in found["paths"]:
        if not path["alive"]:
            where = f"the pair cable ({path['interface']})" if path["cable"] else path["interface"]
            lines.append(f"No answer on {where} from {path['address']} for {path['silent']:.0f} s.")
    lines += found["differences"]
    if found["hold"]:
        left = found["hold"]["left"]
        end = "until it is released" if left is None else f"for another {left / 3600:.1f} h"
        lines.append(f"This box is held by {found['hold']['user']} {end}.")
    lines += [f"{one['when']}  {one['leads']} took the lead: {one['reason']}" for one in found["changes"][:5]]
    return "\n".join(lines)


def _row(one: dict) -> tuple:
    if one["heard"] is None:
        return one["hostname"], WORDS[""], "", "", "", ""
    away = one["heard"] > AWAY
    role = f"AWAY ({WORDS[one['role']]} before)" if away else WORDS[one["role"]]
    return one["hostname"], role, f"{one['since']:.0f} s", one["version"], one["revision"], one["connections"]
