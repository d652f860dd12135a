"""The canonical text of a snapshot and its digest: a line for each service, so a small change makes few of them new.

Between the web page and the applier, and between the boxes of a pair, a service that both know is sent as its name: of
a thousand services the texts are megabytes, and a change is about few of them.
"""

from __future__ import annotations

import hashlib
import json

from lbconfig.model.kept import kept
from lbconfig.model.lines import line
from lbconfig.model.snapshot import Snapshot, VirtualService, plain
from lbconfig.model.writing import written


@kept
def service_text(service: VirtualService) -> str:
    return line(plain(service))


@kept
def service_name(service: VirtualService) -> str:
    """As `lines.name_of` of its plain data."""
    return hashlib.sha256(service_text(service).encode()).hexdigest()


@kept
def text(snapshot: Snapshot) -> str:
    """JSON with sorted keys, which `from_json` reads; equal snapshots, equal text."""
    parts = []
    for name in sorted(written(snapshot)):
        value = getattr(snapshot, name)
        if name == "services":
            lines = ",\n".join(service_text(one) for one in value)
            parts.append(f'"services":[\n{lines}\n]' if value else '"services":[]')
        else:
            parts.append(f"{json.dumps(name)}:{line(plain(value))}")
    return "{" + ",\n".join(parts) + "}\n"


@kept
def digest(snapshot: Snapshot) -> str:
    """SHA-256 (hex) of the canonical text."""
    return hashlib.sha256(text(snapshot).encode()).hexdigest()


@kept
def named(snapshot: Snapshot) -> dict[str, object]:
    """Plain data with the name of each service in its place."""
    rest = {name: plain(getattr(snapshot, name)) for name in written(snapshot) if name != "services"}
    return rest | {"services": [service_name(one) for one in snapshot.services]}


def parted(snapshot: Snapshot, known: Snapshot | None) -> tuple[dict[str, object], list[object]]:
    """`named`, and the plain data of the services that are none of `known`; None: of all."""
    names = {service_name(one) for one in known.services} if known else set()
    return named(snapshot), [plain(one) for one in snapshot.services if service_name(one) not in names]
