"""The draft by the API: as a whole, and its parts beside the services (the network, who may manage the box …).

The parts are whatever lbconfig.model.snapshot.Snapshot has: one more of them there is one more of them here.
"""

from __future__ import annotations

import dataclasses
import typing
from typing import TypedDict

from django.db import transaction

from api.bodies import CardsRequest
from api.errors import ApiError, of_shape, refused
from api.merge_patch import merged
from api.routes import Answer, Call, plain, tag_of
from applier.kept import page_key
from applier.wire import shapes
from applier.wire.client import connect
from changes import actions
from draft import store as draft
from lbconfig import migrate
from lbconfig.model import redact
from lbconfig.model.problem import Problem
from lbconfig.model.snapshot import Snapshot, SnapshotError, from_data, part, to_data
from lbconfig.validate import cards
from lbconfig.validate import services as validate

_HINTS = typing.get_type_hints(Snapshot)
PARTS: dict[str, type] = {
    name: hint for name, hint in _HINTS.items() if isinstance(hint, type) and dataclasses.is_dataclass(hint)
}
HIDDEN = "********"


class Saved(TypedDict):
    """A part of the draft as it is now, and the problems that it makes elsewhere: they stop an apply."""

    value: dict
    consequences: list[shapes.Problem]


def shown(wish, call: Call) -> dict:
    """A snapshot or a part of one as JSON has it; without its passwords for those who only read."""
    return plain(wish if "change" in call.caller.scopes else redact.without_secrets(wish, HIDDEN))


# --- the whole ---


def get_draft(call: Call) -> Answer:
    wish = draft.current()
    return Answer(shown(wish, call), headers={"ETag": tag_of(to_data(wish))})


def put_draft(call: Call) -> Answer:
    """A draft with problems is not stored."""
    wished = read_snapshot(call.body)
    with transaction.atomic():
        before = draft.current()
        call.match(tag_of(to_data(before)), required=True)
        if problems := validate.validate(wished):
            raise refused(problems)
        may_bring_programs(call, before, wished)
        draft.replace(wished, call.caller.name)
        data = to_data(draft.current())
    return Answer(data, headers={"ETag": tag_of(data)})


def discard(call: Call) -> Answer:
    with transaction.atomic():
        call.match(tag_of(to_data(draft.current())))
        actions.discard(call.caller.name)
    return get_draft(call)


def take_cards(call: Call) -> Answer:
    """Raises ApiError, ApplierDown, ApplierRefused."""
    wanted: CardsRequest = call.body
    present = cards.of_status(connect().status()["interfaces"])
    swaps = [(one.name, one.take) for one in wanted.cards]
    with transaction.atomic():
        before = draft.current()
        call.match(tag_of(to_data(before)))
        if problems := list(cards.swap_problems(before, swaps, present)):
            raise refused(problems)
        draft.replace(cards.swapped(before, dict(swaps)), call.caller.name)
    return get_draft(call)


def read_snapshot(data: object) -> Snapshot:
    """Of this schema or an older one. Raises ApiError."""
    try:
        return from_data(migrate.upgrade(data) if isinstance(data, dict) else data)
    except SnapshotError as error:
        raise of_shape(error, "snapshot") from None


def may_bring_programs(call: Call, before: Snapshot, after: Snapshot) -> None:
    """A program that checks servers runs on the box: a token that is to change weights must not bring one. Raises
    ApiError."""
    new = {service.check.program for service in after.services} - {service.check.program for service in before.services}
    if new - {""} and "admin" not in call.caller.scopes:
        has = ", ".join(sorted(call.caller.scopes))
        text = f"A program of your own for a health check needs a token that may: admin. Yours may: {has}."
        raise ApiError(403, "forbidden", text)


# --- its parts ---


def get_part(name: str):
    def get(call: Call) -> Answer:
        wish = getattr(draft.current(), name)
        return Answer(shown(wish, call), headers={"ETag": tag_of(plain(wish))})

    return get


def put_part(name: str):
    def put(call: Call) -> Answer:
        with transaction.atomic():
            before = draft.current()
            call.match(tag_of(plain(getattr(before, name))), required=True)
            return _store(call, before, name, call.body)

    return put


def patch_part(name: str):
    def patch(call: Call) -> Answer:
        with transaction.atomic():
            before = draft.current()
            data = plain(getattr(before, name))
            call.match(tag_of(data))
            return _store(call, before, name, merged(data, call.body))

    return patch


def _store(call: Call, before: Snapshot, name: str, data: object) -> Answer:
    try:
        after = dataclasses.replace(before, **{name: part(PARTS[name], data, name)})
    except SnapshotError as error:
        raise of_shape(error, "draft") from None
    own, elsewhere = judged(before, after, name)
    if name == "management" and not own:
        own = page_key.changed_problems(after, before)
    if own:
        raise refused(own)
    lost = validate.admin_problem(after, call.caller.address) if call.caller.address else None
    if lost and lost.path.startswith(f"{name}."):
        raise ApiError(422, "lock-out", f"{lost}.", [lost])
    draft.replace(after, call.caller.name)
    value = plain(getattr(draft.current(), name))
    saved: Saved = {"value": value, "consequences": [shapes.of_problem(one) for one in elsewhere]}
    return Answer(saved, headers={"ETag": tag_of(value)})


def judged(before: Snapshot, after: Snapshot, own: str) -> tuple[list[Problem], list[Problem]]:
    """What is wrong with the part or service whose path is `own`, and what it newly spoils elsewhere."""
    known = set(validate.validate(before))
    found = validate.validate(after)
    mine = [one for one in found if one.path == own or one.path.startswith((f"{own}.", f"{own}["))]
    return mine, [one for one in found if one not in mine and one not in known]
