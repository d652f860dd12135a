"""From a valid snapshot to the text of every file. One module per target."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

from lbconfig.model.kept import kept
from lbconfig.model.snapshot import Snapshot, Tuning
from lbconfig.render import ldirectord, nftables, resolver, sorry, tuning, web
from lbconfig.wanted import network as interfaces
from lbconfig.wanted import settings as sysctl
from lbconfig.wanted import table as ipvs

RENDERERS: dict[str, Callable[[Snapshot], str]] = {
    "chrony.conf": resolver.render_time,
    "interfaces": interfaces.render,
    "ipvs.rules": ipvs.render,
    "ldirectord.cf": ldirectord.render,
    "nftables.conf": nftables.render,
    "resolv.conf": resolver.render_names,
    "sorry.html": sorry.render,
    "sysctl.conf": sysctl.render,
    "web.conf": web.render,
}

TUNING = "tuning.conf"  # only where an admin has chosen something


def render(snapshot: Snapshot) -> dict[str, str]:
    """File name to text. Only for a snapshot that `validate` found no problem in."""
    return dict(_files(snapshot))


@kept
def _files(snapshot: Snapshot) -> dict[str, str]:
    files = {name: renderer(snapshot) for name, renderer in RENDERERS.items()}
    return files if snapshot.tuning == Tuning() else files | {TUNING: tuning.render(snapshot)}


def files_digest(files: Mapping[str, str]) -> str:
    """SHA-256 (hex) over names and texts: what the admin reviewed and the applier compares."""
    total = hashlib.sha256()
    for name in sorted(files):
        for part in (name.encode(), files[name].encode()):
            total.update(len(part).to_bytes(8, "big"))
            total.update(part)
    return total.hexdigest()
