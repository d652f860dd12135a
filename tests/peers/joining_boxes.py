"""Two boxes that are joined over loopback: the real messages, TLS and files; ARP and the firewall are pretended."""

import socket
import time

import pytest
from board.machines.wait import PATIENCE
from tests.fake.joining import JoiningBox

from applier.kept import pair_key
from applier.pair.joining import record
from applier.wire.errors import ApplierRefused
from lbconfig.model.snapshot import Interface, Management, Network, Snapshot
from lbconfig.validate.cards import Card

OTHER = "127.0.0.2"  # where the first box answers: 127.0.0.1 is every box's own
FIRST = Snapshot(
    network=Network("lb1", interfaces=(Interface("eth0", addresses=("10.0.2.15/24",)),)),
    management=Management(("10.0.2.0/24",)),
)
SECOND = Snapshot(
    network=Network("lb2", interfaces=(Interface("eth0", addresses=("10.0.2.30/24",)),)),
    management=Management(("10.0.2.0/24",)),
)
CARDS = (Card("eth0", mac="52:54:00:00:00:01"), Card("eth1", mac="52:54:00:00:00:02"))


class Two:
    """Both boxes."""

    def __init__(self) -> None:
        with socket.create_server(("", 0)) as free:
            port = free.getsockname()[1]
        self.port = port
        self.runs = [FIRST, SECOND]
        self.first = Linked(lambda: self.runs[0], lambda: CARDS, port)
        self.second = Linked(lambda: self.runs[1], lambda: CARDS, port)
        self.first.other, self.second.other = self.second, self.first

    def invite(self) -> str:
        return self.first.verbs.pair_invite("admin")["invitation"]["code"]

    def join(self, code: str, address: str = OTHER):
        return self.second.verbs.pair_join(address, code, "admin")

    def refused(self, code: str, address: str = OTHER) -> tuple[str, str]:
        """The field that is to be looked at, and why."""
        with pytest.raises(ApplierRefused) as refusal:
            self.join(code, address)
        return next((one["field"] for one in refusal.value.problems), ""), refusal.value.message

    def settled(self):
        """What the first box says once it waits for nobody any more."""
        return self._until(lambda said: said["invitation"] is None and self.first.verbs._open is None)

    def joined(self) -> bool:
        """Both know each other, and each other's key."""
        return self.first.link["heard"] and agreed(self.first) == agreed(self.second)

    def has_tries(self, left: int) -> None:
        self._until(lambda said: said["invitation"]["tries"] == left)

    def until_it_waits(self) -> None:
        """The first box says nothing to a box that has come."""
        self._until(lambda _: not self.first.meets)

    def _until(self, right):
        end = time.monotonic() + PATIENCE
        while not right(said := self.first.verbs.pair_joining()):
            assert time.monotonic() < end
            time.sleep(0.01)
        return said


class Linked(JoiningBox):
    """It hears the other box as soon as WireGuard would: when each knows the other one's key."""

    other: "Linked"
    udp = True  # passes between the two
    meets = False  # it is saying something to the other box

    def begin(self) -> None:
        super().begin()
        real = self.verbs._meet

        def meet(*arguments) -> None:
            self.meets = True
            try:
                real(*arguments)
            finally:
                self.meets = False

        self.verbs._meet = meet

    @property
    def link(self):
        return {"heard": self.udp and self._knows(self.other) and self.other._knows(self), "lasts": 1.0}

    @link.setter
    def link(self, _) -> None: ...

    def _knows(self, other: "Linked") -> bool:
        found = record.load(self.paths)
        if found is None:
            return False
        own, key = (pair_key.public(box.host, box.paths) for box in (self, other))
        return found.keys == ((own, key) if found.box == 0 else (key, own))


def agreed(box: JoiningBox) -> tuple[str, tuple[str, str]] | None:
    """The pair's id and both keys, as they lie on the box's disk."""
    found = record.load(box.paths)
    return found and (found.id, found.keys)
