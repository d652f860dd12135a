import os

import pytest

from applier.base.paths import Paths
from applier.kept.setup_code import ALPHABET, SetupCode
from applier.wire.errors import ApplierRefused


@pytest.fixture
def paths(tmp_path):
    (tmp_path / "state").mkdir()
    return Paths(state=tmp_path / "state", mount=None, run=tmp_path / "run")


def test_a_new_box_has_a_code_that_only_root_may_read(paths):
    code = SetupCode(paths)
    code.prepare()
    text = paths.setup_code.read_text().strip()
    assert [len(group) for group in text.split("-")] == [4, 4, 4]
    assert set(text) <= set(ALPHABET) | {"-"} and not set("IL1O0") & set(text)
    assert paths.setup_code.stat().st_mode & 0o777 == 0o600
    assert code.check(text) and code.check(text.lower().replace("-", " "))


def test_it_outlives_a_restart_of_the_daemon_until_it_is_spent(paths):
    SetupCode(paths).prepare()
    text = paths.setup_code.read_text()
    again = SetupCode(paths)
    again.prepare()
    assert paths.setup_code.read_text() == text
    again.done(text)
    assert not again.active() and paths.set_up.exists()
    assert not again.check(text)
    third = SetupCode(paths)
    third.prepare()
    assert not third.active()


def test_wrong_guesses_close_the_way_to_nobody(paths):
    """A limit for all together let any stranger keep the admin out."""
    code = SetupCode(paths)
    code.prepare()
    right = paths.setup_code.read_text()
    for guess in ("", "x", "ß" * 12, "AAAA-AAAA-AAAA", *("wrong",) * 20):
        assert not code.check(guess)
    with pytest.raises(ApplierRefused, match="not the set-up code"):
        code.done("wrong")
    assert code.check(right)
    code.done(right)


def test_a_forgotten_password(paths):
    code = SetupCode(paths)
    code.prepare()
    first = paths.setup_code.read_text()
    code.done(first)
    second = code.renew()
    assert code.active() and code.check(second) and not code.check(first)


def test_a_full_disk_leaves_the_code_unspent(paths, monkeypatch):
    code = SetupCode(paths)
    code.prepare()
    text = paths.setup_code.read_text()

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(ApplierRefused) as caught:
            code.done(text)
    assert caught.value.code == "data-full"
    assert code.active() and not paths.set_up.exists()
