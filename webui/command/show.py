"""What the command prints for people. Programs take --json."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

SIGNS = {"up": "up", "down": "DOWN", "unchecked": "not checked", "waiting": "well, too few others are"}


def columns(rows: Iterable[Sequence[object]], head: Sequence[str]) -> str:
    """Aligned, under a head; "" where there is nothing to show."""
    found = [tuple(str(cell) for cell in row) for row in rows]
    if not found:
        return ""
    widths = [max(len(row[place]) for row in [tuple(head), *found]) for place in range(len(head))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in [head, *found])
    return "\n".join(line.rstrip() for line in lines)


def place(address: str, port: int) -> str:
    host = f"[{address}]" if ":" in address else address
    return f"{host}:{port}" if port else address


def status(found: dict) -> str:
    generation = found["generation"] or "as delivered"
    lines = [
        f"Version        {found['version']}",
        f"Configuration  {generation}" + ("" if found["generation"] == found["confirmed"] else " (not confirmed)"),
        f"Up for         {int(found['uptime'])} s",
    ]
    apply = found["apply"]
    if apply:
        lines.append(f"Last apply     {apply['id']} of {apply['user']}: {apply['state']}")
    lines += [f"FAULT          {fault['message']}" for fault in found["faults"]] or ["Faults         none known"]
    if many := found["drift"]["count"]:
        lines.append(f"DRIFT          {many} difference{'s' * (many != 1)}; fairlead drift lists them")
    table = columns(
        ((one["name"], _up(one), sum(server["active"] for server in one["real_servers"])) for one in _services(found)),
        ("SERVICE", "UP", "ACTIVE"),
    )
    return "\n".join([*lines, *(["", table] if table else [])])


def hardware(found: dict) -> str:
    """Findings first, then who does the work, then what is not as planned."""
    lines = []
    for one in found["findings"]:
        lines += [f"{one['severity'].upper()}  {one['what']}", f"  {one['cost']} ({one['source']})"]
        lines += [f"  fairlead hardware tune: {one['mend']}" if one["button"] else f"  By hand: {one['mend']}"]
    lines += [
        "" if lines else "Nothing is wrong with this hardware, as far as the box can tell.",
        _seats(found["layout"]),
    ]
    open_ = [one for one in (*found["settings"], *found["actions"]) if one["state"] in ("differs", "refused")]
    lines += ["", "Not as planned:"] if open_ else []
    for one in open_:
        what = f"{one['object']}: {one['what']}" if "object" in one else f"{one['key']}: {one['wanted']}"
        lines.append(f"  {what}" + (f" ({one['message']})" if one["message"] else ""))
    return "\n".join(lines).replace("\n\n\n", "\n\n")


_ENDS = {"takes": "", "sends": " sending", "helps": " helping", "other": ""}  # of what a CPU does for a device


def _seats(layout: list[dict]) -> str:
    rows = []
    for seat in layout:
        works = (
            work["device"] + ("" if work["queue"] is None else f" queue {work['queue']}") + _ENDS[work["kind"]]
            for work in seat["work"]
        )
        rows.append((seat["cpu"], f"{seat['share'] * 100:.0f} %", seat["dropped"], ", ".join(works)))
    return columns(rows, ("CPU", "PACKETS", "DROPPED", "WORKS FOR"))


def drift(found: dict) -> str:
    lines = []
    for one in found["differences"]:
        lines += [f"{one['object']}", f"  should be: {one['wanted']}", f"  is: {one['present']}", f"  {one['why']}"]
        lines += [f"  When repaired: {one['disturbs']}"] if one["disturbs"] else []
    if found["count"] > len(found["differences"]):
        lines.append(f"and {found['count'] - len(found['differences'])} more")
    if found["fresh"]:
        lines.append(f"Seen just now, and reported if still there in a moment: {found['fresh']}")
    if found["trouble"]:
        lines.append(f"Not all could be compared: {found['trouble']}")
    return "\n".join(lines) or "The box runs what it should."


def services(wished: list[dict], found: dict) -> str:
    live = {one["id"]: one for one in _services(found)}
    rows = (
        (
            one["id"],
            one["name"],
            place(one["address"], one["port"]),
            one["protocol"],
            one["scheduler"],
            _up(live[one["id"]]) if one["id"] in live else "not applied" if one["enabled"] else "disabled",
        )
        for one in wished
    )
    return columns(rows, ("ID", "NAME", "ADDRESS", "PROTOCOL", "SCHEDULER", "UP"))


def servers(found: dict) -> str:
    rows = (
        (
            one["name"],
            server["id"],
            place(server["address"], server["port"]),
            SIGNS.get(server["health"], server["health"]),
            server["weight"],
            server["active"],
            server["inactive"],
        )
        for one in _services(found)
        for server in one["real_servers"]
    )
    return columns(rows, ("SERVICE", "ID", "SERVER", "STATE", "WEIGHT", "ACTIVE", "INACTIVE"))


def review(found: dict) -> str:
    if found["problems"]:
        return "The draft has problems; it cannot be applied."
    if not found["changes"] and not found["diff"]:
        return "The box runs what the draft says."
    return "\n".join([*_changes(found), f"Files that change: {', '.join(found['diff']) or 'none'}"])


def comparison(found: dict) -> str:
    if not found["changes"] and not found["diff"]:
        return f"{found['old']} and {found['new']} are the same."
    files = found["unrendered"] or f"Files that differ: {', '.join(found['diff']) or 'none'}"
    return "\n".join([f"From {found['old']} to {found['new']}:", *_changes(found), files])


def _changes(found: dict) -> list[str]:
    lines = []
    for change in found["changes"]:
        lines.append(f"{change['kind']}: {change['object']}")
        lines += [f"  {sentence}" for sentence in change["sentences"]]
        lines += [f"  ! {change['impact']}"] if change.get("impact") else []
    return lines


def history(found: list[dict]) -> str:
    rows = ((one["number"], one["created"], one["outcome"], one["user"], one["comment"]) for one in found)
    return columns(rows, ("NUMBER", "WHEN", "OUTCOME", "WHO", "WHY"))


def diagnosis(found: dict) -> str:
    if not found["findings"]:
        return f"Nothing was found. Looked at: {'; '.join(found['looked_at'])}."
    return "\n".join(f"{one['kind']}: {one['message']} {one['advice']}" for one in found["findings"])


def trials(found: dict) -> str:
    rows = ((_tried(one), one["state"], f"{one['seconds']:.3f} s", one["message"]) for one in found["trials"])
    return columns(rows, ("SERVER", "STATE", "AFTER", "WHY"))


def _tried(one: dict) -> str:
    """Of a trial."""
    return f"{place(one['server'], one['port'])}{' (fallback)' if one['fallback'] else ''}"


def tokens(found: list[dict]) -> str:
    rows = (
        (
            one["id"],
            one["name"],
            one["user"],
            ",".join(one["scopes"]),
            one["expires"] or "never",
            one["used"] or "never",
        )
        for one in found
    )
    return columns(rows, ("ID", "NAME", "USER", "MAY", "ENDS", "USED"))


def _services(found: dict) -> list[dict]:
    return found["running"]["services"]


def _up(service: dict) -> str:
    states = [server["health"] for server in service["real_servers"]]
    wanted = [state for state in states if state not in ("draining", "disabled")]
    return f"{sum(state in ('up', 'unchecked') for state in wanted)} of {len(wanted)}"
