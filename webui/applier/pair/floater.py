"""Holds the floating addresses of a pair while keepalived says that this box leads.

    python3 -m applier.pair.floater /run/fairlead

keepalived elects and holds no address itself (decision 82). What it says comes by a pipe; where the pipe ends,
keepalived has ended, and the box leads no more. Addresses are leases: the kernel drops them by itself when this process
does not renew them, so a box whose processes stand still holds none for long. It stays in memory, is real-time and
loads next to nothing: nothing here may wait for a disk, for another program or for a reader of its log.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import gc
import os
import resource
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterable

from applier.pair import leases, roles, silence
from applier.pair.leases import Batch, Card, Floating, Place, Wrong
from applier.pair.roles import Heard, Role
from applier.pair.silence import Silence, Work

# Files of the folder that it is given; Paths has them, too.
EVENTS, FLOATING, HOLD, ROLE, SOCKET = "vrrp.fifo", "floating.json", "hold", "role", "floater"
PID = "vrrp.pid"  # of the process of keepalived's that elects; ../../../overlay/etc/sv/vrrp/run names it, too

SERIES = (0.1, 0.5, 2.0)  # seconds after the first announcement, when it is said again; a frame may be lost
AGAIN = 10.0  # seconds between announcements later: who has heard of another holder hears the truth
IDLE = 2.5  # seconds until it looks anyway whether keepalived has come, or somebody has changed the hold
APPLIER = 10.0  # seconds without a word of the applier, after which the other box leads if it can
MISSED, MISSES = 2.0, 1.0  # seconds without one until it looks what the applier is at, and between two such looks
HAND_OVER = 2.0  # seconds for which it holds the box: the other one takes over within some milliseconds
AFTER_ALL, WAKES = 0.2, 0.5  # seconds that a group may be behind its instances, and for which it is held then
LATE, SETTLES = 0.5, 1.0  # seconds: so late has it stood still; so long keepalived may take to notice that as well
CONNECTIONS, LINE = 8, 200  # commands under way at once, and the longest one in bytes
KEPT = 30  # seconds that addresses are kept for whoever makes them the box's own
COMMANDS = "hold [REASON], release, hand-over [REASON], alive [relieved], announce, reload [remove], keep"
PRIORITY = 20  # real-time; below keepalived (50) and the kernel's packet threads
LOOP = 5_000_000  # microseconds of the processor without a pause, after which the kernel ends it
RENEWALS = 4  # in the time of a lease
# Why it holds the box by itself.
WAKING, ENDED, DEAD = "waking up", "the floater was ended", "the applier does not answer"
NOT_THERE = (errno.EADDRNOTAVAIL, errno.ENODEV)  # what is to be dropped, is dropped
_PEER = struct.Struct("=iII")  # unix(7), SO_PEERCRED: pid, uid, gid
_MAC_OF = 0x8927  # SIOCGIFHWADDR
_LOCK_WHAT_IS_USED = 1 | 2 | 4  # MCL_CURRENT, MCL_FUTURE, MCL_ONFAULT


def now() -> float:
    """Seconds since the boot, also those in which the machine was suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def say(text: str) -> None:
    """To the log, unless that would have to wait."""
    with contextlib.suppress(OSError):
        os.write(sys.stderr.fileno(), f"{text}\n".encode())


class Kernel:
    """The door to the kernel: addresses and frames."""

    def __init__(self) -> None:
        self._netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._netlink.bind((0, 0))
        self._packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)  # of no protocol: it receives nothing
        self._packets.setblocking(False)

    def cards(self, names: set[str]) -> dict[str, Card]:
        """Of those interfaces that are there; the MAC is "" where it has none."""
        found = {}
        for name in names:
            with contextlib.suppress(OSError):
                request = struct.pack("256s", name.encode())
                answer = fcntl.ioctl(self._packets, _MAC_OF, request)
                mac = answer[18:24].hex(":") if any(answer[18:24]) else ""
                found[name] = Card(socket.if_nametoindex(name), mac)
        return found

    def change(self, message: bytes, batch: Batch) -> list[tuple[Place, int]]:
        """Tell it to hold or to drop a batch; what it refuses."""
        refused: list[tuple[Place, int]] = []
        self._netlink.send(message)
        with contextlib.suppress(OSError):  # until there are no more
            while True:
                refused += leases.complaints(self._netlink.recv(65536, socket.MSG_DONTWAIT), batch)
        return refused

    def work(self, process: int) -> Work | None:
        """What a process is at; None: there is none."""
        return silence.of_process(process)

    def announce(self, batch: Batch) -> None:
        """A frame that is lost is sent again later."""
        for interface, frame in batch.frames:
            with contextlib.suppress(OSError):
                self._packets.sendto(frame, (interface, 0))


