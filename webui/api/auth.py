"""Who asks: a bearer token instead of a session, so no cookie and no CSRF token is needed, or looked at.

The `fairlead` command of the box has a token of its own, which `manage.py prepare` makes anew at each start and
which only root and the web process can read. It counts for everything, and only past nginx: at the UNIX socket.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest

from accounts import tokens
from accounts.limits import TOKENS, Refused
from accounts.models import ApiToken
from accounts.scopes import SCOPES
from api.errors import ApiError

CONSOLE = "console"  # who did it, in the history


@dataclass(frozen=True)
class Caller:
    name: str  # for the history and the log
    scopes: frozenset[str]
    address: str  # where the request came from; "": the console of the box
    token: ApiToken | None  # None: the console

    @property
    def user(self):
        return self.token.user if self.token else None


def caller(request: HttpRequest) -> Caller:
    """Raises ApiError."""
    address = request.META.get("REMOTE_ADDR", "")
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    token = token.strip() if scheme.lower() == "bearer" else ""
    if not token:
        raise _unauthorized("The API wants a token of this box: Authorization: Bearer TOKEN.")
    if not address and "HTTP_X_REAL_IP" not in request.META and _is_console(token):
        return Caller(CONSOLE, frozenset(SCOPES), "", None)
    try:
        record = tokens.owner(token, address)
    except tokens.Unusable as error:
        raise ApiError(error.status, error.code, str(error)) from None
    if record is None:
        try:
            TOKENS.count(address)
        except Refused as refused:
            # A right token goes on to count: nobody guesses 256 bits, and one old script must not shut out the others.
            headers = {"Retry-After": str(refused.seconds)}
            raise ApiError(429, "too-many-wrong-tokens", str(refused), headers=headers) from None
        raise _unauthorized("This is not a token of this box, or it was revoked.")
    name = f"{record.user.get_username()} (token {record.name})"[:150]
    return Caller(name, frozenset(record.scopes), address, record)


def _is_console(token: str) -> bool:
    try:
        own = settings.CONSOLE_TOKEN_FILE.read_text().strip()
    except OSError:
        return False
    return bool(own) and secrets.compare_digest(own.encode(), token.encode(errors="surrogatepass"))


def _unauthorized(message: str) -> ApiError:
    return ApiError(401, "unauthorized", message, headers={"WWW-Authenticate": "Bearer"})
