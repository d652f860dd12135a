"""Network cards: /sys/class/net/NAME and what `ethtool` says of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from lbconfig.hardware.cpu_lists import parse_mask
from lbconfig.hardware.facts import Card, Coalescing, Interrupt, Queues, Ring
from lbconfig.hardware.queue_names import in_order

NET = "/sys/class/net/"
OPTIONS = ("-l", "-g", "-c", "-k")  # that ethtool is asked with; "-i" tells what sysfs tells, too
_BLOCK = re.compile(r"^(?:Channel parameters|Ring parameters|Coalesce parameters|Features) for (?P<name>\S+):$", re.M)
_QUEUE = re.compile(r"queues/(rx|tx)-(\d{1,5})/(?:rps_cpus|xps_cpus)")
_FIELD = re.compile(r"\s*(?P<name>[^:]+?)\s*:\s*(?P<value>.*)")


def cards(
    files: Mapping[str, str], commands: Mapping[str, str], interrupts: Iterable[Interrupt], msi: Mapping[int, str]
) -> tuple[Card, ...]:
    """`msi`: interrupt number -> place of the PCI device that has it."""
    given = tuple(interrupts)
    return tuple(_card(_Source(name, files, commands), given, msi) for name in _names(files, commands))


def by_card(text: str) -> dict[str, str]:
    """What `ethtool -l '*'` prints of all cards, by their names."""
    found = list(_BLOCK.finditer(text))
    ends = [*(match.start() for match in found[1:]), len(text)]
    return {match["name"]: text[match.start() : end] for match, end in zip(found, ends, strict=False)}


def _names(files: Mapping[str, str], commands: Mapping[str, str]) -> list[str]:
    """Interfaces with a device behind them; those of the kernel (bridges, bonds, VLANs, lo) have none."""
    return sorted(
        {path[len(NET) :].split("/")[0] for path in files if path.startswith(NET) and "/device/" in path}, key=_natural
    )


def _natural(name: str) -> tuple[tuple[int, int, str], ...]:
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d{1,9})", name))


class _Source:
    """The texts about one card."""

    def __init__(self, name: str, files: Mapping[str, str], commands: Mapping[str, str]) -> None:
        self.name = name
        self._files = files
        self._commands = commands
        self.here = f"{NET}{name}/"

    def text(self, place: str) -> str:
        return self._files.get(self.here + place, "").strip()

    def number(self, place: str, default: int = 0) -> int:
        return whole(self.text(place), default)

    def below(self, place: str) -> dict[str, str]:
        start = self.here + place
        return {path[len(start) :]: text for path, text in self._files.items() if path.startswith(start)}

    def said(self, option: str) -> str:
        return self._commands.get(f"ethtool {option} {self.name}", "")

    def line(self, bus: str) -> int:
        """The number of the interrupt line of that PCI device; 0: not told."""
        return whole(self._files.get(f"/sys/bus/pci/devices/{bus}/irq", ""))

    def event(self, place: str) -> dict[str, str]:
        return dict(line.split("=", 1) for line in self.text(place).splitlines() if "=" in line)


def whole(text: str, default: int = 0) -> int:
    """A whole number, or the default where it is none."""
    text = text.strip()
    return int(text) if re.fullmatch(r"-?[0-9]{1,19}", text) else default


def _card(source: _Source, interrupts: tuple[Interrupt, ...], msi: Mapping[int, str]) -> Card:
    driver, bus = _driver(source)
    offloads, fixed = _offloads(source.said("-k"))
    speed = source.number("speed")
    threaded = source.text("threaded")
    return Card(
        name=source.name,
        driver=driver,
        bus=bus,
        node=source.number("device/numa_node", source.number("device/../numa_node", -1)),
        link=source.text("carrier") == "1",
        speed=speed if 0 < speed < 10_000_000 else 0,  # -1, or 4294967295 of older kernels: not known
        duplex=source.text("duplex") if source.text("duplex") in ("full", "half") else "",
        mtu=source.number("mtu", 1500),
        queues=_queues(source),
        ring=_ring(source.said("-g")),
        coalescing=_coalescing(source.said("-c")),
        offloads=offloads,
        fixed=fixed,
        interrupts=_own(source.name, bus, interrupts, msi) or _line(source, bus, interrupts, msi),
        rps=_steering(source, "rx"),
        xps=_steering(source, "tx"),
        counters={name: whole(text) for name, text in source.below("statistics/").items()},
        link_lost=source.number("carrier_down_count"),
        threaded={"0": False, "1": True}.get(threaded),
    )


def _driver(source: _Source) -> tuple[str, str]:
    """Name and place on the bus; of ethtool, or of sysfs where that is silent."""
    said = _fields(source.said("-i"))
    event = source.event("device/uevent")
    bus = said.get("bus-info", "") or event.get("PCI_SLOT_NAME", "")
    # A virtio device stands behind the PCI device that carries it.
    if not bus and event.get("DRIVER", "").startswith("virtio"):
        bus = source.event("device/../uevent").get("PCI_SLOT_NAME", "")
    return said.get("driver", "") or event.get("DRIVER", ""), bus


def _own(name: str, bus: str, interrupts: tuple[Interrupt, ...], msi: Mapping[int, str]) -> tuple[int, ...]:
    """Told by the place on the bus, and by name where that does not help."""
    named = re.compile(rf"(?:.*-)?{re.escape(name)}(?:-.*|:.*)?" + (rf"|.*{re.escape(bus)}.*" if bus else ""))
    found = []
    for one in interrupts:
        mine = [device for device in one.devices if named.fullmatch(device)]
        if msi.get(one.number, "") == bus != "":
            found.append((one.number, (mine or [*one.devices, ""])[0]))
        elif mine and one.number not in msi:
            found.append((one.number, mine[0]))
    return in_order(found)


def _line(source: _Source, bus: str, interrupts: tuple[Interrupt, ...], msi: Mapping[int, str]) -> tuple[int, ...]:
    """Of a card without messages whose driver registered a name that is not the card's ("virtio0")."""
    number = source.line(bus)
    taken = any(one.number == number and one.devices for one in interrupts)
    return (number,) if bus and bus not in msi.values() and taken else ()


