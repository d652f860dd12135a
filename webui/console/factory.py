"""The dialogue that makes the box what it was when it came."""

from __future__ import annotations

from applier.wire.client import ApplierDown, ApplierRefused, connect
from console.dialogue import Ask, Cancelled, Dialogue

USER = "console"  # who did it, in the log
LOST = (
    "The box forgets its configuration, users, tokens, certificates and history, "
    "and starts again as a new one with a set-up code. Nothing is balanced until it is set up.\n"
)


def factory_reset() -> Dialogue:
    try:
        running = connect().status()["snapshot"] or {}
        hostname = running["network"]["hostname"]
        yield LOST
        # What is typed comes in small letters.
        if (yield Ask(f"Type {hostname} to begin; an empty line cancels: ")) != hostname.lower():
            raise Cancelled
        connect().factory_reset(hostname, USER)
    except (ApplierDown, ApplierRefused) as error:
        yield f"\n{error}\n"
        return
    yield "The box restarts.\n"
