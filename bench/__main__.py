"""One command for all measurements: runs the parts, keeps what each found, and writes docs/benchmarks.md.

    make bench [QUICK=1] [ONLY=lisa2001,peers]
    python -m bench [--quick] [--only lisa2001,peers]
    python -m bench --report        the page and its pictures anew from what is kept

A part that fails is said and left out; the others run. The exit code then is 1.
"""

from __future__ import annotations

import argparse
import dataclasses
import shlex
import sys
import time
from pathlib import Path

from bench.compiled import CannotCompile
from bench.neighbours import Failed
from bench.others import Others
from bench.parts import PARTS, NoSuchPart, chosen, prepared, runner
from bench.settings import Settings
from bench.stage import Stages
from board.lab.build import BuildError, build
from board.machines.channel import ChannelError
from board.machines.lab import GIVEN_IMAGE
from board.machines.machine import CommandFailed, GuestPanic
from board.machines.wait import WaitedInVain

from bench import head, kept, neighbours, report

# What may become of a lab: none of it is a reason to lose the other parts.
FAILURES = (BuildError, ChannelError, CommandFailed, GuestPanic, WaitedInVain, Failed, CannotCompile)


def main(words: list[str]) -> int:
    arguments = parsed(words)
    if not arguments.report:
        try:
            names = chosen(arguments.only)
        except NoSuchPart as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
        failed = measure(names, arguments.quick, command(arguments))
    else:
        failed = 0
    parts = sorted(kept.best([*kept.shown(), *kept.every()]).values(), key=place)
    kept.show(parts)
    report.write(parts)
    print(f"written: {report.PAGE.relative_to(head.TOP)}")
    return 1 if failed else 0


def parsed(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("--quick", action="store_true", help="short loads and fewer of them: an hour or more")
    parser.add_argument("--only", default="", help=f"some of the parts: {','.join(PARTS)}")
    parser.add_argument("--report", action="store_true", help="measure nothing, write the page from what is kept")
    return parser.parse_args(words)


def command(arguments: argparse.Namespace) -> str:
    """As it is typed."""
    words = ["make", "bench", *(["QUICK=1"] if arguments.quick else [])]
    words += [f"ONLY={arguments.only}"] if arguments.only else []
    return shlex.join([*words, *([f"IMAGE={Path(GIVEN_IMAGE).name}"] if GIVEN_IMAGE else [])])


def place(part: kept.Part) -> int:
    """Where it stands on the page; what is no part any more stands last."""
    names = list(PARTS)
    return names.index(part.result.name) if part.result.name in names else len(names)


def measure(names: tuple[str, ...], quick: bool, as_typed: str) -> int:
    """Run the parts one after the other; how many failed."""
    image = prepared(names, build())  # before: there is no way to Debian's packages from inside
    neighbours.inside()
    folder = kept.begin(head.look(as_typed, quick, image))
    with Stages(image, say, shared=quick) as stages:
        failed = sum(not ran(name, Settings(quick, image, stages, say), folder) for name in names)
    say(f"kept: {folder.relative_to(head.TOP)}")
    return failed


def ran(name: str, settings: Settings, folder: Path) -> bool:
    """Whether the part came to its end; its result is kept then."""
    began = time.monotonic()
    settings.say(f"== {name}")
    try:
        with Others() as others:
            result = runner(name)(settings)
    except FAILURES as error:
        print(f"error: {name}: {type(error).__name__}: {error}", file=sys.stderr)
        return False
    told = f"Other programs took {others.share:.0%} of this machine's processors meanwhile."
    kept.keep(folder, dataclasses.replace(result, remarks=(*result.remarks, told)))
    settings.say(f"== {name}: {time.monotonic() - began:.0f} s")
    return True


def say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
