"""Root's part of a backup file, and the factory reset: verbs, and the boot scripts that end what they begin."""

import json
import os
import shutil
import stat
import subprocess
import threading
from pathlib import Path

import pytest
from box import TWO, running_one
from tests.fake import appliance

from applier.host.host import Output
from applier.wire import cli, protocol
from applier.wire.errors import ApplierRefused
from applier.wire.protocol import MAX_PEM, MAX_REVISION

OVERLAY = Path(__file__).resolve().parents[3] / "overlay"


def make_page_key(folder: Path, name: str) -> tuple[str, str]:
    """Certificate and key, as the box makes them at first boot."""
    words = f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -noenc -subj /CN={name}"
    cert, key = folder / f"{name}.cert", folder / f"{name}.key"
    subprocess.run([*words.split(), "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert.read_text(), key.read_text()


@pytest.fixture(scope="module")
def page_keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page_keys")
    return make_page_key(folder, "old"), make_page_key(folder, "new")


@pytest.fixture
def box(tmp_path, page_keys):
    box = running_one(tmp_path)
    box.asked = []
    own = box.host.command

    def command(argv, stdin="", timeout=20.0):
        if argv[0] == "reboot" or argv[1:2] == ["hup"]:
            box.asked.append(list(argv))
        if argv[0] == "reboot":
            return Output(0, "", "")
        return own(argv, stdin, timeout)

    box.host.command = command
    box.tls = tmp_path / "tls"
    box.tls.mkdir()
    write_page_key(box.tls, page_keys[0])
    object.__setattr__(box.paths, "slots", tmp_path)
    return box


def write_page_key(folder, page_key):
    (folder / "cert.pem").write_text(page_key[0])
    (folder / "key.pem").write_text(page_key[1])


def on_disk(box):
    return tuple((box.tls / name).read_text() for name in ("cert.pem", "key.pem"))


def restore(box, page_key=("", ""), number=0):
    request = {"verb": "restore", "certificate": page_key[0], "key": page_key[1], "number": number, "user": "kim"}
    return box.applier.handle(protocol.parse(json.dumps(request).encode()), 990)


def test_the_certificate_goes_out_without_what_stands_around_it(box, page_keys):
    assert box.applier.recovery.page_key() == {"certificate": page_keys[0][0], "key": page_keys[0][1]}
    (box.tls / "cert.pem").write_text("My own certificate\r\n" + page_keys[0][0].replace("\n", "\r\n") + "\n# ende\n")
    assert box.applier.recovery.certificate() == {"certificate": page_keys[0][0]}
    shutil.rmtree(box.tls)
    assert box.applier.recovery.page_key() == {"certificate": "", "key": ""}


def test_a_restored_certificate_is_in_place_and_the_web_server_reads_it(box, page_keys):
    assert restore(box, page_keys[1]) == {"certificate": True}
    assert on_disk(box) == page_keys[1]
    assert stat.S_IMODE((box.tls / "key.pem").stat().st_mode) == 0o640
    assert box.asked == [["sv", "hup", str(box.paths.services / "nginx")]]
    assert sorted(path.name for path in box.tls.iterdir()) == ["cert.pem", "key.pem"]
    assert restore(box, page_keys[1]) == {"certificate": False}  # again, after a power cut
    assert len(box.asked) == 1


def test_what_does_not_belong_together_changes_nothing(box, page_keys):
    with pytest.raises(ApplierRefused, match="cannot be used together") as refusal:
        restore(box, (page_keys[1][0], page_keys[0][1]))
    assert refusal.value.code == "bad-certificate"
    assert on_disk(box) == page_keys[0]
    assert sorted(path.name for path in box.tls.iterdir()) == ["cert.pem", "key.pem"]
    assert box.apply(TWO)["state"] == "done"  # the system was given back


def test_an_encrypted_key_is_refused_and_nobody_is_asked_for_a_password(box, page_keys, tmp_path):
    plain = tmp_path / "plain.key"
    plain.write_text(page_keys[1][1])
    words = ["openssl", "pkey", "-in", plain, "-aes256", "-passout", "pass:secret"]
    encrypted = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    with pytest.raises(ApplierRefused, match="cannot be used"):
        restore(box, (page_keys[1][0], encrypted))


@pytest.mark.parametrize(
    "text",
    [
        1,
        None,
        "x",
        "-----BEGIN CERTIFICATE-----\n$(reboot)\n-----END CERTIFICATE-----\n",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n; reboot",
        "-----BEGIN X-----\n-----END X-----\n",
        "-----BEGIN X-----\n" + "A" * 77 + "\n-----END X-----\n",
        "-----BEGIN X-----\n" + "AAAA\n" * (MAX_PEM // 5) + "-----END X-----\n",
    ],
)
@pytest.mark.parametrize("field", ["certificate", "key"])
def test_only_pem_is_taken(box, page_keys, field, text):
    request = {"verb": "restore", "certificate": page_keys[1][0], "key": page_keys[1][1], "number": 1, "user": "kim"}
    with pytest.raises(ApplierRefused, match=f"{field} must be PEM") as refusal:
        protocol.parse(json.dumps(request | {field: text}).encode())
    assert refusal.value.code == "bad-field"


@pytest.mark.parametrize("number", [-1, 1.5, "1", True, None, MAX_REVISION + 1, 10**400])
def test_only_a_number_in_reason_is_taken(box, number):
    with pytest.raises(ApplierRefused, match="number must be a whole number"):
        restore(box, number=number)


def test_generations_go_on_above_the_restored_history(box):
    restore(box, number=41)
    assert box.apply(TWO)["generation"] == 42
    restore(box, number=7)
    assert box.applier.generations._next_number() == 43


def test_not_while_something_else_changes_the_system(box, page_keys):
    for verb in (lambda: restore(box, page_keys[1]), lambda: box.applier.recovery.factory_reset("one", "kim")):
        with box.applier.turn.take("changes of ann are being applied"), pytest.raises(ApplierRefused) as refusal:
            verb()
        assert refusal.value.code == "busy"
    assert on_disk(box) == page_keys[0] and not box.paths.reset_mark.exists()


@pytest.mark.parametrize("stop", [0, 1])
def test_a_power_cut_between_the_two_renames(box, page_keys, monkeypatch, tmp_path, stop):
    """The boot script finds the old files or the new ones, and never half of each."""
    done = []
    whole = os.replace

    def replace(*paths):
        if len(done) == stop:
            raise KeyboardInterrupt  # the power goes
        done.append(paths)
        whole(*paths)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(KeyboardInterrupt):
        box.applier.recovery._put(*page_keys[1])
    monkeypatch.undo()
    assert usable(box.tls)
    assert on_disk(box) == page_keys[stop]
    assert sorted(path.name for path in box.tls.iterdir()) == ["cert.pem", "key.pem"]


def usable(folder) -> bool:
    """What own-certificate finds out of a folder at boot."""
    text = (OVERLAY / "usr/lib/fairlead/own-certificate").read_text().rpartition('if [ -n "$1" ]')[0]
    return subprocess.run(["sh", "-c", f"{text}\nusable {folder}"], check=False).returncode == 0


def test_the_boot_script_knows_a_key_that_nginx_cannot_use(tmp_path, page_keys):
    write_page_key(tmp_path, (page_keys[0][0], page_keys[1][1]))
    assert not usable(tmp_path)
    write_page_key(tmp_path, page_keys[1])
    assert usable(tmp_path)
    (tmp_path / "cert.pem").write_text("")
    assert not usable(tmp_path)


# --- factory reset ---------------------------------------------------------------------------------


def test_a_factory_reset_leaves_its_mark_and_restarts(box):
    assert box.applier.recovery.factory_reset("one", "kim") == {}
    for thread in threading.enumerate():
        if thread.name == "restart":
            thread.join(20)
    assert box.asked == [["reboot"]]
    assert json.loads(box.paths.reset_mark.read_text())["user"] == "kim"
    with pytest.raises(ApplierRefused, match="the box is reset by kim"):
        box.applier.make_room()  # nothing is changed any more until it is gone


@pytest.mark.parametrize("name", ["", "two", "ONE", "one ", "one; reboot"])
def test_a_wrong_host_name_resets_nothing(box, name):
    with pytest.raises(ApplierRefused):
        request = {"verb": "factory_reset", "hostname": name, "user": "kim"}
        box.applier.handle(protocol.parse(json.dumps(request).encode()), 990)
    assert not box.paths.reset_mark.exists() and box.asked == []
    assert box.apply(TWO)["state"] == "done"


def test_a_disk_that_takes_no_mark(box, monkeypatch):
    monkeypatch.setattr("applier.base.durable.write", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
    with pytest.raises(ApplierRefused) as refusal:
        box.applier.recovery.factory_reset("one", "kim")
    assert refusal.value.code == "data-full"
    monkeypatch.undo()
    assert box.apply(TWO)["state"] == "done"


KEPT = ("lost+found/x", "shared/update.json", "shared/slots.json", "shared/least-version")
GONE = ("A/applier/set-up", "A/web/fairlead.sqlite3", "A/tls/key.pem", "B/web/fairlead.sqlite3", "B.new/x", ".hidden/x")
GONE += ("shared/web/ledger.json", "shared/upload/x.raucb", "shared/taken/y", "A/name with blanks/-rf")


@pytest.fixture
def disk(tmp_path):
    disk = tmp_path / "disk"
    for name in (*KEPT, *GONE):
        (disk / name).parent.mkdir(parents=True, exist_ok=True)
        (disk / name).write_text(name)
    return disk


def at_boot(disk, path=""):
    """S10data's part of it. `path`: where its programs are taken from first."""
    text = (OVERLAY / "etc/init.d/S10data").read_text().rpartition("case $1 in")[0]
    script = f"{text}\nDISK={disk}\nfactory_reset"
    environment = os.environ | {"PATH": f"{path}:{os.environ['PATH']}"}
    return subprocess.run(["sh", "-c", script], check=False, capture_output=True, env=environment).returncode


def there(disk):
    return {str(path.relative_to(disk)) for path in disk.rglob("*") if path.is_file()}


def test_without_a_mark_the_boot_forgets_nothing(disk):
    assert at_boot(disk) == 0
    assert there(disk) == {*KEPT, *GONE}


def test_with_a_mark_both_slots_are_forgotten_and_then_the_mark(disk):
    (disk / "factory-reset").write_text("{}")
    assert at_boot(disk) == 0
    assert there(disk) == set(KEPT)
    assert not (disk / "A").exists() and not (disk / "B").exists()


@pytest.mark.parametrize("cut", range(1, 7))
def test_a_reset_that_the_power_ended_goes_on_at_the_next_boot(disk, tmp_path, cut):
    """`rm` works so many times, and then the power is gone."""
    (disk / "factory-reset").write_text("{}")
    (tmp_path / "bin").mkdir()
    rm = tmp_path / "bin/rm"
    rm.write_text(
        f'#!/bin/sh\necho >>{tmp_path}/count\n[ "$(wc -l <{tmp_path}/count)" -lt {cut} ] && exec /bin/rm "$@"\n'
    )
    rm.chmod(0o755)
    assert at_boot(disk, tmp_path / "bin") != 0
    assert (disk / "factory-reset").exists()
    assert at_boot(disk) == 0
    assert there(disk) == set(KEPT)


def test_from_the_console(monkeypatch, capsys):
    monkeypatch.setattr("applier.wire.client.dial", appliance.Fake)
    box = appliance.reset(instant=True)
    assert cli.main(["factory-reset", "other"]) == 1
    assert "wrong-hostname" in capsys.readouterr().err and not box.recovery.resets
    assert cli.main(["factory-reset", "sample"]) == 0
    assert box.recovery.resets == ["console"]
    appliance.reset()
