"""Which accelerator machines get: a guest is asked, and one that hangs is given up."""

import os
import time

import pytest
from board.machines import accelerator as module
from board.machines.accelerator import KVM, TCG, accelerator, answers
from board.machines.machine import Machine

HANGS = bytes((0xEB, 0xFE)).ljust(510, b"\0") + b"\x55\xaa"  # on the spot for ever
BOOTS = 60.0  # seconds in which an emulated guest answers on a busy host


@pytest.fixture
def host(monkeypatch, tmp_path):
    """A host on which nobody has asked yet, and whose /dev/kvm can be opened."""
    monkeypatch.delenv("FAIRLEAD_ACCEL", raising=False)
    monkeypatch.setattr(module, "KEPT", tmp_path / "build/accelerator")
    monkeypatch.setattr(module, "DEVICE", tmp_path / "kvm")
    monkeypatch.setattr(module, "KERNELS", tmp_path / "lab")
    (tmp_path / "lab/base-1").mkdir(parents=True)
    (tmp_path / "lab/base-1/vmlinuz").touch()
    monkeypatch.setattr(module, "starts", lambda *_: True)
    module.DEVICE.touch()
    return module


def machine(tmp_path, **more) -> str:
    """The words for QEMU of a machine that starts from a disk."""
    return " ".join(Machine("box", tmp_path, firmware="bios", **more).command_line())


def test_a_guest_answers():
    assert answers(TCG, BOOTS)


def test_a_guest_that_hangs_is_given_up_within_the_limit(monkeypatch):
    monkeypatch.setattr(module, "SECTOR", HANGS)
    began = time.monotonic()
    assert not answers(TCG, 1.0)
    assert 1.0 <= time.monotonic() - began < BOOTS


@pytest.mark.skipif(not os.access(module.DEVICE, os.R_OK | os.W_OK), reason="there is no /dev/kvm to ask")
def test_the_device_of_this_host_gives_an_answer_within_the_limit(host, monkeypatch):
    monkeypatch.undo()
    monkeypatch.delenv("FAIRLEAD_ACCEL", raising=False)
    began = time.monotonic()
    assert accelerator() in (KVM, TCG)
    assert time.monotonic() - began < 2 * module.LIMIT + BOOTS


def test_without_the_device_nobody_is_asked(host, monkeypatch):
    host.DEVICE.unlink()
    monkeypatch.setattr(module, "answers", None)
    assert accelerator() == TCG
    assert not host.KEPT.exists()


@pytest.mark.parametrize(("answered", "found"), [(True, KVM), (False, TCG)])
def test_the_guest_is_asked_once_for_each_start_of_the_host(host, monkeypatch, answered, found):
    asked = []
    monkeypatch.setattr(module, "answers", lambda *words: asked.append(words) or answered)
    assert [accelerator(), accelerator()] == [found] * 2
    assert asked == [(KVM, module.LIMIT)]
    host.KEPT.write_text(host.KEPT.read_text().replace('"boot": "', '"boot": "another-'))
    assert accelerator() == found
    assert len(asked) == 2


def test_a_guest_that_answers_and_whose_kernel_stands_still_is_not_used(host, monkeypatch):
    monkeypatch.setattr(module, "answers", lambda *_: True)
    monkeypatch.setattr(module, "starts", lambda *_: False)
    assert accelerator() == TCG


def test_before_there_is_a_kernel_to_ask_nothing_is_kept(host, monkeypatch):
    (host.KERNELS / "base-1/vmlinuz").unlink()
    monkeypatch.setattr(module, "answers", None)
    assert accelerator() == TCG
    assert not host.KEPT.exists()


def test_a_kept_answer_that_is_spoiled_is_asked_for_again(host, monkeypatch):
    monkeypatch.setattr(module, "answers", lambda *_: True)
    host.KEPT.parent.mkdir()
    host.KEPT.write_text("half an ans")
    assert accelerator() == KVM


def test_what_is_given_counts(host, monkeypatch):
    monkeypatch.setenv("FAIRLEAD_ACCEL", "tcg,thread=single")
    monkeypatch.setattr(module, "answers", None)
    assert accelerator() == "tcg,thread=single"


def test_a_machine_has_the_processor_and_the_clock_of_its_accelerator(monkeypatch, tmp_path):
    monkeypatch.setenv("FAIRLEAD_ACCEL", KVM)
    assert "-accel kvm -cpu host" in machine(tmp_path)
    monkeypatch.setenv("FAIRLEAD_ACCEL", TCG)
    assert "-accel tcg,tb-size=128 -cpu qemu64,cx16=off" in machine(tmp_path)


def test_instructions_are_counted_on_an_emulated_processor(monkeypatch, tmp_path):
    monkeypatch.setenv("FAIRLEAD_ACCEL", KVM)
    assert "-accel tcg" in machine(tmp_path, devices=("-plugin", "counts.so"))
