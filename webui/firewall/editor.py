"""One rule on the screen: what is stored, what was entered, what is wrong."""

from __future__ import annotations

from dataclasses import replace

from draft import firewall as draft_firewall
from draft import models
from draft.pages import Page, check, finish
from firewall.forms import DEFAULTS, RuleForm, shown
from lbconfig.model.firewall import Firewall, Rule, Where
from lbconfig.model.snapshot import Snapshot


def page(row: models.Rule | None, data=None, where: str = "") -> Page:
    """`data`: of a POST request. `where`: what a new rule begins with."""
    if data is not None:
        return finish(Page(row, RuleForm(data)), data)
    if row is None:
        begins = {"where": where} if where in [*map(str, Where)] else {}
        return finish(Page(None, RuleForm(initial=DEFAULTS | begins)))
    return finish(Page(row, RuleForm(initial=shown(row.wish))))


def wished(page: Page, snapshot: Snapshot) -> Rule | None:
    """The rule as entered; None when a field is wrong, with the reason beside it."""
    if not page.form.is_valid():
        return None
    rules = snapshot.firewall.rules
    number = page.row.pk if page.row else 1 + max((one.id for one in rules), default=0)
    rule = page.form.wish(number)
    # Last: of two rules of one name lbconfig names the later one.
    others = tuple(one for one in rules if one.id != number)
    candidate = replace(snapshot, firewall=Firewall((*others, rule)))
    own = (f"firewall.rules[id={number}].", f"firewall.rules[{len(others)}].")  # the second: what is no text at all
    return rule if check(page, snapshot, candidate, own) else None


def save(page: Page, rule: Rule, user: str) -> models.Rule:
    return draft_firewall.write(rule, page.row if isinstance(page.row, models.Rule) else models.Rule(), user)
