"""What one box of a pair asks the other one, and the answer, as they are on the wire. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from lbconfig.agreement_lines import MAX_LINE, LineError
from lbconfig.model.problem import quote

ASK: Final = "ask"  # the kinds of their lines
ANSWER: Final = "answer"
MAX_BODY = MAX_LINE - 1024  # bytes; the rest of the line names protocol, pair and box
LONGEST_VERB = 40  # characters
LONGEST_MESSAGE = 1000

_ID = re.compile(r"[0-9a-f]{32}")
_CODE = re.compile(r"[a-z0-9-]{1,40}")


@dataclass(frozen=True, slots=True)
class Ask:
    id: str
    verb: str
    arguments: Mapping[str, Any]

    def to_data(self) -> dict[str, object]:
        return {"id": self.id, "verb": self.verb, "arguments": self.arguments}


@dataclass(frozen=True, slots=True)
class Answer:
    """`result`: None where it is a refusal."""

    id: str
    result: Mapping[str, Any] | None
    code: str = ""
    message: str = ""

    def to_data(self) -> dict[str, object]:
        if self.result is None:
            return {"id": self.id, "code": self.code, "message": self.message}
        return {"id": self.id, "result": self.result}


def refusal(id: str, code: str, message: str) -> Answer:
    """Whatever a program has said is made a message that the other box takes."""
    words = "".join(letter if letter.isprintable() else "?" for letter in " ".join(message.split()))
    return Answer(id, None, code, words[:LONGEST_MESSAGE])


def read_ask(body: Mapping[str, object]) -> Ask:
    """What to_data() made, once it went through JSON. LineError for anything else, with the field."""
    if set(body) != {"id", "verb", "arguments"}:
        raise LineError("body: what is asked has id, verb and arguments")
    verb, arguments = body["verb"], body["arguments"]
    if not isinstance(verb, str) or not 1 <= len(verb) <= LONGEST_VERB:
        raise LineError(f"verb: must be a text of 1 to {LONGEST_VERB} characters")
    if not isinstance(arguments, dict):
        raise LineError("arguments: must be an object")
    return Ask(_id(body["id"]), verb, arguments)


def read_answer(body: Mapping[str, object]) -> Answer:
    """What to_data() made, once it went through JSON. LineError for anything else, with the field."""
    if set(body) == {"id", "result"}:
        result = body["result"]
        if not isinstance(result, dict):
            raise LineError("result: must be an object")
        return Answer(_id(body["id"]), result)
    if set(body) != {"id", "code", "message"}:
        raise LineError("body: an answer has id and result, or id, code and message")
    code, message = body["code"], body["message"]
    if not isinstance(code, str) or not _CODE.fullmatch(code):
        raise LineError(f"code: must be the code of a refusal, not {quote(str(code)[:80])}")
    if not isinstance(message, str) or len(message) > LONGEST_MESSAGE or not message.isprintable():
        raise LineError(f"message: must be a text of at most {LONGEST_MESSAGE} characters")
    return Answer(_id(body["id"]), None, code, message)


def size(body: Mapping[str, object]) -> int:
    """How many bytes it has on the wire."""
    return len(json.dumps(body, separators=(",", ":")))


def _id(value: object) -> str:
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise LineError(f"id: must be 32 hexadecimal digits, not {quote(str(value)[:80])}")
    return value
