"""Plain data as one line of JSON, and the name that stands for it. Quick to load: the command line needs no more."""

from __future__ import annotations

import hashlib
import json
import re

NAME = re.compile(r"[0-9a-f]{64}")


def line(value: object) -> str:
    """JSON with sorted keys; equal data, equal lines."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def name_of(value: object) -> str:
    """What stands for plain data where both sides know it: SHA-256 (hex) of its line."""
    return hashlib.sha256(line(value).encode("utf-8", "surrogatepass")).hexdigest()
