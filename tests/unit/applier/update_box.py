"""A disk with two slots in plain files, and a host that knows RAUC and mount: what tests of updates begin with."""

import hashlib
import struct
import threading
from contextlib import suppress
from pathlib import Path

from applier.base.paths import Paths
from applier.disk import bootstate
from applier.host.host import HostError, Output
from applier.kept.turn import Turn
from applier.update.verbs import Updates

SLOT = 3 << 20  # bytes
IMAGE = b"hsqs" + bytes(range(251)) * 9000  # a little over two blocks


def bundle_bytes(payload: bytes = b"", signature: int = 1500) -> bytes:
    """Something of a bundle's shape."""
    return b"hsqs" + payload.ljust(5000, b"p") + bytes(signature) + struct.pack(">Q", signature)


def manifest(**changes: str) -> str:
    fields = {
        "RAUC_MF_COMPATIBLE": "fairlead-pc",
        "RAUC_MF_VERSION": "0.2.0",
        "RAUC_MF_DESCRIPTION": "",
        "RAUC_MF_BUILD": "2026-02-01T00:00:00Z",
        "RAUC_MF_FORMAT": "verity",
        "RAUC_MF_IMAGES": "1",
        "RAUC_MF_HOOKS": "",
        "RAUC_IMAGE_NAME_0": "rootfs.squashfs",
        "RAUC_IMAGE_DIGEST_0": hashlib.sha256(IMAGE).hexdigest(),
        "RAUC_IMAGE_SIZE_0": str(len(IMAGE)),
        "RAUC_IMAGE_HOOKS_0": "",
    } | changes
    return "".join(f"{name}='{value}'\n" for name, value in fields.items())


class UpdateHost:
    """Answers what updates ask of the system."""

    def __init__(self, paths: Paths) -> None:
        self.paths = paths
        self.image = IMAGE
        self.info = Output(0, manifest(), "rauc-Message: something\n")
        self.commands: list[list[str]] = []
        self.versions = {"slot-a": "0.1.0", "slot-b": ""}
        self.fail: tuple[str, ...] = ()  # the first words of a command that cannot be run
        self.hold: threading.Event | None = None  # an install waits for it in the middle
        self.clock = 0.0

    def command(self, argv, stdin="", timeout=20.0):
        words = [str(word) for word in argv]
        self.commands.append(words)
        if self.fail and tuple(words[: len(self.fail)]) == self.fail:
            raise HostError(" ".join(words), None, "the test wanted this to fail")
        if words[0] == "rauc":
            return self.rauc(words[2])
        if words[0] == "mount":
            return self.mount(Path(words[-2]), Path(words[-1]))
        return Output(0, "", "")

    def rauc(self, verb):
        if verb == "info":
            return self.info
        if self.hold:
            self.hold.wait(60)  # for as long as a busy machine needs for what the test does meanwhile
        point = self.paths.run / "rauc/bundle"
        point.mkdir(parents=True, exist_ok=True)
        (point / "rootfs.squashfs").write_bytes(self.image)
        return Output(0, "", "")

    def mount(self, device, folder):
        version = self.versions.get(device.name, "")
        if not version:
            return Output(32, "", "wrong fs type")
        (folder / "usr/lib/fairlead").mkdir(parents=True, exist_ok=True)
        (folder / "usr/lib/fairlead/VERSION").write_text(f"{version}\n")
        return Output(0, "", "")

    def read(self, path):
        try:
            return path.read_text()
        except FileNotFoundError:
            return None

    def now(self):
        return self.clock

    def sleep(self, seconds):
        self.clock += seconds

    def ran(self, *words: str) -> bool:
        return any(command[: len(words)] == list(words) for command in self.commands)


class UpdateBox:
    """Slot A runs and is good; slot B holds nothing."""

    def __init__(self, folder: Path) -> None:
        self.paths = Paths(
            state=folder / "state", mount=None, run=folder / "run", version_file=folder / "VERSION",
            slots=folder / "disk", shared=folder / "disk/shared",
        )  # fmt: skip
        self.paths.disk.mkdir(parents=True)
        self.paths.upload.mkdir(parents=True)
        (self.paths.slots / "A").mkdir()
        self.paths.version_file.write_text("0.1.0\n")
        self.paths.slot_file.write_text("A\n")
        for name in ("slot-a", "slot-b"):
            self.device(name).write_bytes(b"old!" * (SLOT // 4))
        state = bootstate.with_good(bootstate.with_bad(bootstate.BootState(), "B"), "A")
        self.paths.boot_state.write_bytes(bytes(bootstate.PLACE) + bootstate.render(state))
        self.host = UpdateHost(self.paths)
        self.turn = Turn()
        self.updates = Updates(self.paths, self.host, self.turn, lambda: ["health-checks"])

    def device(self, name: str) -> Path:
        return self.paths.disk / name

    @property
    def busy(self) -> bool:
        return self.turn.taken

    def upload(self, data: bytes = b"", number: int = 1) -> str:
        name = f"{number:032x}"
        (self.paths.upload / f"{name}.raucb").write_bytes(data or bundle_bytes())
        return f"upload:{name}"

    def install(self, source: str = "") -> dict:
        """To its end; the job."""
        job = self.updates.update_install(source or self.upload(), "ann")["job"]
        self.wait(job)
        return self.updates.slots()["job"]

    @staticmethod
    def wait(name: str) -> None:
        for thread in threading.enumerate():
            if thread.name == name:
                with suppress(RuntimeError):
                    thread.join(20)

    def boot_state(self) -> bootstate.BootState:
        return bootstate.read(self.paths.boot_state)
