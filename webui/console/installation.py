"""The dialogue that puts the running system onto another disk of the box."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from applier.disk import installer
from applier.disk.disks import Disk, Places, amount
from applier.disk.installer import InstallFailed, Source
from applier.host.host import Host, Live
from console.dialogue import Ask, Cancelled, Dialogue, numbered, one_line


def install_on_a_disk(host: Host | None = None, places: Places | None = None) -> Dialogue:
    host, places = host or Live(), places or Places()
    try:
        source = installer.look(host, places)
        disks = installer.choices(host, places, source)
        yield listing(source, disks)
        if all(disk.reason for disk in disks):
            return
        usable = [not disk.reason for disk in disks]
        disk = disks[(yield from numbered("Number of the disk to install on", usable))]
        with_configuration = yield from configuration(source)
        yield f"Everything on {disk.name} will be lost: {disk.title}, {disk.content}.\n"
        if (yield Ask(f"Type {disk.name} to begin; an empty line cancels: ")) != disk.name:
            raise Cancelled
        if disk not in installer.choices(host, places, source):
            raise InstallFailed(f"{disk.name} is not the disk any more that it was when you chose it.")
        yield from shown(installer.install(host, places, source, disk.name, with_configuration))
    except InstallFailed as error:
        yield f"\nNot installed: {error}\n"
    else:
        yield ending(source, disk, with_configuration)


def listing(source: Source, disks: list[Disk]) -> str:
    lines = [f"This box runs from {source.disk.name}, slot {source.slot}. Its other disks:", ""]
    for number, disk in enumerate(disks, 1):
        lines += [f"  {'-' if disk.reason else number}  {disk.title}", f"       on it: {disk.content}"]
        lines += [f"       it cannot be used: {disk.reason}"] if disk.reason else []
    if all(disk.reason for disk in disks):
        lines += [f"There is no disk to install on; {amount(source.needed)} are needed."]
    return "\n".join([*lines, "", ""])


def configuration(source: Source) -> Generator[str | Ask, str, bool]:
    """Whether to copy it."""
    if not source.data:
        return False  # no data partition is mounted, or nothing is on it
    usual = "yes" if source.is_set_up else "no"
    while True:
        line = yield Ask(f"Copy the configuration of this box, yes or no? [{usual}] ", usual)
        if line in ("yes", "no"):
            return line == "yes"


def shown(steps: Iterator[installer.Progress]) -> Iterator[str]:
    """One line in which the progress is counted."""
    last = ""
    for step in steps:
        text = f"{step.doing} … {step.percent} %"
        if text != last:
            yield one_line(text)
            last = text
    yield "\n"


def ending(source: Source, disk: Disk, with_configuration: bool) -> str:
    old = "stick" if source.removable else f"disk {source.disk.name}"
    lines = [f"Fairlead is installed on {disk.name}. Choose Power off, remove the {old}, and turn the box on again."]
    if with_configuration:
        lines.append(f"The {old} keeps the same configuration: do not start another box from it in this network.")
    else:
        lines.append("The box starts from there as a new one, with a new set-up code.")
    return "\n".join([*lines, ""])
