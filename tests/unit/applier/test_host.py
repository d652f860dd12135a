"""The real door, as far as a developer's machine lets it be tried."""

import os
import resource
import signal
import socket
import ssl
import subprocess
import threading
import time
from pathlib import Path

import lbconfig_certificates as pems
import pytest
from board.machines.wait import PATIENCE, until
from host_recording import Recorder, Replay

from applier.base import durable
from applier.host import host
from applier.host.host import HostError, Live, OutOfTime, Output, run, unmount, wait_until
from lbconfig.model.certificate import first

WEBUI = Path(__file__).parents[3] / "webui"


def test_a_command_and_its_input():
    assert run(Live(), ["cat"], stdin="one\n").stdout == "one\n"


def test_a_program_that_runs_beside_finds_our_modules(monkeypatch):
    """From wherever: the applier stands in /."""
    monkeypatch.chdir("/")
    program = Live().start(["python3", "-c", "import applier.base, lbconfig; print('found')"])
    assert [*program.lines(PATIENCE)] == ["found"]
    program.end()


def test_a_program_that_runs_beside_fills_no_memory(monkeypatch):
    monkeypatch.setattr(host, "LONGEST_SAID", 1 << 16)
    program = Live().start(["head", "-c", "3000000", "/dev/zero"])
    with pytest.raises(HostError, match="more than 65536 bytes in one line"):
        next(iter(program.lines(PATIENCE)))
    program.end()


def test_a_command_that_fails_tells_its_words():
    with pytest.raises(HostError, match="ended with 2: ls: ") as caught:
        run(Live(), ["ls", "/nowhere"])
    assert caught.value.exit == 2


def test_a_command_that_does_not_end_is_ended():
    begin = time.monotonic()
    with pytest.raises(HostError, match=r"did not end within 0\.2 seconds"):
        Live().command(["sleep", "600"], timeout=0.2)
    assert time.monotonic() - begin < 300


def test_a_command_that_is_not_there():
    with pytest.raises(HostError, match="cannot be run: No such file"):
        Live().command(["no-such-program"])


def test_commands_get_a_small_environment(monkeypatch):
    monkeypatch.setenv("SECRET", "x")
    assert "SECRET" not in run(Live(), ["env"]).stdout


