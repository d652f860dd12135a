"""The firewall rules of the draft, read and written as those of a snapshot. Their order is that of `position`."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from changes.stamps import change_number, stamp
from firewall.models import Rule
from lbconfig.model import firewall as wish

PLAIN = ("name", "protocol", "ports", "interface", "masquerade", "log", "enabled", "note", "action", "where")
LISTS = ("sources", "destinations")
LIMIT = ("rate", "per", "burst", "each_source")


def current() -> wish.Firewall:
    return wish.Firewall(tuple(map(rule_wish, Rule.objects.all())))


def rule_wish(row: Rule) -> wish.Rule:
    """One row of the draft, as the snapshot has it."""
    lists: dict[str, Any] = {name: tuple(getattr(row, name)) for name in LISTS}
    return wish.Rule(
        id=row.pk,
        name=row.name,
        action=wish.Action(row.action),
        where=wish.Where(row.where),
        protocol=wish.RuleProtocol(row.protocol),
        limit=wish.RateLimit(row.rate, wish.Per(row.per), row.burst, row.each_source),
        **lists,
        **{name: getattr(row, name) for name in ("ports", "interface", "masquerade", "log", "enabled", "note")},
    )


def write(rule: wish.Rule, row: Rule, user: str) -> Rule:
    """Store the rule in `row`; a new one comes last."""
    with transaction.atomic():
        for name in PLAIN:
            setattr(row, name, getattr(rule, name))
        for name in LISTS:
            setattr(row, name, list(getattr(rule, name)))
        for name in LIMIT:
            setattr(row, name, getattr(rule.limit, name))
        if row.position is None:  # a new one has none yet, which the stubs do not say
            last = Rule.objects.order_by("position").last()  # type: ignore[unreachable]
            row.position = last.position + 1 if last else 1
        stamp(row, user)
        row.save()
    return row


def remove(row: Rule) -> None:
    with transaction.atomic():
        change_number()
        row.delete()


def move(row: Rule, up: bool, user: str) -> bool:
    """Past the next rule for the same packets; False where there is none."""
    with transaction.atomic():
        beside = Rule.objects.filter(where=row.where)
        if up:
            other = beside.filter(position__lt=row.position).last()
        else:
            other = beside.filter(position__gt=row.position).first()
        if other is None:
            return False
        row.position, other.position = other.position, row.position
        for one in (row, other):
            stamp(one, user)
            one.save()
    return True


def replace(firewall: wish.Firewall, user: str) -> None:
    """Make the rules of the draft equal to these. Those that stay the same keep their version."""
    with transaction.atomic():
        old = {row.pk: row for row in Rule.objects.all()}
        wanted = {rule.id for rule in firewall.rules}
        for pk, row in old.items():
            if pk not in wanted:
                remove(row)
        for place, rule in enumerate(firewall.rules, start=1):
            row = old.get(rule.id) or Rule(pk=rule.id)
            if row.position == place and rule_wish(row) == rule:
                continue
            row.position = place
            write(rule, row, user)
