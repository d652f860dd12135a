"""The parts of the lab that need no virtual machine."""

import importlib.util
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from board.lab import build, initramfs, run
from board.machines import spent
from board.machines.link import free_port
from board.machines.machine import DATA_LABEL, GuestPanic, Machine
from board.machines.wait import WaitedInVain, until

OVERLAY = Path(__file__).parents[3] / "overlay"
CLIENT = build.HERE / "world/usr/lib/fairlead/world/client.py"


def test_who_waits_in_vain_tells_what_he_saw_last():
    seen = iter([0, "", OSError("refused"), *["nearly"] * 1000])

    def look():
        one = next(seen)
        if isinstance(one, Exception):
            raise one
        return one == "there" and one

    with pytest.raises(WaitedInVain, match=r"waited 0\.05 s for a sign; seen last: False"):
        until("a sign", look, 0.05, 0.01)


class Falling(Machine):
    """A machine that shows these texts on its console, one a start; the agent of one that shows nothing answers."""

    def __init__(self, folder: Path, *texts: str) -> None:
        super().__init__("box", folder)
        self.texts = iter(texts)
        self.start()

    def start(self) -> None:
        self.started, self.log_offset = 0.0, 0
        self.console_log.write_text(next(self.texts))

    start_over = start

    def agent(self) -> str:
        if self.console:
            self.check_alive()
        return "agent"


PANIC = "Kernel panic - not syncing: "
IDLE = PANIC + "Attempted to kill the idle task!"
SETTING_UP = " security_init+0x2b0/0x5c0\n start_kernel+0x54a/0x7a0\n" + PANIC + "Fatal exception"
IN_IDLE_LOOP = (
    " cpu_startup_entry+0x25/0x30\n rest_init+0xcc/0xd0\n start_kernel+0x7a0/0x7a0\n" + PANIC + "Fatal exception"
)


@pytest.mark.parametrize("console", [IDLE, SETTING_UP])
def test_a_kernel_that_falls_before_anything_was_started_is_started_once_more_and_that_is_said(
    tmp_path, monkeypatch, console
):
    monkeypatch.setattr(spent, "retries", [])
    Falling(tmp_path, console, "").wait_for_agent(1)
    assert [one[:52] for one in spent.retries] == ["turned on once more after: box: Kernel panic - not s"]
    with pytest.raises(GuestPanic):
        Falling(tmp_path, console, console).wait_for_agent(1)
    assert len(spent.retries) == 2


@pytest.mark.parametrize(
    ("console", "words"),
    [
        (PANIC + "Attempted to kill init!", "kill init"),
        ("WARNING: CPU: 0\n start_kernel+0x54a/0x7a0\n" + PANIC + "Attempted to kill init!", "kill init"),
        (IN_IDLE_LOOP, "Fatal exception"),
    ],
)
def test_a_kernel_that_falls_later_is_a_result(tmp_path, console, words):
    with pytest.raises(GuestPanic, match=words):
        Falling(tmp_path, console, "").wait_for_agent(1)


def test_what_was_seen_comes_back():
    answers = iter([None, "", "yes"])
    assert until("yes", lambda: next(answers), interval=0) == "yes"


def test_a_digest_sees_names_contents_and_modes_but_no_byte_code(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "TOP", tmp_path)
    folder = tmp_path / "folder"
    (folder / "__pycache__").mkdir(parents=True)
    file = folder / "a.py"
    digests = set()
    for change in (
        lambda: file.write_text("1"),
        lambda: file.write_text("2"),
        lambda: file.chmod(0o755),
        lambda: file.rename(folder / "b.py"),
        lambda: (folder / "link").symlink_to("b.py"),
    ):
        change()
        digests.add(build.digest([folder]))
    assert len(digests) == 5
    (folder / "__pycache__/a.pyc").write_text("x")
    assert build.digest([folder]) in digests


def test_modules_load_after_what_they_need(monkeypatch):
    monkeypatch.setattr(initramfs, "MODULES", ("virtio_blk", "squashfs", "overlay"))
    lines = ["overlay:", "squashfs: zstd xx", "virtio_blk: ring", "ring:", "zstd: xx"]
    text = "".join(re.sub(r"(\w+)", r"k/\1.ko", line) + "\n" for line in lines)
    order = initramfs.load_order(text)
    assert order == ["k/ring.ko", "k/virtio_blk.ko", "k/xx.ko", "k/zstd.ko", "k/squashfs.ko", "k/overlay.ko"]


def test_an_archive_entry_is_aligned():
    whole = initramfs.entry("bin/sh", 0o120777, b"busybox")
    assert whole.startswith(b"070701")
    assert len(whole) % 4 == 0
    assert whole.endswith(b"busybox\0")


@pytest.mark.parametrize("text", ["0", "65536", "abc", "-1", "80 80"])
def test_a_port_that_is_none_is_named(monkeypatch, text):
    monkeypatch.setenv("UI_PORT", text)
    with pytest.raises(run.CannotRun, match="UI_PORT must be a port"):
        run.port("UI_PORT", 8443)


def test_a_port_in_use_is_named_with_a_way_out():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        with pytest.raises(run.CannotRun, match=f"port {number} .* make run SITE_PORT="):
            run.check_free(UI_PORT=free_port(), SITE_PORT=number)


def test_a_port_is_kept_for_the_machine_that_gets_it():
    number = free_port()
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", number))
    for _ in ("as QEMU does", "and when it is started again"):
        with socket.create_server(("127.0.0.1", number)), socket.create_connection(("127.0.0.1", number), 20):
            pass


def test_the_data_partition_has_one_name():
    script = (OVERLAY / "etc/init.d/S10data").read_text()
    assert re.search(r"^LABEL=(.*)$", script, re.M)[1] == DATA_LABEL


def test_users_have_the_numbers_that_everything_counts_on():
    users = [line.split(":") for line in (OVERLAY / "etc/passwd").read_text().splitlines()]
    numbers = {name: number for name, _, number, *_ in users}
    known = {"fairlead-web": "990", "fairlead-nginx": "991", "fairlead-check": "989", "fairlead-sorry": "988"}
    known["fairlead-pair"] = "987"
    assert numbers.items() >= known.items()
    assert all(shell == "/usr/sbin/nologin" for *_, shell in users)


@pytest.mark.parametrize("script", sorted((OVERLAY / "etc/init.d").iterdir()), ids=lambda path: path.name)
def test_init_scripts_can_be_parsed(script):
    subprocess.run(["sh", "-n", script], check=True)


def test_an_unknown_word_after_the_demo_s_program_is_refused():
    words = [sys.executable, "-m", "board.lab.run", "--what"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "usage:" in done.stderr


def test_what_a_load_begins_with_does_not_count(monkeypatch):
    """Nor is there a pause before what counts: agents would say in it that there is no load."""
    spec = importlib.util.spec_from_file_location("client", CLIENT)
    client = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(client)
    now = [0.0]

    def get(url, count):
        now[0] += 1
        return [f"{url} {int(count)}"]

    monkeypatch.setattr(client, "get", get)
    monkeypatch.setattr(client.time, "monotonic", lambda: now[0])
    assert client.load("rs1", "1", "4", "3") == {"rs1 1": 4}
    assert now == [7]
