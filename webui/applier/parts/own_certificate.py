"""The box's own certificate names the addresses where the web page is, and is valid: else it is made anew.

A certificate of the admin's is not looked at here. Nothing is made while a change is under way or waits to be
confirmed: the browser that confirms it would have to accept another certificate in between.
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

from applier.base.paths import Paths
from applier.host.host import Host, run
from applier.kept.loop import Loop
from applier.kept.turn import Turn
from applier.parts.network import act as network
from lbconfig.model import certificate
from lbconfig.model.certificate import Certificate
from lbconfig.pair import named_floating
from lbconfig.target import Target
from lbconfig.validate import fields

log = logging.getLogger(__name__)

EVERY = 60.0  # seconds
MAKER = "/usr/lib/fairlead/own-certificate"
ALWAYS = ("fairlead", "localhost", "127.0.0.1")
_ONE_ADDRESS = ("/32", "/128")  # how virtual addresses are set; the page is not there
_UNSYNCHRONISED = 5  # TIME_ERROR, what adjtimex(2) gives back while nobody has set the clock
_TIMEX = 256  # bytes; struct timex has 208


class Core(Protocol):
    """What is needed of the daemon."""

    host: Host
    paths: Paths
    turn: Turn
    running: Target


def synchronised() -> bool:
    """Whether a time server has set the clock of this kernel."""
    try:
        return ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(_TIMEX)) not in (-1, _UNSYNCHRONISED)
    except (OSError, AttributeError):
        return False


def names(host: Host, running: Target) -> list[str]:
    """What the certificate must be for: addresses that float have the page as well, whoever leads just now."""
    there = {text.partition("/")[0] for _, text in network.addresses(host) if not text.endswith(_ONE_ADDRESS)}
    own = sorted(there | named_floating(running.own.network).keys())
    hostname = host.setting("kernel/hostname") or ""
    return list(dict.fromkeys((*ALWAYS, *([hostname] if fields.is_dns_name(hostname, 253) else []), *own)))


def why_anew(shown: Certificate | None, wanted: list[str], now: datetime | None) -> str:
    """In words; "": it is as it should be. `now`: None where the clock may be wrong."""
    if shown is None:
        return ""  # nginx's run script makes the first one
    if now is not None and not shown.begins <= f"{now:%Y-%m-%dT%H:%M:%SZ}" <= shown.ends:
        return f"it is valid from {shown.begins} to {shown.ends}"
    missing = [name for name in wanted if not shown.covers(name)]
    return f"it does not name {', '.join(missing)}" if missing else ""


def look(core: Core, right: Callable[[], bool] = synchronised, now: Callable[[], datetime] | None = None) -> str:
    """Make it anew where it has to be, and have nginx show it; why, or "" where nothing was done."""
    host, paths = core.host, core.paths
    if core.turn.taken:
        return ""
    shown = certificate.first(host.read(paths.run / "tls" / "cert.pem") or "")
    wanted = names(host, core.running)
    moment = (now or (lambda: datetime.now(UTC)))() if right() else None
    if why := why_anew(shown, wanted, moment):
        log.warning("the box's own certificate is made anew: %s", why)
        run(host, [MAKER, ",".join(map(_entry, wanted))])
        run(host, ["sv", "hup", str(paths.services / "nginx")])
    return why


def _entry(name: str) -> str:
    return f"DNS:{name}" if fields.ip_address(name) else f"IP:{name}"


def loop(core: Core) -> Loop:
    return Loop("the box's own certificate", lambda: look(core), lambda: core.host.sleep(EVERY))
