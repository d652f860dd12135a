"""What two boxes have agreed, until it is applied: on the disk of both, or of the second one alone.

It is no pair yet, and changes nothing: the first box makes its proposal of it.
"""

from __future__ import annotations

import contextlib
import json
import logging
from dataclasses import dataclass

from applier.base import durable
from applier.base.paths import Paths
from lbconfig.joining import Facts
from lbconfig.model.reading import SnapshotError, build
from lbconfig.model.writing import plain

log = logging.getLogger("applier")


@dataclass(frozen=True, slots=True)
class Record:
    id: str  # of the pair
    box: int  # which of its boxes this one is
    keys: tuple[str, str]
    other: str  # the other box's host name
    address: str  # where it was reached, or came from
    time: int  # of this box when they met, in Unix seconds
    facts: Facts | None  # of the second box; the second box itself needs none
    taken: tuple[str, ...]  # addresses that answered ARP


def keep(paths: Paths, record: Record) -> None:
    """Raises OSError."""
    paths.joined.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    durable.replace(paths.joined, json.dumps(plain(record)).encode())


def forget(paths: Paths) -> None:
    with contextlib.suppress(FileNotFoundError):
        paths.joined.unlink()
        durable.sync_folder(paths.joined.parent)


def load(paths: Paths) -> Record | None:
    """None where there is none, or none that can be read: then the boxes have to be joined anew."""
    try:
        return build(Record, json.loads(paths.joined.read_text()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError, SnapshotError) as error:
        log.error("%s cannot be read: %s", paths.joined, error)
        return None
