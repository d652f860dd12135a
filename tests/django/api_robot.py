"""A program that uses the API. Whatever it is answered has to be what the OpenAPI document says."""

from __future__ import annotations

import json

from django.test import Client
from jsonschema import Draft202012Validator

from accounts import tokens
from api import document
from api.endpoint import PATTERNS
from api.routes import BINARY

PREFIX = "/api/v1"
ALL = ("read", "change", "apply", "admin", "backup", "reset")
used: set[tuple[str, str]] = set()  # (method, path of the document) that some test was answered by with success


class Robot:
    """It checks CSRF as the box does, and has no cookie."""

    def __init__(self, token: str | None, **options) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
        self.client = Client(enforce_csrf_checks=True, headers=headers, **options)
        self.client.raise_request_exception = False

    def ask(self, method: str, path: str, data: object = None, kind: str = "application/json", **headers: str):
        """`headers`: If_Match="*" …"""
        body = data if isinstance(data, bytes) else b"" if data is None else json.dumps(data).encode()
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = self.client.generic(method, PREFIX + path, body, content_type=kind, headers=given)
        conforms(method, path, answer)
        return answer

    def get(self, path: str, **headers: str):
        return self.ask("GET", path, **headers)

    def post(self, path: str, data: object = None, **headers: str):
        return self.ask("POST", path, data, **headers)

    def put(self, path: str, data: object, **headers: str):
        return self.ask("PUT", path, data, **headers)

    def patch(self, path: str, data: object, **headers: str):
        return self.ask("PATCH", path, data, **headers)

    def delete(self, path: str, **headers: str):
        return self.ask("DELETE", path, **headers)


def robot(user, *scopes: str, **options) -> Robot:
    return Robot(tokens.make(user, "robot", scopes or ALL, **options))


def error(answer) -> dict:
    return answer.json()["error"]


def fields(answer) -> list[tuple[str, str]]:
    """(object, field) of every problem."""
    return [(one["object"], one["field"]) for one in error(answer)["problems"]]


def conforms(method: str, path: str, answer) -> None:
    """The answer is one of those that the document promises for this route."""
    assert answer.status_code != 500, answer.content
    found = [routes for pattern, routes in PATTERNS if pattern.fullmatch(path.partition("?")[0])]
    if not found or method not in found[0]:
        if answer.content and method != "HEAD":
            validate({"$ref": "#/components/schemas/ErrorAnswer"}, answer.json())
        return
    route = found[0][method]
    promised = document.document()["paths"][route.path][method.lower()]["responses"]
    assert str(answer.status_code) in promised, f"{method} {path}: {answer.status_code} is not in the document"
    response = promised[str(answer.status_code)]
    if "$ref" in response:
        response = document.document()["components"]["responses"][response["$ref"].rpartition("/")[2]]
    else:
        used.add((method, route.path))
        assert set(response.get("headers", ())) <= set(answer.headers)
    if "content" not in response:
        assert not answer.content
        return
    if BINARY in response["content"]:
        assert answer.headers["Content-Type"] == BINARY
        return
    assert answer.headers["Content-Type"].startswith("application/json")
    validate(response["content"]["application/json"]["schema"], answer.json())


def validate(schema: dict, data: object) -> None:
    Draft202012Validator({**schema, "components": document.document()["components"]}).validate(data)
