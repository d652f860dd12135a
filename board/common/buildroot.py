#!/usr/bin/env python3
"""Drive Buildroot: get its release, configure it, build the image, and say how far it is.

    python3 -m board.common.buildroot image         from the top of the clone; build/buildroot/images/ has the result
    python3 -m board.common.buildroot menuconfig | legal-info | sbom | source

Environment (a path may be relative to the folder that this is called in):
    BUILDROOT   a Buildroot tree at hand, instead of the pinned release
    OUT         the output folder (build/buildroot)
    KEYS        the folder of `make keys` (keys)
    EXTRA       a file with more Buildroot settings (a download mirror, an external toolchain)
    DEFCONFIG   which of configs/ (fairlead_pc_defconfig)
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from board.common import again

TOP = Path(__file__).parents[2]
VERSION = "2026.02.3"  # the long-term series 2026.02
SHA256 = "5a59e7501b0b4ec52c41f4bfa79412320e0b37eae5f719605a258e8d0c6fc7fb"  # from buildroot-2026.02.3.tar.xz.sign
RELEASE = f"https://buildroot.org/downloads/buildroot-{VERSION}.tar.xz"
OWN_VERSION = TOP / "overlay/usr/lib/fairlead/VERSION"
STEP = re.compile(r"^(?:\x1b\[\d*m)*>>> (?P<package>\S*) (?P<version>\S*) (?P<step>[A-Z][\w ,/.-]*)")
PATHS = ("BUILDROOT", "OUT", "KEYS", "EXTRA")
# Packages that add users whom nothing here runs as. Only the users of overlay/ get into the image.
KNOWN_TO_ADD_USERS = ("chrony",)  # the time service runs as fairlead-time
TAIL = 30  # lines of the log that a failed build shows


class BuildrootError(Exception):
    """The tree cannot be had, or Buildroot failed; the text says why and where the log is."""


@dataclass(frozen=True)
class Settings:
    tree: Path
    out: Path
    defconfig: Path
    extra: Path | None

    def command(self, *words: str) -> list[str]:
        return ["make", "-C", str(self.tree), f"O={self.out}", f"BR2_EXTERNAL={TOP / 'buildroot-external'}", *words]


def absolute(environment: dict[str, str]) -> dict[str, str]:
    """The environment with whole paths: Buildroot and the scripts that it calls run in other folders."""
    usual = {"OUT": TOP / "build/buildroot", "KEYS": TOP / "keys"}
    given = {name: environment[name] for name in PATHS if environment.get(name)}
    return environment | {name: str(Path(path).resolve()) for name, path in (usual | given).items()}


def settings(environment: dict[str, str]) -> Settings:
    """The settings that an environment of whole paths asks for. Raises BuildrootError."""
    name = environment.get("DEFCONFIG") or "fairlead_pc_defconfig"
    extra = environment.get("EXTRA")
    if extra and not Path(extra).is_file():
        raise BuildrootError(f"EXTRA names no file: {extra}")
    tree = Path(environment["BUILDROOT"]) if environment.get("BUILDROOT") else release(TOP / "build")
    if not (tree / "package/Makefile.in").is_file():
        raise BuildrootError(f"there is no Buildroot tree in {tree}")
    return Settings(tree, Path(environment["OUT"]), TOP / "configs" / name, Path(extra) if extra else None)


def release(folder: Path) -> Path:
    """The pinned release, unpacked; downloaded when it is not there yet. Raises BuildrootError."""
    tree = folder / f"buildroot-{VERSION}"
    if tree.is_dir():
        return tree
    archive = folder / f"buildroot-{VERSION}.tar.xz"
    if not archive.is_file():
        print(f"fetching {RELEASE}", flush=True)
        part = archive.with_suffix(".part")
        folder.mkdir(parents=True, exist_ok=True)
        try:
            urllib.request.urlretrieve(RELEASE, part)
        except (OSError, urllib.error.ContentTooShortError) as error:
            raise BuildrootError(
                f"Buildroot {VERSION} cannot be fetched ({error}). Name a tree at hand: make image BUILDROOT=DIR"
            ) from None
        part.rename(archive)
    with archive.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != SHA256:
        raise BuildrootError(f"{archive} is not Buildroot {VERSION}: its sha256 is {found}. Delete it and try again.")
    unpacked = folder / f"buildroot-{VERSION}.unpacking"
    unpacked.mkdir(exist_ok=True)
    subprocess.run(["tar", "-xf", archive, "-C", unpacked, "--strip-components=1"], check=True)
    return unpacked.rename(tree)


def configure(wish: Settings) -> None:
    """Write the output folder's .config from the defconfig and EXTRA. Raises BuildrootError for a dropped setting."""
    wish.out.mkdir(parents=True, exist_ok=True)
    own, extra = (path.read_text() if path else "" for path in (wish.defconfig, wish.extra))
    wished = wish.out / "wished_defconfig"
    wished.write_text(f"{own}\n{extra}")
    run(wish.command("-s", f"BR2_DEFCONFIG={wished}", "defconfig"), wish.out / "configure.log")
    config = (wish.out / ".config").read_text()
    lost = dropped(f"{own}\n{extra}", config)
    if extra and not dropped(extra, config):
        print("EXTRA takes the place of: " + (" ".join(lost) or "nothing"))
    elif lost:
        raise BuildrootError(
            "Buildroot dropped these settings (misspelt, renamed or not possible):\n" + "\n".join(lost)
        )


