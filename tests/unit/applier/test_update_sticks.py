"""Bundles on sticks: found by looking, named by number, and nothing on a stick is trusted."""

import os
import shutil

import pytest
from update_box import bundle_bytes, manifest

from applier.disk.disks import Places
from applier.host.host import HostError, Output
from applier.update.sticks import Sticks
from applier.wire.errors import ApplierRefused


class StickHost:
    """Mounting copies what a device holds; the last options are kept."""

    def __init__(self) -> None:
        self.content: dict[str, tuple[str, object]] = {}  # device -> file system, folder
        self.mounted: dict[str, str] = {}
        self.log: list[list[str]] = []
        self.fails = False

    def command(self, argv, stdin="", timeout=20.0):
        words = [str(word) for word in argv]
        self.log.append(words)
        if self.fails:
            raise HostError(words[0], None, "no")
        if words[0] == "mount":
            kind, device, folder = words[2], words[-2], words[-1]
            name = os.path.basename(device)
            if self.content.get(name, ("",))[0] != kind:
                return Output(32, "", "wrong fs type")
            shutil.copytree(self.content[name][1], folder, symlinks=True, dirs_exist_ok=True)
            self.mounted[folder] = words[4]
        elif words[0] == "umount":
            for entry in os.scandir(words[1]):
                (shutil.rmtree if entry.is_dir(follow_symlinks=False) else os.unlink)(entry.path)
            self.mounted.pop(words[1], None)
        elif words[0] == "rauc":
            return Output(0, manifest(), "") if "good" in words[-1] else Output(1, "", "signature verification failed")
        return Output(0, "", "")

    @staticmethod
    def now():
        return 0.0

    def read(self, path):
        try:
            return path.read_text()
        except FileNotFoundError:
            return None


@pytest.fixture
def host():
    return StickHost()


@pytest.fixture
def places(tmp_path):
    return Places(sys=tmp_path / "sys", dev=tmp_path / "dev", run=tmp_path / "run")


@pytest.fixture
def stick(tmp_path, host, places):
    """stick(name, kind, partitions, removable): a disk that the kernel shows; the folder of its first file system."""

    def make(name="sdb", kind="vfat", partitions=1, removable="1"):
        block = places.sys / "block" / name
        block.mkdir(parents=True)
        (block / "removable").write_text(f"{removable}\n")
        (block / "size").write_text("1000\n")
        for number in range(1, partitions + 1):
            (block / f"{name}{number}").mkdir()
            (block / f"{name}{number}" / "partition").write_text(f"{number}\n")
        folder = tmp_path / f"content-{name}"
        folder.mkdir()
        host.content[f"{name}1" if partitions else name] = (kind, folder)
        return folder

    return make


def test_no_stick(host, places):
    (places.sys / "block").mkdir(parents=True)
    assert Sticks(host, places).bundles() == []


def test_bundles_are_listed_with_what_they_hold(stick, host, places):
    folder = stick()
    (folder / "good.raucb").write_bytes(bundle_bytes())
    (folder / "wrong.RAUCB").write_bytes(bundle_bytes())
    (folder / "notes.txt").write_text("x")
    good, wrong = Sticks(host, places).bundles()
    assert (good["name"], good["version"], good["problem"], good["stick"]) == ("good.raucb", "0.2.0", "", "sdb1")
    assert (wrong["name"], wrong["version"]) == ("wrong.RAUCB", "")
    assert "not signed with a key that this box trusts" in wrong["problem"]
    assert host.mounted == {}
    assert list((places.run / "media").iterdir()) == []


@pytest.mark.parametrize("kind", ["vfat", "exfat", "ext4", "iso9660"])
def test_nothing_on_a_stick_can_be_run_or_written(stick, host, places, kind):
    (stick(kind=kind) / "good.raucb").write_bytes(bundle_bytes())
    (one,) = Sticks(host, places).bundles()
    with Sticks(host, places).opened(one["source"]):
        (options,) = host.mounted.values()
        assert {"ro", "nosuid", "nodev", "noexec"} <= set(options.split(","))
        assert ("noload" in options) == (kind == "ext4")
    assert host.mounted == {}


def test_a_stick_without_partitions(stick, host, places):
    (stick(partitions=0) / "good.raucb").write_bytes(bundle_bytes())
    assert Sticks(host, places).bundles()[0]["stick"] == "sdb"


def test_a_stick_that_only_looks_as_if_it_had_partitions(stick, host, places):
    (stick() / "good.raucb").write_bytes(bundle_bytes())
    host.content["sdb"] = host.content.pop("sdb1")
    (one,) = Sticks(host, places).bundles()
    assert one["stick"] == "sdb"
    with Sticks(host, places).opened(one["source"]) as path:
        assert path.read_bytes() == bundle_bytes()
    assert host.mounted == {}


def test_what_is_no_stick_is_left_alone(stick, host, places):
    for name, removable in (("sda", "0"), ("sdc", "1"), ("loop0", "1")):
        (stick(name, removable=removable) / "good.raucb").write_bytes(bundle_bytes())
    places.own.mkdir(parents=True)
    (places.own / "disk").symlink_to("/dev/sdc")  # the box runs from it
    assert Sticks(host, places).bundles() == []
    assert host.log == []


def test_links_folders_and_hidden_files_are_not_bundles(stick, host, places, tmp_path):
    folder = stick()
    (tmp_path / "secret.raucb").write_bytes(bundle_bytes())
    (folder / "good-link.raucb").symlink_to(tmp_path / "secret.raucb")
    (folder / "good-folder.raucb").mkdir()
    (folder / "._good.raucb").write_bytes(b"what another computer leaves beside a file")
    assert Sticks(host, places).bundles() == []


def test_a_name_cannot_paint_the_screen(stick, host, places):
    (stick() / "good\x1b[31m.raucb").write_bytes(bundle_bytes())
    assert Sticks(host, places).bundles()[0]["name"] == "good?[31m.raucb"


def test_a_bundle_that_was_pulled_out_or_changed(stick, host, places):
    folder = stick()
    (folder / "good.raucb").write_bytes(bundle_bytes())
    (one,) = Sticks(host, places).bundles()
    (folder / "good.raucb").write_bytes(bundle_bytes(b"another") + b"x")
    for _ in range(2):
        with pytest.raises(ApplierRefused, match="still plugged in"), Sticks(host, places).opened(one["source"]):
            pytest.fail("it was opened")
        shutil.rmtree(places.sys / "block/sdb", ignore_errors=True)
    assert host.mounted == {}


def test_it_is_unmounted_whatever_happens(stick, host, places):
    (stick() / "good.raucb").write_bytes(bundle_bytes())
    (one,) = Sticks(host, places).bundles()
    with pytest.raises(ZeroDivisionError), Sticks(host, places).opened(one["source"]):
        assert host.mounted
        1 / 0  # noqa: B018
    assert host.mounted == {}


def test_a_host_that_cannot_mount(stick, host, places):
    (stick() / "good.raucb").write_bytes(bundle_bytes())
    host.fails = True
    assert Sticks(host, places).bundles() == []


def test_what_a_killed_applier_left_is_unmounted(stick, host, places):
    (places.run / "media/sdb1").mkdir(parents=True)
    Sticks(host, places).clear()
    assert ["umount", str(places.run / "media/sdb1")] in host.log
    assert list((places.run / "media").iterdir()) == []
