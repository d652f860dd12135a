"""Firewall rules beside what the draft has of them: how often they matched, and what becomes of a packet."""

from __future__ import annotations

from typing import Literal, TypedDict

from api.bodies import PacketRequest
from api.errors import refused
from api.routes import Answer, Call
from applier.wire.client import connect
from draft import store as draft
from draft import what_runs
from firewall.trial import leased, wrong
from lbconfig.judge import Verdict, judge
from lbconfig.model.firewall import Packet
from lbconfig.model.problem import Problem
from lbconfig.validate.services import validate


class VerdictEntry(TypedDict):
    fate: Literal["passed", "dropped", "rejected"]
    words: str  # what decided, and what becomes of the packet
    where: Literal["box", "services", "through"] | None  # whose rules were asked; null: it does not come so far
    rule: int | None  # the id of the rule of one's own that decided; null: the box's
    service: int | None  # the id of the virtual service that gets it


class Verdicts(TypedDict):
    draft: VerdictEntry
    running: VerdictEntry


def counters(call: Call) -> Answer:
    return Answer(connect().rule_counters())


def test(call: Call) -> Answer:
    """Would it pass, and by which rule? Nothing is sent."""
    wanted: PacketRequest = call.body
    packet = Packet(
        wanted.source,
        wanted.destination,
        wanted.protocol,
        wanted.port,
        wanted.interface,
        wanted.source_port,
        wanted.icmp,
    )
    wish = draft.current()
    if problems := [Problem("packet", field, words, field) for field, words in wrong(packet, wish.network)]:
        raise refused(problems)
    if problems := validate(wish):
        raise refused(problems)
    status = what_runs.status()
    running = what_runs.of(status)
    addresses = leased(status, running)
    answer: Verdicts = {
        "draft": _entry(judge(wish, packet, addresses)),
        "running": _entry(judge(running, packet, addresses)),
    }
    return Answer(answer)


def _entry(verdict: Verdict) -> VerdictEntry:
    return {
        "fate": verdict.fate.value,
        "words": verdict.words,
        "where": verdict.where.value if verdict.where else None,
        "rule": verdict.rule.id if verdict.rule else None,
        "service": verdict.service.id if verdict.service else None,
    }
