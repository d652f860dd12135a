"""Uploads are taken out of the web process's hands before anybody looks at them."""

import os

import pytest
from update_box import UpdateBox

from applier.update.spool import Spool
from applier.wire.errors import ApplierRefused

NAME = "0" * 31 + "1"


@pytest.fixture
def box(tmp_path):
    return UpdateBox(tmp_path)


@pytest.fixture
def spool(box):
    return Spool(box.paths)


def code_of(spool, name=NAME):
    with pytest.raises(ApplierRefused) as caught:
        spool.take(name)
    return caught.value.code


def left(box):
    return sorted(path.name for folder in (box.paths.upload, box.paths.taken) for path in folder.glob("*"))


def test_it_moves_to_a_folder_of_root_alone(box, spool):
    box.upload(b"content")
    path = spool.take(NAME)
    assert path.read_bytes() == b"content"
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
    assert list(box.paths.upload.iterdir()) == []
    assert spool.take(NAME) == path  # checked, and then installed
    spool.clear()
    assert code_of(spool) == "unknown-upload"


def test_there_is_room_for_one(box, spool):
    box.upload(b"first", 1)
    box.upload(b"second", 2)
    first = spool.take(f"{1:032x}")
    second = spool.take(f"{2:032x}")
    assert not first.exists() and second.read_bytes() == b"second"


def test_a_link_is_not_followed(box, spool, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("root's")
    (box.paths.upload / f"{NAME}.raucb").symlink_to(secret)
    assert code_of(spool) == "unsafe-upload"
    assert secret.read_text() == "root's"
    assert not list(box.paths.taken.iterdir())


def test_a_folder_that_is_a_link_is_not_followed(box, spool, tmp_path):
    box.paths.upload.rmdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / f"{NAME}.raucb").write_text("x")
    box.paths.upload.symlink_to(tmp_path / "elsewhere")
    assert code_of(spool) == "unsafe-upload"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_only_plain_files(box, spool, make):
    make(box.paths.upload / f"{NAME}.raucb")
    assert code_of(spool) == "unsafe-upload"
    assert not list(box.paths.taken.iterdir())


def test_only_files_of_the_web_process_itself(box, spool, monkeypatch):
    box.upload(b"x")
    real = os.fstat

    def foreign(handle):
        found = list(real(handle))
        if not os.path.isdir(f"/proc/self/fd/{handle}"):
            found[4] += 1  # st_uid
        return os.stat_result(found)

    monkeypatch.setattr(os, "fstat", foreign)
    assert code_of(spool) == "unsafe-upload"


def test_one_that_somebody_can_still_write_to(box, spool):
    box.upload(b"good")
    with (box.paths.upload / f"{NAME}.raucb").open("r+b") as writer:
        assert code_of(spool) == "unsafe-upload"
        writer.write(b"evil")
    assert left(box) == []


def test_one_that_is_only_read_elsewhere_is_fine(box, spool):
    box.upload(b"good")
    with (box.paths.upload / f"{NAME}.raucb").open("rb"):
        assert spool.take(NAME).read_bytes() == b"good"


def test_one_that_is_swapped_at_the_last_moment(box, spool, monkeypatch):
    box.upload(b"good")
    real = os.rename

    def swap(old, new, **folders):
        if folders:
            path = box.paths.upload / old
            path.unlink()
            path.write_bytes(b"evil")
        real(old, new, **folders)

    monkeypatch.setattr(os, "rename", swap)
    assert code_of(spool) == "unsafe-upload"
    assert left(box) == []


def test_nothing_there(spool):
    assert code_of(spool) == "unknown-upload"
