"""Every machine of the stories can be started the way the lab's driver starts one.

Some stories run on a disk image or with ALL=1 only, so nothing else notices when a change of the driver breaks them.
"""

import importlib
import inspect
import subprocess
from pathlib import Path

import pytest
from board.machines.machine import Machine
from tests.vm import test_hardware

TOP = Path(__file__).parents[3]
STORIES = sorted((TOP / "tests").glob("vm/test_*.py")) + sorted((TOP / "tests/systems").glob("*.py"))


def machines() -> set[type[Machine]]:
    """Every kind of machine: those of the lab and those that stories make of them."""
    for path in STORIES:
        importlib.import_module(".".join(path.relative_to(TOP).with_suffix("").parts))
    found, left = set(), [Machine]
    while left:
        found.add(kind := left.pop())
        left += kind.__subclasses__()
    return {kind for kind in found if kind.__module__.startswith(("tests.", "board."))}


def parameters(kind: type, name: str) -> list[str]:
    """The parameters a caller gives to a method, whatever kind of method it is."""
    found = inspect.getattr_static(kind, name)
    given = list(inspect.signature(getattr(kind, name)).parameters)
    return given if isinstance(found, staticmethod | classmethod) else given[1:]


def test_a_machine_keeps_the_parameters_of_the_methods_that_it_overrides():
    kinds = machines()
    assert {"World", "Director", "Hardware", "Server"} <= {kind.__name__ for kind in kinds}
    wrong = []
    for kind in kinds:
        for base in kind.__mro__[1:-1]:
            for name in vars(kind).keys() & vars(base).keys():
                overridden = inspect.isroutine(inspect.getattr_static(base, name)) and not name.startswith("__")
                if overridden and parameters(kind, name) != parameters(base, name):
                    wrong.append(f"{kind.__module__}.{kind.__name__}.{name}{tuple(parameters(kind, name))}")
    assert not wrong


def hardware(name, firmware, folder) -> test_hardware.Hardware:
    bus, name_of_disk, card = test_hardware.MACHINES[name]
    disk = folder / "disk.qcow2"
    box = test_hardware.Hardware(
        "box", folder, nics=(Nic(),), data=disk, firmware=firmware, cards={0: card}, devices=("-S",)
    )
    box.bus, box.name_of_disk = bus, name_of_disk
    return box


@pytest.mark.parametrize("name", test_hardware.MACHINES)
@pytest.mark.parametrize("firmware", ["bios", "uefi"])
def test_a_box_of_other_parts_has_its_disk_and_its_cards(name, firmware, tmp_path, monkeypatch):
    monkeypatch.setattr("board.machines.machine.make_overlay", lambda *_: None)
    box = hardware(name, firmware, tmp_path)
    words = box.command_line()
    assert f"if=none,id=data,file={tmp_path / 'disk.qcow2'},format=qcow2" in words
    assert words[words.index(box.bus[-1] + ",bootindex=1") - 1] == "-device"
    assert any(word.startswith(box.cards[0]) and ",netdev=net0," in word for word in words)


@pytest.mark.parametrize("name", test_hardware.MACHINES)
def test_qemu_takes_the_words_for_a_box_of_other_parts(name, tmp_path):
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", tmp_path / "disk.qcow2", "1M"], check=True)
    with hardware(name, "bios", tmp_path) as box:  # which waits for the monitor, and does not run
        assert box.monitor.ask("query-status")["status"] == "prelaunch"


class Nic:
    """A network card that is joined to nothing."""

    def netdev(self, name: str) -> str:
        return f"user,id={name}"
