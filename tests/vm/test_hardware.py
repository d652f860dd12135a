"""Disks and network cards that shops have: the released image finds them, and balances over them.

What QEMU can play of them; docs/hardware.md has the whole list. The developer's kernel knows virtual machines only.
"""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from board.machines.director import VIP, Director
from board.machines.lab import BALANCED, FIRMWARE, Lab
from board.machines.link import Forward, Link, UserNetwork, free_port
from board.machines.machine import flash
from board.machines.world import SERVERS, World
from tests.lab.fixtures import thorough

pytestmark = [thorough, pytest.mark.timeout(1200)]

BOOT = 360.0  # seconds; GRUB reads the whole kernel through an emulated firmware
# Name: QEMU's devices for the disk, where Linux finds it, and the network cards.
MACHINES = {
    "an office PC": (("ahci,id=sata", "ide-hd,drive=data,bus=sata.0"), "sda", "e1000e"),
    "a PC with NVMe": (("nvme,drive=data,serial=internal",), "nvme0n1", "e1000e"),
    "a server with RAID": (("megasas", "scsi-hd,drive=data"), "sda", "e1000"),
    "VMware": (("pvscsi", "scsi-hd,drive=data"), "sda", "vmxnet3"),
    "VMware with LSI SAS": (("mptsas1068", "scsi-hd,drive=data,wwn=0x5000c50015ea71ac"), "sda", "e1000"),
    "VirtualBox": (("ahci,id=sata", "ide-hd,drive=data,bus=sata.0"), "sda", "pcnet"),
    "KVM with SCSI": (("virtio-scsi-pci", "scsi-hd,drive=data"), "sda", "virtio-net-pci"),
    "a stick in an old PC": (("qemu-xhci", "usb-storage,drive=data"), "sda", "rtl8139"),
}
# The firmware that QEMU has for UEFI cannot read a disk behind these: real ones bring a driver of their own.
WITHOUT_UEFI = ("a server with RAID", "VMware", "VMware with LSI SAS")


class Hardware(Director):
    """A director with that disk instead of a virtual machine's."""

    bus: tuple[str, ...]
    name_of_disk: str

    def data_disk(self, file: Path) -> list[str]:
        devices = [word for device in self.bus for word in ("-device", device)]
        return ["-drive", f"if=none,id=data,{self.data_drive(file)}", *devices]


@pytest.fixture(params=MACHINES)
def lab(request, image, flashed: Path) -> Iterator[Lab]:
    if FIRMWARE == "uefi" and request.param in WITHOUT_UEFI:
        pytest.skip("QEMU's UEFI has no driver for this controller")
    folder = Path(tempfile.mkdtemp(prefix="fairlead-"))
    servers, clients = Link(folder / "servers"), Link(folder / "clients")
    nics = (UserNetwork((Forward(free_port(), "10.0.2.15", 443),)), servers.other_end(), clients.other_end())
    bus, name_of_disk, card = MACHINES[request.param]
    disk = flash(flashed, folder / "disk.qcow2")
    box = Hardware("box", folder, nics=nics, data=disk, firmware=FIRMWARE, cards=dict.fromkeys(range(len(nics)), card))
    box.bus, box.name_of_disk = bus, name_of_disk
    world = World(folder, image, (servers.listening_end(), clients.listening_end()))
    try:
        with world, box:
            world.wait_for_servers()
            yield Lab(box, world)
    finally:
        shutil.rmtree(folder)


def test_a_box_of_these_parts_balances(lab):
    box, world = lab.director, lab.world
    box.wait_until_started(BOOT)
    assert box.succeed("readlink /run/fairlead/disk/disk").strip() == f"/dev/{box.name_of_disk}"
    box.apply(BALANCED)
    box.wait_until_healthy(*SERVERS)
    assert world.count(f"{VIP}:80/", 12) == {"rs1": 4, "rs2": 4, "rs3": 4}
