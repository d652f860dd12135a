"""`python3 -m applier.wire.client …`: for the console program, for tests, and for an admin with a shell."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from applier.base.paths import Paths
from applier.wire.client import connect
from applier.wire.errors import ApplierDown, ApplierRefused
from applier.wire.shapes import ENDED

Run = Callable[[argparse.Namespace], int]  # carries out a verb; the exit code

POLL = 0.2  # seconds


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
        return code
    except ApplierDown as error:
        print(error, file=sys.stderr)
        return 3
    except ApplierRefused as error:
        print(f"{error.code}: {error.message}", file=sys.stderr)
        for problem in error.problems:
            print(f"  {problem['object']}, {problem['field']}: {problem['message']}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m applier.wire.client", description="Ask the applier.")
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    for name, (run, help_) in _PLAIN.items():
        verbs.add_parser(name, help=help_).set_defaults(run=run)
    generation = verbs.add_parser("generation", help="one generation, with snapshot and files, as JSON")
    generation.add_argument("number", type=int)
    generation.set_defaults(run=lambda o: _print(connect().generation(o.number, files=True)))
    diagnose = verbs.add_parser("diagnose", help="the usual faults of a virtual service, as JSON")
    diagnose.add_argument("service", type=int, help="its id")
    diagnose.set_defaults(run=lambda o: _print(connect().diagnose(o.service)))
    trial = verbs.add_parser("try-check", help="ask the real servers of a service once, as JSON; applies nothing")
    trial.add_argument("file", type=Path, help="the snapshot")
    trial.add_argument("service", type=int, help="its id")
    trial.set_defaults(run=lambda o: _print(connect().try_check(json.loads(o.file.read_text()), o.service)))
    check = verbs.add_parser("check", help="what a snapshot would change, as JSON")
    check.add_argument("file", type=Path)
    check.set_defaults(run=lambda o: _print(connect().check(json.loads(o.file.read_text()))))
    reset = verbs.add_parser("factory-reset", help="forget configuration, users, history and certificates; restart")
    reset.add_argument("hostname", help="that of this box, as a proof of intent")
    reset.add_argument("--user", default="console")
    reset.set_defaults(run=lambda o: _print(connect().factory_reset(o.hostname, o.user)))
    apply = verbs.add_parser("apply", help="check a snapshot, apply it, and wait for the end")
    apply.add_argument("file", type=Path)
    apply.add_argument("--user", default="console")
    apply.add_argument("--comment", default="")
    apply.add_argument("--timeout", type=float, default=300, help="seconds (%(default)s)")
    apply.add_argument("--confirm-within", type=int, metavar="SECONDS", help="ask to be confirmed, whatever changes")
    apply.add_argument(
        "--wait", action="store_true", help="let somebody else confirm it; otherwise this does so itself"
    )
    apply.set_defaults(run=_apply)
    repair = verbs.add_parser("repair", help="repair what differs from the configuration, and wait for the end")
    repair.add_argument("--user", default="console")
    repair.add_argument("--timeout", type=float, default=300, help="seconds (%(default)s)")
    repair.set_defaults(run=_repair)
    for name, (run, help_) in _DECIDE.items():
        decide = verbs.add_parser(name, help=help_)
        decide.add_argument("--user", default="console")
        decide.set_defaults(run=run)
    return parser


def _print(data: object) -> int:
    print(json.dumps(data, indent=1, ensure_ascii=False))
    return 0


def _faults(_: argparse.Namespace) -> int:
    """One sentence a line; nothing where all is well."""
    for fault in connect().status()["faults"]:
        print(fault["message"])
    return 0


def _setup_code(_: argparse.Namespace) -> int:
    """From the file, which only root may read: no verb gives it away."""
    try:
        print(Paths.from_environment().setup_code.read_text().strip())
    except FileNotFoundError:
        return 2  # none is active
    except PermissionError:
        print("Only root may see the set-up code.", file=sys.stderr)
        return 1
    return 0


def _make_room(_: argparse.Namespace) -> int:
    return _print(connect().make_room())


def _new_setup_code(_: argparse.Namespace) -> int:
    print(connect().new_setup_code()["code"])
    return 0


def _apply(options: argparse.Namespace) -> int:
    applier = connect()
    snapshot = json.loads(options.file.read_text())
    review = applier.check(snapshot)
    if review["problems"]:
        raise ApplierRefused("problems", "The configuration has problems.", review["problems"])
    within = options.confirm_within
    applier.apply(
        review["snapshot"], review["digest"], review["base"], options.user, options.comment, confirm_within=within
    )
    return _follow(options, keep=not options.wait)


def _repair(options: argparse.Namespace) -> int:
    connect().repair(options.user)
    return _follow(options)


def _follow(options: argparse.Namespace, keep: bool = False) -> int:
    """Until the run has ended, and its outcome as JSON; `keep`: where it waits to be confirmed, do so."""
    applier = connect()
    deadline = time.monotonic() + options.timeout
    run = applier.progress()
    while run is not None and run["state"] not in ENDED:
        if run["state"] == "waiting" and keep:
            # Whoever asks here asks at the box itself: no change of the network cuts him off.
            applier.confirm(apply=run["id"], user=options.user)
        if time.monotonic() > deadline:
            print(f"not at its end after {options.timeout:g} seconds: {json.dumps(run)}", file=sys.stderr)
            return 4
        time.sleep(POLL)
        run = applier.progress()
    if run is None:
        raise ApplierDown("The applier has restarted and knows nothing of this run. Its status tells what runs now.")
    _print(run)
    return 0 if run["state"] == "done" else 1


def _pending(_: argparse.Namespace) -> int:
    """One line; exit 2 where nothing waits."""
    run = connect().progress()
    left = run["confirm"]["left"] if run and run["confirm"] else None
    if run is None or run["state"] != "waiting" or left is None:  # None: it has just been decided
        return 2
    print(f"The changes of {run['user']} wait to be confirmed: {left:.0f} seconds left.")
    return 0


def _confirm(options: argparse.Namespace) -> int:
    run = connect().progress()
    return _print(connect().confirm(apply=run["id"] if run else "", user=options.user))


def _roll_back(options: argparse.Namespace) -> int:
    run = connect().progress()
    return _print(connect().roll_back(apply=run["id"] if run else "", user=options.user))


_DECIDE: dict[str, tuple[Run, str]] = {
    "confirm": (_confirm, "keep the changes that wait to be confirmed"),
    "roll-back": (_roll_back, "take back the changes that wait to be confirmed"),
}
_PLAIN: dict[str, tuple[Run, str]] = {
    "pending": (_pending, "whose changes wait to be confirmed; exit 2 where none do"),
    "status": (lambda _: _print(connect().status()), "everything, as JSON"),
    "faults": (_faults, "what is wrong, one sentence a line"),
    "generations": (lambda _: _print(connect().generations()), "what was applied, the newest first, as JSON"),
    "rule-counters": (
        lambda _: _print(connect().rule_counters()),
        "how often each firewall rule of the admin matched, as JSON",
    ),
    "hardware": (lambda _: _print(connect().hardware()), "the machine, and how far it is set as planned, as JSON"),
    "tune": (
        lambda _: _print(connect().tune("", "console")),
        "carry out what is planned for the hardware and differs; the same as JSON",
    ),
    "look": (lambda _: _print(connect().look()), "where the kernel differs from the configuration, as JSON"),
    "setup-code": (_setup_code, "the set-up code; exit 2 where none is active"),
    "make-room": (_make_room, "on a full data partition: spend the reserve, forget old generations"),
    "new-setup-code": (_new_setup_code, "make a new set-up code (forgotten password)"),
}
