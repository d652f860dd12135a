"""The words of the command, its help and its exit codes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from command import capacity, pair, verbs
from command.api import Api, Refused, Unreachable

UNREACHABLE = 3
ABOUT = "What the web page and the API of this box do, for root and his scripts."
END = """\
The draft is what an admin edits; it changes nothing that runs until it is applied. PATH is a path of the API, in which
a service may stand by its name: draft, network, services, services/shop, services/shop/real_servers/7 …

  fairlead change services/shop '{"scheduler": "lc"}'
  fairlead review
  fairlead apply --comment "quicker"
  fairlead drain 10.2.0.11

Exit codes: 0 done; 1 refused or failed, the reason on standard error; 2 wrong words; 3 the web process does not
answer; 4 it took too long and goes on."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        return options.run(Api(), options)
    except Unreachable as error:
        print(f"fairlead: {error}", file=sys.stderr)
        return UNREACHABLE
    except Refused as error:
        print(verbs.clean(f"fairlead: {error.code}: {error}"), file=sys.stderr)
        verbs.tell(error.problems)
        return verbs.FAILED
    except BrokenPipeError:  # somebody has seen enough: fairlead history | head -1
        sys.stderr.close()
        return verbs.OK


def parser() -> argparse.ArgumentParser:
    whole = argparse.ArgumentParser(
        prog="fairlead", description=ABOUT, epilog=END, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    words = whole.add_subparsers(required=True, metavar="WORD", dest="verb")
    _looking(words)
    _editing(words)
    _running(words)
    _history(words)
    _tokens(words)
    return whole


def _word(words, name: str, run, help_: str, json: bool = False) -> argparse.ArgumentParser:
    one = words.add_parser(name, help=help_, description=help_[:1].upper() + help_[1:] + ".")
    one.set_defaults(run=run)
    if json:
        one.add_argument("--json", action="store_true", help="as JSON, for programs")
    return one


def _looking(words) -> None:
    _word(words, "status", verbs.status, "what the box does now", json=True)
    _word(
        words, "services", verbs.services, "virtual services of the draft, and how many of their servers are up", True
    )
    _word(words, "servers", verbs.servers, "real servers of what runs, with health and connections", json=True)
    for name, run, help_ in (
        ("diagnose", verbs.diagnose, "look for the usual faults of a service that runs"),
        ("try", verbs.try_check, "ask every server once by the draft's health check"),
    ):
        _word(words, name, run, help_, json=True).add_argument("service", help="its name or id")


def _editing(words) -> None:
    show = _word(words, "show", verbs.get, "a part of the configuration as JSON")
    show.add_argument("path", metavar="PATH", help="draft, running, network, services/shop …")
    for name, run, help_ in (
        ("set", verbs.put, "replace a part of the draft by JSON, or the whole draft (import)"),
        ("add", verbs.add, "add a service or a real server, given as JSON"),
    ):
        one = _word(words, name, run, help_)
        one.add_argument(
            "path", metavar="PATH", help="draft, network, services/shop …" if name == "set" else "services …"
        )
        one.add_argument("file", metavar="FILE", nargs="?", default="-", help="with the JSON; -: standard input")
    change = _word(words, "change", verbs.change, "change some fields of a part of the draft")
    change.add_argument("path", metavar="PATH")
    change.add_argument("fields", metavar="JSON", help="""the fields that change: '{"weight": 3}'""")
    _word(words, "remove", verbs.remove, "remove a service or a real server").add_argument("path", metavar="PATH")
    for name in ("enable", "disable"):
        _word(words, name, verbs.switch, f"{name} a virtual service in the draft").add_argument("service")
    _word(words, "review", verbs.review, "what applying the draft would change; exit 1 where it has problems", True)
    _word(words, "discard", verbs.discard, "make the draft what the box runs")


def _running(words) -> None:
    apply = _word(words, "apply", verbs.apply, "make the box run the draft", json=True)
    apply.add_argument("--comment", default="", help="for the history: why")
    apply.add_argument(
        "--confirm-within",
        type=int,
        default=0,
        metavar="SECONDS",
        help="undo it unless somebody confirms it in that time; without this the command confirms by itself",
    )
    _waiting(apply)
    drift = _word(
        words, "drift", verbs.drift, "where the box does not run what it should; exit 1 where it does not", True
    )
    drift.add_argument("--repair", action="store_true", help="repair what differs, and wait for the end")
    _waiting(drift)
    hardware = _word(
        words, "hardware", verbs.hardware, "what slows this machine down; exit 1 where anything is found", True
    )
    hardware.add_argument(
        "what",
        nargs="?",
        choices=("tune",),
        help="tune: set the machine as planned first, which fixes what has a button",
    )
    bench = _word(words, "bench", capacity.bench, "what this box can forward, and how near it is to that", json=True)
    bench.add_argument(
        "--watch",
        type=int,
        default=0,
        metavar="SECONDS",
        help="measure it: count what is forwarded while your clients send as much as they can",
    )
    bench.add_argument(
        "--between",
        nargs=2,
        metavar=("FROM", "TO"),
        help="measure it without other machines: send from one free port to another one, joined by a cable",
    )
    bench.add_argument("--stop", action="store_true", help="end a measurement; what lasted until then is kept")
    both = _word(
        words, "pair", pair.pair, "how the pair of boxes stands, and who leads; exit 1 where it is not well", True
    )
    both.add_argument(
        "what",
        nargs="?",
        choices=("show", "hand-over", "drill", "hold", "release", "choose", "leave", "alone", "update"),
        default="show",
        help="hand-over: let the other box lead; drill: the same, and measure it; hold: keep this box from leading; "
        "release: let it lead again; choose: of two configurations made apart, keep that of this box; "
        "leave: take this box out of the pair, its services off; alone: let it go on without the other one; "
        "update: how far the update of both boxes is",
    )
    both.add_argument("--bundle", default="", metavar="FILE", help="of an update: begin it with this file (.raucb)")
    both.add_argument(
        "--decide",
        choices=("stop", "go-on", "go-back", "leave"),
        help="of an update: stop it, go on, go back to the version before, or leave both boxes as they are",
    )
    both.add_argument("--back", action="store_true", help="of a drill: the other box hands over back afterwards")
    both.add_argument("--hours", type=int, default=0, help="of a hold; 0: until it is released (%(default)s)")
    _waiting(both)
    _word(words, "confirm", verbs.decide, "keep the changes that wait to be confirmed", json=True)
    _word(words, "roll-back", verbs.decide, "take back the changes that wait to be confirmed", json=True)
    for name, help_ in (
        ("drain", "give a real server no new connections, at once; what is open goes on"),
        ("halt", "take a real server out at once; its connections are closed"),
        ("resume", "give a real server connections again, at once"),
    ):
        one = _word(words, name, verbs.operate, help_, json=True)
        one.add_argument("address", help="of the real server")
        one.add_argument("--service", default="", help="only in this service, by name or id")
        one.add_argument("--server", type=int, default=0, help="its id, where a service has the address twice")
        _waiting(one)


def _waiting(one: argparse.ArgumentParser) -> None:
    one.add_argument("--no-wait", action="store_true", help="print the id of the apply, and end")
    one.add_argument("--timeout", type=float, default=300, help="seconds to wait for the end (%(default)s)")


def _history(words) -> None:
    history = _word(words, "history", verbs.history, "what was applied, the newest first", json=True)
    history.add_argument("--limit", type=int, default=verbs.REVISIONS, help="how many (%(default)s)")
    compare = _word(words, "compare", verbs.compare, "how two states of the box differ", json=True)
    for place, usual in (("old", "running"), ("new", "draft")):
        compare.add_argument(place, nargs="?", default=usual, type=_state, help=f"{_STATES} ({usual})")
    backup = _word(words, "backup", verbs.backup, "write a backup file; the passphrase is read from standard input")
    backup.add_argument("file", metavar="FILE", help="a new one")
    restore = _word(words, "restore", verbs.restore, "make the draft what a revision was")
    restore.add_argument("number", type=int)
    export = _word(words, "export", verbs.export, "a whole configuration as JSON; `fairlead set draft` takes it again")
    export.add_argument("what", nargs="?", default="running", type=_state, help=f"{_STATES} (running)")


_STATES = "running, draft, or the number of a revision"


def _state(text: str) -> str:
    if text in ("running", "draft") or (text.isascii() and text.isdigit()):
        return text
    raise argparse.ArgumentTypeError("must be running, draft or the number of a revision")


def _tokens(words) -> None:
    token = words.add_parser("token", help="tokens for programs that use the API from elsewhere")
    kinds = token.add_subparsers(required=True, metavar="WORD", dest="kind")
    create = _word(kinds, "create", verbs.token_create, "make a token and print it, this once", json=True)
    create.add_argument("name", help="what it is for")
    create.add_argument("--may", default="read", help="read,change,apply,update,admin,backup,reset (%(default)s)")
    create.add_argument("--days", type=int, default=365, help="until it ends; 0: never (%(default)s)")
    create.add_argument("--only-from", default="", metavar="NETWORKS", help="192.0.2.0/24,2001:db8::/32")
    create.add_argument("--user", default="", help="in whose name, where the box has several users")
    _word(kinds, "list", verbs.token_list, "every token of the box", json=True)
    _word(kinds, "revoke", verbs.token_revoke, "revoke a token").add_argument("number", type=int, help="its id")
