"""How the API says no: one shape for every refusal, and the HTTP status of each of the applier's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypedDict

from django.http import JsonResponse

from applier.wire import shapes
from applier.wire.client import ApplierDown, ApplierRefused
from lbconfig.model.problem import Problem
from lbconfig.model.snapshot import SnapshotError


class ErrorBody(TypedDict):
    code: str  # for programs: "problems", "changed", "forbidden" …
    message: str  # a sentence for people
    problems: list[shapes.Problem]  # empty where no field is to blame


class ErrorAnswer(TypedDict):
    error: ErrorBody


class ApiError(Exception):
    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        problems: Iterable[Problem | shapes.Problem] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.problems = [shapes.of_problem(one) if isinstance(one, Problem) else one for one in problems]
        self.headers = dict(headers or {})

    def answer(self) -> JsonResponse:
        body = {"code": self.code, "message": self.message, "problems": self.problems}
        return JsonResponse({"error": body}, status=self.status, headers=self.headers)


# What the applier refuses with. What is not here is a request that makes no sense: 422.
STATUS = {
    "busy": 409,
    "base-moved": 409,
    "digest-mismatch": 409,
    "lock-out": 409,
    "wrong-hostname": 422,
    "not-waiting": 409,
    "not-measuring": 409,
    "no-capacity": 409,
    "no-pair": 409,
    "not-leading": 409,
    "not-held": 409,
    "not-taken-over": 409,
    "peer-away": 409,
    "peer-not-ready": 409,
    "both-lead": 409,
    "not-in-step": 409,
    "nothing-to-choose": 409,
    "leaving": 409,
    "peer-there": 409,
    "no-update": 409,
    "not-possible": 409,
    "version-runs": 409,
    "no-slots": 409,
    "paired": 409,
    "slot-runs": 409,
    "slot-empty": 409,
    "unknown-service": 404,
    "unknown-generation": 404,
    "unknown-upload": 404,
    "too-large": 413,
    "overloaded": 503,
    "internal": 500,
    "data-missing": 503,
    "data-read-only": 503,
    "data-error": 503,
    "data-full": 507,
}


def of_applier(error: ApplierRefused | ApplierDown) -> ApiError:
    if isinstance(error, ApplierDown):
        return ApiError(503, "applier-down", str(error))
    return ApiError(STATUS.get(error.code, 422), error.code, error.message, error.problems)


def of_shape(error: SnapshotError, object_: str) -> ApiError:
    """Data of a wrong shape; `object_` is what it should have been."""
    return ApiError(422, "bad-field", f"{object_}, {error}.", [shape_problem(error, object_)])


def shape_problem(error: SnapshotError, object_: str) -> Problem:
    return Problem(object_, error.path.rpartition(".")[2] or object_, error.message, error.path)


def refused(problems: list[Problem]) -> ApiError:
    """Data that makes no sense."""
    first = problems[0]
    more = f" And {len(problems) - 1} more." if len(problems) > 1 else ""
    return ApiError(422, "problems", f"{first}.{more}", problems)


def wrong_field(object_: str, field: str, message: str, path: str = "") -> ApiError:
    return refused([Problem(object_, field, message, path or field)])


def not_found(what: str) -> ApiError:
    return ApiError(404, "not-found", f"There is no {what}.")
