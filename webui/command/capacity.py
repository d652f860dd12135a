"""`fairlead bench`: what the box can forward, measured while clients send."""

from __future__ import annotations

import argparse
import sys
import time

from command import verbs
from command.api import Api

POLL = 1.0  # seconds
ROOM = 60.0  # seconds beside the measured ones, after which something is wrong
FIGURES = ("connections", "packets", "bytes")


def bench(api: Api, options: argparse.Namespace) -> int:
    if options.stop:
        found = api.post("capacity/stop")
        return verbs.out(options, found, "It ends within a second.")
    if options.between:
        sender, receiver = options.between
        started = api.post("capacity/between", {"sender": sender, "receiver": receiver})
        return _follow(api, options, started, f"Sending from {sender} to {receiver}; this takes two minutes.")
    if options.watch:
        started = api.post("capacity/watch", {"seconds": options.watch})
        words = f"Counting for {options.watch} seconds. Let your clients send as much as they can now."
        return _follow(api, options, started, words)
    found = api.get("capacity")
    return verbs.out(options, found, text(found))


def _follow(api: Api, options: argparse.Namespace, started: dict, words: str) -> int:
    if not options.json:
        print(words, flush=True)
    deadline = time.monotonic() + started["seconds"] + ROOM
    while (found := api.get("capacity"))["job"]["state"] == "running" and found["job"]["id"] == started["job"]:
        if time.monotonic() > deadline:
            print("The measurement has not ended in its time; it goes on.", file=sys.stderr)
            return verbs.TIMED_OUT
        time.sleep(POLL)
    verbs.out(options, found, text(found))
    job = found["job"]
    if job["state"] == "failed":
        print(verbs.clean(job["message"]), file=sys.stderr)
        return verbs.FAILED
    return verbs.OK


def text(found: dict) -> str:
    """For a person: the last measurement, what holds, and how near the box is to it."""
    hardware, load = found["hardware"], found["load"]
    cpus = f"{hardware['cpus']} CPU{'s' * (hardware['cpus'] != 1)}"
    lines = [f"Hardware       {hardware['processor'] or 'unknown processor'}, {cpus}"]
    if found["job"]:
        lines.append(f"Measurement    {found['job']['message']}")
    if load is None:
        return "\n".join([*lines, "Limit          never measured on this hardware; fairlead bench --watch 30"])
    now = load["now"]
    for one in sorted(load["limits"], key=lambda one: FIGURES.index(one["figure"])):
        figure = one["figure"]
        share = f", now {now[figure]:,.0f} ({now[figure] / one['rate']:.0%})" if now else ""
        least = "at least " if one["at_least"] else ""
        lines.append(f"{figure.capitalize() + '/s':<15}{least}{one['rate']:,.0f}{share}")
    mine = next((one for one in found["measurements"] if one["same"]), None)
    if mine:
        limit = mine["limit"]
        held = "the box was at its limit" if limit["held"] == "box" else "the clients asked for no more"
        held = f"sent by itself, {mine['traffic']}" if mine["traffic"] else held
        lines.append(f"Measured       {mine['when']} by {mine['user']}: {held}, busiest CPU {limit['busiest']:.0%}")
    return "\n".join(lines)
