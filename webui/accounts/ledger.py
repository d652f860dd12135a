"""Who may log in, and which tokens count: one small file that both slots read (docs/decisions/0042).

Each slot has a database of its own, and an older one knows passwords that were changed since and tokens that were
revoked. So the box keeps them beside the slots as well, with a number that only grows; whoever has the higher number
is right. What was ever taken back is remembered by a digest, so that a backup file does not bring it in again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from datetime import datetime
from threading import Event

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import make_password
from django.db import transaction
from django.db.models.signals import post_delete, post_save

from accounts.models import ApiToken, LedgerNumber
from web.backups import sync

log = logging.getLogger(__name__)

ONLY_ROW = 1
LONGEST = 300  # characters of a name or a hash
LIVELY = frozenset({"last_login"})  # what a log-in writes of a user
_waits = Event()  # the start of this slot has not looked yet, or could not write
_followed: ContextVar[bool] = ContextVar("followed", default=True)


@dataclass(frozen=True)
class UserEntry:
    name: str
    password: str  # its hash
    active: bool


@dataclass(frozen=True)
class TokenEntry:
    digest: str
    name: str
    user: str
    scopes: list[str]
    created: str
    expires: str | None
    networks: list[str]


@dataclass(frozen=True)
class Ledger:
    number: int = 0
    users: tuple[UserEntry, ...] = ()
    tokens: tuple[TokenEntry, ...] = ()
    retired: frozenset[str] = frozenset()  # digests of password hashes and tokens that count no more

    @property
    def secrets(self) -> frozenset[str]:
        return frozenset(
            map(secret_digest, (*(one.password for one in self.users), *(one.digest for one in self.tokens)))
        )

    def after(self, number: int, users: tuple[UserEntry, ...], tokens: tuple[TokenEntry, ...]) -> Ledger:
        """The next one: what it does not have any more is retired."""
        new = Ledger(number, users, tokens)
        return Ledger(number, users, tokens, (self.retired | self.secrets) - new.secrets)

    def to_json(self) -> str:
        return json.dumps(asdict(self) | {"retired": sorted(self.retired)}, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Ledger:
        """Raises ValueError, TypeError, KeyError."""
        data = json.loads(text)
        return cls(
            int(data["number"]),
            tuple(UserEntry(**one) for one in data["users"]),
            tuple(TokenEntry(**one) for one in data["tokens"]),
            frozenset(data["retired"]),
        )


def load() -> Ledger | None:
    """None where there is none yet, or none that can be read: then the database of the slot counts."""
    try:
        return Ledger.from_json(settings.LEDGER.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        log.error("%s cannot be read, and is made anew of the database: %s", settings.LEDGER.name, error)
        return None


def read(text: str) -> Ledger:
    """That of another box. Raises ValueError for what is none, or says what nobody could have entered."""
    try:
        found = Ledger.from_json(text)
        users, tokens = found.users, found.tokens
        texts = [word for one in users for word in (one.name, one.password)]
        texts += [word for one in tokens for word in (one.digest, one.name, one.user, one.created, *one.scopes)]
        texts += [word for one in tokens for word in one.networks] + list(found.retired)
        good = all(isinstance(one, str) and len(one) <= LONGEST and one.isprintable() for one in texts)
        good = good and all(isinstance(one.active, bool) for one in users) and found.number >= 0
        good = good and {one.user for one in tokens} <= {one.name for one in users}
        for moment in [moment for one in tokens for moment in (one.created, one.expires) if moment is not None]:
            datetime.fromisoformat(moment)
    except (TypeError, KeyError, AttributeError, RecursionError):
        good = False
    if not good:
        raise ValueError("the users and tokens of the other box are not of the shape")
    return found


def follow() -> None:
    """From now on the file has what the database has, whoever changes it."""
    for model in (get_user_model(), ApiToken):
        post_save.connect(_changed, model)
        post_delete.connect(_changed, model)


def keep() -> None:
    """Write down what the database has now. Raises DatabaseError, OSError.

    Within a transaction it is on the disk before that ends: what was taken back does not come again.
    """
    with transaction.atomic():
        old = load() or Ledger()
        number = 1 + max(old.number, _number("default"))
        _set_number("default", number)
        _write(old.after(number, *_entries("default")))


@contextlib.contextmanager
def once() -> Iterator[None]:
    """Several changes in one transaction, which are written down at its end. As keep() raises."""
    with transaction.atomic():
        with _unfollowed():
            yield
        keep()


def bring_forward() -> None:
    """At the start of a slot: its database learns what was changed while the other one ran. As keep() raises."""
    _waits.set()
    found = load()
    if found is None or found.number < _number("default"):
        keep()
    elif found.number > _number("default"):
        with transaction.atomic():
            _put(found)
        log.info("users and tokens are those of the box, number %d", found.number)
    _waits.clear()


def become(new: Callable[[Ledger], Ledger]) -> bool:
    """The database and the file become what this makes of what they are; whether that is anything else.

    As keep() raises; then nothing was changed.
    """
    with transaction.atomic():
        old = load()
        if old is None or old.number != _number("default"):
            keep()
            old = load() or Ledger()
        found = new(old)
        if found == old:
            return False
        _put(found)
        _write(found)
    return True


def expect() -> None:
    """The start of a slot begins; what fails before its database was brought forward leaves that to do."""
    _waits.set()


def catch_up() -> None:
    """Before anybody is let in, where the start found no room: old passwords count no more there. As keep() raises."""
    if not _waits.is_set():
        return
    found = load()
    if found is not None and found.number > _number("default"):
        bring_forward()


def admit(alias: str) -> None:
    """For the database of a backup file, before it becomes the box's: what this box has retired stays retired."""
    found = load() or Ledger()
    now = {one.name: one.password for one in found.users}
    for user in get_user_model().objects.using(alias):
        if secret_digest(user.password) in found.retired:
            user.password = now.get(user.get_username()) or make_password(None)
            user.save(using=alias)
    for token in ApiToken.objects.using(alias):
        if secret_digest(token.digest) in found.retired:
            token.delete(using=alias)
    _set_number(alias, 1 + max(found.number, _number("default")))


