"""What the set-up page does."""

import logging

from axes.utils import reset
from django.contrib.auth import get_user_model
from django.db import transaction

from accounts import credentials, limits
from applier.wire.client import ApplierDown, ApplierRefused, connect
from lbconfig.model.addresses import source

log = logging.getLogger(__name__)


class WrongCode(Exception):
    """The set-up code does not open this box. The text is a sentence for who tried."""

    def __init__(self) -> None:
        super().__init__("This is not the code on the console.")


class UnknownAdmin(Exception):
    """The box has admins, and none of this name; `known` are their names."""

    def __init__(self, known: list[str]) -> None:
        super().__init__(", ".join(known))
        self.known = known


def set_up(code: str, username: str, password: str, address: str):
    """Create the first admin, or give an existing one a new password; then the code is spent.

    The code is spent last: when the power goes in between, it opens the box once more, and nobody is
    locked out. Raises limits.Refused, WrongCode, UnknownAdmin, ApplierDown, ApplierRefused.
    """
    prove(code, address)
    users = get_user_model().objects
    with transaction.atomic():
        user = users.filter(username=username).first()
        if user is None and users.exists():
            raise UnknownAdmin(sorted(users.values_list("username", flat=True)))
        user = user or get_user_model()(username=username)
        credentials.set_password(user, password)
    spend(code)
    reset(username=username, ip=source(address))
    limits.TRIES.forget(address)
    log.info("user %s was set up from %s", username, address)
    return user


def prove(code: str, address: str) -> None:
    """That it is the set-up code. Raises limits.Refused, WrongCode, ApplierDown, ApplierRefused."""
    limits.CODES.ask(address)
    if not connect().setup_check(code)["valid"]:
        limits.CODES.count(address)
        raise WrongCode


def spend(code: str) -> None:
    """Spend the code. If that fails, it stays valid, so nobody is locked out."""
    try:
        connect().setup_done(code)
    except (ApplierDown, ApplierRefused) as error:
        log.warning("the set-up code could not be spent: %s", error)