def dropped(wished: str, config: str) -> list[str]:
    """The settings of a defconfig that a .config does not have; of two for one option the later counts."""
    options: dict[str, str] = {}
    for line in wished.splitlines():
        if found := re.fullmatch(r"(BR2_\w+)=(.*)|# (BR2_\w+) is not set", line):
            options[found[1] or found[3]] = found[2] or ""
    got = dict(re.findall(r"^(BR2_\w+)=(.*)$", config, re.MULTILINE))
    return [f"{option}={value}" for option, value in options.items() if got.get(option, "") != value]


def tell(line: str) -> None:
    """At once, also into a file or a pipe: a package may take many minutes."""
    print(line, flush=True)


def build(wish: Settings, say: Callable[[str], None] = tell) -> None:
    """Everything, with a line for each step of each package. Raises BuildrootError."""
    again.prepare(wish.out, lambda package: run(wish.command("-s", f"{package}-dirclean")), say)
    order = subprocess.run(wish.command("-s", "show-build-order"), capture_output=True, text=True, check=False)
    packages = set(order.stdout.split())
    check_users(wish, packages)
    log = wish.out / "build.log"
    say(f"building {len(packages)} packages; the whole output is in {log}")
    start, begun = time.monotonic(), set[str]()
    with log.open("w") as output:
        process = subprocess.Popen(
            wish.command(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace",
        )  # fmt: skip
        for line in process.stdout or ():
            output.write(line)
            if found := STEP.match(line):
                begun.add(found["package"])
                minutes, seconds = divmod(int(time.monotonic() - start), 60)
                count = f"{len(begun & packages):3}/{len(packages)}"
                say(
                    f"{minutes:3}:{seconds:02}  {count}  {found['package']} {found['version']}: {found['step'].strip()}"
                )
    if process.wait():
        raise failed("Buildroot", process.returncode, log)


def check_users(wish: Settings, packages: set[str]) -> None:
    """Raises BuildrootError for a package that adds users which nobody has decided about."""
    command = wish.command("-s", "show-vars", "VARS=%_USERS")
    variables = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    for package in sorted(packages - {*KNOWN_TO_ADD_USERS}):
        users = variables.get(f"{package.upper().replace('-', '_')}_USERS", {}).get("expanded", "").strip()
        if users:
            raise BuildrootError(
                f"The package {package} adds users that would not be in the image: {users}\n"
                "If a program of it needs one, add it to passwd, shadow and group in overlay/etc and start the program "
                "as that user. Then name the package in KNOWN_TO_ADD_USERS of board/common/buildroot.py."
            )


def run(command: list[str], log: Path | None = None) -> None:
    with log.open("w") if log else open(os.devnull, "w") as output:
        to = output if log else None
        code = subprocess.run(command, stdout=to, stderr=subprocess.STDOUT if log else None, check=False).returncode
    if code:
        raise failed(" ".join(command[-2:]), code, log)


def failed(what: str, code: int, log: Path | None) -> BuildrootError:
    tail = "\n".join(log.read_text(errors="replace").splitlines()[-TAIL:]) if log else ""
    return BuildrootError(
        f"{what} failed with exit code {code}. The end of {log}:\n{tail}" if log else f"{what} failed"
    )


def menuconfig(wish: Settings) -> None:
    """Change settings by hand; says afterwards which lines of the defconfig they are."""
    run(wish.command("menuconfig"))
    saved = wish.out / "saved_defconfig"
    run(wish.command("-s", f"BR2_DEFCONFIG={saved}", "savedefconfig"))
    own = {line for line in wish.defconfig.read_text().splitlines() if "BR2_" in line}
    now = set(saved.read_text().splitlines())
    for sign, lines in (("-", own - now), ("+", now - own)):
        for line in sorted(lines):
            print(sign, line)
    print(
        f"Carry over to {wish.defconfig.relative_to(TOP)} what you want to keep; the next build starts from that file."
    )


def sbom(wish: Settings) -> None:
    """What the image is made of, as CycloneDX JSON."""
    info = subprocess.run(wish.command("-s", "show-info"), capture_output=True, text=True, check=True).stdout
    to = wish.out / "images/fairlead.cdx.json"
    to.parent.mkdir(exist_ok=True)
    with to.open("w") as output:
        tool = [sys.executable, str(wish.tree / "utils/generate-cyclonedx")]
        about = ["--project-name=fairlead", f"--project-version={OWN_VERSION.read_text().strip()}"]
        subprocess.run([*tool, *about], input=info, text=True, stdout=output, check=True)
    print(to)


def main(words: list[str]) -> int:
    os.environ.update(absolute(dict(os.environ)))
    try:
        wish = settings(dict(os.environ))
        configure(wish)
        match words:
            case ["image"]:
                build(wish)
            case ["menuconfig"]:
                menuconfig(wish)
            case ["sbom"]:
                sbom(wish)
            case ["legal-info" | "source" as target]:
                run(wish.command(target))
            case _:
                print(__doc__, file=sys.stderr)
                return 2
    except (BuildrootError, subprocess.CalledProcessError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
