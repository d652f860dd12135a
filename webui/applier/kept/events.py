"""Why servers and services left and came back: what the health checks say then, kept for those who ask later.

Fairlead/Rounds.pm sends a datagram of JSON for each. The checks never wait for this process, and start anew with every
apply; so what they say of a server that is known to be down already is no event, only a newer reason. That a server is
up for which nobody has said that it was down is none either: at a start of the box that is all of them.

A server that fails and stays for want of others is "kept". A service that stands aside is told as one of its servers
without an address.
"""

from __future__ import annotations

import contextlib
import json
import logging
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from applier.base import durable
from applier.kept.faults import now
from applier.wire.shapes import Event

log = logging.getLogger("applier")

MOST = 1000  # events that are kept
LONGEST = 4096  # bytes of a datagram
AT_ONCE = 500  # datagrams that are kept by one write to the disk
MAX_REASON = 200  # characters
TIME = "%Y-%m-%dT%H:%M:%SZ"

Place = tuple[str, int]  # address and port of a real server
Downs = Mapping[int, Mapping[Place, Event]]  # by service: of each server that is not up, the event since when
ALL = "", 0  # the place of the service as a whole


class Events:
    """`path` is a line of JSON for each event. `name` tells what a service is called now."""

    def __init__(self, path: Path, name: Callable[[int], str] = str) -> None:
        self._path, self._name = path, name
        self._lock = threading.Lock()
        self._events: deque[Event] = deque(maxlen=MOST)
        self._lines = 0  # in the file
        self._downs: dict[int, dict[Place, Event]] = {}  # each is replaced as a whole, so that it can be compared

    def load(self) -> None:
        """What was kept before. A line that is no event, as a power cut leaves one, keeps no box from starting."""
        try:
            lines = self._path.read_bytes().splitlines()
        except OSError:
            return
        with self._lock:
            self._lines = len(lines)
            for line in lines:
                with contextlib.suppress(Exception):
                    self._note(_event(json.loads(line)))

    def newest(self) -> list[Event]:
        """The newest first."""
        with self._lock:
            return list(reversed(self._events))

    @property
    def downs(self) -> Downs:
        with self._lock:
            return dict(self._downs)

    def take(self, datagrams: Iterable[bytes]) -> None:
        """What the checks have said, in its order."""
        fresh = []
        with self._lock:
            for datagram in datagrams:
                try:
                    said = json.loads(datagram)
                    event = _event({**said, "when": now(), "name": self._name(said["service"])})
                # Whatever it is: those behind it are events, and nobody would start the thread that listens again.
                except Exception as error:  # noqa: BLE001
                    log.error("the health checks said something that is not an event: %r", error)
                    continue
                if self._note(event):
                    fresh.append(event)
            if fresh:
                self._keep(fresh)

    def _note(self, event: Event) -> bool:
        """Whether it is a new one."""
        service, place = event["service"], (event["server"], event["port"])
        downs = self._downs.get(service, {})
        known = downs.get(place)
        if event["state"] == "up":
            if known is None:
                return False
            self._downs[service] = {key: one for key, one in downs.items() if key != place}
        elif known is not None and known["state"] == event["state"]:
            self._downs[service] = downs | {place: {**event, "when": known["when"]}}
            return False
        else:
            self._downs[service] = downs | {place: event}
        self._events.append(event)
        return True

    def _keep(self, fresh: list[Event]) -> None:
        """On the disk, whose file is written anew when half of it is old."""
        try:
            if self._lines + len(fresh) > 2 * MOST:
                durable.replace(self._path, _lines(self._events))
                self._lines = len(self._events)
            else:
                durable.append(self._path, _lines(fresh))
                self._lines += len(fresh)
        except OSError as error:
            log.error("%s: %s", self._path, error)  # the data partition has faults of its own for that


def _lines(events: Iterable[Event]) -> bytes:
    return "".join(f"{json.dumps(event)}\n" for event in events).encode()


def _event(data: dict[str, Any]) -> Event:
    """ValueError, KeyError or TypeError where it is none."""
    event: Event = {
        "when": datetime.strptime(data["when"], TIME).strftime(TIME),
        "service": int(data["service"]),
        "name": str(data["name"]),
        "server": str(data["server"]),
        "port": int(data["port"]),
        "state": data["state"],
        "reason": str(data["reason"])[:MAX_REASON],
        "failures": int(data["failures"]),
        "seconds": float(data["seconds"]),
    }
    if event["state"] not in (("up", "aside") if (event["server"], event["port"]) == ALL else ("up", "down", "kept")):
        raise ValueError(f"a state {event['state']!r}")
    return event


def listen(path: Path, events: Events) -> None:
    """Take what comes, for good. Root alone may send."""
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as door:
        door.bind(str(path))
        path.chmod(0o600)
        while True:
            datagrams = [door.recv(LONGEST)]
            with contextlib.suppress(BlockingIOError):
                while len(datagrams) < AT_ONCE:
                    datagrams.append(door.recv(LONGEST, socket.MSG_DONTWAIT))
            events.take(datagrams)
