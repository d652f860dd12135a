"""What each word of the command does. Each returns the exit code."""

from __future__ import annotations

import argparse
import getpass
import json
import os
import sys
import time
from pathlib import Path
from urllib.parse import quote

from command import show
from command.api import Api, Refused

OK, FAILED, TIMED_OUT = 0, 1, 4
POLL = 0.3  # seconds
UNDER_WAY = ("running", "waiting", "returning")  # states of an apply that has not ended
REVISIONS = 20


def out(options: argparse.Namespace, data: object, text: str) -> int:
    """For a program or for a person."""
    if getattr(options, "json", False):
        return out_json(data)
    if text:
        print(clean(text))
    return OK


def out_json(data: object) -> int:
    if data is not None:
        print(json.dumps(data, indent=2, ensure_ascii=False))
    return OK


def status(api: Api, options) -> int:
    found = api.get("status")
    return out(options, found, show.status(found))


def services(api: Api, options) -> int:
    wished = api.get("services")
    return out(options, wished, "" if options.json else show.services(wished, api.get("status")))


def servers(api: Api, options) -> int:
    found = api.get("status")
    return out(options, found["running"]["services"], show.servers(found))


# --- the draft ---


def get(api: Api, options) -> int:
    return out_json(api.get(known(api, options.path)))


def put(api: Api, options) -> int:
    return out_json(api.ask("PUT", known(api, options.path), read(options.file)))


def add(api: Api, options) -> int:
    return out_json(api.post(known(api, options.path), read(options.file)))


def change(api: Api, options) -> int:
    return out_json(api.ask("PATCH", known(api, options.path), parse(options.fields, "the fields")))


def remove(api: Api, options) -> int:
    return out_json(api.ask("DELETE", known(api, options.path)))


def switch(api: Api, options) -> int:
    api.post(f"services/{number_of(api, options.service)}/{options.verb}")
    return OK


def discard(api: Api, options) -> int:
    api.post("draft/discard")
    print("The draft is what the box runs.")
    return OK


def review(api: Api, options) -> int:
    found = api.get("draft/review")
    out(options, found, show.review(found))
    tell(found["problems"])
    return FAILED if found["problems"] else OK


# --- what runs ---


def apply(api: Api, options) -> int:
    found = api.get("draft/review")
    if found["problems"]:
        raise Refused(422, "problems", "The draft has problems; nothing was applied.", found["problems"])
    wish = {"digest": found["digest"], "base": found["base"], "comment": options.comment}
    if options.confirm_within:
        wish["confirm_within"] = options.confirm_within
    return follow(api, api.post("applies", wish)["apply"], options)


def decide(api: Api, options) -> int:
    """Keep what waits, or take it back."""
    run = api.get("status")["apply"]
    if not run or run["state"] != "waiting":
        raise Refused(409, "not-waiting", "No changes wait to be confirmed.", [])
    ended = api.post(f"applies/{run['id']}/{options.verb}")
    return out(options, ended, ended["message"])


def operate(api: Api, options) -> int:
    wish = {"operation": options.verb, "address": options.address, "server": options.server}
    if options.service:
        wish["service"] = number_of(api, options.service)
    return follow(api, api.post("operations", wish)["apply"], options)


def follow(api: Api, name: str, options) -> int:
    """Until the apply has ended; its outcome."""
    if options.no_wait:
        return out(options, {"apply": name}, name)
    deadline = time.monotonic() + options.timeout
    run = api.get(f"applies/{name}")
    while run["state"] in UNDER_WAY:
        if time.monotonic() > deadline:
            print(f"{name} has not ended after {options.timeout:g} seconds; it goes on.", file=sys.stderr)
            return TIMED_OUT
        if run["state"] == "waiting" and not getattr(options, "confirm_within", 0):
            # Whoever asks here asks at the box itself: no change of the network cuts him off.
            api.post(f"applies/{name}/confirm")
        time.sleep(POLL)
        run = api.get(f"applies/{name}")
    good = run["state"] == "done"
    if options.json or good:
        out(options, run, run["message"])
    else:
        print(clean(run["message"]), file=sys.stderr)
    return OK if good else FAILED


