"""The admin's guide as the build has rendered it (board/common/guide.py): one file, read once."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.conf import settings

INDEX = "README"


@dataclass(frozen=True, slots=True)
class Page:
    title: str
    html: str


def pages() -> dict[str, Page]:
    """Name -> page, the index first."""
    return _read(settings.GUIDE)


@cache
def _read(file: Path) -> dict[str, Page]:
    return {name: Page(**page) for name, page in json.loads(file.read_text()).items()}
