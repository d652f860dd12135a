"""Two boxes of a pair with two slots each, updated as one act: real updates and roles, over a model of the rest.

The channel is a call, through JSON and the checks of the protocol; a reboot takes a minute of the test's clock.
"""

import hashlib
import json
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from types import SimpleNamespace

from pair_world import Box, Core, PairHost, World
from update_box import UpdateHost, bundle_bytes, manifest

from applier.base.paths import Paths
from applier.disk import bootstate
from applier.host.host import Output
from applier.kept.turn import Turn
from applier.update import bootcheck
from applier.update.rolling.verbs import EVERY, RollingUpdate
from applier.update.slots import Slots
from applier.update.verbs import Updates
from applier.wire.errors import ApplierRefused
from applier.wire.protocol import FOR_PEER, checked

OLD, NEW = "0.1.0", "0.2.0"
BOOTS = 60.0  # seconds
IMAGE = b"hsqs" + bytes(range(251)) * 40
SLOT = 1 << 16  # bytes
INFO = manifest(RAUC_IMAGE_DIGEST_0=hashlib.sha256(IMAGE).hexdigest(), RAUC_IMAGE_SIZE_0=str(len(IMAGE)))


class Disk(UpdateHost):
    def __init__(self, paths):
        super().__init__(paths)
        self.image, self.info = IMAGE, Output(0, INFO, "")

    def mount(self, device, folder):
        if device.read_bytes()[:4096] == IMAGE[:4096]:
            self.versions[device.name] = NEW
        return super().mount(device, folder)


@dataclass
class RollingHost(PairHost):
    disk: UpdateHost = None
    reboots: list = field(default_factory=list)  # the role at each

    def command(self, argv, stdin="", timeout=20.0):
        if argv[0] in ("arping", "ping"):
            return super().command(argv, stdin, timeout)
        if argv[0] == "reboot":
            self.reboots.append(self.role)
            self.world.goes_down(self.number)
            return Output(0, "", "")
        return self.disk.command(argv, stdin, timeout)

    def read(self, path):
        if path == self.paths.role or path.name == "carrier":
            return super().read(path)
        return self.disk.read(path)


class Channel:
    """What one box asks the other one."""

    def __init__(self, world, number):
        self.world, self.number = world, number
        self.asked = []

    def ask(self, verb, arguments, within):
        other = self.world.boxes[1 - self.number]
        if self.world.away(other):
            raise ApplierRefused("peer-away", f"{self.world.name(1 - self.number)} is not heard.")
        self.asked.append(verb)
        self.world.on_ask(verb)
        request = checked(verb, json.loads(json.dumps(arguments)), FOR_PEER)
        part = next(one for one in (other.core.rolling, other.pairs) if hasattr(one, verb))
        return json.loads(json.dumps(getattr(part, verb)(**request.fields)))


class RollingWorld(World):
    def __init__(self, folder):
        self.down = [0.0, 0.0]  # until when
        self.comes_up = [True, True]  # the new version
        self.on_ask = lambda verb: None
        super().__init__(folder)

    def _box(self, folder, number):
        paths = Paths(
            state=folder / "state", mount=None, run=folder / "run", version_file=folder / "VERSION",
            slots=folder / "disk", shared=folder / "disk/shared",
        )  # fmt: skip
        for made in (paths.state, paths.disk, paths.upload, paths.slots / "A"):
            made.mkdir(parents=True)
        paths.version_file.write_text(f"{OLD}\n")
        paths.slot_file.write_text("A\n")
        for name in ("slot-a", "slot-b"):
            (paths.disk / name).write_bytes(b"old!" * (SLOT // 4))
        state = bootstate.with_good(bootstate.with_bad(bootstate.BootState(), "B"), "A")
        paths.boot_state.write_bytes(bytes(bootstate.PLACE) + bootstate.render(state))
        box = super()._box(folder / "unused", number)
        host = RollingHost(self, paths, number, disk=Disk(paths))
        core = Core(paths, host, box.core.running, box.core.generations)
        core.pairs = box.pairs
        box.pairs._core = core
        core.errands = Channel(self, number)
        core.pair_watch = SimpleNamespace(told=True)
        self._begin(core)
        return Box(core, host, box.pairs, None, box.told)

    def _begin(self, core):
        """The daemon."""
        core.turn = Turn()
        core.updates = Updates(core.paths, core.host, core.turn, core.faults.codes)
        core.updates.start()
        core.rolling = RollingUpdate(core, lambda: self.clock)
        core.rolling.start()

    @staticmethod
    def name(number):
        return ("lb1", "lb2")[number]

    def away(self, box):
        return not self.path or bool(self.down[box.host.number])

    def beat(self, box, other):
        if not self.away(box) and not self.away(other):
            super().beat(box, other)

    def pass_time(self, seconds):
        super().pass_time(seconds)
        for number, until in enumerate(self.down):
            if until and self.clock >= until:
                self.comes_back(self.boxes[number])

    def goes_down(self, number):
        self.down[number] = self.clock + BOOTS
        self.faulty[number] = True
        self.elect()

    def power_cut(self, number):
        self.goes_down(number)

    def comes_back(self, box):
        """What GRUB and bootcheck do."""
        number, paths = box.host.number, box.core.paths
        self.down[number], self.faulty[number] = 0.0, False
        slots = Slots(paths, box.host)
        state = bootstate.read(paths.boot_state)
        slot = bootstate.choose(state)
        version = slots.version(slot)
        if version == NEW and not self.comes_up[number]:
            slot, version = slots.booted, OLD  # after three tries
        paths.slot_file.write_text(f"{slot}\n")
        paths.version_file.write_text(f"{version}\n")
        bootcheck.came_back(paths, slot)
        bootstate.mark_good(slot, paths.boot_state)
        bootcheck.arrived(paths, slot)
        self._begin(box.core)
        self.elect()

    def restart_daemon(self, number):
        self._begin(self.boxes[number].core)

    # --- the test ---

    def start(self, number=0):
        box = self.boxes[number]
        name = f"{1:032x}"
        (box.core.paths.upload / f"{name}.raucb").write_bytes(bundle_bytes())
        return box.core.rolling.pair_update_start(f"upload:{name}", "ann")

    def turns(self, seconds):
        """Both look after the update for so long."""
        end = self.clock + seconds
        while self.clock < end:
            self.pass_time(EVERY)
            for box in self.boxes:
                if not self.down[box.host.number]:
                    box.core.rolling.tick()
                    self.settle()

    def until(self, done, seconds=3000.0):
        end = self.clock + seconds
        while not done():
            assert self.clock < end, [box.core.rolling.pair_update() for box in self.boxes]
            self.turns(EVERY)

    def phase(self, number=0):
        return self.boxes[number].core.rolling._kept.phase

    def state(self, number=0):
        return self.boxes[number].core.rolling.pair_update()

    def versions(self):
        return [box.core.paths.version for box in self.boxes]

    @staticmethod
    def settle():
        """Installs and restarts have ended."""
        for thread in threading.enumerate():
            if thread.name == "restart" or len(thread.name) == 8:
                with suppress(RuntimeError):
                    thread.join(20)
