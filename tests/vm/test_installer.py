"""From a stick onto the internal disk: somebody at the console does it, and the power may go in the middle.

The stick and the disk are what the image's kernel knows: the released image is started from a USB stick; the
developer's kernel has no USB, so its stick is a virtual disk.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from board.machines.director import VIP, Director
from board.machines.lab import BALANCED, FIRMWARE, Lab
from board.machines.link import Forward, Link, UserNetwork, free_port
from board.machines.machine import flash
from board.machines.wait import until
from board.machines.world import SERVERS, World
from board.pc import layout
from tests.lab.fixtures import thorough

pytestmark = pytest.mark.timeout(1800)

SITE = f"{VIP}:80"
EVEN = {"rs1": 4, "rs2": 4, "rs3": 4}
BOOT = 360.0  # seconds; GRUB reads the whole kernel through an emulated firmware
INSTALL = 480.0
# An account without a password: to make one of a password takes an emulated machine half a minute.
MAKE_KIM = "from django.contrib.auth.models import User; User.objects.create(username='kim')"
SPEND_CODE = "import sys; from applier.wire.client import connect; connect().setup_done(sys.argv[1])"
BUSES = {
    "usb": "usb-storage,drive={0},id={0},removable=on,bootindex={1}",
    "virtio": "virtio-blk-pci,drive={0},id={0},bootindex={1}",
    "nvme": "nvme,drive={0},id={0},serial=internal,bootindex={1}",
    "sata": "ide-hd,drive={0},id={0},bus=sata.0,model=Internal,bootindex={1}",
}
CONTROLLERS = {"usb": ["-device", "qemu-xhci"], "sata": ["-device", "ahci,id=sata"]}


class Box(Director):
    """A director whose disks are plugged in and pulled out while it is off."""

    stick: Path
    internal: Path

    def plug(self, *disks: tuple[Path, str]) -> None:
        """(disk, bus) of all that it has from now on, in the order in which the firmware tries them."""
        words = []
        for number, (file, bus) in enumerate(disks):
            words += CONTROLLERS.get(bus, [])
            words += ["-drive", f"if=none,id={file.stem},file={file},format=qcow2"]
            words += ["-device", BUSES[bus].format(file.stem, number)]
        self.devices = tuple(words)


@pytest.fixture(scope="module")
def stick_bus(flashed: Path) -> str:
    """The developer's kernel is the one that needs an initramfs."""
    place = ["-offset", str(layout.offset("slot-a"))]
    listed = subprocess.run(["unsquashfs", *place, "-ls", flashed, "boot"], capture_output=True, text=True, check=True)
    return "virtio" if "boot/initramfs" in listed.stdout else "usb"


@pytest.fixture
def lab(image, flashed: Path) -> Iterator[Lab]:
    """A world, and a box that is off, with its stick and its internal disk."""
    folder = Path(tempfile.mkdtemp(prefix="fairlead-"))
    servers, clients = Link(folder / "servers"), Link(folder / "clients")
    forward = Forward(free_port(), "10.0.2.15", 443)
    nics = (UserNetwork((forward,)), servers.other_end(), clients.other_end())
    box = Box("box", folder, nics=nics, firmware=FIRMWARE)
    box.url = f"https://127.0.0.1:{forward.host_port}"
    box.stick, box.internal = flash(flashed, folder / "stick.qcow2"), folder / "internal.qcow2"
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", box.internal, "8G"], check=True)
    world = World(folder, image, (servers.listening_end(), clients.listening_end()))
    try:
        with world:
            world.wait_for_servers()
            yield Lab(box, world)
    finally:
        box.kill()
        shutil.rmtree(folder)


def start_balancing(box: Box) -> None:
    box.start()
    box.wait_until_up(BOOT)
    box.apply(BALANCED)
    box.wait_until_healthy(*SERVERS)


def set_up(box: Box) -> None:
    box.succeed(["fairlead-web-user", "python3", "manage.py", "shell", "-c", MAKE_KIM])
    box.succeed(["env", "PYTHONPATH=/usr/lib/fairlead/webui", "python3", "-c", SPEND_CODE, box.setup_code()])


