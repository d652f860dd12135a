"""What a drill has shown, in words. Pure."""

from __future__ import annotations

from applier.wire.shapes_pair import Drill, ShownDrill

SHOWN = 3  # addresses in a sentence


def shown(drill: Drill) -> ShownDrill:
    return {**drill, "sentence": sentence(drill)}


def sentence(drill: Drill) -> str:
    """Such as: The addresses answered at lb2 after 31 ms; 1,240 connections before, 1,238 after, 2 ended by clients."""
    if drill["failed"] and drill["silence"] is None and not drill["unanswered"]:
        return drill["failed"]
    return f"{_addresses(drill)}; {drill['failed'] or _connections(drill)}."


def _addresses(drill: Drill) -> str:
    if drill["unanswered"]:
        names = ", ".join(drill["unanswered"][:SHOWN])
        rest = f" and {len(drill['unanswered']) - SHOWN} more" if len(drill["unanswered"]) > SHOWN else ""
        return f"{names}{rest} did not answer at {drill['took']}"
    if drill["silence"] is None:
        return f"{drill['took']} leads; how long the addresses were silent is not known"
    return f"The addresses answered at {drill['took']} after {drill['silence']:,.0f} ms"


def _connections(drill: Drill) -> str:
    part = "" if drill["part"] == 1 else f"of each {drill['part']} connections one was compared: "
    counted = f"{drill['before']:,} connection{'s' * (drill['before'] != 1)} before, {drill['after']:,} after"
    ended = f", {drill['ended']:,} ended by clients" if drill["ended"] else ""
    lost = f", {drill['lost']:,} lost" if drill["lost"] else ""
    return f"{part}{counted}{ended}{lost}"
