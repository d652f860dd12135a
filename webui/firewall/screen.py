"""The list of rules on the screen: the admin's own between those that the box brings along, in the order of asking."""

from __future__ import annotations

from dataclasses import dataclass, field

from applier.wire.client import ApplierDown, ApplierRefused, connect
from applier.wire.shapes import RuleCounter
from draft import firewall as draft_firewall
from draft import models
from lbconfig.diff.rule_words import ACTIONS, WHERE, networks, sentence
from lbconfig.model.addresses import shown
from lbconfig.model.firewall import Action, Rule, Where
from lbconfig.model.snapshot import Snapshot, VirtualService
from lbconfig.validate.firewall import covered

MANY = 12  # services that are named one by one
TONES = {Action.ALLOW: "good", Action.DENY: "bad", Action.REJECT: "bad"}


@dataclass
class Line:
    row: models.Rule
    rule: Rule
    first: bool
    last: bool
    counter: RuleCounter | None  # None: it does not run, or is unknown
    waits: bool  # what runs is not what stands here
    hint: str

    @property
    def sentence(self) -> str:
        words = sentence(self.rule)
        return f"{words[:1].upper()}{words[1:]}."

    @property
    def action(self) -> str:
        return ACTIONS[self.rule.action].long

    @property
    def tone(self) -> str:
        return TONES[self.rule.action] if self.rule.enabled else "off"


@dataclass
class Section:
    where: Where
    title: str
    help: str
    before: list[str]
    lines: list[Line] = field(default_factory=list)
    after: list[str] = field(default_factory=list)


def sections(snapshot: Snapshot, running: Snapshot | None) -> tuple[list[Section], str]:
    """One for each kind of packets, and why there are no counters."""
    counters, reason = _counters()
    active = {rule.id: rule for rule in running.firewall.rules} if running else {}
    never = covered(snapshot.firewall)
    rows = list(draft_firewall.rows())
    found = []
    for where in Where:
        before, after = _built_in(where, snapshot)
        own = [row for row in rows if row.wish.where == where]
        section = Section(where, WHERE[where].long.capitalize(), WHERE[where].help, before, after=after)
        for place, row in enumerate(own):
            rule = row.wish
            above = never.get(rule.id)
            hint = f"It never decides: “{above.name}” above it matches all that it would." if above else ""
            ends = place == 0, place == len(own) - 1
            waits = running is not None and active.get(rule.id) != rule
            section.lines.append(Line(row, rule, *ends, counters.get(rule.id), waits, hint))
        found.append(section)
    return found, reason


def _place(service: VirtualService) -> str:
    more = len(service.vips) - 1
    others = f" and {more} more address{'es' * (more != 1)}" if more else ""
    return f"{service.name} at {shown(service.address, service.port)}{others}"


def _counters() -> tuple[dict[int, RuleCounter], str]:
    try:
        return {one["id"]: one for one in connect().rule_counters()}, ""
    except (ApplierDown, ApplierRefused) as error:
        return {}, str(error)


def _built_in(where: Where, snapshot: Snapshot) -> tuple[list[str], list[str]]:
    """What the box itself brings, asked before and after the admin's rules there."""
    errors = "ICMP errors pass: they tell a sender what is wrong with the way."
    opened = "What belongs to a connection that is open passes."
    match where:
        case Where.BOX:
            asks = [one.name for one in snapshot.network.interfaces if one.on and one.dhcp]
            dhcp = [f"Answers of DHCP servers pass, by {' and '.join(asks)}."] if asks else []
            allowed = networks(snapshot.management.allow)
            port = snapshot.management.port
            names = snapshot.management.interfaces
            only = f" It answers on {' and '.join(names)} only." if names else ""
            web = f"The web UI (TCP {port}) is open to the networks under Access and to nobody else: {allowed}.{only}"
            after = ["Pings pass, at most 50 a second.", "Everything else is dropped."]
            return [
                f"{opened} So do answers to what the box itself asks: health checks, names, the time.",
                errors,
                *dhcp,
                web,
            ], after
        case Where.SERVICES:
            places = [_place(one) for one in snapshot.enabled_services]
            more = [f"{len(places) - MANY} more"] if len(places) > MANY else []
            asked = f"Applies only to packets for a virtual service: {', '.join([*places[:MANY], *more])}."
            none = "There is no virtual service, so nothing is asked here."
            return [asked if places else none], ["Everything else goes to its virtual service."]
        case Where.THROUGH:
            answers = "Answers of real servers to their clients pass."
            return [answers, errors, opened], ["Everything else is dropped."]
