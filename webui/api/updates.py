"""Updates by the API.

GET  /api/v1/update            what runs, what the other slot holds, an install under way, the last outcome
POST /api/v1/update            the body is a bundle: it is checked and installed; 202 {"job", "version", "notes"}
POST /api/v1/update/restart    into the other slot; 202 {"slot", "version"}
"""

import logging

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_http_methods

from api.auth import by_token, error
from applier.client import ApplierDown, ApplierRefused, connect
from system.uploads import UploadRefused, receive

log = logging.getLogger(__name__)

# HTTP status of the applier's refusals: what is wrong with the bundle, and what is wrong with the moment.
CONFLICTS = {"busy", "no-slots", "slot-runs", "slot-empty"}


@by_token
@require_http_methods(["GET", "POST"])
def update(request: HttpRequest) -> JsonResponse:
    try:
        return _state() if request.method == "GET" else _install(request)
    except UploadRefused as refusal:
        return error(refusal.status, "upload-refused", str(refusal))
    except ApplierRefused as refusal:
        return error(409 if refusal.code in CONFLICTS else 422, refusal.code, refusal.message)
    except ApplierDown as down:
        return error(503, "applier-down", str(down))


@by_token
@require_http_methods(["POST"])
def restart(request: HttpRequest) -> JsonResponse:
    try:
        applier = connect()
        other = next((slot for slot in applier.slots()["slots"] if not slot["booted"]), None)
        if other is None:
            return error(409, "no-slots", "This box does not run from a disk with two slots.")
        applier.boot_slot(other["name"], _who(request))
    except ApplierRefused as refusal:
        return error(409, refusal.code, refusal.message)
    except ApplierDown as down:
        return error(503, "applier-down", str(down))
    log.info("%s restarts the box into slot %s, version %s", _who(request), other["name"], other["version"])
    return JsonResponse({"slot": other["name"], "version": other["version"]}, status=202)


def _state() -> JsonResponse:
    state = connect().slots()
    return JsonResponse({"version": connect().status()["version"], **state})


def _install(request: HttpRequest) -> JsonResponse:
    applier = connect()
    state = applier.slots()
    if not state["present"]:
        return error(409, "no-slots", "This box does not run from a disk with two slots, so it cannot be updated.")
    applier.update_forget()
    source = receive(request, state["limit"])
    review = applier.update_check(source)
    job = applier.update_install(source, _who(request))["job"]
    log.info("%s installs version %s into slot %s", _who(request), review["version"], review["slot"])
    return JsonResponse({"job": job, "version": review["version"], "notes": review["notes"]}, status=202)


def _who(request: HttpRequest) -> str:
    return f"{request.token.user.get_username()} (token {request.token.name})"[:150]
