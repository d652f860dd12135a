"""Whether a request proves that the admin reaches the box as it is now, and where his browser finds the box.

An old connection proves nothing: the firewall lets what is established pass, whatever has changed around it. So only
a request counts that came over a connection which was made after the last step of the apply. nginx says how old a
connection is.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from django.http import HttpRequest
from django.urls import reverse

from applier.wire.shapes import RunStatus
from lbconfig.diff.cutoff import follow
from lbconfig.model.addresses import in_url
from lbconfig.model.snapshot import HTTPS_PORT, Snapshot

if TYPE_CHECKING:
    from draft.frame import Frame

AGE = "X-Connection-Age"  # seconds; set by nginx, which drops what a client sends under that name
MARGIN = 2.0  # seconds that may pass between nginx looking at its clock and the applier at its own
PLACE = re.compile(r"[A-Za-z0-9.-]+(:\d+)?")  # of an address of IPv4 or a name
PLACE6 = re.compile(r"\[[0-9a-f:.]+\](:\d+)?")
PROBE_PORT = 44443  # one that the firewall of the box never opens for the web UI: there the box says nothing


def age(request: HttpRequest) -> float | None:
    """Seconds since the connection was made; None: nobody says, as on a developer's machine."""
    try:
        found = float(request.headers.get(AGE, ""))
    except ValueError:
        return None
    return found if math.isfinite(found) and found >= 0 else None


def proves(request: HttpRequest, run: RunStatus) -> bool:
    """Whether it came over a connection that is younger than what waits."""
    seconds, waited = age(request), run["confirm"]["waited"] if run["confirm"] else None
    return seconds is not None and waited is not None and seconds + MARGIN <= waited


def must_wait(request: HttpRequest, run: RunStatus) -> bool:
    """Whether it came over a connection that proves nothing; where nobody knows its age, a click is believed."""
    return age(request) is not None and not proves(request, run)


def used(request: HttpRequest) -> str:
    """The address of the box, or a name of it, that the browser uses."""
    return urlsplit(f"//{request.get_host()}").hostname or ""


def place(request: HttpRequest, address: str, running: Snapshot, new: Snapshot) -> str:
    """An address of the box and the port there after the change, as a URL has them: "192.0.2.7:8443".

    A port that somebody forwards to the box leads where he wants it to, so it stays.
    """
    port = urlsplit(f"//{request.get_host()}").port
    if (port or HTTPS_PORT) == running.management.port:
        port = new.management.port if new.management.port != HTTPS_PORT else None
    return f"{in_url(address)}{f':{port}' if port else ''}"


def url(request: HttpRequest, place: str, path: str = "/") -> str:
    return f"{request.scheme}://{place}{path}"


def next_place(request: HttpRequest, frame: Frame, new: Snapshot) -> str | None:
    """Where the browser finds the box after the change. "": where it is now; None: nobody knows that yet."""
    if frame.status is None or frame.running is None:
        return None
    now = used(request)
    interfaces = frame.status["interfaces"]
    live = {address.partition("/")[0]: one["name"] for one in interfaces for address in one["addresses"]}
    found = follow(frame.running, new, now, request.META["REMOTE_ADDR"], live)
    if not found:
        return None
    there = place(request, found, frame.running, new)
    return "" if there == place(request, now, frame.running, frame.running) else there


def shows_other(running: Snapshot, new: Snapshot) -> bool:
    """Whether the web page has another certificate after the change. A browser that does not trust it says nothing
    to a script that asks behind the page: only a page that is opened as a whole shows the warning."""
    return running.management.page_key != new.management.page_key


def link(request: HttpRequest, place: str, secret: str, decide: bool) -> str:
    path = reverse("arrive", args=[secret])
    return url(request, place, f"{path}?decide=1" if decide else path)


def silent(request: HttpRequest, place: str) -> str:
    return url(request, f"{in_url(urlsplit(f'//{place}').hostname or '')}:{PROBE_PORT}")


def sources(request: HttpRequest, place: str) -> str:
    """What a page may ask that checks whether the box answers there, for a content security policy.

    The policy has no way to name an address of IPv6; there every host of the scheme has to do.
    """
    if PLACE6.fullmatch(place):
        return f"{request.scheme}:"
    if not PLACE.fullmatch(place):
        return ""
    return f"{url(request, place, '')} {silent(request, place).rstrip('/')}"
