"""A box that was joined and does not run the pair's configuration yet: it hears the other one, and nothing more.

What was agreed (joining/record.py) is enough for the link and the channel. So the first apply of the pair is one of
both boxes, like any other. The record is forgotten once the pair's configuration runs on both, or when an admin says
so.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from applier.base.paths import Paths
from applier.host.host import Host, HostError, run
from applier.kept.faults import Faults
from applier.kept.loop import Loop
from applier.kept.turn import Turn
from applier.pair import election
from applier.pair.joining import record
from applier.pair.joining.record import Record
from applier.parts.pair import link
from applier.wire.errors import ApplierRefused
from applier.wire.shapes import Nothing
from applier.wire.shapes_joining import JoinedLink
from lbconfig.agreement import Standing
from lbconfig.render.pair_rules import JOINED
from lbconfig.target import Target
from lbconfig.wanted.pair_link import LINK_PORT

log = logging.getLogger("applier")

EVERY = 1.0  # seconds between two looks
AGAIN = 10.0  # seconds after which the firewall is told again: rules that are loaded anew do not know it
TELLS = 5.0  # seconds that the other box may take to hear that it is forgotten
LATER = 2.0  # seconds for its answer to arrive, before it takes the link down
SILENT = 60.0  # seconds without a word, after which it is a fault


class Place(Protocol):
    @property
    def pair(self) -> str: ...


class Agreement(Protocol):
    @property
    def place(self) -> Place | None: ...
    def silent(self) -> bool: ...
    def standing(self) -> Standing | None: ...


class Asks(Protocol):
    def ask(self, verb: str, arguments: Mapping[str, object], within: float) -> dict[str, Any]: ...


class Core(Protocol):
    """What is needed of the daemon."""

    host: Host
    paths: Paths
    turn: Turn
    faults: Faults
    running: Target
    confirmed: int | None

    @property
    def asks(self) -> Asks: ...
    @property
    def agreement(self) -> Agreement: ...


class Joined:
    def __init__(self, core: Core, clock: Callable[[], float]) -> None:
        self._core = core
        self._clock = clock
        self._begun = False
        self._known: tuple[tuple[int, int] | None, Record | None] = (None, None)  # the file, and what it says
        self._opened = ("", float("-inf"))  # the rules that let the other box in, and when they were told
        # Of the record that was looked at: the pair, whether the other box is heard, and since when it is so.
        self._link: tuple[str, bool, float] | None = None
        self._forgotten: tuple[str, float] | None = None  # the pair that the other box has given up, and when
        self.loop = Loop("the box that was joined", self.tick, lambda: core.host.sleep(EVERY))

    @property
    def record(self) -> Record | None:
        """None: the box was not joined, or is still being started."""
        if not self._begun:
            return None
        try:
            found = self._core.paths.joined.stat()
            file = found.st_mtime_ns, found.st_ino
        except OSError:
            return None
        if self._known[0] != file:
            self._known = file, record.load(self._core.paths)
        return self._known[1]

    @property
    def alone(self) -> Record | None:
        """The same, as long as the box runs a configuration of its own."""
        return None if self._core.running.snapshot.pair else self.record

    @property
    def link(self) -> JoinedLink | None:
        """How it stands with the other one that was joined; None: there is none, or it is not known yet."""
        known, found = self._link, self.alone
        if known is None or found is None or known[0] != found.id:
            return None
        return {"heard": known[1], "lasts": round(self._clock() - known[2], 1)}

    def place(self, found: Record) -> str:
        """The address of the other box: where the link heard it last, else where the two met."""
        try:
            over_link = link.peer(self._core.host)
        except HostError:
            over_link = None
        endpoint = over_link.endpoint.rpartition(":")[0].strip("[]") if over_link else ""
        return endpoint or found.address

    def started(self) -> None:
        """The box runs what it is to begin with."""
        self._begun = True

    def tick(self) -> None:
        """Keep the link up as long as it is needed, and the firewall open for it."""
        found = self.record
        if found is not None:
            self._open(found)
        if self._begun and not self._core.turn.taken:
            if found is not None and self._is_over(found):
                self._end()
                log.info("%s runs the configuration of the pair", found.other)
            if self._forgotten and self._clock() - self._forgotten[1] > LATER:
                self._obey(self._forgotten[0])
            self._settle()
        self._tell()

    def pair_forgotten(self, pair: str) -> Nothing:
        """For the other box, whose admin has ended what the two were joined for. A pair that is confirmed stays."""
        found = self.alone
        if found is not None and found.id == pair:
            log.info("%s has forgotten this box", found.other)
            self._forgotten = pair, self._clock()
        return {}

    def forget(self) -> None:
        """Know nobody any more, and take the link down, here and at the other box if that is heard.

        ApplierRefused while something else changes the system.
        """
        if refused := self._core.turn.refusal():
            raise refused
        found = self.alone
        if found is None:
            record.forget(self._core.paths)  # one that cannot be read, or of a box that was to replace the other one
            return
        try:
            self._core.asks.ask("pair_forgotten", {"pair": found.id}, TELLS)
        except ApplierRefused as error:
            log.warning("%s was not told that it is forgotten: %s", found.other, error.message)
        self._drop()

    # ---------------------------------------------------------------------------------------------

    def _obey(self, pair: str) -> None:
        """Forget, as the other box has; unless the two have become a pair meanwhile."""
        found = self.alone
        if found is not None and found.id == pair:
            self._drop()
        self._forgotten = None

    def _drop(self) -> None:
        core = self._core
        with core.turn.take("the box forgets the one that it was joined with"):
            record.forget(core.paths)
            try:
                self._put("")
            except HostError as error:
                raise ApplierRefused("pair-error", f"The link to the other box was not taken down: {error}.") from None

    def _is_over(self, found: Record) -> bool:
        """The second box needs nothing of it any more once the pair is confirmed. The first one waits for the second:

        that one may have missed the decision, and then speaks from where it was when they were joined. So does a new
        box for the second one, which knows its facts then.
        """
        core = self._core
        pair = core.running.snapshot.pair
        if pair is None or not core.running.in_pair or pair.id != found.id or core.running.number != core.confirmed:
            return False
        agreement = core.agreement
        joined = found.box == 1 and found.facts is None
        return joined or (not agreement.silent() and agreement.standing() is Standing.IN_STEP)

    def _end(self) -> None:
        record.forget(self._core.paths)
        for suffix in ("", "6"):
            run(self._core.host, ["nft", "flush", "set", "inet", "fairlead", f"{JOINED}{suffix}"])
        self._opened = ("", float("-inf"))

    def _settle(self) -> None:
        """The link and the channel of a box that runs its own configuration."""
        core, found = self._core, self.alone
        if core.running.snapshot.pair is not None:
            return
        conf = record.conf(found) if found else ""
        if (core.host.read(core.paths.pair_link) or "") == conf:
            if conf and not election.talks(core.host, core.paths):
                election.begin_channel(core.host, core.paths)
            return
        try:
            with core.turn.take("the link to the other box is being set up"):
                self._put(conf)
        except ApplierRefused:
            return  # something else changes the system; the next look is soon

    def _put(self, conf: str) -> None:
        host, paths = self._core.host, self._core.paths
        if not conf:
            election.end_channel(host, paths)
        link.put(host, paths, conf)
        if conf:
            election.begin_channel(host, paths)

    def _open(self, found: Record) -> None:
        """Rules of a pair let the link in from the pair cable alone; the other box may not speak from there yet."""
        host, now = self._core.host, self._clock()
        rules = host.read(self._core.paths.nftables) or ""
        if f"set {JOINED} {{" not in rules or (rules == self._opened[0] and now - self._opened[1] < AGAIN):
            return
        name = f"{JOINED}6" if ":" in found.address else JOINED
        run(host, ["nft", "add", "element", "inet", "fairlead", name, f"{{ {found.address} }}"])
        self._opened = rules, now

    def _tell(self) -> None:
        found, now, agreement = self.alone, self._clock(), self._core.agreement
        # What was heard may have been a box that this one was joined with before.
        ours = found is not None and agreement.place is not None and agreement.place.pair == found.id
        heard = ours and not agreement.silent()
        if found is None:
            self._link = None
        elif self._link is None or self._link[:2] != (found.id, heard):
            self._link = found.id, heard, now
        # A box that replaces another one is heard once the other box has applied that, which may be days.
        silent = self._link is not None and not heard and now - self._link[2] > SILENT
        words = (
            f"{found.other}, with which this box was joined, is not heard at {found.address}. Is it on, and does UDP "
            f"port {LINK_PORT} pass between the two? If {found.other} does not know this box, join them once more; to "
            f"end it, forget {found.other} under System, Pair."
            if found and silent and not found.replaces
            else None
        )
        self._core.faults.set("joined-silent", words)
