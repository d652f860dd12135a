"""Boot the appliance and its demo; what `make run` and `make stop` call.

    python3 -m board.lab.run [--in FOLDER] [--stop]       from the top of the clone

Two virtual machines without root: the director with a disk that stays in FOLDER (build/run), and a guest that plays
three real servers. The demo is set up once, the way an admin would: an account and an apply. UI_PORT and
SITE_PORT say on which ports of 127.0.0.1 it answers.
"""

from __future__ import annotations

import argparse
import fcntl
import http.client
import os
import secrets
import signal
import socket
import ssl
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from board.lab.build import BuildError, Image, build
from board.machines.channel import ChannelError
from board.machines.link import Forward, Link, UserNetwork
from board.machines.machine import CommandFailed, GuestPanic, Machine, make_data_disk
from board.machines.wait import WaitedInVain, until
from board.machines.world import SERVERS, World

TOP = Path(__file__).parents[2]
RUN = TOP / "build/run"
DEMO = Path(__file__).with_name("demo.json")
ADMIN = "admin"
LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # none that looks like another
BOOT = 360.0  # seconds
STOP = 40.0


class CannotRun(Exception):
    """The text tells the user what to do about it."""


class Ended(Exception):
    """A signal asked for the end."""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m board.lab.run")
    parser.add_argument("--stop", action="store_true", help="end the demo that runs")
    parser.add_argument("--in", dest="folder", type=Path, default=RUN, help="where its disk, password and log are kept")
    asked = parser.parse_args(arguments)
    folder = asked.folder.resolve()
    try:
        (stop if asked.stop else run)(folder)
    except (CannotRun, BuildError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except (GuestPanic, WaitedInVain, CommandFailed, ChannelError) as error:
        print(f"error: {error}\nThe console log is in {shown(folder / 'console.log')}.", file=sys.stderr)
        return 1
    except Ended:
        say("stopped")
    return 0


def run(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    ui_port, site_port = port("UI_PORT", 8443), port("SITE_PORT", 8080)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    with only_one(folder), tempfile.TemporaryDirectory(prefix="fairlead-") as sockets:
        check_free(UI_PORT=ui_port, SITE_PORT=site_port)
        image = build(say)
        with machines(image, folder, Path(sockets), ui_port, site_port) as (director, world):
            come_up(director, world, ui_port)
            password = provision(director, folder)
            names: set[str] = set()
            until("answers of all three servers", lambda: all_answered(site_port, names), BOOT, 0.3)
            say("the site answers through IPVS, from all three servers")
            print(f"log in as {ADMIN} with the password {password}")
            print(f"console log: {shown(folder / 'console.log')}; end with Ctrl-C or make stop")
            print(f"ready: UI https://127.0.0.1:{ui_port}  site http://127.0.0.1:{site_port}", flush=True)
            watch(director, world)


@contextmanager
def machines(
    image: Image, folder: Path, sockets: Path, ui_port: int, site_port: int
) -> Iterator[tuple[Machine, World]]:
    """Both turned on; the director is turned off in order at the end."""
    disk = folder / "data.img"
    if not disk.exists():
        (folder / "provisioned").unlink(missing_ok=True)
        make_data_disk(disk, 512)
    link = Link(sockets / "link")
    forwards = (Forward(ui_port, "10.0.2.15", 443), Forward(site_port, "10.0.2.100", 80))
    world = World(sockets, image, (link.listening_end(),))
    director = Machine("director", sockets, image, nics=(UserNetwork(forwards), link.other_end()), data=disk)
    director.clock = "tsc"  # it never goes back in time, so it needs no slow clock, which its overview would warn of
    director.console_log = folder / "console.log"
    director.console_log.unlink(missing_ok=True)
    with world:
        director.start()
        try:
            yield director, world
        finally:
            say("turning off …")
            director.stop()


def come_up(director: Machine, world: World, ui_port: int) -> None:
    say("booting two virtual machines …")
    director.wait_for_agent(BOOT)
    say("the appliance has booted")
    world.wait_for_servers(BOOT)
    say("three real servers are up")
    until("the web UI", lambda: page_status(ui_port) == 200, BOOT, 0.3)
    say("the web UI answers")


def provision(director: Machine, folder: Path) -> str:
    """Set the demo up, once for each data disk; the admin's password."""
    kept, done = folder / "password", folder / "provisioned"
    if done.exists() and kept.exists():
        return kept.read_text().strip()
    password = "-".join("".join(secrets.choice(LETTERS) for _ in range(5)) for _ in range(3))
    kept.unlink(missing_ok=True)
    kept.touch(mode=0o600)
    kept.write_text(f"{password}\n")
    code = director.execute(["cat", "/run/fairlead/setup-code"]).output.strip()
    director.write("/run/demo.json", DEMO.read_text())
    command = f"fairlead-web-user python3 manage.py demo --password-stdin --user {ADMIN} --snapshot /run/demo.json"
    director.succeed(command.split(), timeout=BOOT, stdin=f"{password}\n{code}\n".encode())
    done.touch()
    say("the demo is set up")
    return password


def watch(director: Machine, world: World) -> None:
    """Until a signal comes or a machine ends."""
    while True:
        time.sleep(0.5)
        for machine in (director, world):
            if machine.process is None or machine.process.poll() is not None:
                raise CannotRun(f"the {machine.name} has turned itself off")


# --- one at a time ---


@contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Holds a lock on the pid file: who can take the lock knows that nobody runs."""
    with (folder / "pid").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotRun("the demo is running already; `make stop` ends it") from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)


def stop(folder: Path) -> None:
    try:
        file = (folder / "pid").open("r+")
    except FileNotFoundError:
        say("nothing is running")
        return
    with file:
        deadline = time.monotonic() + STOP
        asked = False
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pass  # somebody holds it: the number in it is his
            else:
                say("stopped" if asked else "nothing is running")
                return
            file.seek(0)
            number = file.read().strip()
            if number and not asked:
                os.kill(int(number), signal.SIGTERM)
                asked = True
            if time.monotonic() > deadline:
                raise CannotRun(f"process {number} did not end within {STOP:g} seconds")
            time.sleep(0.1)


def end(*_: object) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the end itself is not interrupted
    raise Ended


# --- what one sees from outside ---


def port(variable: str, default: int) -> int:
    text = os.environ.get(variable) or str(default)
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 65535):
        raise CannotRun(f"{variable} must be a port from 1 to 65535, not {text!r}")
    return int(text)


def check_free(**ports: int) -> None:
    if len(set(ports.values())) < len(ports):
        raise CannotRun(f"{' and '.join(ports)} must differ")
    for variable, number in ports.items():
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", number))
            except OSError as error:
                raise CannotRun(
                    f"port {number} of 127.0.0.1 cannot be used ({error.strerror}); "
                    f"choose another one: make run {variable}={number + 1}"
                ) from None


def page_status(ui_port: int) -> int:
    """The HTTP status of the web UI's first page, after redirects within the box."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # the box signs its certificate itself
    path = "/"
    for _ in range(5):
        connection = http.client.HTTPSConnection("127.0.0.1", ui_port, timeout=10, context=context)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            path = answer.getheader("Location", "")
            if not path.startswith("/"):
                return answer.status
        except http.client.HTTPException as error:
            raise OSError(str(error)) from None
        finally:
            connection.close()
    return answer.status


def all_answered(site_port: int, names: set[str]) -> bool:
    """Ask the site once more; whether every real server has answered by now. `names` collects them."""
    names.add(answered_by(site_port) or "")
    return set(SERVERS) <= names


def answered_by(site_port: int) -> str | None:
    """The name of the real server that answered."""
    connection = http.client.HTTPConnection("127.0.0.1", site_port, timeout=5)
    try:
        connection.request("GET", "/")
        return connection.getresponse().getheader("X-Server")
    except http.client.HTTPException as error:
        raise OSError(str(error)) from None
    finally:
        connection.close()


START = time.monotonic()


def say(text: str) -> None:
    print(f"[{time.monotonic() - START:5.1f} s] {text}", flush=True)


def shown(path: Path) -> str:
    return str(path.relative_to(TOP) if path.is_relative_to(TOP) else path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
