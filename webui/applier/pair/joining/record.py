"""What two boxes have agreed, until it is applied: on the disk of both, or of the second one alone.

It is no pair yet: the boxes are linked by it (pair/joined.py), and the first one makes its proposal of it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
from dataclasses import dataclass

from applier.base import durable
from applier.base.paths import Paths
from lbconfig.agreement import Revision
from lbconfig.joining import Facts
from lbconfig.model.reading import SnapshotError, build
from lbconfig.model.writing import plain
from lbconfig.render.pair_files import link_text

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
    mark: str = ""  # of the code (proof.mark), at the box where it was entered
    replaces: bool = False  # this box takes a dead one's place, once the other one has applied that


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


def conf(record: Record) -> str:
    """The link between the two (pair.conf), until the configuration of the pair has one."""
    return link_text(record.box, record.keys[1 - record.box], record.address)


def root(record: Record) -> Revision:
    """Where the lineage of both boxes begins: what each of them had before is no part of it (decision 103)."""
    return Revision(record.id, hashlib.sha256(f"joined {record.id}".encode()).hexdigest())
