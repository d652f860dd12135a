"""The canonical text of a snapshot and its digest: a line for each service, so a small change makes few of them new."""

from __future__ import annotations

import dataclasses
import hashlib
import json

from lbconfig.kept import kept
from lbconfig.snapshot import Snapshot, VirtualService, plain


def _line(value: object) -> str:
    return json.dumps(plain(value), sort_keys=True, ensure_ascii=False, separators=(",", ":"))


@kept
def _service(service: VirtualService) -> str:
    return _line(service)


@kept
def text(snapshot: Snapshot) -> str:
    """JSON with sorted keys, which `from_json` reads; equal snapshots, equal text."""
    parts = []
    for name in sorted(field.name for field in dataclasses.fields(Snapshot)):
        value = getattr(snapshot, name)
        if name == "services":
            lines = ",\n".join(_service(one) for one in value)
            parts.append(f'"services":[\n{lines}\n]' if value else '"services":[]')
        else:
            parts.append(f"{json.dumps(name)}:{_line(value)}")
    return "{" + ",\n".join(parts) + "}\n"


@kept
def digest(snapshot: Snapshot) -> str:
    """SHA-256 (hex) of the canonical text."""
    return hashlib.sha256(text(snapshot).encode()).hexdigest()