class Floater:
    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._kernel = Kernel()
        self._role = roles.read_role(self._text(ROLE)) or Role("", 0.0, "")
        self._heard = Heard(roles.RESUMED.get(self._role.role, ""))
        self._floating = Floating()
        self._cards: dict[str, Card] = {}
        self._batches: tuple[Batch, ...] = ()
        self._complaints: set[str] = set()
        self._due: dict[Callable[[], None], float] = {self._look: now()}  # work -> when
        self._series: list[float] = []  # when to announce again after an event
        self._excused = False
        self._poll = select.poll()
        self._events, self._rest = -1, b""
        self._writer = False  # keepalived has its end of the pipe open
        self._pulse = ""  # of keepalived, when it was looked at last
        self._listener = self._listen()
        self._talks: dict[int, tuple[socket.socket, int, bytearray]] = {}  # the number: of the process that speaks
        self._silence = Silence(0, 0.0)  # of the applier

    def start(self) -> None:
        """Go on where another one was ended, or begin."""
        held = roles.hold_reason(self._text(HOLD))
        if held == ENDED:
            self._hold(None)
        elif held == WAKING or roles.hands_over(held):
            self._due[self._release] = now() + HAND_OVER
        try:
            self._floating = leases.read(self._text(FLOATING))
        except Wrong as error:
            # Without addresses it must not lead; the other box may know its own.
            say(f"{FLOATING}: {error}")
            self._hold(f"{FLOATING}: {error}")
        self._prepare()
        self._open_events()
        # Where none ran before, these may be the addresses of a box that served alone, and is about to lead.
        self._hear(resumed=bool(self._role.role))
        self._tell()

    def end(self) -> None:
        """Drop everything. Whoever ends it on purpose wants the other box to lead."""
        if self._leads:
            self._hold(ENDED)
        self._heard = self._heard._replace(state=roles.FAULT)
        self._drop(self._batches)
        self._tell()

    @property
    def _leads(self) -> bool:
        return self._heard.state == roles.MASTER

    def turn(self) -> None:
        """Wait for what comes next, and do it. Before anything is renewed it looks whether the role has changed."""
        due, began = min(self._due.values()), now()
        ready = self._poll.poll(max(0.0, due - began) * 1000)
        self._hear()
        for handle, _ in ready:
            if handle == self._listener.fileno():
                self._accept()
            elif handle in self._talks:
                self._talk(handle)
        if self._leads and self._stood_still(due, began):
            self._excused = True
            self._due, self._series = dict.fromkeys(self._due, now() + SETTLES), []
            self._silence = Silence(self._silence.process, now() + SETTLES)  # the applier has stood still as well
        self._excused = self._excused and now() < min(self._due.values())
        for work in [work for work, when in self._due.items() if when <= now()]:
            # What came before it may have made it needless.
            if self._due.pop(work, None) is not None:
                self._try(work)
        self._tell()

    def _try(self, work: Callable[[], None]) -> None:
        """Again later where it fails, as with no memory left."""
        try:
            work()
        except OSError as error:
            say(f"{work.__name__.strip('_')}: {error}")
            self._due.setdefault(work, now() + IDLE)

    def _stood_still(self, due: float, began: float) -> bool:
        """Whether the box may have been stopped meanwhile.

        The other one may lead by now, as keepalived is about to see. What is late once is given time, and no more than
        once: a busy box goes on leading.
        """
        return now() - due > self._floating.lease or (now() - max(due, began) > LATE and not self._excused)

    # --- the role ---

    def _hear(self, resumed: bool = False) -> None:
        """Take in what keepalived has said, and act on the outcome. `resumed`: what the kernel holds is not known."""
        led, again = self._leads and not resumed, False
        while data := self._read():
            *whole, self._rest = (self._rest + data).split(b"\n")
            for event in filter(None, map(roles.parse, (line.decode(errors="replace") for line in whole))):
                self._heard = roles.after(self._heard, event)
                again = again or event.of_group or event.word == roles.LOWER_SEEN
        if self._leads and not led:
            self._take("leads")
        elif not self._leads and (led or resumed):
            self._let_go()
        elif again:
            self._announce_often()
        if self._heard.ahead:
            self._due.setdefault(self._wake, now() + AFTER_ALL)

    def _read(self) -> bytes:
        """More of what keepalived has said; nothing: that was all."""
        try:
            data = os.read(self._events, 65536)
        except BlockingIOError:
            self._writer = True
            return b""
        if data:
            self._writer = True
        elif self._writer:
            self._open_events()  # an end whose writer has gone says so for ever
        if not self._writer:
            self._heard = Heard()
        return data

    def _open_events(self) -> None:
        """Anew: keepalived may have made another pipe of that name."""
        if self._events >= 0:
            self._poll.unregister(self._events)
            os.close(self._events)
        with contextlib.suppress(FileExistsError):
            os.mkfifo(self._path(EVENTS), 0o600)
        self._events = os.open(self._path(EVENTS), os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        self._writer, self._rest = False, b""
        self._poll.register(self._events, select.POLLIN)

    def _stands_still(self) -> bool:
        """Whether keepalived has not run since the last time, although it was given something to look at then.

        One that hangs leaves its end of the pipe open.
        """
        pulse = _switches(self._text(PID).strip())
        still = pulse != "" and pulse == self._pulse
        self._pulse = pulse
        with contextlib.suppress(OSError):
            os.close(os.open(self._path(HOLD), os.O_WRONLY | os.O_CREAT, 0o644))  # it looks at who was written to
        return still

    def _describe(self) -> tuple[str, str]:
        return roles.describe(self._heard, roles.hold_reason(self._text(HOLD)))

    def _tell(self) -> None:
        """Write down the role where it has changed."""
        role, reason = self._describe()
        since = self._role.since if role == self._role.role else round(now(), 3)
        if (role, since, reason) != self._role:
            self._role = Role(role, since, reason)
            try:
                self._write(ROLE, roles.role_text(self._role))
            except OSError as error:
                say(f"the role cannot be written down: {error}")

    def _hold(self, reason: str | None) -> None:
        """Tell keepalived to stand aside, or that it need not any more (None)."""
        self._write(HOLD, roles.hold_text(reason))

    # --- addresses ---

    def _prepare(self) -> None:
        names = {place.interface for place in self._floating.places}
        self._cards = self._kernel.cards(names)
        self._batches = leases.prepare(self._floating.places, self._cards, self._floating.lease)

    def _take(self, why: str) -> None:
        begun, refused = now(), []
        for batch in self._batches:
            refused += self._kernel.change(batch.hold, batch)
            self._kernel.announce(batch)
        self._due[self._renew] = now() + self._floating.lease / RENEWALS
        self._pulse = ""
        self._series = []
        self._announce_often()
        self._complain(refused)
        say(f"{why}: {len(self._floating.places)} addresses within {(now() - begun) * 1000:.1f} ms")

    def _drop(self, batches: Iterable[Batch]) -> None:
        refused = [one for batch in batches for one in self._kernel.change(batch.drop, batch)]
        self._complain(one for one in refused if one[1] not in NOT_THERE)
        if not self._leads:
            self._series = []
            for work in (self._renew, self._announce):
                self._due.pop(work, None)

    def _let_go(self) -> None:
        self._drop(self._batches)
        say(f"does not lead: {' '.join(filter(None, self._describe()))}")

    def _renew(self) -> None:
        self._due[self._renew] = now() + self._floating.lease / RENEWALS
        if self._stands_still():
            # The other box has taken over, or is about to.
            self._heard = Heard(roles.STILL, ahead=True)
            self._let_go()
            return
        self._complain(one for batch in self._batches for one in self._kernel.change(batch.hold, batch))

    def _announce(self) -> None:
        for batch in self._batches:
            self._kernel.announce(batch)
        self._series = [when for when in self._series if when > now()]
        self._due[self._announce] = self._series[0] if self._series else now() + AGAIN

    def _announce_often(self) -> None:
        """At once and some times more, unless that is under way."""
        if self._leads and not self._series:
            self._series = [now() + after for after in SERIES]
            self._announce()

    def _look(self) -> None:
        """Whatever says nothing by itself: a new pipe, another card or MAC behind a name."""
        self._due[self._look] = now() + IDLE
        if not self._writer:
            self._open_events()
            self._hear()
        if self._kernel.cards({place.interface for place in self._floating.places}) != self._cards:
            self._prepare()
            if self._leads:
                self._take("has other interfaces")

    def _complain(self, refused: Iterable[tuple[Place, int]]) -> None:
        """Say what was not said the last time."""
        missing = {
            f"{place}: no such interface" for place in self._floating.places if place.interface not in self._cards
        }
        complaints = missing | {f"{place}: {os.strerror(code)}" for place, code in refused}
        for text in sorted(complaints - self._complaints):
            say(text)
        self._complaints = complaints

    # --- what others ask for ---

    def _listen(self) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path(SOCKET))
        mask = os.umask(0o177)
        try:
            listener.bind(self._path(SOCKET))
        finally:
            os.umask(mask)
        listener.listen(CONNECTIONS)
        listener.setblocking(False)
        self._poll.register(listener, select.POLLIN)
        return listener

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            talk, _ = self._listener.accept()
            talk.setblocking(False)
            process, user, _ = _PEER.unpack(talk.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
            if user != os.geteuid():
                _answer(talk, f"error: only root may speak here, not user {user}")
                talk.close()
                return
            if len(self._talks) >= CONNECTIONS:
                self._hang_up(next(iter(self._talks)))
            self._talks[talk.fileno()] = talk, process, bytearray()
            self._poll.register(talk, select.POLLIN)

    def _talk(self, handle: int) -> None:
        talk, process, said = self._talks[handle]
        try:
            more = talk.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            more = b""
        said += more
        while b"\n" in said:
            line, _, rest = said.partition(b"\n")
            said[:] = rest
            _answer(talk, self._obey(line.decode(errors="replace"), process))
        if len(said) > LINE:
            _answer(talk, f"error: a line has {LINE} bytes at the most")
        if not more or len(said) > LINE:
            self._hang_up(handle)

    def _hang_up(self, handle: int) -> None:
        self._poll.unregister(handle)
        self._talks.pop(handle)[0].close()

    def _obey(self, line: str, process: int) -> str:
        """Carry out a command of a process; "ok", or what is wrong."""
        try:
            match line.split():
                case ["hold", *reason]:
                    self._due.pop(self._release, None)
                    self._hold(" ".join(reason) or "by hand")
                case ["release"]:
                    self._due.pop(self._release, None)
                    self._hold(None)
                case ["hand-over", *reason] if self._leads:
                    self._hold_for(roles.handing_over(" ".join(reason)), HAND_OVER)
                case ["hand-over", *_]:
                    return f"error: this box does not lead: {' '.join(filter(None, self._describe()))}"
                case ["alive", *relieved]:
                    self._due.pop(self._miss, None)
                    if relieved == ["relieved"]:
                        self._silence = Silence(process, now())
                        self._due[self._miss] = now() + MISSED
                case ["announce"]:
                    self._announce_often()
                case ["reload"]:
                    self._reload(remove=False)
                case ["reload", "remove"]:
                    self._reload(remove=True)
                case ["keep"]:
                    self._keep()
                case _:
                    return f"error: one of: {COMMANDS}"
        except Wrong as error:
            return f"error: {FLOATING}: {error}"
        except OSError as error:
            return f"error: {error}"
        return "ok"

    def _wake(self) -> None:
        """Have keepalived tell its group apart from its instances: who was held stands by in both."""
        if self._heard.ahead and roles.hold_reason(self._text(HOLD)) is None:
            self._hold_for(WAKING, WAKES)

    def _miss(self) -> None:
        """The applier is silent, and has said before that the other box can lead.

        It hands over once: the applier may have died there, too.
        """
        self._silence.look(self._kernel.work(self._silence.process), now())
        if self._silence.seconds < APPLIER:
            self._due[self._miss] = now() + min(MISSES, APPLIER - self._silence.seconds)
        elif self._leads:
            say(DEAD)
            self._hold_for(roles.handing_over(DEAD), HAND_OVER)

    def _hold_for(self, reason: str, seconds: float) -> None:
        self._hold(reason)
        self._due[self._release] = now() + seconds

    def _release(self) -> None:
        self._hold(None)

    def _reload(self, remove: bool) -> None:
        """Take what is new in floating.json, and only with `remove` give up what is no more in it. Raises Wrong."""
        wanted, before = leases.read(self._text(FLOATING)), self._floating.places
        places = wanted.places if remove else tuple(dict.fromkeys((*before, *wanted.places)))
        gone = leases.prepare([place for place in before if place not in set(places)], self._cards, wanted.lease)
        self._floating = Floating(places, wanted.lease)
        self._prepare()
        self._drop(gone)
        if self._leads:
            self._take("leads")

    def _keep(self) -> None:
        """Leave what it holds to the kernel for a while: the box leaves its pair, and makes its own addresses of it."""
        if self._leads:
            batches = leases.prepare(self._floating.places, self._cards, KEPT)
            self._complain(one for batch in batches for one in self._kernel.change(batch.hold, batch))
        self._floating = Floating((), self._floating.lease)
        self._prepare()
        self._due[self._take_again] = now() + KEPT / 2

    def _take_again(self) -> None:
        """Whoever asked it to keep them has not ended it: he may be dead, and the box still leads."""
        with contextlib.suppress(Wrong):
            self._reload(remove=False)

    # --- files ---

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}"

    def _text(self, name: str) -> str:
        try:
            with open(self._path(name), encoding="utf-8", errors="replace") as file:
                return file.read()
        except OSError:
            return ""

    def _write(self, name: str, text: str) -> None:
        """In one piece; it need not survive a power cut. keepalived sees a file that is put in its place."""
        temporary = self._path(f".{name}.new")
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, self._path(name))