def _put(found: Ledger) -> None:
    """Into the database."""
    with _unfollowed():
        _put_users(found.users)
        _put_tokens(found.tokens)
        _set_number("default", found.number)


def _changed(sender, using: str = "", update_fields=None, **more) -> None:
    if _followed.get() and using == "default" and not (update_fields and set(update_fields) <= LIVELY):
        keep()


@contextlib.contextmanager
def _unfollowed() -> Iterator[None]:
    before = _followed.set(False)
    try:
        yield
    finally:
        _followed.reset(before)


def _number(alias: str) -> int:
    row = LedgerNumber.objects.using(alias).filter(pk=ONLY_ROW).first()
    return row.number if row else 0


def _set_number(alias: str, number: int) -> None:
    LedgerNumber.objects.using(alias).update_or_create(pk=ONLY_ROW, defaults={"number": number})


def _entries(alias: str) -> tuple[tuple[UserEntry, ...], tuple[TokenEntry, ...]]:
    users = get_user_model().objects.using(alias).order_by("pk")
    tokens = ApiToken.objects.using(alias).select_related("user").order_by("pk")
    return (
        tuple(UserEntry(one.get_username(), one.password, one.is_active) for one in users),
        tuple(
            TokenEntry(
                one.digest, one.name, one.user.get_username(), list(one.scopes), one.created.isoformat(),
                one.expires.isoformat() if one.expires else None, list(one.networks),
            )
            for one in tokens
        ),
    )  # fmt: skip


def _put_users(entries: tuple[UserEntry, ...]) -> None:
    users = get_user_model().objects
    known = set(users.values_list("username", flat=True))
    users.exclude(username__in=[one.name for one in entries]).delete()
    for one in entries:
        users.filter(username=one.name).update(password=one.password, is_active=one.active)
    users.bulk_create(
        [
            get_user_model()(username=one.name, password=one.password, is_active=one.active)
            for one in entries
            if one.name not in known
        ]
    )


def _put_tokens(entries: tuple[TokenEntry, ...]) -> None:
    owners = {one.get_username(): one for one in get_user_model().objects.all()}
    known = set(ApiToken.objects.values_list("digest", flat=True))
    ApiToken.objects.exclude(digest__in=[one.digest for one in entries]).delete()
    for one in entries:
        values = {
            "name": one.name,
            "user": owners[one.user],
            "scopes": one.scopes,
            "expires": datetime.fromisoformat(one.expires) if one.expires else None,
            "networks": one.networks,
        }
        if one.digest not in known:
            ApiToken.objects.bulk_create([ApiToken(digest=one.digest, **values)])
        ApiToken.objects.filter(digest=one.digest).update(**values, created=datetime.fromisoformat(one.created))


def _write(ledger: Ledger) -> None:
    path = settings.LEDGER
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(part, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "w") as file:
            file.write(ledger.to_json())
        sync(part)
        part.rename(path)
    finally:
        part.unlink(missing_ok=True)
    sync(path.parent)


def secret_digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
