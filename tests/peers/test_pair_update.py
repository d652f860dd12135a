"""Both boxes of a pair get a bundle over the channel between them: real appliers, and the process that talks is killed.

Their disks are files, and RAUC is a model; that the boxes restart, the unit tests and a booted machine show.
"""

from __future__ import annotations

import itertools
import threading
import time

import pytest
from board.machines.wait import until
from tests.peers.test_pair_channel import End, ends, hear_each_other, pytestmark  # noqa: F401 # fixture and mark
from update_box import UpdateBox, bundle_bytes

from applier.apply.deadline import boottime
from applier.update.rolling import verbs
from applier.update.rolling.course import Phase
from applier.update.rolling.verbs import RollingUpdate
from applier.wire.errors import ApplierRefused
from applier.wire.protocol import VERBS, checked


class WithSlots:
    """The applier of a box, with a disk that has two slots."""

    def __init__(self, end: End, folder) -> None:
        self._applier = end.half.applier
        self.disk = UpdateBox(folder)
        self.disk.host.versions["slot-b"] = "0.2.0"
        self.paths, self.updates, self.host = self.disk.paths, self.disk.updates, self.disk.host
        self.rolling = RollingUpdate(self, boottime)  # by the clock that tells when the other box was heard
        self._applier.rolling = self.rolling
        names = [name for name in self._applier.verbs if name.startswith(("pair_update", "peer_update"))]
        self._applier.verbs |= {name: getattr(self.rolling, name) for name in names}
        end.half.paths.first_round.touch()

    def __getattr__(self, name):
        return getattr(self._applier, name)

    def ask(self, verb, **fields):
        return self._applier.handle(checked(verb, fields, VERBS), 0)


def test_a_bundle_goes_to_the_other_box_though_the_channel_dies_under_way(ends, tmp_path, monkeypatch):  # noqa: F811
    first, second = (WithSlots(end, tmp_path / f"disk{end.number}") for end in ends)
    monkeypatch.setattr(verbs, "SENDING", 2.0)
    first.host.now = itertools.count().__next__  # so that there is one piece between two looks
    for end in ends:
        end.begin()
    hear_each_other(ends)
    until("the other box to be ready", lambda: not first.ask("pair")["refusal"], 60)
    data = bundle_bytes(bytes(range(250)) * 11_000)
    source = first.disk.upload(data)
    assert first.ask("pair_update_start", source=source, user="ann")["state"] == "running"
    for box in (first, second):
        with pytest.raises(ApplierRefused, match="Right now both boxes are being updated to"):
            box.ask("repair", user="bob")
    begun, killed = time.monotonic(), False
    while first.rolling._kept.phase is not Phase.RESTARTS:
        told = first.ask("pair_update")
        assert told["state"] == "running" and time.monotonic() < begun + 120, told
        first.rolling.tick()
        for thread in threading.enumerate():
            if len(thread.name) == 8:  # an install
                thread.join(60)
        if not killed and second.rolling._receiving.received(first.rolling._kept.id):
            killed = True
            ends[1].kill()
            ends[1].talk()
            hear_each_other(ends)
    assert killed and second.rolling._kept.id == first.rolling._kept.id
    for box in (first, second):
        assert box.updates.slots()["outcome"]["state"] == "installed"
    assert first.ask("pair_update")["sentence"] == "lb2 restarts into version 0.2.0; lb1 leads."
