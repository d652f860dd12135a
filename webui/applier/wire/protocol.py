"""The requests: one line of JSON on a connection, one line back.

    {"verb": "generation", "number": 12}
    {"result": {...}}   or   {"error": {"code": "...", "message": "...", "problems": [...]}}

Codes of refusal, and who gives them:
    not-json, bad-request, unknown-verb, bad-field                                here
    forbidden, overloaded, too-large, incomplete, internal                        wire/server.py
    busy                         kept/turn.py, apply/drift.py, service/trial.py, capacity/verbs.py, update/verbs.py
    unknown-generation, damaged-generation, unknown-service, no-diagnosis         daemon.py
    unknown-snapshot, bad-snapshot, problems, base-moved, digest-mismatch, lock-out          apply/review.py
    not-waiting, wrong-secret                                                     apply/verbs.py
    no-pair, not-the-desk, not-in-step, nothing-to-choose                         apply/both.py
    digest-mismatch, other-software                   apply/verbs.py, of what the other box of a pair sends
    unknown-service, problems, no-trial                                           service/trial.py
    no-counters                                                                   parts/firewall.py
    data-missing, data-read-only, data-full, data-error                           kept/storage.py
    wrong-code                                                                    kept/setup_code.py
    bad-certificate, wrong-hostname                                               kept/recovery.py
    no-slots, slot-runs, slot-empty, slots-unreadable, slots-unwritable           update/verbs.py
    bundle-too-large, disk-error                                                  update/verbs.py
    version-too-old                                                               update/least_version.py
    not-a-bundle, wrong-product, bundle-…                                         update/bundle.py, update/write.py
    unknown-upload, unsafe-upload; unknown-bundle                                 update/spool.py; update/sticks.py
    paired, cannot-join, not-joined, busy, no-pair, peer-there                    pair/joining/verbs.py
    no-capacity, not-measuring, not-free                                          capacity/verbs.py
    no-pair, not-leading, not-held, not-taken-over, not-told, pair-error          pair/verbs.py
    peer-away, peer-not-ready, both-lead, not-in-step                             pair/standing.py
    no-update, not-possible, version-runs, not-leading, leads, slot-empty         update/rolling/verbs.py
    bundle-unreadable; bundle-damaged, bundle-too-large, data-full        update/rolling/verbs.py; …/receiving.py
    no-pair, peer-away, overloaded, too-large                                     pair/errands.py
    not-offered                                                                   pair/along.py
    no-pair, peer-away, both-lead, leaving                                        apply/leaving.py
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from applier.wire.errors import ApplierRefused
from applier.wire.shapes import Problem
from applier.wire.shapes_pair import LONGEST_HOLD
from lbconfig.capacity.figures import LONGEST_WATCH, SHORTEST_WATCH
from lbconfig.diff.cutoff import LONGEST, SHORTEST
from lbconfig.model.problem import UNPRINTABLE
from lbconfig.model.snapshot import MAX_ITEMS

MAX_REQUEST = 8 * 1024 * 1024  # bytes
MAX_NUMBER = 10**9
MAX_REVISION = 10**8  # of a restored history; it leaves room for generations to come
DIGEST = 64  # characters: SHA-256, hexadecimal
MAX_COMPARED = 4 * 1024 * 1024  # characters: numbers of connections (parts/pair/comparing.py)
MAX_PIECE = 2 * 1024 * 1024  # characters: a piece of a bundle, as base64
MAX_PEM = 64 * 1024  # characters
MAX_STAMPS = 8
LONGEST_STAMP = 200  # characters


@dataclass(frozen=True, slots=True)
class Request:
    verb: str
    fields: dict[str, Any]  # as VERBS has checked them


Check = Callable[[object], str | None]  # what is wrong with a value; None: nothing


def _text(longest: int, shortest: int = 0) -> Check:
    def check(value: object) -> str | None:
        if not isinstance(value, str):
            return "must be text"
        if not shortest <= len(value) <= longest:
            return f"must have {shortest} to {longest} characters"
        return None if value.isprintable() else UNPRINTABLE

    return check


def _number(value: object) -> str | None:
    good = type(value) is int and 1 <= value <= MAX_NUMBER
    return None if good else f"must be a whole number, 1 to {MAX_NUMBER}"


def _yes_or_no(value: object) -> str | None:
    return None if isinstance(value, bool) else "must be true or false"


def _count(value: object) -> str | None:
    good = type(value) is int and 0 <= value <= MAX_NUMBER
    return None if good else f"must be a whole number, 0 to {MAX_NUMBER}"


def _number_or_none(value: object) -> str | None:
    return None if value is None else _number(value)


def _seconds_or_none(value: object) -> str | None:
    good = value is None or (type(value) is int and SHORTEST <= value <= LONGEST)
    return None if good else f"must be a whole number of seconds, {SHORTEST} to {LONGEST}, or nothing"


def _watch_seconds(value: object) -> str | None:
    good = type(value) is int and SHORTEST_WATCH <= value <= LONGEST_WATCH
    return None if good else f"must be a whole number of seconds, {SHORTEST_WATCH} to {LONGEST_WATCH}"


def _hours(value: object) -> str | None:
    good = type(value) is int and 0 <= value <= LONGEST_HOLD
    return None if good else f"must be a whole number of hours, 1 to {LONGEST_HOLD}, or 0: until it is released"


def _object(value: object) -> str | None:
    return None if isinstance(value, dict) else "must be an object"


def _string(value: object) -> str | None:
    return None if isinstance(value, str) else "must be text"


def _object_or_digest(value: object) -> str | None:
    good = isinstance(value, dict) or (isinstance(value, str) and len(value) == DIGEST)
    return None if good else f"must be an object, or the {DIGEST} characters of its digest"


def _names(value: object) -> str | None:
    good = isinstance(value, list) and len(value) <= MAX_ITEMS and all(isinstance(one, str) for one in value)
    return None if good else f"must be a list of at most {MAX_ITEMS} names"


def stamps_sentence(value: object) -> str | None:
    """What is wrong with the stamps of documents that go along in a pair, by their names."""
    if isinstance(value, dict) and len(value) <= MAX_STAMPS:
        texts = [*value.keys(), *value.values()]
        if all(isinstance(one, str) and len(one) <= LONGEST_STAMP for one in texts):
            return None
    return f"must be an object of at most {MAX_STAMPS} short texts"


def _services(value: object) -> str | None:
    good = isinstance(value, list) and len(value) <= MAX_ITEMS
    return None if good else f"must be a list of at most {MAX_ITEMS} services"


def _address(value: object) -> str | None:
    if value == "":
        return None
    try:
        ipaddress.ip_address(value if isinstance(value, str) else "?")
    except ValueError:
        return "must be an IP address, or empty"
    return None


def _pattern(pattern: str, words: str) -> Check:
    known = re.compile(pattern)
    return lambda value: None if isinstance(value, str) and known.fullmatch(value) else f"must be {words}"


def _revision(value: object) -> str | None:
    good = type(value) is int and 0 <= value <= MAX_REVISION
    return None if good else f"must be a whole number, 0 to {MAX_REVISION}"


# Blocks of PEM (RFC 7468) and nothing else; or nothing at all.
PEM_BLOCK = r"-----BEGIN [A-Z0-9 ]{1,40}-----\n(?:[A-Za-z0-9+/=]{1,76}\n)+-----END [A-Z0-9 ]{1,40}-----\n"
_pem_blocks = re.compile(f"(?:{PEM_BLOCK})*")


def _pem(value: object) -> str | None:
    good = isinstance(value, str) and len(value) <= MAX_PEM and _pem_blocks.fullmatch(value)
    return None if good else f"must be PEM blocks of at most {MAX_PEM} characters, or empty"


_user = _text(150, 1)
_port = _text(15, 1)  # the kernel's IFNAMSIZ, without its end
_waiting = {"apply": _text(64), "secret": _text(64), "user": _text(150)}
_slot = _pattern("[AB]", "A or B")
_document = _pattern("[a-z]{1,20}( [0-9]{1,9})?", "the name of a document")
# Never a path: the applier knows where these lie.
_source = _pattern("upload:[0-9a-f]{32}|usb:[0-9a-f]{16}", "upload: or usb: with its number")

_update = _pattern("[0-9a-f]{32}", "the id of an update: 32 hexadecimal digits")
_choice = _pattern("stop|go-on|go-back|leave", "stop, go-on, go-back or leave")

FOR_ROOT: Mapping[str, Mapping[str, Check]] = {
    "new_setup_code": {},
    "make_room": {},
}
# For the process that talks with the other box of a pair, on a socket of its own; what these carry is read, and refused
# where it is wrong, as what comes over the network is (apply/both.py).
FOR_PAIR: Mapping[str, Mapping[str, Check]] = {
    "pair_connected": {},
    "pair_tells": {"seen": _count, "lineage": _text(DIGEST)},
    "pair_hears": {"said": _object},
    "peer_says": {"beat": _object},
    "pair_content": {"id": _text(DIGEST), "whole": _yes_or_no},
    "pair_brings": {"content": _object},
    "pair_errands": {},
    "pair_asked": {"errand": _object},
    "pair_answered": {"answer": _object},
}
# What the other box of a pair may ask, over the channel (pair/errands.py). It may be somebody else's by now: so nothing
# here runs a text of its own, and what changes the system says so in its log.
FOR_PEER: Mapping[str, Mapping[str, Check]] = {
    "along_stamps": {},
    "along_document": {"name": _document},
    "pair_sees": {},
    "pair_knows": {},
    "pair_retell": {},
    "peer_check": {"snapshot": _object, "services": _services},
    "drill_compare": {"connections": _text(MAX_COMPARED), "part": _number},
    "drill_done": {"drill": _object},
    "drill_back": {"user": _user},
    "pair_forgotten": {"pair": _text(DIGEST)},
    "peer_stays": {"user": _user},
    "peer_leaves": {"user": _user},
    "peer_update_look": {"course": _object, "half": _object},
    "peer_update_piece": {"id": _update, "offset": _count, "data": _text(MAX_PIECE)},
    "peer_update_install": {"id": _update},
    "peer_update_restart": {"id": _update, "version": _text(64)},
    "peer_update_hand_over": {"id": _update},
    "peer_update_choose": {"id": _update, "choice": _choice, "user": _user},
}
VERBS: Mapping[str, Mapping[str, Check]] = {
    "status": {"known": _names},
    "missing": {"names": _names},
    "check": {"snapshot": _object, "services": _services},
    "progress": {},
    "apply": {
        "snapshot": _object_or_digest,
        "services": _services,
        "digest": _text(DIGEST, DIGEST),
        "base": _number_or_none,
        "user": _user,
        "comment": _text(1000),
        "client": _address,
        "confirm_within": _seconds_or_none,
    },
    "confirm": _waiting,
    "roll_back": _waiting,
    "pair_choose": {"user": _user},
    "diagnose": {"service": _number},
    "try_check": {"snapshot": _object, "services": _services, "service": _number},
    "rule_counters": {},
    "events": {},
    "look": {},
    "repair": {"user": _user},
    "hardware": {},
    "tune": {"object": _text(64), "user": _user},
    "generations": {},
    "generation": {"number": _number, "files": _yes_or_no},
    "setup_open": {},
    "setup_check": {"code": _text(64)},
    "setup_done": {"code": _text(64)},
    **FOR_ROOT,
    "slots": {},
    "update_sources": {},
    "update_check": {"source": _source},
    "update_install": {"source": _source, "user": _user},
    "update_forget": {},
    "update_seen": {},
    "boot_slot": {"slot": _slot, "user": _user},
    "reboot": {"user": _user},
    "certificate": {},
    "page_key": {},
    "restore": {"certificate": _pem, "key": _pem, "number": _revision, "user": _user},
    "capacity": {},
    "capacity_watch": {"seconds": _watch_seconds, "user": _user},
    "capacity_between": {"sender": _port, "receiver": _port, "user": _user},
    "capacity_stop": {"user": _user},
    "pair": {},
    "pair_hand_over": {"user": _user},
    "pair_drills": {},
    "pair_drill": {"back": _yes_or_no, "user": _user},
    "pair_hold": {"hours": _hours, "user": _user},
    "pair_release": {"user": _user},
    "pair_leave": {"user": _user},
    "pair_alone": {"user": _user},
    "pair_along": {"stamps": stamps_sentence, "trouble": _text(500)},
    "pair_offer": {"name": _document, "text": _string},
    "pair_bring": {"name": _document},
    "pair_update": {},
    "pair_update_ready": {},
    "pair_update_start": {"source": _source, "user": _user},
    "pair_update_choose": {"choice": _choice, "user": _user},
    "pair_joining": {},
    "pair_invite": {"user": _user},
    "pair_replace": {"user": _user},
    "pair_join": {"address": _text(253, 1), "code": _text(40, 1), "user": _user},
    "pair_forget": {"user": _user},
    "pair_probe": {"addresses": _names},
    "factory_reset": {"hostname": _text(253, 1), "user": _user},
}


def parse(line: bytes, verbs: Mapping[str, Mapping[str, Check]] = VERBS) -> Request:
    """ApplierRefused, naming object and field, for all that is not a request for one of these verbs."""
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ApplierRefused("not-json", f"The request is not JSON: {str(error)[:200]}.") from None
    if not isinstance(data, dict):
        raise ApplierRefused("bad-request", "The request must be a JSON object.")
    return checked(data.pop("verb", None), data, verbs)


def checked(verb: object, fields: dict[str, Any], verbs: Mapping[str, Mapping[str, Check]]) -> Request:
    """ApplierRefused as from parse()."""
    if not isinstance(verb, str) or verb not in verbs:
        raise ApplierRefused("unknown-verb", f"There is no verb {str(verb)[:40]!r}. Known: {', '.join(verbs)}.")
    checks = verbs[verb]
    problems = [_problem(verb, name, "is missing") for name in checks if name not in fields]
    for name, value in fields.items():
        wrong = checks[name](value) if name in checks else "is not a field of this verb"
        if wrong:
            problems.append(_problem(verb, str(name)[:40], wrong))
    if problems:
        said = "; ".join(f"{problem['field']} {problem['message']}" for problem in problems[:10])
        raise ApplierRefused("bad-field", f"The request '{verb}' is wrong: {said}.", problems)
    return Request(verb, fields)


def _problem(verb: str, field: str, message: str) -> Problem:
    return {"object": f"request '{verb}'", "field": field, "message": message, "path": field}


def result(value: object) -> bytes:
    return _line({"result": value})


def error(refusal: ApplierRefused) -> bytes:
    return _line({"error": refusal.to_data()})


def _line(data: object) -> bytes:
    # Surrogates from a request's own text must not break the answer that quotes them.
    return json.dumps(data, ensure_ascii=True).encode() + b"\n"
