"""The OpenAPI 3.1 document, out of the table of routes and the types that they name."""

from __future__ import annotations

from functools import cache

from accounts.scopes import SCOPES
from api.errors import ErrorAnswer
from api.routes import BINARY, PARAMETERS, Answer, Call, Route
from api.schemas import Components
from lbconfig.model.snapshot import SCHEMA

PREFIX = "/api/v1"
ABOUT = """Everything that the screens of the box do.

What is written goes into the draft; the box runs it after a review and an apply. Operations (drain, halt, resume) act
at once. Who reads something gets an ETag; who replaces or removes it says by If-Match which state he saw, and nothing
is overwritten that somebody else changed meanwhile. Unknown fields are refused."""
REFUSALS = {
    400: "The request is no JSON, or its query is not known.",
    401: "No token, or none that counts.",
    403: "The token may not do this, or not from there.",
    404: "There is no such thing.",
    405: "Not with this method; Allow names those that exist.",
    409: "Not at the moment.",
    411: "The length of the body is missing.",
    412: "Somebody changed it meanwhile (If-Match).",
    408: "The body ended early, or came too slowly.",
    413: "The body is too large.",
    415: "The body has another content type.",
    422: "A field is wrong: `problems` names each with its object.",
    428: "If-Match is missing.",
    429: "Too often, or too many wrong tokens.",
    503: "A part of the box does not answer; try again.",
    507: "The data partition is full.",
}


def get(call: Call) -> Answer:
    return Answer(document())


@cache
def document() -> dict:
    from api.table import ROUTES  # the table has a route that gives this document

    components = Components()
    paths: dict[str, dict] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, components)
    error = components.of(ErrorAnswer)
    responses = {
        str(status): {"description": words, "content": {"application/json": {"schema": error}}}
        for status, words in REFUSALS.items()
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Fairlead", "version": f"1.{SCHEMA}", "description": ABOUT},
        "servers": [{"url": PREFIX}],
        "security": [{"token": []}],
        "tags": [{"name": name} for name in dict.fromkeys(route.group for route in ROUTES)],
        "paths": paths,
        "components": {
            "schemas": components.schemas,
            "responses": responses,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "description": _scopes()}},
        },
    }


def _operation(route: Route, components: Components) -> dict:
    operation = {
        "operationId": route.name,
        "summary": route.summary,
        "description": " ".join(filter(None, (f"Needs: {' or '.join(_needs(route))}.", route.words))),
        "tags": [route.group],
        "parameters": _parameters(route),
        "responses": {str(route.status): _response(route, components)} | _refusals(route),
    }
    if route.body:
        schema = {"type": "string", "format": "binary"} if route.body.raw else components.of(route.body.schema)
        content = {kind: {"schema": schema} for kind in route.body.kinds}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _needs(route: Route) -> list[str]:
    return ["any token"] if len(route.scopes) == len(SCOPES) else [scope for scope in SCOPES if scope in route.scopes]


def _parameters(route: Route) -> list[dict]:
    found = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": PARAMETERS[name].words,
            "schema": dict(PARAMETERS[name].schema),
        }
        for name in route.parameters
    ]
    found += [
        {"name": name, "in": "query", "description": query.words, "schema": dict(query.schema)}
        for name, query in route.query.items()
    ]
    if route.if_match:
        words = "the ETag of what is changed, or *"
        schema = {"type": "string"}
        required = route.if_match == "required"
        found.append({"name": "If-Match", "in": "header", "required": required, "description": words, "schema": schema})
    return found


def _response(route: Route, components: Components) -> dict:
    response: dict = {"description": route.summary if route.answer is not None else "Done."}
    if route.answer == BINARY:
        response["content"] = {BINARY: {"schema": {"type": "string", "format": "binary"}}}
    elif route.answer is not None:
        response["content"] = {"application/json": {"schema": components.of(route.answer)}}
    if route.etag:
        response["headers"] = {"ETag": {"schema": {"type": "string"}}}
    return response


def _refusals(route: Route) -> dict:
    """Those that this route can have."""
    statuses = {400, 401, 403, 404, 405, 422, 429, 503, 507, *route.refusals}
    if route.body and not route.body.raw:
        statuses |= {408, 413, 415}
    if route.if_match:
        statuses |= {412, 428} if route.if_match == "required" else {412}
    if route.path.startswith(("/update", "/applies", "/operations", "/services")):
        statuses.add(409)
    return {str(status): {"$ref": f"#/components/responses/{status}"} for status in sorted(statuses)}


def _scopes() -> str:
    return "\n".join(f"{scope}: {words}" for scope, (_, words) in SCOPES.items())
