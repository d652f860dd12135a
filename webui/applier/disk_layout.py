"""The partition table of the disk that the box runs from, and the one that another disk gets after its example."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from applier.disks import PARTITIONS, SECTOR
from applier.host import Host, HostError, run

TIMEOUT = 60.0  # seconds; a table is written in a moment, but a slow disk may have other things to write first
ALIGNMENT = 2048  # sectors: 1 MiB
# "never": what lies in the partitions already is meant to be there.
SFDISK = ["sfdisk", "--quiet", "--wipe", "never", "--wipe-partitions", "never"]


@dataclass(frozen=True, slots=True)
class Area:
    """A partition. Start and length in sectors."""

    number: int
    name: str
    start: int
    length: int
    kind: str  # GUID of its type
    attributes: str = ""

    @property
    def offset(self) -> int:
        return self.start * SECTOR

    @property
    def size(self) -> int:
        return self.length * SECTOR

    def line(self) -> str:
        """For sfdisk. Without a GUID of its own: sfdisk makes a new random one."""
        attributes = f', attrs="{self.attributes}"' if self.attributes else ""
        return (
            f'{self.number} : start={self.start}, size={self.length}, type={self.kind}, name="{self.name}"{attributes}'
        )


@dataclass(frozen=True, slots=True)
class Layout:
    first: int  # sector that may be used
    areas: dict[str, Area]

    def on(self, size: int) -> Layout:
        """The same on a disk of that many bytes: the data partition, the last one, ends with the disk."""
        data = self.areas["data"]
        end = (size // SECTOR - ALIGNMENT) // ALIGNMENT * ALIGNMENT  # the second copy of the table lies behind it
        return replace(self, areas=self.areas | {"data": replace(data, length=end - data.start)})

    def smallest(self, room: int) -> int:
        """Bytes of the smallest disk on which the data partition has so many bytes."""
        return self.areas["data"].offset + room + 2 * ALIGNMENT * SECTOR


def read(host: Host, disk: Path) -> Layout:
    """Raises HostError, also where it is not the table of a Fairlead disk."""
    try:
        table = json.loads(run(host, ["sfdisk", "--json", str(disk)]).stdout)["partitiontable"]
        areas = {one["name"]: _area(one) for one in table["partitions"] if one.get("name")}
        layout = Layout(table["firstlba"], areas)
    except (ValueError, KeyError, TypeError):
        raise HostError(f"read the partition table of {disk}", None, "it cannot be understood") from None
    missing = [name for name in PARTITIONS if name not in areas]
    if missing or table.get("label") != "gpt" or table.get("sectorsize", SECTOR) != SECTOR:
        reason = f"no partition {', '.join(missing)}" if missing else "not a GPT with sectors of 512 bytes"
        raise HostError(f"read the partition table of {disk}", None, reason)
    if max(areas.values(), key=lambda area: area.start).name != "data":
        raise HostError(f"read the partition table of {disk}", None, "the data partition is not the last one")
    return layout


def write(host: Host, disk: Path, layout: Layout, *names: str) -> None:
    """A new table, with new random GUIDs, with the partitions of these names; of all without any. HostError."""
    areas = [area for area in layout.areas.values() if area.name in (names or PARTITIONS)]
    lines = ["label: gpt", "unit: sectors", f"first-lba: {layout.first}", *(area.line() for area in areas)]
    run(host, [*SFDISK, str(disk)], stdin="\n".join([*lines, ""]), timeout=TIMEOUT)


def _area(partition: dict) -> Area:
    number = int(partition["node"][-1])  # there are fewer than ten
    start, length = int(partition["start"]), int(partition["size"])
    return Area(number, partition["name"], start, length, partition["type"], partition.get("attrs", ""))
