"""The firewall rules of the draft, read and written as those of a snapshot. Their order is that of `position`."""

from __future__ import annotations

import dataclasses

from django.db import transaction
from django.db.models import QuerySet

from draft import models
from draft.documents import Kept, checked_text
from draft.stamps import change_number, stamp
from lbconfig.model.firewall import Firewall, Rule

_rules = Kept(Rule)


def rows() -> QuerySet[models.Rule]:
    """In the order in which they are asked."""
    return models.Rule.objects.all()


def current() -> Firewall:
    stored = dict(rows().values_list("pk", "data"))
    _rules.forget_others(set(stored))
    return Firewall(tuple(_rules(key, data) for key, data in stored.items()))


def write(rule: Rule, row: models.Rule, user: str) -> models.Rule:
    """Store the rule in `row`; a new one comes last and gets an id. Raises SnapshotError."""
    with transaction.atomic():
        if row.position is None:  # a new one has none yet, which the stubs do not say
            last = models.Rule.objects.order_by("position").last()  # type: ignore[unreachable]
            row.position = last.position + 1 if last else 1
        stamp(row, user)
        if not row.pk:  # now it gets its id, which the document has as well
            row.data = "{}"
            row.save()
        row.data = checked_text(dataclasses.replace(rule, id=row.pk))
        row.save()
    return row


def remove(row: models.Rule) -> None:
    with transaction.atomic():
        change_number()
        row.delete()


def move(row: models.Rule, up: bool, user: str) -> bool:
    """Past the next rule for the same packets; False where there is none."""
    with transaction.atomic():
        beside = [one for one in rows() if one.wish.where == row.wish.where]
        place = [one.pk for one in beside].index(row.pk) + (-1 if up else 1)
        if not 0 <= place < len(beside):
            return False
        other = beside[place]
        row.position, other.position = other.position, row.position
        for one in (row, other):
            stamp(one, user)
            one.save()
    return True


def replace(firewall: Firewall, user: str) -> None:
    """Make the rules of the draft equal to these. Those that stay the same keep their version."""
    with transaction.atomic():
        old = {row.pk: row for row in rows()}
        wanted = {rule.id for rule in firewall.rules}
        for pk, row in old.items():
            if pk not in wanted:
                remove(row)
        for place, rule in enumerate(firewall.rules, start=1):
            row = old.get(rule.id) or models.Rule(pk=rule.id)
            if row.position == place and row.wish == rule:
                continue
            row.position = place
            write(rule, row, user)
