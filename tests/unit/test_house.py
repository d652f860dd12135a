"""The rules of the house that imports can break, read from the source itself.

lbconfig is pure; the applier needs lbconfig alone; the screens reach root only through
applier.wire.client; and one module of the applier is the door to the system.
"""

import ast
import sys
from pathlib import Path

import pytest

WEBUI = Path(__file__).resolve().parents[2] / "webui"
OURS = {path.name for path in WEBUI.iterdir() if (path / "__init__.py").exists()}
# From the ground up: a room needs only those before it. What is not here and imports nothing of ours is free.
FLOORS = {
    "lbconfig": (
        "model", "wanted", "pair", "hardware", "capacity", "migrate", "render", "diff", "validate", "target", "judge",
        "schema", "joining", "replacing", "leaving", "agreement", "agreement_lines",
    ),
    "applier": (
        "base", "wire", "host", "disk", "kept", "hardware", "parts", "pair", "apply", "service", "capacity", "update",
        "start", "daemon",
    ),
    "": (
        "lbconfig", "applier", "command", "console", "web", "draft", "accounts", "changes", "guide", "balancing",
        "network", "firewall", "system", "monitoring", "search", "api", "fairlead",
    ),
}  # fmt: skip
ROOT = {"applier", "console"}  # run as root
SCREENS = sorted(OURS - ROOT - {"lbconfig"})
# Modules of the applier that both use, and that open no door: shapes of answers, a file format, a question to OpenSSL.
WITHOUT_ROOT = {
    "applier.base.sqlite_copy",
    "applier.kept.page_key",
    "applier.wire.shapes",
    "applier.wire.shapes_capacity",
    "applier.wire.shapes_joining",
    "applier.wire.shapes_machine",
    "applier.wire.shapes_pair",
    "applier.wire.shapes_rolling",
}
REACHED = ("applier.wire.client", *WITHOUT_ROOT)
RUNS_COMMANDS = {"subprocess", "pty", "multiprocessing"}
TOUCHES_THE_WORLD = RUNS_COMMANDS | {
    "os",
    "pathlib",
    "socket",
    "time",
    "random",
    "shutil",
    "tempfile",
    "io",
    "datetime",
}
RUNNING_CALLS = {"system", "popen", "execv", "execve", "execvp", "execvpe", "posix_spawn", "spawnv", "fork"}


def modules(package: str) -> list[Path]:
    return sorted((WEBUI / package).rglob("*.py"))


def imports(path: Path) -> set[str]:
    """Absolute dotted names that a module imports; relative imports are resolved."""
    package = path.relative_to(WEBUI).with_suffix("").parts[:-1]
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            stem = ".".join([*base, *([node.module] if node.module else [])])
            names |= {f"{stem}.{alias.name}" for alias in node.names}
    return names


def tops(path: Path) -> set[str]:
    return {name.split(".")[0] for name in imports(path)}


def in_package(package: str):
    return pytest.mark.parametrize("path", modules(package), ids=lambda path: str(path.relative_to(WEBUI)))


def test_the_packages_are_found():
    assert {"lbconfig", "applier", "fairlead"} <= OURS
    assert modules("lbconfig") and modules("applier")


@pytest.mark.parametrize("top", FLOORS)
def test_nothing_is_imported_from_a_floor_above(top):
    floors = FLOORS[top]
    folder = WEBUI / top
    rooms = {path.stem for path in folder.iterdir() if (path / "__init__.py").exists() or path.suffix == ".py"}
    assert rooms - {"__init__", "manage", "assets"} == set(floors), "each room has its place in FLOORS"
    above = []
    for height, room in enumerate(floors):
        for path in modules(f"{top}/{room}") if (folder / room).is_dir() else [folder / f"{room}.py"]:
            for name in imports(path):
                rest = name.removeprefix(f"{top}.") if top else name
                needed = rest.split(".")[0]
                if (not top or name.startswith(f"{top}.")) and needed in floors[height + 1 :]:
                    above.append(f"{path.relative_to(WEBUI)} imports {name}")
    assert not above


@in_package("lbconfig")
def test_lbconfig_is_pure(path):
    foreign = tops(path) - set(sys.stdlib_module_names) - {"lbconfig"}
    assert not foreign, f"lbconfig imports {foreign}"
    assert not tops(path) & TOUCHES_THE_WORLD
    calls = {node.func.id for node in ast.walk(ast.parse(path.read_text())) if is_plain_call(node)}
    assert not calls & {"open", "print", "input"}


@in_package("applier")
def test_the_applier_needs_lbconfig_alone(path):
    foreign = tops(path) - set(sys.stdlib_module_names) - {"lbconfig", "applier"}
    assert not foreign, f"the applier imports {foreign}"


@in_package("command")
def test_the_command_needs_nothing_but_the_api(path):
    foreign = tops(path) - set(sys.stdlib_module_names) - {"command"}
    assert not foreign, f"the command imports {foreign}"
    assert not tops(path) & RUNS_COMMANDS


@in_package("applier")
def test_host_is_the_only_door_to_the_system(path):
    if path == WEBUI / "applier/host/host.py":
        return
    assert not tops(path) & RUNS_COMMANDS
    assert not {name for name in attribute_calls(path) if name in RUNNING_CALLS}


@pytest.mark.parametrize("package", SCREENS)
def test_screens_reach_root_only_through_the_client(package):
    for path in modules(package):
        used = {name for name in imports(path) if name.split(".")[0] == "applier"}
        reach = {name for name in used if not any(f"{name}.".startswith(f"{one}.") for one in REACHED)}
        assert not reach, f"{path}: {reach}"
        assert not tops(path) & RUNS_COMMANDS, f"{path} runs commands"
        assert not {name for name in attribute_calls(path) if name in RUNNING_CALLS}, path


def is_plain_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name)


def attribute_calls(path: Path) -> set[str]:
    """Names called as os.NAME(...)."""
    return {
        node.func.attr
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "os"
    }
