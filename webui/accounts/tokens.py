"""API tokens: made, recognised, revoked. They are random and long, so a plain digest keeps them as well as any."""

from __future__ import annotations

import hashlib
import logging
import secrets
import time
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from ipaddress import ip_address, ip_network

from django.db import DatabaseError, connection
from django.db.models import F
from django.utils import timezone

from accounts.models import ApiToken
from accounts.scopes import Scope, completed

log = logging.getLogger(__name__)

PREFIX = "fairlead_"  # so that a token that got loose is recognised as one
BYTES = 32
NOTE_USE_EVERY = timedelta(hours=1)  # a disk write for each request would be too many
MOST = 20
MAX_NAME = 60
MAX_DAYS = 3650
MAX_NETWORKS = 20
LOOK_EVERY = 600  # seconds


class TooMany(Exception):
    """The box has as many tokens as anybody can keep an eye on."""


class Unusable(Exception):
    """The token is one of the box, and counts not now or not from here. The text is a sentence."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status  # of HTTP
        self.code = code


def make(
    user,
    name: str,
    scopes: Iterable[Scope] = ("update",),
    expires: datetime | None = None,
    networks: Sequence[str] = (),
) -> str:
    """A new token, to be shown now and never again. Raises TooMany."""
    return make_record(user, name, scopes, expires, networks)[0]


def make_record(
    user, name: str, scopes: Iterable[str], expires: datetime | None = None, networks: Sequence[str] = ()
) -> tuple[str, ApiToken]:
    """The same, with its record. Raises TooMany."""
    if ApiToken.objects.count() >= MOST:
        raise TooMany
    token = PREFIX + secrets.token_urlsafe(BYTES)
    record = ApiToken.objects.create(
        name=name,
        user=user,
        digest=digest(token),
        scopes=completed(scopes),
        expires=expires,
        networks=list(networks),
    )
    log.info("user %s made the API token %r for %s", user.get_username(), name, ", ".join(record.scopes))
    return token, record


def revoke(pk: int, by: str) -> str | None:
    """Its name; None where there is no such token any more."""
    found = ApiToken.objects.filter(pk=pk).first()
    if found is None:
        return None
    found.delete()
    log.info("user %s revoked the API token %r of %s", by, found.name, found.user.get_username())
    return found.name


def owner(token: str, address: str = "") -> ApiToken | None:
    """The token's record, if it is one of the box and its admin may still log in.

    `address`: where the request comes from. Raises Unusable.
    """
    found = ApiToken.objects.select_related("user").filter(digest=digest(token)).first()
    if found is None or not found.user.is_active:
        return None
    now = timezone.now()
    if found.expires is not None and (found.expires <= now or _has_ended(found)):
        note_ended()
        raise Unusable(
            401, "expired", f"This token has ended on {found.expires:%d %B %Y at %H:%M} UTC; make a new one."
        )
    if found.networks and not _inside(address, found.networks):
        raise Unusable(403, "wrong-address", f"This token does not count from {address or 'here'}.")
    if found.used is None or abs(now - found.used) > NOTE_USE_EVERY:
        ApiToken.objects.filter(pk=found.pk).update(used=now)
    return found


def _has_ended(token: ApiToken) -> bool:
    """Whether that was noted: it was used, or looked at, at its end or later."""
    return token.used is not None and token.expires is not None and token.used >= token.expires


def note_ended() -> None:
    """Note which tokens have ended, so that a clock that is set back later does not bring them back.

    One that was made later than now was made by a clock that was ahead: it lasts as long as it was meant to.
    """
    now = timezone.now()
    ending = ApiToken.objects.exclude(expires=None).exclude(used__gte=F("expires"))
    ending.filter(expires__lte=now).update(used=F("expires"))
    for token in ending.filter(created__gt=now):
        if token.expires is None:
            continue  # none is: they are left out above
        lasts = token.expires - token.created
        ApiToken.objects.filter(pk=token.pk).update(created=now, expires=now + lasts)


def watch() -> None:
    """Note it without end, as nobody may ask for a page for months."""
    while True:
        try:
            note_ended()
        except DatabaseError as error:
            log.error("tokens that have ended could not be noted: %s", error)
        finally:
            connection.close()
        time.sleep(LOOK_EVERY)


def digest(token: str) -> str:
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()


def ends(days: int | None) -> datetime | None:
    """`days` from now; None: never."""
    return timezone.now() + timedelta(days=days) if days else None


def _inside(address: str, networks: Sequence[str]) -> bool:
    try:
        here = ip_address(address)
    except ValueError:
        return False
    return any(here in ip_network(network) for network in networks)