class Busy(Live):
    """A file system that is in use for the first `times` attempts to unmount it."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.asked = []
        self.timeouts = set()

    def command(self, argv, stdin="", timeout=20.0):
        self.asked.append(list(argv))
        self.timeouts.add(timeout)
        return Output(0, "", "") if len(self.asked) > self.times else Output(32, "", "umount: /x: target is busy.\n")


def test_a_file_system_that_is_busy_for_a_moment_is_unmounted_all_the_same():
    host = Busy(2)
    unmount(host, Path("/x"), 600.0)
    assert host.asked == [["umount", "/x"]] * 3
    assert host.timeouts == {600.0}  # a slow disk takes long to write what waits for it


def test_a_file_system_that_stays_busy_is_an_error(monkeypatch):
    monkeypatch.setattr("applier.host.host.UNMOUNTING", 0.3)
    with pytest.raises(HostError, match=r"umount /x: not within 0\.3 seconds; seen last: umount: /x: target is busy\."):
        unmount(Busy(1000), Path("/x"))


def test_files_are_put_in_one_piece(tmp_path):
    host = Live()
    path = tmp_path / "a/b.conf"
    assert host.read(path) is None
    host.put(path, "one")
    assert host.read(path) == "one" and os.listdir(path.parent) == ["b.conf"]
    host.put(path, None)
    host.put(path, None)
    assert host.read(path) is None
    with pytest.raises(HostError, match="write"):
        host.put(path.parent, "x")  # a folder


def test_who_answers_before_everything_was_said_is_heard(tmp_path):
    """As one does who refuses a stranger."""
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def refuse():
            talk, _ = listener.accept()
            with talk:
                talk.sendall(b"error: not you\n")

        refusing = threading.Thread(target=refuse)
        refusing.start()
        assert Live().ask(path, "x" * 1_000_000, PATIENCE) == "error: not you"
        refusing.join()


@pytest.mark.parametrize(
    "write", [lambda path, text: Live().put(path, text), lambda path, text: durable.replace(path, text.encode())]
)
def test_a_file_that_could_not_be_written_leaves_the_old_one_and_nothing_else(tmp_path, write):
    path = tmp_path / "b.conf"
    write(path, "one")
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, limit[1]))  # as a full file system: a part of it can be written
    try:
        with pytest.raises((HostError, OSError), match="File too large"):
            write(path, "x" * 20_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, before)
    assert path.read_text() == "one" and os.listdir(tmp_path) == ["b.conf"]


def test_a_service_folder_comes_and_goes(tmp_path):
    template = tmp_path / "template"
    template.mkdir()
    (template / "run").write_text("#!/bin/sh\n")
    host, folder = Live(), tmp_path / "service/dhcp-eth0"
    host.add_service(folder, template)
    assert (folder / "run").read_text() == "#!/bin/sh\n" and not folder.is_symlink()
    host.remove_service(folder)
    host.remove_service(folder)
    assert not folder.exists()
    assert all(name.startswith(".") for name in os.listdir(tmp_path / "service"))
    host.add_service(folder, template)
    assert folder.exists()


def test_processes_and_the_end_of_a_group():
    host = Live()
    child = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        # A program that has just begun has no words for a moment.
        def seen():
            return [one for one in host.processes() if one.pid == child.pid and any(one.argv)]

        [found] = until("its words", seen)
        assert found.group == child.pid and found.argv == ("sleep", "60")
        host.kill_group(child.pid)
        assert child.wait(20) == -9
        assert child.pid not in {process.pid for process in host.processes()}
        host.kill_group(child.pid)
        for group in (0, 1, os.getpgrp()):
            with pytest.raises(HostError):
                host.kill_group(group)
    finally:
        child.kill()
        child.wait()


def test_a_wait_has_an_end_and_tells_what_it_saw_last():
    host = Live()
    answers = iter(["one", "two", None])
    wait_until(host, "it", 20, lambda: next(answers), pause=0.01)
    with pytest.raises(HostError, match=r"it: not within 0\.05 seconds; seen last: still three"):
        wait_until(host, "it", 0.05, lambda: "still three", pause=0.01)


def test_a_recording_is_played_again(tmp_path):
    recorder = Recorder()
    recorder.command(["cat"], "one")
    with pytest.raises(HostError):
        run(recorder, ["ls", "/nowhere"])
    recorder.save(tmp_path / "all.json")
    replay = Replay.load(tmp_path / "all.json")
    assert replay.command(["cat"], "one").stdout == "one"
    assert replay.command(["ls", "/nowhere"]).exit == 2


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_a_file_is_for_whom_it_is_meant_before_it_has_a_word(tmp_path, monkeypatch, mode):
    path, seen = tmp_path / "folder" / "file", []
    plain = os.fchmod
    monkeypatch.setattr(os, "fchmod", lambda *words: (plain(*words), seen.append(os.stat(words[0])))[0])
    old = os.umask(0)
    try:
        (tmp_path / "folder").mkdir()
        (tmp_path / "folder" / ".file.new").write_text("left by a power cut, for everybody")
        Live().put(path, "secret", mode)
    finally:
        os.umask(old)
    assert [(stat.st_mode & 0o777, stat.st_size) for stat in seen] == [(mode, 0)]
    assert path.read_text() == "secret" and path.stat().st_mode & 0o777 == mode


def test_the_certificate_that_a_server_shows(tmp_path):
    (tmp_path / "pair.pem").write_text(pems.LB + pems.LB_KEY)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "pair.pem")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def answer() -> None:
            with server.accept()[0] as plain, context.wrap_socket(plain, server_side=True) as secure:
                secure.recv(1)

        thread = threading.Thread(target=answer)
        thread.start()
        assert Live().certificate("127.0.0.1", port, 5.0) == first(pems.LB).fingerprint
        thread.join()
    assert Live().certificate("127.0.0.1", port, 1.0) == "connection refused"


def test_lines_of_a_file_are_bytes_and_end_with_the_time(tmp_path):
    file = tmp_path / "lines"
    file.write_bytes(b"one\n\xff\x85two\nthree\n")
    assert list(Live().lines(file, 20)) == [b"one\n", b"\xff\x85two\n", b"three\n"]
    read = []
    with pytest.raises(OutOfTime, match="it takes longer than 0 seconds"):
        read.extend(Live().lines(file, 0))
    with pytest.raises(HostError, match="nowhere: No such file or directory"):
        next(Live().lines(tmp_path / "nowhere", 20))


def test_nothing_is_sent_by_an_interface_that_is_not_there():
    with pytest.raises(HostError, match=r"send by pair9: (No such device|Operation not permitted)"):
        Live().multicast("pair9", "224.0.0.81", 8848, [b"x"])
