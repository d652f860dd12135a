"""What a booted box costs: image size, memory, seconds to the first balanced answer; and what listens on it.

    make footprint [BOOTS=3]                                     of the developer image
    make footprint IMAGE=build/buildroot/images/fairlead.img [FIRMWARE=uefi]

Seconds and memory also as one box of a pair whose other box is away, in the same run. Every boot is a power cut
followed by a start from the same data disk. The clock starts when QEMU does, and stops when a client on the other side
of the box has got an answer of a real server. Emulated processors (TCG) are many times slower than real ones, so only
figures of one run on one machine compare.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from board.lab.build import Image, build
from board.machines.director import START, VIP
from board.machines.lab import BALANCED, FIRMWARE, GIVEN_IMAGE, Lab, boot, make_lab
from board.machines.paired import key_of, paired
from board.machines.wait import until
from board.machines.world import SERVERS

DIRECTOR_LAYERS = ("base", "python", "app")
RESTS = 30.0  # seconds after which what the start alone needs is over
MEMORY = "cat /proc/[0-9]*/smaps_rollup 2>/dev/null | awk '/^Pss:/ {sum += $2} END {print sum}'"
PROCESSES = "ps -o user,rss,args | grep -E 'python|gunicorn|nginx|ldirectord|agent' | grep -v -E 'grep|runsv|logger'"


def main(boots: int) -> None:
    image = build()
    print_sizes({"image": Path(GIVEN_IMAGE)} if GIVEN_IMAGE else parts_of(image))
    with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
        lab = make_lab(Path(folder), image)
        with lab.world, lab.director:
            boot(lab)
            print(f"firmware: {FIRMWARE if GIVEN_IMAGE else 'none, QEMU loads the kernel'}")
            print(f"first boot of all, from QEMU's start to the web page: {lab.first_boot:.1f} s")
            lab.director.apply(BALANCED)
            lab.director.wait_until_healthy(*SERVERS)
            alone = measure(lab, boots)
            for title, command in (
                ("memory (MiB)", "free -m"),
                ("processes (KiB of resident memory)", PROCESSES),
                ("what listens (ss -lntup)", "ss -lntup"),
            ):
                print(f"\n{title}\n{lab.director.succeed(command).rstrip()}")
            print("\nas one box of a pair whose other box is away")
            lab.director.apply(paired(key_of(lab.director), *BALANCED.services))
            in_a_pair = measure(lab, boots)
            print(
                f"a pair takes {in_a_pair.memory - alone.memory:.1f} MiB more, and its first balanced answer comes "
                f"{in_a_pair.answer - alone.answer:.1f} s later"
            )


def parts_of(image: Image) -> dict[str, Path]:
    layers = {name: image.layers[name] for name in DIRECTOR_LAYERS}
    return {"kernel": image.kernel, "initramfs": image.initramfs, **layers}


def print_sizes(parts: dict[str, Path]) -> None:
    total = 0
    for name, path in parts.items():
        size = path.stat().st_blocks * 512  # a disk image has holes
        total += size
        print(f"{name:10} {size / 2**20:6.1f} MiB  {path}")
    print(f"{'together':10} {total / 2**20:6.1f} MiB")


class Found(NamedTuple):
    answer: float  # seconds to the first balanced one, in the median
    memory: float  # MiB of all processes


def measure(lab: Lab, boots: int) -> Found:
    """Start it so many times, and print what that takes."""
    answers, pages = zip(*(measure_boot(lab) for _ in range(boots)), strict=True)
    print_seconds("first balanced answer", answers)
    print_seconds("web page", pages)
    lab.director.wait_until_healthy(*SERVERS)
    time.sleep(RESTS)
    memory = int(lab.director.succeed(MEMORY)) / 1024
    print(f"memory of all processes, what they share once: {memory:.1f} MiB")
    return Found(statistics.median(answers), memory)


def measure_boot(lab: Lab) -> tuple[float, float]:
    """Seconds from QEMU's start to the first balanced answer, and to the web page."""
    lab.director.kill()
    lab.director.start()
    until("a balanced answer", lambda: lab.world.get(f"{VIP}:80/")[0] in SERVERS, START, 0.1)
    answer = time.monotonic() - lab.director.started
    return answer, lab.director.wait_until_up()


def print_seconds(what: str, seconds: tuple[float, ...]) -> None:
    low, middle, high = min(seconds), statistics.median(seconds), max(seconds)
    print(f"from QEMU's start to the {what}: median {middle:.1f} s ({low:.1f} to {high:.1f} s, {len(seconds)} boots)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
