"""The one view of the API: finds the route, asks who calls, reads the body, and turns every refusal into JSON."""

from __future__ import annotations

import logging
import re

from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from api import bodies
from api.auth import Caller, caller
from api.errors import ApiError, not_found, of_applier, of_shape
from api.routes import Answer, Call, Route
from api.table import CHANGE, ROUTES
from applier.wire.client import ApplierDown, ApplierRefused
from balancing.operations import Refused
from changes import actions, desk
from draft.frame import look
from lbconfig.model.problem import quote
from lbconfig.model.snapshot import SnapshotError
from web.faults import fault_of

log = logging.getLogger(__name__)

BY_PATH: dict[str, dict[str, Route]] = {}
for _route in ROUTES:
    BY_PATH.setdefault(_route.path, {})[_route.method] = _route
PATTERNS: list[tuple[re.Pattern, dict[str, Route]]] = [
    (next(iter(routes.values())).pattern, routes) for routes in BY_PATH.values()
]


@csrf_exempt
@login_not_required
def endpoint(request: HttpRequest, rest: str = "") -> HttpResponseBase:
    """`rest`: what comes after /api/v1."""
    try:
        answer = _answer(request, rest)
    except ApiError as error:
        answer = error.answer()
    except (ApplierRefused, ApplierDown) as error:
        answer = of_applier(error).answer()
    except SnapshotError as error:
        answer = of_shape(error, "snapshot").answer()
    except Refused as error:
        answer = ApiError(409, "nothing-done", str(error)).answer()
    except DatabaseError as error:
        answer = _of_database(error)
    if request.method == "HEAD" and isinstance(answer, HttpResponse):
        answer.content = b""
    return answer


def _answer(request: HttpRequest, rest: str) -> HttpResponseBase:
    who = caller(request)
    routes, values = _find(rest)
    methods = sorted({*routes, "OPTIONS", *(["HEAD"] if "GET" in routes else [])})
    allow = {"Allow": ", ".join(methods)}
    if request.method == "OPTIONS":
        return HttpResponse(status=204, headers=allow)
    route = routes.get("GET" if request.method == "HEAD" else request.method or "")
    if route is None:
        raise ApiError(405, "wrong-method", f"This takes {allow['Allow']}, not {request.method}.", headers=allow)
    _permit(who, route)
    if route.changes and route.scopes == CHANGE and (there := look(request).desk):
        raise ApiError(409, "not-the-desk", desk.words(there))
    call = Call(request, who, values, _query(request, route))
    if route.body and not route.body.raw:
        call.body = bodies.read(request, route.body.limit, route.body.kinds)
        if route.body.typed:
            call.body = bodies.typed(route.body.schema, call.body)
    if route.needs_draft:
        actions.fill_if_empty()
    answer = _shown(route.run(call))
    if route.changes:
        log.info("%s: %s %s: %s", who.name, request.method, request.path, answer.status_code)
    return answer


def _find(rest: str) -> tuple[dict[str, Route], dict[str, int | str]]:
    for pattern, routes in PATTERNS:
        if match := pattern.fullmatch(f"/{rest}"):
            found = match.groupdict()
            return routes, {name: text if name == "apply" else int(text) for name, text in found.items()}
    raise not_found("such thing in the API; /api/v1/openapi.json lists what there is")


def _permit(who: Caller, route: Route) -> None:
    if not who.scopes & route.scopes:
        wanted = " or ".join(sorted(route.scopes))
        has = ", ".join(sorted(who.scopes)) or "nothing"
        raise ApiError(403, "forbidden", f"This needs a token that may: {wanted}. Yours may: {has}.")


def _query(request: HttpRequest, route: Route) -> dict[str, int | str]:
    found: dict[str, int | str] = {}
    for name, values in request.GET.lists():
        if name not in route.query or len(values) != 1:
            known = ", ".join(route.query) or "none"
            raise ApiError(400, "bad-query", f"The query takes each of these once: {known}; not {quote(name)}.")
        found[name] = _value(name, values[0], route.query[name].schema)
    return found


def _value(name: str, text: str, schema) -> int | str:
    if schema["type"] == "string":
        if len(text) <= schema["maxLength"]:
            return text
        raise ApiError(400, "bad-query", f"{name} has {schema['maxLength']} characters at most.")
    low, high = schema["minimum"], schema["maximum"]
    number = int(text) if re.fullmatch(r"[0-9]{1,15}", text) else -1
    if not low <= number <= high:
        raise ApiError(400, "bad-query", f"{name} must be {low} to {high}, not {quote(text)}.")
    return number


def _shown(answer: Answer | HttpResponseBase) -> HttpResponseBase:
    if isinstance(answer, HttpResponseBase):
        return answer
    if answer.data is None:
        return HttpResponse(status=answer.status, headers=answer.headers)
    return JsonResponse(answer.data, status=answer.status, headers=answer.headers, safe=False)


def _of_database(error: DatabaseError) -> JsonResponse:
    fault = fault_of(error)
    log.error("the database: %s", error)
    connection.close()  # the next request opens the file anew, which may have been replaced meanwhile
    return ApiError(fault.status, "database", f"{fault.title}. {fault.what}").answer()
