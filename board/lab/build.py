#!/usr/bin/env python3
"""Build the developer image: squashfs layers on Debian's binary packages, cached under build/lab.

    python3 -m board.lab.build          from the top of the clone; prints progress and sizes

Three layers make the appliance, each kept under a hash of what it is made from:
  base    Debian packages, trimmed; beside it the kernel
  python  the packages of webui/requirements.txt
  app     overlay/, webui/, the collected static files and the rendered guide
A small initramfs ("boot") lays them over each other.
One more layer makes the guest that plays clients and real servers in tests:
  world   board/lab/world/

An ordinary user can build: mmdebstrap then works in a user namespace. Whoever builds, the files belong to root.
The environment variable PYTHON names the interpreter of a virtual environment with webui/requirements.txt
installed (default: the interpreter that runs this).
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from board.lab import initramfs, trim

HERE = Path(__file__).parent
TOP = HERE.parents[1]
BUILD = TOP / "build/lab"
REQUIREMENTS = TOP / "webui/requirements.txt"
SUITE = "trixie"
PYTHON_VERSION = "3.13"  # of that suite
FILE_TIME = "1767225600"  # 2026-01-01: the time of every file in a layer, so that equal inputs give equal layers
RECIPE = "2"  # count up when a function below makes something else of the same inputs
SQUASHFS = [
    "-comp",
    "lz4",
    "-Xhc",
    "-noappend",
    "-no-progress",
    "-quiet",
    "-all-root",
    "-mkfs-time",
    FILE_TIME,
    "-all-time",
    FILE_TIME,
]
# What the world has from the appliance: the guest agent, through which tests act, and where its log goes.
AGENT = (TOP / "overlay/etc/sv/guest-agent", TOP / "overlay/etc/syslog.conf")
GUIDE = (TOP / "docs/guide", TOP / "board/common/guide.py")
KEEP = 4  # builds of each layer that stay in the cache
IGNORED = shutil.ignore_patterns("__pycache__", "node_modules", "*.pyc", ".*")

# Files whose mode is not what git and a plain copy give them. Octal, of root.
MODES = {"etc/shadow": "600"}


class BuildError(Exception):
    """A tool that the build needs failed or is missing; the text says which, and where its output is."""


@dataclass(frozen=True)
class Image:
    """What a machine is started from."""

    kernel: Path
    initramfs: Path
    layers: dict[str, Path]  # name -> squashfs file


def build(say: Callable[[str], None] = print) -> Image:
    """Build what is not in the cache yet. Raises BuildError."""
    with locked():
        base = cached("base", base_inputs(), build_base, say)
        boot = cached("boot", boot_inputs(base), lambda to: initramfs.make(base / "tree", to / "initramfs"), say)
        python = cached("python", [REQUIREMENTS, base.name], lambda to: build_python(to, base), say)
        app = cached("app", app_inputs(), lambda to: build_app(to, base), say)
        world = cached("world", [HERE / "world", *AGENT, base.name], lambda to: build_world(to, base), say)
    folders = {"base": base, "python": python, "app": app, "world": world}
    layers = {name: folder / "root.sqfs" for name, folder in folders.items()}
    return Image(base / "vmlinuz", boot / "initramfs", layers)


def base_tree(say: Callable[[str], None] = print) -> Path:
    """The files of the base layer alone. Raises BuildError."""
    with locked():
        return cached("base", base_inputs(), build_base, say) / "tree"


@contextmanager
def locked() -> Iterator[None]:
    """One builder at a time."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def cached(layer: str, inputs: list, make: Callable[[Path], None], say: Callable[[str], None]) -> Path:
    """The folder of a layer made from these inputs, from the cache or made now."""
    folder = BUILD / f"{layer}-{digest([RECIPE, *inputs])}"
    if not folder.exists():
        say(f"{layer}: building …")
        start = time.monotonic()
        temporary = BUILD / f"{layer}.part"
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        make(temporary)
        temporary.rename(folder)
        say(f"{layer}: built in {time.monotonic() - start:.1f} s")
    os.utime(folder)
    builds = sorted(BUILD.glob(f"{layer}-*"), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in builds[KEEP:]:
        shutil.rmtree(old)
    return folder


def digest(inputs: list[Path | str]) -> str:
    """A hash over names, modes and contents of files and folders, and over plain strings, as 12 hex digits."""
    total = hashlib.sha256()
    for item in inputs:
        if isinstance(item, str):
            total.update(item.encode())
            continue
        for path in [item, *walk(item)]:
            total.update(f"{path.relative_to(TOP)} {os.access(path, os.X_OK)}\n".encode())
            if path.is_symlink():
                total.update(os.readlink(path).encode())
            elif path.is_file():
                total.update(path.read_bytes())
    return total.hexdigest()[:12]


def walk(folder: Path) -> Iterator[Path]:
    """Everything below a folder, in order, without what a copy leaves out."""
    for parent, folders, files in os.walk(folder):
        left_out = IGNORED(parent, folders + files)
        folders[:] = sorted(set(folders) - left_out)
        yield from (Path(parent, name) for name in sorted(set(folders + files) - left_out))


def base_inputs() -> list:
    return [SUITE, *(HERE / name for name in ("packages", "modules", "applets", "removed", "kept-etc", "trim.py"))]


def boot_inputs(base: Path) -> list:
    return [HERE / "initramfs.py", HERE / "initramfs-init", base.name]


def app_inputs() -> list:
    return [TOP / "overlay", TOP / "webui", TOP / "build/assets", *GUIDE]


def build_base(to: Path) -> None:
    """Install and trim. The tree stays beside the layer: other layers take from it."""
    tar = to / "root.tar"
    install(
        tar,
        "packages",
        "--dpkgopt=path-exclude=/etc/kernel/postinst.d/*",  # no initramfs of Debian's: ours is smaller
        f'--customize-hook={HERE / "trim.py"} "$1"',
        log=to / "mmdebstrap.log",
    )
    (to / "tree").mkdir()
    # Devices need root, and the kernel makes its own.
    run("tar", "-xpf", tar, "--no-same-owner", "--exclude=./dev/*", "-C", to / "tree", log=to / "tar.log")
    tar.unlink()
    (kernel,) = (to / "tree/boot").iterdir()
    kernel.rename(to / "vmlinuz")
    run("mksquashfs", to / "tree", to / "root.sqfs", SQUASHFS, "-root-mode", "755", log=to / "mksquashfs.log")


def install(target: Path, packages: str, *options: str, log: Path) -> None:
    """Install the packages of this list into a new tree; `options` are more words for mmdebstrap."""
    downloads = BUILD / "downloads"
    downloads.mkdir(exist_ok=True)
    run(
        "mmdebstrap", "--variant=minbase", f"--include={','.join(trim.names(packages))}",
        "--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/man/*",
        '--aptopt=Apt::Install-Recommends "false"',
        "--skip=download/empty,essential/unlink,cleanup",
        '--setup-hook=mkdir -p "$1/var/cache/apt/archives"',
        f"--setup-hook=sync-in {downloads} /var/cache/apt/archives",
        f"--customize-hook=sync-out /var/cache/apt/archives {downloads}",
        list(options), SUITE, target,
        log=log,
    )  # fmt: skip


def build_python(to: Path, base: Path) -> None:
    """Wheels for the image's Python, whichever Python builds (and may be too old for them itself)."""
    target = to / "root/usr/lib/fairlead/python"
    run(
        python(), "-m", "pip", "install", "--quiet", "--no-compile", "--only-binary=:all:", "--implementation=cp",
        f"--python-version={PYTHON_VERSION}", "--platform=manylinux_2_17_x86_64", "--platform=manylinux_2_28_x86_64",
        f"--target={target}", "--ignore-requires-python", "-r", REQUIREMENTS,
        log=to / "pip.log",
    )  # fmt: skip
    shutil.rmtree(target / "bin", ignore_errors=True)
    for record in target.glob("*.dist-info/RECORD"):
        record.unlink()  # names the folder of the interpreter that installed
    for catalogue in target.glob("django/**/locale/*"):
        if catalogue.is_dir() and catalogue.name != "en":
            for translation in catalogue.glob("LC_MESSAGES/*"):
                translation.unlink()  # the folder stays: Django looks for languages there
    finish(to, base)


def build_app(to: Path, base: Path) -> None:
    """The project's own files and the static files collected for nginx."""
    root = to / "root"
    for source, place in ((TOP / "overlay", ""), (TOP / "webui", "usr/lib/fairlead/webui")):
        shutil.copytree(source, root / place, symlinks=True, ignore=IGNORED, dirs_exist_ok=True)
    make_for_web(root / "usr/lib/fairlead", to)
    finish(to, base)


def make_for_web(to: Path, logs: Path) -> None:
    """What the web page needs and a build makes of our files: static files, guide, the database of a new box."""
    manage = TOP / "webui/manage.py"
    run(
        python(), manage, "collectstatic", "--noinput", "--verbosity=0",
        log=logs / "collectstatic.log", env={"FAIRLEAD_STATIC": str(to / "static")},
    )  # fmt: skip
    run(python(), TOP / "board/common/guide.py", to / "guide.json", log=logs / "guide.log")
    # Far from the database of `make dev`: a migration that asks for any other than its own fails here.
    nowhere = {"FAIRLEAD_DATA": str(logs / "no-database")}
    run(python(), manage, "new_database", to / "new.sqlite3", log=logs / "new_database.log", env=nowhere)


def build_world(to: Path, base: Path) -> None:
    shutil.copytree(HERE / "world", to / "root", symlinks=True, ignore=IGNORED)
    for source in AGENT:
        place = to / "root" / source.relative_to(TOP / "overlay")
        shutil.copytree(source, place) if source.is_dir() else shutil.copy(source, place)
    finish(to, base)


def finish(to: Path, base: Path) -> None:
    """Compile the Python files of a layer for the path where they will lie, and pack the layer."""
    root = to / "root"
    if (root / "usr/lib/fairlead").exists():
        tree = base / "tree"
        library = tree / "usr/lib/x86_64-linux-gnu"
        run(
            library / "ld-linux-x86-64.so.2", "--library-path", library, tree / f"usr/bin/python{PYTHON_VERSION}",
            "-I", "-m", "compileall", "-q", "--invalidation-mode=unchecked-hash", "-s", root, "-p", "/",
            root / "usr/lib/fairlead",
            log=to / "compile.log", env={"PYTHONHOME": str(tree / "usr")},
        )  # fmt: skip
    for path in root.rglob("*"):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
    pseudo = [word for name, mode in MODES.items() if (root / name).exists() for word in ("-p", f"{name} m {mode} 0 0")]
    run("mksquashfs", root, to / "root.sqfs", SQUASHFS, "-root-mode", "755", pseudo, log=to / "mksquashfs.log")
    shutil.rmtree(root)


def python() -> str:
    return os.environ.get("PYTHON") or sys.executable


def run(*command: object, log: Path, env: dict[str, str] | None = None, stdin=subprocess.DEVNULL) -> None:
    """Run a tool with its output in a log file. Raises BuildError with the end of that output."""
    words = [str(word) for part in command for word in (part if isinstance(part, list) else [part])]
    environment = {**os.environ, **(env or {})}
    environment.pop("SOURCE_DATE_EPOCH", None)  # mksquashfs refuses to be told the time twice
    try:
        with log.open("w") as output:
            subprocess.run(words, check=True, stdin=stdin, stdout=output, stderr=subprocess.STDOUT, env=environment)
    except FileNotFoundError:
        raise BuildError(f"{words[0]} is not installed") from None
    except subprocess.CalledProcessError as error:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
        raise BuildError(f"{Path(words[0]).name} failed with exit code {error.returncode}:\n{tail}") from None


def size(path: Path) -> str:
    return f"{path.stat().st_size / 2**20:.1f} MiB"


def main() -> int:
    try:
        image = build()
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    for name, path in [("kernel", image.kernel), ("initramfs", image.initramfs), *image.layers.items()]:
        print(f"{name:10} {size(path):>10}  {path.relative_to(TOP)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