def begin_installation(box: Box, disk: str, usual: str = "no") -> str:
    """Everything up to the name of the disk; what the console showed of the disks.

    `usual`: the answer that the console suggests; the configuration comes along in any case.
    """
    box.pick("Install on a disk")
    shown = box.answer("Number of the disk to install on", "1")
    box.answer(f"Copy the configuration of this box, yes or no? [{usual}]", "yes" if usual == "no" else "")
    box.answer(f"Type {disk} to begin", disk)
    return shown


def finish_installation(box: Box, disk: str) -> None:
    told = f"Fairlead is installed on {disk}. Choose Power off"
    until("the end of the installation", lambda: box.shown_since(told), INSTALL)


def first_bytes(disk: Path, count: int = 512) -> bytes:
    out = disk.with_suffix(".first")
    words = ["dd", "-f", "qcow2", "-O", "raw", f"if={disk}", f"of={out}", f"bs={count}", "count=1"]
    subprocess.run(["qemu-img", *words], check=True, capture_output=True)
    return out.read_bytes()


@thorough
def test_from_the_stick_onto_the_internal_disk(lab, stick_bus):
    box, world = lab.director, lab.world
    box.plug((box.stick, stick_bus), (box.internal, "nvme"))
    start_balancing(box)
    set_up(box)
    assert ("This box runs from a USB stick" in box.console) == (stick_bus == "usb")
    running = box.succeed(["readlink", "/run/fairlead/disk/disk"]).strip().removeprefix("/dev/")
    assert f"Runs from      slot A of {running}" in box.console

    # Made anew within a minute of the apply, which brought addresses: the disk may get no older one.
    certificate = box.own_certificate()
    shown = begin_installation(box, "nvme0n1", "yes")
    assert "  1  nvme0n1  8.6 GB  QEMU NVMe Ctrl" in shown
    assert "on it: empty" in shown
    assert f"  {running}  " not in shown, "the disk that it runs from was offered"
    finish_installation(box, "nvme0n1")
    assert world.count(f"{SITE}/", 12) == EVEN
    generation = box.status()["confirmed"]
    certificate = box.own_certificate()

    box.stop()
    box.plug((box.internal, "nvme"))
    box.start()
    box.wait_until_up(BOOT)
    assert world.count(f"{SITE}/", 12) == EVEN
    status = box.status()
    assert (status["confirmed"], status["faults"], status["setup_code_active"]) == (generation, [], False)
    assert box.read("/data/tls/cert.pem") == certificate
    assert "Log in" in box.page()[1], "the account did not come along"
    box.wait_for_console("Runs from      slot A of nvme0n1")
    # The data partition has the disk to itself.
    size = int(box.succeed("df -P /data | tail -1").split()[1]) * 1024
    assert 7 << 30 < size < 8 << 30


@thorough
def test_the_power_goes_in_the_middle_of_it(lab, stick_bus):
    box, world = lab.director, lab.world
    box.plug((box.stick, stick_bus), (box.internal, "sata"))
    start_balancing(box)
    begin_installation(box, "sda")
    until("the middle of the installation", lambda: box.shown_since("Writing the system … 4"), INSTALL, 0.02)
    box.kill()
    assert first_bytes(box.internal) == bytes(512), "a firmware may take this for a system"

    # UEFI asks the internal disk first, finds nothing, and goes on. QEMU's BIOS tries one disk only.
    disks = (box.internal, "sata"), (box.stick, stick_bus)
    box.plug(*(disks if FIRMWARE == "uefi" else reversed(disks)))
    box.start()
    box.wait_until_up(BOOT)
    assert box.faults() == ""
    box.wait_until_healthy(*SERVERS)
    assert world.count(f"{SITE}/", 12) == EVEN

    # Once more, to its end. Afterwards the internal disk is the one that starts.
    shown = begin_installation(box, "sda")
    assert "  1  sda  8.6 GB  ATA Internal" in shown
    finish_installation(box, "sda")
    box.stop()
    box.plug(*disks)
    box.start()
    box.wait_until_up(BOOT)
    assert box.succeed(["readlink", "/run/fairlead/disk/disk"]).strip() == "/dev/sda"
    assert world.count(f"{SITE}/", 12) == EVEN
    box.pick("Install on a disk")
    shown = box.answer("Number of the disk to install on", "")
    version = box.read("/usr/lib/fairlead/VERSION").strip()
    assert f"on it: a Fairlead of version {version} in slot A" in shown
    box.wait_for_console("Nothing was done.")
