"""Make the box run a changed configuration, from the console: checked, applied, followed to its end."""

from __future__ import annotations

from collections.abc import Generator

from applier.wire.client import ApplierDown, connect
from applier.wire.shapes import ENDED
from console.dialogue import Ask, Cancelled, Pause, one_line
from lbconfig.model.snapshot import Snapshot

USER = "console"  # who did it, in the history
POLL = 0.5  # seconds between two looks at an apply


def applied(wished: Snapshot, comment: str) -> Generator[str | Ask | Pause, str | None, bool]:
    """Whether the box runs it now. Raises ApplierDown, ApplierRefused, Cancelled."""
    applier = connect()
    review = applier.check(wished)
    if review["problems"]:
        yield "This does not fit the rest of the running configuration:\n"
        for problem in review["problems"]:
            yield f"  {problem['object']}, {problem['field']}: {problem['message']}\n"
        return False
    if not review["diff"]:
        yield "The box runs this already.\n"
        return False
    for change in review["changes"]:
        yield f"  {change['object']}\n"
        for sentence in change["sentences"]:
            yield f"    {sentence}\n"
    if (yield Ask("Type yes to apply it; an empty line cancels: ")) != "yes":
        raise Cancelled
    applier.apply(wished, review["digest"], review["base"], user=USER, comment=comment)
    return (yield from followed())


def followed() -> Generator[str | Ask | Pause, str | None, bool]:
    """Whether the apply that is under way ended well."""
    run = connect().status()["apply"]
    while run is not None and run["state"] not in ENDED:
        if run["state"] == "waiting":
            # Whoever asks here stands before the box: no change of the network cuts him off.
            connect().confirm(run["id"], "", USER)
        doing = next((step["title"] for step in run["steps"] if step["state"] == "running"), "")
        yield one_line(f"Applying … {doing}")
        yield Pause(POLL)
        run = connect().status()["apply"]
    if run is None:
        raise ApplierDown("The applier restarted and knows nothing of this change. The screen shows what runs now.")
    yield f"{one_line(run['message'])}\n"
    return run["state"] == "done"
