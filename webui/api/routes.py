"""What a route of the API is. The table of all of them is api.table; the OpenAPI document is made from it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from accounts.scopes import SCOPES
from api.auth import Caller
from api.bodies import JSON, SMALL
from api.errors import ApiError
from lbconfig.model import writing
from lbconfig.validate.fields import MAX_ID

ANY: frozenset[str] = frozenset(SCOPES)
BINARY = "application/octet-stream"


@dataclass(frozen=True)
class Parameter:
    pattern: str  # of the text in the path
    schema: Mapping
    words: str


def _id(words: str) -> Parameter:
    return Parameter(r"[1-9][0-9]{0,15}", {"type": "integer", "minimum": 1, "maximum": MAX_ID}, words)


PARAMETERS = {
    "service": _id("the id of a virtual service"),
    "server": _id("the id of a real server"),
    "number": _id("the number of a revision"),
    "token": _id("the id of a token"),
    "apply": Parameter(
        r"[A-Za-z0-9-]{1,60}",
        {"type": "string", "pattern": "^[A-Za-z0-9-]{1,60}$"},
        "what starting the apply has answered",
    ),
}


@dataclass(frozen=True)
class Body:
    schema: Any  # as api.schemas.Components.of takes it
    limit: int = SMALL  # bytes
    kinds: tuple[str, ...] = (JSON,)
    typed: bool = False  # it is made into `schema`, a dataclass, before the route sees it
    raw: bool = False  # the route reads it by itself: no JSON


@dataclass(frozen=True)
class Query:
    schema: Mapping
    words: str


@dataclass
class Call:
    """One request, as a route sees it."""

    request: HttpRequest
    caller: Caller
    values: dict[str, Any]  # of the path, each as its parameter has it: a number, or text
    query: dict[str, Any]
    body: Any = None  # as the route's Body says

    def match(self, tag: str, required: bool = False) -> None:
        """Whether the caller saw what is there now (If-Match). Raises ApiError."""
        given = self.request.headers.get("If-Match", "").strip()
        if not given and required:
            text = "Say which state you change: If-Match with the ETag that you were given, or with *."
            raise ApiError(428, "no-if-match", text)
        if given and given != "*" and tag not in [one.strip() for one in given.split(",")]:
            text = "Somebody changed it since you read it. Nothing was saved: read it again, and then change it."
            raise ApiError(412, "changed", text, headers={"ETag": tag})


@dataclass(frozen=True)
class Answer:
    data: object = None  # what JSON can say; None: no body
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Route:
    method: str
    path: str  # below /api/v1, "/services/{service}"
    name: str  # its operationId
    summary: str
    run: Callable[[Call], Answer | HttpResponseBase]
    scopes: frozenset[str]  # one of them is needed
    answer: object = None  # the type of what it answers; None: nothing; BINARY: a file
    status: int = 200
    body: Body | None = None
    query: Mapping[str, Query] = field(default_factory=dict)
    if_match: str = ""  # "required" or "optional"
    etag: bool = False
    changes: bool = True  # whether it changes anything; it is logged
    needs_draft: bool = True  # whether there has to be a draft first
    words: str = ""  # more than the summary
    refusals: tuple[int, ...] = ()  # HTTP statuses beside those that every route has

    @property
    def group(self) -> str:
        return self.path.split("/")[1].partition(".")[0]

    @property
    def parameters(self) -> list[str]:
        return re.findall(r"{([a-z]+)}", self.path)

    @property
    def pattern(self) -> re.Pattern:
        parts = re.split(r"{([a-z]+)}", self.path)
        text = "".join(
            f"(?P<{part}>{PARAMETERS[part].pattern})" if place % 2 else re.escape(part)
            for place, part in enumerate(parts)
        )
        return re.compile(text)


def tag_of(data: object) -> str:
    """The ETag of what is shown: equal data, equal tag, whoever changed it and changed it back."""
    text = json.dumps(data, sort_keys=True, ensure_ascii=True)
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def plain(value: Any) -> dict[str, Any]:
    """A dataclass of lbconfig as JSON has it."""
    return {name: writing.plain(getattr(value, name)) for name in writing.written(value)}
