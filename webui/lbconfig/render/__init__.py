"""From a valid snapshot to the text of every file. One module per target."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

from lbconfig.model.kept import kept
from lbconfig.model.snapshot import Snapshot, Tuning
from lbconfig.pair import view, views
from lbconfig.render import keepalived, ldirectord, nftables, pair_files, resolver, sorry, tuning, web
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
OF_A_PAIR: dict[str, Callable[[Snapshot], str]] = {
    "floating.json": pair_files.render_floating,
    "keepalived.conf": keepalived.render,
    "pair.conf": pair_files.render_link,
}


def render(snapshot: Snapshot, box: int | None = None) -> dict[str, str]:
    """File name to text. Only for a snapshot that `validate` found no problem in.

    Of a pair: the files of one box; without `box` those of both, by "HOST NAME/FILE NAME", as an admin reviews them.
    """
    found = views(snapshot) if box is None else (view(snapshot, box),)
    if len(found) == 1:
        return dict(_files(found[0]))
    return {f"{one.network.hostname}/{name}": text for one in found for name, text in _files(one).items()}


@kept
def _files(snapshot: Snapshot) -> dict[str, str]:
    renderers = RENDERERS if snapshot.pair is None else RENDERERS | OF_A_PAIR
    files = {name: renderer(snapshot) for name, renderer in renderers.items()}
    return files if snapshot.tuning == Tuning() else files | {TUNING: tuning.render(snapshot)}


def files_digest(files: Mapping[str, str]) -> str:
    """SHA-256 (hex) over names and texts: what the admin reviewed and the applier compares."""
    total = hashlib.sha256()
    for name in sorted(files):
        for part in (name.encode(), files[name].encode()):
            total.update(len(part).to_bytes(8, "big"))
            total.update(part)
    return total.hexdigest()
