"""What the console tells: gathered from the applier and from a few files below /run/fairlead."""

from __future__ import annotations

import os
import stat
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from applier.disk import disks
from applier.host.host import Live
from applier.wire.client import ApplierDown, ApplierRefused, Client
from applier.wire.shapes import Status
from lbconfig.model.snapshot import HTTPS_PORT

TIMEOUT = 5  # seconds for an answer of the applier
STARTING = 60.0  # seconds after power-on in which an applier that does not answer yet is no fault


@dataclass(frozen=True)
class State:
    version: str = ""
    place: str = ""  # the slot and disk that the box runs from; empty where it has none
    on_a_stick: bool = False
    addresses: tuple[str, ...] = ()  # where the web page may be reached
    port: int = HTTPS_PORT  # and by which port there
    only: tuple[str, ...] = ()  # the interfaces that it answers on; empty: all of them
    setup_code: str = ""  # empty: none is active
    configuration: str = ""  # a few words on what runs
    faults: tuple[str, ...] = ()
    update: str = ""  # what became of the last update, where that is no fault
    pair: str = ""  # how the pair stands; empty: the box is in none
    pending: str = ""  # whose changes wait to be confirmed
    services: tuple[str, ...] = field(default=(), compare=False)  # a line each; changes all the time


def gather(run: Path = Path("/run/fairlead")) -> State:
    """The state now. What cannot be had is told as a fault: the console must always have something to say."""
    faults = [text(run / "web/fault")]
    version = text(Path("/usr/lib/fairlead/VERSION"))
    place, on_a_stick = origin(disks.Places(run=run))
    code = text(run / "setup-code")
    try:
        status = Client(run / "applier.sock", TIMEOUT).status()
    except (ApplierDown, ApplierRefused) as error:
        # What the init scripts found; a running applier tells it better.
        faults += [text(path) for path in sorted((run / "faults").glob("*"))]
        if time.clock_gettime(time.CLOCK_BOOTTIME) < STARTING:
            return State(version, place, on_a_stick, (), HTTPS_PORT, (), code, "starting", distinct(faults))
        return State(version, place, on_a_stick, (), HTTPS_PORT, (), code, "unknown", distinct([str(error), *faults]))
    said = pair(status)  # which need not be said twice
    faults += [fault["message"] for fault in status["faults"] if fault["message"] != said]
    return State(
        status["version"], place, on_a_stick, addresses(status), port(status), only(status), code,
        configuration(status), distinct(faults), update(status), pair(status), pending(status), services(status),
    )  # fmt: skip


def origin(places: disks.Places) -> tuple[str, bool]:
    """Where the box runs from, and whether somebody may pull that out."""
    disk = disks.running_from(places)
    if not disk:
        return "", False
    return f"slot {text(places.run / 'slot') or '?'} of {disk}", disks.is_removable(Live(), places, disk)


def snapshot(status: Status) -> dict[str, Any]:
    """What runs, as plain data."""
    return status["snapshot"] or {}


def addresses(status: Status) -> tuple[str, ...]:
    """Of each interface where the web page answers; without those of virtual services, where it does not."""
    virtual = {service["address"] for service in snapshot(status).get("services", ())}
    chosen = only(status)
    links = [link for link in status["interfaces"] if link["up"] and (not chosen or link["name"] in chosen)]
    found = (one.partition("/")[0] for link in links for one in link["addresses"])
    return tuple(address for address in found if address not in virtual | {"127.0.0.1", "::1"})


def port(status: Status) -> int:
    found: int = snapshot(status).get("management", {}).get("port", HTTPS_PORT)
    return found


def only(status: Status) -> tuple[str, ...]:
    """The interfaces that the web page answers on; none: on all of them."""
    return tuple(snapshot(status).get("management", {}).get("interfaces", ()))


def configuration(status: Status) -> str:
    count = len(snapshot(status).get("services", ()))
    if status["generation"] is None:
        return "as delivered"
    return f"revision {status['generation']}, {count} virtual service{'s' * (count != 1)}"


def update(status: Status) -> str:
    outcome = status.get("update")
    return outcome["sentence"] if outcome and outcome["state"] != "failed" else ""


def pair(status: Status) -> str:
    found = status.get("pair")
    return found["sentence"] if found else ""


def pending(status: Status) -> str:
    run = status.get("apply")
    if not run or run["state"] != "waiting":
        return ""
    return f"those of {run['user']} wait to be confirmed, or go back by themselves"


def services(status: Status) -> tuple[str, ...]:
    wished = {service["id"]: service for service in snapshot(status).get("services", ())}
    lines = []
    for service in status["running"]["services"]:
        wish = wished.get(service["id"], {"address": "?", "port": "?", "protocol": "?"})
        lines.append(f"{service['name']}  {wish['address']}:{wish['port']} {wish['protocol']}")
        for server in service["real_servers"]:
            connections = f"{server['active']} active, {server['inactive']} inactive"
            lines.append(f"  {server['address']}:{server['port']}  {server['health']}  {connections}")
    return tuple(lines)


def text(path: Path) -> str:
    """The text of a small file, as one line of what can be printed; empty when it is not there.

    Some of these folders belong to the web process. What it left instead of a file of its own (a link, a FIFO) is
    not followed, and nothing of its text acts on the terminal.
    """
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode) or about.st_uid != path.parent.stat().st_uid:
                return ""
            found = file.read(1000).decode(errors="replace")
    except OSError:
        return ""
    return "".join(one if one.isprintable() else "?" for one in " ".join(found.split()))


def distinct(faults: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, faults)))