def drift(api: Api, options) -> int:
    if options.repair:
        return follow(api, api.post("drift/repair")["apply"], options)
    found = api.post("drift/look")
    out(options, found, show.drift(found))
    return FAILED if found["count"] else OK


def hardware(api: Api, options) -> int:
    found = api.post("hardware/tune") if options.what else api.get("hardware")
    out(options, found, show.hardware(found))
    return FAILED if found["findings"] else OK


def diagnose(api: Api, options) -> int:
    found = api.post(f"services/{number_of(api, options.service)}/diagnose")
    return out(options, found, show.diagnosis(found))


def try_check(api: Api, options) -> int:
    found = api.post(f"services/{number_of(api, options.service)}/try-check")
    return out(options, found, show.trials(found))


# --- history ---


def history(api: Api, options) -> int:
    found = api.get("history", limit=options.limit)
    return out(options, found, show.history(found))


def compare(api: Api, options) -> int:
    found = api.get("history/compare", old=options.old, new=options.new)
    return out(options, found, show.comparison(found))


def backup(api: Api, options) -> int:
    """The passphrase comes by standard input: nobody sees it in a list of processes."""
    asked = getpass.getpass("Passphrase: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
    data = api.fetch("POST", "backup", {"passphrase": asked})
    try:
        with open(options.file, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(data)
    except OSError as error:
        raise Refused(400, "no-file", f"{options.file} cannot be written: {error.strerror}", []) from None
    return OK


def restore(api: Api, options) -> int:
    api.post(f"history/{options.number}/restore")
    print(f"The draft is what revision {options.number} was. `fairlead apply` makes the box run it.")
    return OK


def export(api: Api, options) -> int:
    """A configuration as JSON, which `set draft` takes again."""
    if options.what not in ("running", "draft"):
        found = api.get(f"history/{options.what}")["snapshot"]
        if found is None:
            raise Refused(409, "unreadable", f"Revision {options.what} cannot be read any more.", [])
        return out_json(found)
    return out_json(api.get(options.what))


# --- tokens ---


def token_create(api: Api, options) -> int:
    wish = {"name": options.name, "scopes": options.may.split(","), "days": options.days, "user": options.user}
    if options.only_from:
        wish["networks"] = options.only_from.split(",")
    made = api.post("tokens", wish)
    return out(options, made, made["token"])


def token_list(api: Api, options) -> int:
    found = api.get("tokens")
    return out(options, found, show.tokens(found))


def token_revoke(api: Api, options) -> int:
    api.ask("DELETE", f"tokens/{options.number}")
    return OK


# --- small things ---


def number_of(api: Api, service: str) -> int:
    """The id of a service that was named by its id or by its name."""
    if service.isascii() and service.isdigit():
        return int(service)
    found = api.get("services", name=service)
    if not found:
        raise Refused(404, "not-found", f"There is no virtual service {service!r} in the draft.", [])
    return found[0]["id"]


def known(api: Api, path: str) -> str:
    """A path of the API, in which a service may stand by its name: services/shop/real_servers."""
    parts = path.strip("/").split("/")
    if parts[0] == "services" and len(parts) > 1:
        parts[1] = str(number_of(api, parts[1]))
    return quote("/".join(parts))


def read(file: str) -> object:
    """JSON out of a file; "-": standard input."""
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(400, "no-file", f"{file} cannot be read: {error}", []) from None
    return parse(text, file)


def parse(text: str, what: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refused(400, "not-json", f"{what}: this is not JSON: {error}", []) from None


def tell(problems: list[dict]) -> None:
    for problem in problems:
        print(clean(f"  {problem['object']}, {problem['field']}: {problem['message']}"), file=sys.stderr)


def clean(text: str) -> str:
    """Nothing in it acts on a terminal; a check may have quoted what a stranger's server sent."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in text)
