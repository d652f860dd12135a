"""What goes along from one box of a pair to the other one: documents of the web pages, which root does not read.

The web process says what it has by short stamps, and hears those of the other box. A document itself is brought when
its stamp is new there, and lies here only from the moment it was wanted until it was fetched. Nothing of it lies on
the disk: whoever is started anew says again what he has.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Protocol

from applier.base.paths import Paths
from applier.host.host import Host
from applier.kept.faults import Faults
from applier.pair import client
from applier.pair.errands import Errands
from applier.pair.peer import Peer
from applier.pair.roles import LEADS
from applier.wire.errors import ApplierRefused
from applier.wire.protocol import stamps_sentence
from applier.wire.shapes import Nothing
from applier.wire.shapes_pair import AlongState, Brought
from lbconfig.target import Target

KEPT = 4  # documents that wait to be fetched; each may have megabytes
WANTED = 16  # names of such that are not here
STAMPS_WITHIN = 10.0  # seconds
DOCUMENT_WITHIN = 60.0
FAULT = "pair-along"


class Core(Protocol):
    """What of the daemon it needs."""

    host: Host
    paths: Paths
    faults: Faults
    running: Target
    confirmed: int | None
    peer: Peer
    errands: Errands


class Along:
    def __init__(self, core: Core) -> None:
        self._core = core
        self._lock = threading.Lock()
        self._pair = ""  # whose documents these are
        self._stamps: dict[str, str] = {}
        self._documents: OrderedDict[str, str] = OrderedDict()
        self._wanted: OrderedDict[str, None] = OrderedDict()

    # --- verbs for the web process -------------------------------------------------------------------

    def pair_along(self, stamps: Mapping[str, str], trouble: str) -> AlongState:
        """Say what is here, and hear what is there. `trouble`: what every page should tell; "": nothing."""
        core, running = self._core, self._core.running
        pair, box = running.snapshot.pair, running.box
        core.faults.set(FAULT, trouble if trouble and pair is not None else None)
        if pair is None or box is None:
            self._says("", {})
            return {
                "pair": "", "box": 0, "own": "", "other": "", "desk": True, "revision": core.confirmed,
                "theirs": None, "wanted": [],
            }  # fmt: skip
        self._says(pair.id, stamps)
        try:
            theirs: dict[str, str] | None = core.errands.ask("along_stamps", {}, STAMPS_WITHIN)["stamps"]
        except ApplierRefused:
            theirs = None  # it is away, or starts
        if theirs is not None and stamps_sentence(theirs):
            theirs = None
        with self._lock:
            wanted = list(self._wanted)
        return {
            "pair": pair.id,
            "box": box,
            "own": pair.boxes[box].name,
            "other": pair.boxes[1 - box].name,
            "desk": self._is_desk(box),
            "revision": core.confirmed,
            "theirs": theirs,
            "wanted": wanted,
        }

    def pair_offer(self, name: str, text: str) -> Nothing:
        """A document that the other box wants, for as long as it takes to fetch it."""
        with self._lock:
            if name in self._wanted:
                del self._wanted[name]
                self._documents[name] = text
            while len(self._documents) > KEPT:
                self._documents.popitem(last=False)
        return {}

    def pair_bring(self, name: str) -> Brought:
        """A document of the other box. Refused with "not-offered" where that one has still to put it there."""
        answer = self._core.errands.ask("along_document", {"name": name}, DOCUMENT_WITHIN)
        text = answer.get("text")
        if not isinstance(text, str):
            raise ApplierRefused("bad-field", "What the other box says is wrong: text: must be a text.")
        return {"text": text}

    # --- errands of the other box --------------------------------------------------------------------

    def along_stamps(self) -> dict[str, Any]:
        with self._lock:
            return {"stamps": dict(self._stamps) if self._is_current() else {}}

    def along_document(self, name: str) -> dict[str, Any]:
        with self._lock:
            if self._is_current() and name in self._documents:
                return {"text": self._documents.pop(name)}
            self._wanted[name] = None
            while len(self._wanted) > WANTED:
                self._wanted.popitem(last=False)
        raise ApplierRefused("not-offered", "The web pages of this box have not said yet what that is.")

    def _is_desk(self, box: int) -> bool:
        own, other = client.role(self._core.host, self._core.paths), self._core.peer.beat
        here, there = own is not None and own.role == LEADS, other is not None and other.role == LEADS
        return here if here != there else box == 0

    def _is_current(self) -> bool:
        pair = self._core.running.snapshot.pair
        return pair is not None and pair.id == self._pair

    def _says(self, pair: str, stamps: Mapping[str, str]) -> None:
        """What belongs to another pair is forgotten."""
        with self._lock:
            if self._pair != pair:
                self._documents.clear()
                self._wanted.clear()
            self._pair, self._stamps = pair, dict(stamps)