def _fields(text: str) -> dict[str, str]:
    """The lines "name: value" of a text."""
    found = (_FIELD.fullmatch(line) for line in text.splitlines())
    return {match["name"]: match["value"].strip() for match in found if match}


def _two_parts(text: str) -> tuple[dict[str, str], dict[str, str]]:
    """What `ethtool -l` and `-g` say: the most that is possible, and what is used."""
    most, _, used = text.partition("Current hardware settings")
    return _fields(most), _fields(used)


def _queues(source: _Source) -> Queues:
    most, used = ({name: whole(value) for name, value in part.items()} for part in _two_parts(source.said("-l")))
    there = [_QUEUE.fullmatch(f"queues/{place}") for place in source.below("queues/")]
    rx, tx = (max(1, len({match[2] for match in there if match and match[1] == way})) for way in ("rx", "tx"))
    if not used:
        return Queues(rx=rx, tx=tx, most_rx=rx, most_tx=tx)
    both, limit = used.get("Combined", 0), most.get("Combined", 0)
    rx, tx = (max(1, both + used.get(way, 0)) for way in ("RX", "TX"))
    end_rx, end_tx = (limit if both else limit + most.get(way, 0) for way in ("RX", "TX"))
    most_rx, most_tx = max(rx, end_rx), max(tx, end_tx)
    return Queues(rx, tx, most_rx, most_tx, combined=both > 0, settable=max(most_rx, most_tx) > 1)


def _ring(text: str) -> Ring:
    most, used = _two_parts(text)
    return Ring(*(whole(part.get(way, "")) for part in (used, most) for way in ("RX", "TX")))


_WORDS = {"on": True, "off": False}


def _coalescing(text: str) -> Coalescing:
    fields = _fields(text)
    adaptive = re.search(r"Adaptive RX:\s*(\S+)\s+TX:\s*(\S+)", text)
    times = (whole(fields.get(name, ""), -1) for name in ("rx-usecs", "tx-usecs"))
    rx, tx = (None if one < 0 else one for one in times)
    adaptive_rx, adaptive_tx = (_WORDS.get(adaptive[1]), _WORDS.get(adaptive[2])) if adaptive else (None, None)
    return Coalescing(rx, tx, adaptive_rx, adaptive_tx)


def _offloads(text: str) -> tuple[dict[str, bool], frozenset[str]]:
    states, fixed = {}, set()
    for name, value in _fields(text).items():
        word = value.partition(" ")[0]
        if word in _WORDS:
            states[name] = _WORDS[word]
            if "[fixed]" in value:
                fixed.add(name)
    return states, frozenset(fixed)


def _steering(source: _Source, way: str) -> tuple[tuple[int, ...], ...]:
    """By queue, in the order of their numbers."""
    file = {"rx": "rps_cpus", "tx": "xps_cpus"}[way]
    found = {}
    for place, text in source.below("queues/").items():
        match = _QUEUE.fullmatch(f"queues/{place}")
        if match and match[1] == way and place.endswith(file):
            found[int(match[2])] = parse_mask(text)
    return tuple(found[number] for number in sorted(found))
