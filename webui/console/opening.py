"""The dialogue that lets the web page answer on all interfaces again, because the chosen one is gone."""

from __future__ import annotations

from dataclasses import replace

from applier.wire.client import ApplierDown, ApplierRefused, connect
from command.api import Api, Refused, Unreachable
from console.changing import applied
from console.dialogue import Dialogue
from lbconfig.model.snapshot import SnapshotError, from_data


def open_all_interfaces() -> Dialogue:
    try:
        running = from_data(connect().status()["snapshot"])
        management = running.management
        if not management.interfaces:
            yield "The web page answers on all interfaces already.\n"
            return
        yield f"The web page answers on {' and '.join(management.interfaces)} only.\n"
        wished = replace(running, management=replace(management, interfaces=()))
        done = yield from applied(wished, "web page on all interfaces, set at the console")
    except (ApplierDown, ApplierRefused, SnapshotError) as error:
        yield f"\n{error}\n"
        return
    if done:
        yield tell_draft()


def tell_draft() -> str:
    """Whether the draft of the web page knows it now, as a sentence."""
    try:
        Api().ask("PATCH", "management", {"interfaces": []})
    except (Unreachable, Refused) as error:
        return (
            "The draft on the web page does not know this yet. Untick the interfaces under Access, too, before you "
            f"apply the draft, or discard the draft. ({error})\n"
        )
    return "The draft on the web page has it as well. What else is in there still waits to be applied.\n"
