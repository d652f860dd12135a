"""Tokens of one's own. None may do more than the one that made it, or outlive it, or count from elsewhere."""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict

from django.contrib.auth import get_user_model

from accounts import tokens
from accounts.models import ApiToken
from accounts.scopes import SCOPES, Scope, completed
from api.bodies import TokenRequest
from api.errors import ApiError, not_found, refused, wrong_field
from api.routes import Answer, Call
from lbconfig.model.problem import Problem, quote
from lbconfig.validate.fields import allowed_network


class TokenEntry(TypedDict):
    id: int
    name: str
    user: str
    scopes: list[Scope]
    networks: list[str]  # empty: it counts from everywhere
    created: str
    expires: str | None  # null: never
    used: str | None  # to the hour; null: never


class NewToken(TokenEntry):
    token: str  # shown now, and never again


def listed(call: Call) -> Answer:
    return Answer([_entry(one) for one in _own(call)])


def make(call: Call) -> Answer:
    wanted: TokenRequest = call.body
    if problems := [Problem("token", field, words, field) for field, words in _wrong(wanted, call)]:
        raise refused(problems)
    token, expires = call.caller.token, tokens.ends(wanted.days)
    if token and token.expires:
        expires = min(filter(None, (expires, token.expires)))
    networks = wanted.networks or tuple(token.networks if token else ())
    try:
        text, record = tokens.make_record(_user(call, wanted), wanted.name, wanted.scopes, expires, networks)
    except tokens.TooMany:
        raise ApiError(409, "too-many", f"The box has {tokens.MOST} tokens; revoke one that nobody uses.") from None
    made: NewToken = {**_entry(record), "token": text}
    return Answer(made, 201, {"Location": f"/api/v1/tokens/{record.pk}"})


def revoke(call: Call) -> Answer:
    if not _own(call).filter(pk=call.values["token"]).exists():
        raise not_found(f"token {call.values['token']} of yours")
    tokens.revoke(call.values["token"], call.caller.name)
    return Answer(status=204)


def _own(call: Call):
    rows = ApiToken.objects.select_related("user")
    return rows.filter(user=call.caller.user) if call.caller.user else rows


def _user(call: Call, wanted: TokenRequest):
    """Whose it is. The console is nobody, and has to say."""
    if call.caller.user:
        if wanted.user not in ("", call.caller.user.get_username()):
            raise wrong_field("token", "user", "must be left out: a token makes tokens of its own user")
        return call.caller.user
    users = list(get_user_model().objects.filter(is_active=True))
    named = [one for one in users if wanted.user in ("", one.get_username())]
    if len(named) != 1:
        known = ", ".join(sorted(one.get_username() for one in users)) or "nobody yet: set the box up first"
        raise wrong_field("token", "user", f"must be one of the box's users ({known})")
    return named[0]


def _wrong(wanted: TokenRequest, call: Call):
    if not 1 <= len(wanted.name) <= tokens.MAX_NAME:
        yield "name", f"must have 1 to {tokens.MAX_NAME} characters"
    unknown = [one for one in wanted.scopes if one not in SCOPES]
    if unknown or not wanted.scopes:
        yield "scopes", f"must be some of {', '.join(SCOPES)}"
    elif more := set(completed(wanted.scopes)) - call.caller.scopes:
        yield "scopes", f"must not have what your own token has not: {', '.join(sorted(more))}"
    if not 0 <= wanted.days <= tokens.MAX_DAYS:
        yield "days", f"must be 0 (for ever) to {tokens.MAX_DAYS}"
    if len(wanted.networks) > tokens.MAX_NETWORKS:
        yield "networks", f"must not be more than {tokens.MAX_NETWORKS}"
    yield from (("networks", sentence) for one in wanted.networks if (sentence := allowed_network(one)))
    own = call.caller.token.networks if call.caller.token else ()
    yield from (
        ("networks", f"must be some of your own token's, and {quote(one)} is not")
        for one in wanted.networks
        if own and one not in own
    )


def _entry(record: ApiToken) -> TokenEntry:
    return {
        "id": record.pk,
        "name": record.name,
        "user": record.user.get_username(),
        "scopes": list(record.scopes),
        "networks": list(record.networks),
        "created": _moment(record.created),
        "expires": _moment(record.expires) if record.expires else None,
        "used": _moment(record.used) if record.used else None,
    }


def _moment(value: datetime) -> str:
    return value.strftime("%Y-%m-%dT%H:%M:%SZ")
