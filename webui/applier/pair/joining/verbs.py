"""Making a pair: the verbs by which one box waits for the other, and by which the other one joins.

Root's process says nothing to the other box and hears nothing of it: a program without rights does (worker.py), and
what that passes on is checked once more.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from ipaddress import ip_address, ip_interface
from typing import Protocol, TypeVar

from applier.base.paths import Paths
from applier.host.host import Host, HostError, Program, run
from applier.kept import pair_key, storage
from applier.pair.joining import proof, record
from applier.pair.joining.messages import (
    MAX_ADDRESSES,
    Again,
    Agreed,
    Done,
    JoinError,
    Kept,
    Listening,
    Message,
    Met,
    Probe,
    Refused,
    Taken,
    Tell,
    Waiting,
    read,
    write,
)
from applier.pair.joining.record import Record
from applier.pair.joining.worker import PATIENCE, TICK, Dials, Waits
from applier.wire.errors import ApplierRefused
from applier.wire.shapes import Problem
from applier.wire.shapes_joining import Asked, Invitation, JoinedBoxes, JoinedLink, Joining
from lbconfig import schema
from lbconfig.joining import Facts, candidates, differences
from lbconfig.model.network import Network
from lbconfig.model.snapshot import Snapshot
from lbconfig.model.writing import plain
from lbconfig.replacing import alive, own_addresses
from lbconfig.target import Target
from lbconfig.validate.cards import Card
from lbconfig.validate.fields import ip_address as address_sentence
from lbconfig.validate.fields import is_dns_name
from lbconfig.wanted.pair_link import JOIN_PORT

log = logging.getLogger("applier")

USER = "986"  # fairlead-join
SECONDS = 600  # for which a code is good
TRIES = 3
# The program loads Python and makes a key of the code before its first word: seconds on a small box that is busy.
SILENCE = 50.0  # seconds without a word, after which the program is given up
GREETS = 3 * PATIENCE + TICK  # the same where it waits: whoever comes has to begin TLS, and to say two things
LONGEST = 30.0  # seconds to wait for an earlier try to end
FIELDS = ("address", "code")  # that an admin enters
AT_ONCE = 32  # addresses that are asked for at the same time
OPENED = ("nft", "add", "element", "inet", "fairlead", "joining")
CERTIFICATE = "[req]\nprompt = no\ndistinguished_name = name\n[name]\nCN = fairlead\n"
_END_OF_KEY = "-----END PRIVATE KEY-----\n"
Kind = TypeVar("Kind")


class NotHere(JoinError):
    """This box refuses, has told the other one so, and waits for nobody any more."""


class Core(Protocol):
    """What is needed of the daemon."""

    host: Host
    paths: Paths
    running: Target

    def cards(self) -> tuple[Card, ...]: ...


def confined(role: str) -> list[str]:
    """The command that starts the program without rights."""
    return [
        "setpriv", "--reuid", USER, "--regid", USER, "--clear-groups", "--no-new-privs", "--inh-caps=-all",
        "--bounding-set=-all", "python3", "-m", "applier.pair.joining.worker", role,
    ]  # fmt: skip


class Talk:
    """With that program, which talks to the other box."""

    def __init__(self, program: Program, silence: float) -> None:
        self._program = program
        self._lines: Iterator[str] = iter(program.lines(silence))

    def say(self, what: Message) -> None:
        self._program.say(write(what).decode().rstrip("\n"))

    def hear(self, *kinds: type[Kind]) -> Kind:
        """Raises JoinError, HostError."""
        line = next(self._lines, None)
        if line is None:
            raise JoinError("The connection between the two boxes was lost.")
        return read(line.encode(), *kinds)

    def over(self) -> int:
        """Wait on, after what was said to a box that came; how many tries are left."""
        self.say(Again())
        for line in self._lines:
            with contextlib.suppress(JoinError):  # what it still had to say of that box
                return read(line.encode(), Waiting).left
        raise JoinError("The program that talks to the other box has ended.")


@dataclass
class Open:
    """An invitation that somebody may take up."""

    code: str
    until: float  # by the host's clock
    program: Program
    tries: int = TRIES
    thread: threading.Thread | None = None
    id: str = field(default_factory=lambda: secrets.token_hex(16))  # of a pair that comes of it


Meet = Callable[[Open, Talk, str, Met], None]  # what is said once the other box knows the code; with the own key


class Joinings:
    def __init__(
        self,
        core: Core,
        command: Callable[[str], Sequence[str]] = confined,
        port: int = JOIN_PORT,
        key: Callable[[Host, Paths], str] = pair_key.make,
        forget: Callable[[], None] | None = None,
        known_key: Callable[[Host, Paths], str] = pair_key.public,
        new_key: Callable[[Host], pair_key.Fresh] = pair_key.fresh,
        silent: Callable[[], bool] = lambda: True,
        link: Callable[[], JoinedLink | None] = lambda: None,
    ) -> None:
        """`forget`: what was agreed, and what was made of it. Raises ApplierRefused.

        `silent`: whether the other box of a pair is away. `link`: whether one is heard that was joined.
        """
        self._core = core
        self._command = command
        self._port = port
        self._key = key
        self._forget = forget or (lambda: record.forget(core.paths))
        self._known_key = known_key
        self._new_key = new_key
        self._silent = silent
        self._link = link
        self._lock = threading.Lock()  # one verb changes something at a time
        self._state = threading.Lock()  # of the three below, and of what is on the disk
        self._open: Open | None = None
        self._said = ""

    # --- verbs -----------------------------------------------------------------------------------

    def pair_joining(self) -> Joining:
        """Whether a box is waited for, or has come."""
        opened, found = self._open, record.load(self._core.paths)
        return {
            "invitation": self._invitation(opened) if opened and not self._is_certain() else None,
            "joined": _shape(found) if found and self._is_open(found) else None,
            "link": self._link() if found else None,
            "said": self._said,
        }

    def pair_invite(self, user: str) -> Joining:
        """Wait for the second box; a code that was given before is good no longer."""
        core = self._core
        self._may_join()
        if not _fixed(core.running.snapshot.network):
            text = "This box has no fixed address, which the boxes of a pair need. Give it one on the page Network."
            raise ApplierRefused("cannot-join", text)
        answer = self._invite(self._key, self._become_first)
        log.info("%s makes a pair; the box waits for another one", user)
        return answer

    def pair_replace(self, user: str) -> Joining:
        """Wait for a new box, with a new code; it takes the place of the other one of this pair."""
        pair, box = self._core.running.snapshot.pair, self._core.running.box
        if pair is None or box is None:
            raise ApplierRefused("no-pair", "This box is in no pair.")
        if not self._silent():
            text = f"{pair.boxes[1 - box].name} is there. Take it out of the pair, or switch it off, and try again."
            raise ApplierRefused("peer-there", text)
        # Its own key stays: it goes on as the box that it is.
        answer = self._invite(self._known_key, self._replace_other)
        log.info("%s replaces %s; the box waits for a new one", user, pair.boxes[1 - box].name)
        return answer

    def _invite(self, key_of: Callable[[Host, Paths], str], meet: Meet) -> Joining:
        core = self._core
        with self._lock:
            self._close()
            try:
                code, key, (certificate, private) = proof.new_code(), self._made(key_of), _certificate(core.host)
            except HostError as error:
                raise ApplierRefused("cannot-join", f"The box cannot make a certificate: {error}.") from None
            waits = Waits(self._port, certificate, private, code, key, TRIES, SECONDS)
            program = self._start("first", waits)
            talk = Talk(program, GREETS)
            try:
                port = talk.hear(Listening).port
                _open_port(core.host, port)
            except (JoinError, HostError) as error:
                program.end()
                raise ApplierRefused("cannot-join", f"The box cannot wait for another one: {error}") from None
            opened = Open(code, core.host.now() + SECONDS, program)
            work = threading.Thread(
                target=self._wait, args=(opened, talk, port, key, meet), name="joining", daemon=True
            )
            with self._state:
                self._open, self._said, opened.thread = opened, "", work
            work.start()
        return self.pair_joining()

    def pair_join(self, address: str, code: str, user: str) -> Joining:
        """Become the second box of the one that shows this code."""
        core = self._core
        self._may_join()
        _problem(_address(address, core.running.snapshot.network), "address")
        if not proof.plain(code):
            _problem("A code has sixteen letters and digits, as in ABCD-EFGH-IJKL-MN23.", "code")
        opened = self._open
        if opened and proof.plain(opened.code) == proof.plain(code):
            _problem("This is the code that this box shows. Enter it on the other box.", "code")
        if not self._lock.acquire(timeout=LONGEST):
            raise ApplierRefused("busy", "This box is still joining another one. Look at this page again in a minute.")
        try:
            if not self._has_joined(code):
                self._end_invitation()
                self._join(address, code)
        except (JoinError, HostError) as error:
            if not self._has_joined(code):  # it may have heard the other box over the link meanwhile
                if isinstance(error, JoinError):
                    _problem(error.why, error.field)
                raise ApplierRefused("cannot-join", f"The other box cannot be joined: {error}.") from None
        except OSError as error:
            raise ApplierRefused(*storage.of_error(error, core.paths)) from None
        finally:
            self._lock.release()
        log.info("%s joined this box to the one at %s", user, address)
        return self.pair_joining()

    def pair_forget(self, user: str) -> Joining:
        """Wait for nobody any more, and know nobody."""
        with self._lock:
            self._close()
        log.info("%s makes no pair", user)
        return self.pair_joining()

    def pair_probe(self, addresses: list[str]) -> Asked:
        """Which of these somebody in a network of this box answers for."""
        return {"taken": self._taken(addresses)}

    # --- the first box ---------------------------------------------------------------------------

    def _wait(self, opened: Open, talk: Talk, port: int, key: str, meet: Meet) -> None:
        """The box that has come may come again, until it is heard over the link: it may lack the last answer."""
        host, said = self._core.host, ""
        try:
            while not self._is_certain():
                heard = talk.hear(Waiting, Met)
                if isinstance(heard, Waiting):
                    opened.tries = heard.left
                elif isinstance(heard, Met):
                    self._meet(meet, opened, talk, key, heard)
                _open_port(host, port)  # an apply makes the rules anew, without it
        except JoinError as error:
            said = error.why if record.load(self._core.paths) is None else ""
        except (HostError, OSError) as error:
            said = f"The other box could not be joined: {error}."
        opened.program.end()
        _shut_port(host, port)
        with self._state:
            if self._open is opened:
                self._open, self._said = None, said
                if said:
                    log.warning("no pair: %s", said)

    def _meet(self, meet: Meet, opened: Open, talk: Talk, key: str, met: Met) -> None:
        """Raises NotHere, and JoinError where the program has ended."""
        try:
            meet(opened, talk, key, met)
            said = ""
        except NotHere:
            raise
        except JoinError as error:
            said = f"The other box came, and was lost again: {error.why} The code is still good: enter it there again."
            log.warning("%s", said)
        opened.tries = talk.over()
        with self._state:
            if self._open is opened and record.load(self._core.paths) is None:
                self._said = said

    def _is_certain(self) -> bool:
        """Whether the box that has come need not come again."""
        found, link = record.load(self._core.paths), self._link()
        return found is not None and (not self._is_open(found) or (link is not None and link["heard"]))

    def _came_before(self, talk: Talk, key: str, met: Met, theirs: Facts) -> Record | None:
        """What was agreed with this box already, by the same code. Raises JoinError for any other box."""
        found = record.load(self._core.paths)
        if found is None:
            return None
        if found.keys != _keys(found.box, key, met.key):
            why = f"{found.other} has joined with this code already. Show a new code on the other box."
            talk.say(Refused(why, "code"))
            raise JoinError(why)
        return replace(found, address=met.address, time=int(time.time()), facts=theirs)

    def _become_first(self, opened: Open, talk: Talk, key: str, met: Met) -> None:
        snapshot, mine, theirs = self._core.running.snapshot, self._facts(), talk.hear(Tell).facts
        if why := next(differences(mine, theirs), ""):
            talk.say(Refused(why))
            raise NotHere(why)
        if before := self._came_before(talk, key, met, theirs):
            self._once_more(opened, talk, before, snapshot.network.hostname)
            return
        wanted = candidates(snapshot, theirs)[:MAX_ADDRESSES]
        talk.say(Probe(wanted))
        here = self._taken(wanted)
        there = {*talk.hear(Taken).addresses} & {*wanted}
        found = Record(
            opened.id,
            0,
            _keys(0, key, met.key),
            theirs.network.hostname,
            met.address,
            mine.time,
            theirs,
            tuple(one for one in wanted if one in there or one in here),
        )
        self._both_keep(opened, talk, found, snapshot.network.hostname)

    def _replace_other(self, opened: Open, talk: Talk, key: str, met: Met) -> None:
        running, mine, theirs = self._core.running, self._facts(), talk.hear(Tell).facts
        pair, box = running.snapshot.pair, running.box
        if why := next(differences(mine, theirs), ""):
            talk.say(Refused(why))
            raise NotHere(why)
        if pair is None or box is None:
            talk.say(Refused("The other box has left its pair."))
            raise NotHere("This box has left its pair.")
        other = pair.boxes[1 - box]
        if before := self._came_before(talk, key, met, theirs):
            self._once_more(opened, talk, before, pair.boxes[box].name)
            return
        wanted = own_addresses(other)[:MAX_ADDRESSES]
        talk.say(Probe(wanted))
        here, there = {*self._taken(wanted)}, {*talk.hear(Taken).addresses} & {*wanted}
        # The new box may have one of these itself: it was that box once.
        theirs_own = {text.partition("/")[0] for one in theirs.network.interfaces for text in one.addresses}
        if why := alive(other, (here | there) - theirs_own):
            talk.say(Refused(why))
            raise NotHere(why)
        found = Record(
            pair.id, box, _keys(box, key, met.key), theirs.network.hostname, met.address, mine.time, theirs, ()
        )
        self._both_keep(opened, talk, found, pair.boxes[box].name)

    def _once_more(self, opened: Open, talk: Talk, before: Record, hostname: str) -> None:
        """The same answer: the box may not have heard the end of it."""
        talk.say(Probe(()))
        talk.hear(Taken)
        self._both_keep(opened, talk, before, hostname)

    def _both_keep(self, opened: Open, talk: Talk, found: Record, hostname: str) -> None:
        replaces = self._core.running.snapshot.pair is not None
        talk.say(Agreed(found.id, hostname, 1 - found.box, replaces))
        talk.hear(Kept)
        why = ""
        with self._state:
            if self._open is not opened:
                why = "Somebody has ended this on the other box."
            else:
                try:
                    record.keep(self._core.paths, found)
                except OSError as error:
                    why = storage.of_error(error, self._core.paths)[1]
        if why:
            talk.say(Refused(why))
            raise NotHere(why)
        talk.say(Done())

    # --- the second box --------------------------------------------------------------------------

    def _join(self, address: str, code: str) -> None:
        """Where the same code was entered before, with the same key: the first box may have kept that."""
        key, fresh = self._key_for(code)
        program = self._start("second", Dials(address, self._port, code, key))
        try:
            self._become_second(Talk(program, SILENCE), key, fresh, proof.mark(code))
        finally:
            program.end()

    def _become_second(self, talk: Talk, key: str, fresh: pair_key.Fresh | None, mark: str) -> None:
        """It keeps what was agreed before the first box does, and until it is forgotten or joins another one.

        Which of its answers the first box has heard, it learns over the link: that one is heard there or it is not.
        """
        core = self._core
        met = talk.hear(Met)
        talk.say(Tell(self._facts()))
        wanted = talk.hear(Probe).addresses
        talk.say(Taken(tuple(self._taken(wanted))))
        agreed = talk.hear(Agreed)
        keys, now = _keys(agreed.box, key, met.key), int(time.time())
        found = Record(agreed.id, agreed.box, keys, agreed.hostname, met.address, now, None, (), mark, agreed.replaces)
        try:
            if fresh is not None:
                self._forget()  # before the key that it needs is another one
                pair_key.keep(core.paths, fresh)
            record.keep(core.paths, found)
        except ApplierRefused as refused:
            talk.say(Refused(f"{core.running.own.network.hostname}: {refused.message}"))
            raise
        except OSError as error:
            talk.say(Refused(f"{core.running.own.network.hostname}: {storage.of_error(error, core.paths)[1]}"))
            raise
        talk.say(Kept())
        try:
            talk.hear(Done)
        except JoinError as error:
            raise JoinError(f"{error.why} If {found.other} still shows the code, enter it once more.") from None

    def _key_for(self, code: str) -> tuple[str, pair_key.Fresh | None]:
        """The public key to join with, and where it is a new one, the private one."""
        core, found = self._core, self._of_code(code)
        if found is not None:
            with contextlib.suppress(HostError):
                if self._known_key(core.host, core.paths) == found.keys[found.box]:
                    return found.keys[found.box], None
        try:
            made = self._new_key(core.host)
        except HostError as error:
            raise ApplierRefused("cannot-join", f"The box cannot make its key: {error}.") from None
        return made.public, made

    def _of_code(self, code: str) -> Record | None:
        """What was agreed with this code already."""
        found = record.load(self._core.paths)
        return found if found is not None and found.mark == proof.mark(code) else None

    def _has_joined(self, code: str) -> bool:
        """Whether this code has been entered here, and both boxes are certain of it."""
        link = self._link()
        return self._of_code(code) is not None and link is not None and link["heard"]

    # --- both ------------------------------------------------------------------------------------

    def _is_open(self, found: Record) -> bool:
        """Whether what was agreed is still to be applied."""
        pair = self._core.running.snapshot.pair
        return pair is None or (pair.id == found.id and pair.boxes[1 - found.box].key != found.keys[1 - found.box])

    def _may_join(self) -> None:
        if self._core.running.snapshot.pair is not None:
            raise ApplierRefused("paired", "This box is one of a pair already.")

    def _close(self) -> None:
        """Nobody waits, and nobody is known."""
        self._end_invitation()
        self._forget()

    def _end_invitation(self) -> None:
        """Nobody waits. The thread that waits ends the program: it may be reading from it."""
        with self._state:
            opened, self._open, self._said = self._open, None, ""
        if opened and opened.thread:
            with contextlib.suppress(HostError):  # it has ended by itself
                opened.program.say("")  # any word but one that is waited for
            opened.thread.join(LONGEST)

    def _made(self, key_of: Callable[[Host, Paths], str]) -> str:
        try:
            return key_of(self._core.host, self._core.paths)
        except HostError as error:
            raise ApplierRefused("cannot-join", f"The box cannot make its key: {error}.") from None
        except OSError as error:
            raise ApplierRefused(*storage.of_error(error, self._core.paths)) from None

    def _start(self, role: str, setup: Waits | Dials) -> Program:
        program = self._core.host.start(self._command(role))
        program.say(json.dumps(plain(setup)))
        return program

    def _facts(self) -> Facts:
        core, snapshot = self._core, self._core.running.own
        cards = tuple(one for one in core.cards() if one.name != "lo")
        digest = hashlib.sha256(schema.to_json().encode()).hexdigest()
        return Facts(core.paths.version, digest, cards, snapshot.network, snapshot.tuning, int(time.time()))

    def _taken(self, addresses: Iterable[str]) -> list[str]:
        """Who is in no network of this box cannot be asked for here, and the other box asks as well."""
        near = [found for one in addresses if (found := _asked_by(self._core.running.own, one))]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            answers = pool.map(lambda one: _answers(self._core.host, *one), near)
            return [address for (address, _, _), answered in zip(near, answers, strict=True) if answered]

    def _invitation(self, opened: Open) -> Invitation:
        left = max(0.0, opened.until - self._core.host.now())
        addresses = [text.partition("/")[0] for text in _fixed(self._core.running.own.network)]
        return {
            "code": opened.code,
            "addresses": addresses,
            "port": self._port,
            "seconds": round(left, 1),
            "tries": opened.tries,
        }


def _shape(found: Record) -> JoinedBoxes:
    return {
        "id": found.id,
        "box": found.box,
        "keys": [*found.keys],
        "other": found.other,
        "address": found.address,
        "time": found.time,
        "facts": plain(found.facts),  # type: ignore[typeddict-item] # plain data of a dataclass are a dict
        "taken": [*found.taken],
        "replaces": found.replaces,
    }


def _keys(box: int, own: str, other: str) -> tuple[str, str]:
    """Of the first box and of the second one; `box` is which of them this one is."""
    return (own, other) if box == 0 else (other, own)


def _fixed(network: Network) -> list[str]:
    return [text for one in network.interfaces if one.on for text in one.addresses]


def _address(text: str, network: Network) -> str:
    """What is wrong with the address of the other box."""
    if address_sentence(text) and not is_dns_name(text, 253):
        return "Enter an address, such as 192.0.2.7, or the name of the other box."
    if text in {"127.0.0.1", "::1", "localhost", network.hostname, *(one.partition("/")[0] for one in _fixed(network))}:
        return "This is the address of the box itself. Enter the one of the other box."
    if ":" in text and ip_address(text).is_link_local:
        return "A link-local address has no network that the boxes could be linked over. Enter another one of that box."
    return ""


def _problem(why: str, field: str) -> None:
    """Raises ApplierRefused where there is something wrong."""
    if why:
        found: Problem = {"object": "joining", "field": field, "message": why, "path": field}
        raise ApplierRefused("not-joined", why, [found] if field in FIELDS else [])


def _asked_by(snapshot: Snapshot, address: str) -> tuple[str, str, str] | None:
    """The address, the interface by which it is asked for, and the own address there; None: by none."""
    try:
        wanted = ip_address(address)
    except ValueError:
        return None
    for interface in snapshot.network.interfaces:
        for text in interface.addresses if interface.on else ():
            own = ip_interface(text)
            if wanted.version == own.version == 4 and wanted in own.network and wanted != own.ip:
                return str(wanted), interface.name, str(own.ip)
    return None


def _answers(host: Host, address: str, interface: str, own: str) -> bool:
    try:
        return host.command(["arping", "-I", interface, "-s", own, "-c", "2", "-w", "1", address]).exit == 0
    except HostError as error:
        log.warning("%s was not asked for: %s", address, error)
        return False


def _certificate(host: Host) -> tuple[str, str]:
    """A certificate that is thrown away afterwards, and its key. HostError."""
    made = run(
        host,
        [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc",
            "-days", "2", "-config", "/proc/self/fd/0", "-keyout", "-", "-out", "-",
        ],
        stdin=CERTIFICATE,
    ).stdout  # fmt: skip
    private, _, certificate = made.partition(_END_OF_KEY)
    return certificate, private + _END_OF_KEY


def _open_port(host: Host, port: int) -> None:
    """To those who may open the web page; the kernel shuts it by itself where nobody does."""
    run(host, [*OPENED, f"{{ {port} timeout {SECONDS}s }}"])


def _shut_port(host: Host, port: int) -> None:
    try:
        run(host, ["nft", "delete", "element", "inet", "fairlead", "joining", f"{{ {port} }}"])
    except HostError as error:
        log.info("the port for another box: %s", error)  # an apply may have shut it