def _switches(process: str) -> str:
    """The process, and how often it has gone to sleep; "" where there is none."""
    with contextlib.suppress(OSError), open(f"/proc/{process}/status", encoding="utf-8", errors="replace") as file:
        return process + "".join(line for line in file if line.startswith("voluntary_ctxt_switches"))
    return ""


def _answer(talk: socket.socket, text: str) -> None:
    """To one who may have gone, or who reads nothing."""
    with contextlib.suppress(OSError):
        talk.send(f"{text}\n".encode())


def stay() -> None:
    """Be there whatever happens to the box: in memory, before others, and ended by nobody's hunger.

    What is refused is said, and addresses are held anyway.
    """
    os.set_blocking(sys.stderr.fileno(), False)
    for what, work in (
        ("kept in memory", _lock),
        ("spared when memory runs out", _be_spared),
        ("put before others", _come_first),
    ):
        try:
            work()
        except OSError as error:
            say(f"it cannot be {what}: {error.strerror}")
    gc.freeze()


def _lock() -> None:
    """All that comes from files, as that would have to be read from a disk; of the rest what is used, from then on."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
        spans = [words[0].split("-") for words in map(str.split, file) if words[1][0] == "r" and words[-1][0] == "/"]
    for start, end in spans:
        _obeyed(libc.mlock(ctypes.c_void_p(int(start, 16)), ctypes.c_size_t(int(end, 16) - int(start, 16))))
    _obeyed(libc.mlockall(_LOCK_WHAT_IS_USED))


def _obeyed(answer: int) -> None:
    if answer:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _be_spared() -> None:
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("-1000")


def _come_first() -> None:
    resource.setrlimit(resource.RLIMIT_RTTIME, (LOOP, LOOP))
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(PRIORITY))


def main(folder: str) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    floater = Floater(folder)
    stay()
    try:
        floater.start()
        while True:
            floater.turn()
    except SystemExit:
        floater.end()
        raise


if __name__ == "__main__":
    main(sys.argv[1])
