"""What changes in the admin's own firewall rules, in plain words."""

from __future__ import annotations

from collections.abc import Iterator

from lbconfig.diff import rule_words
from lbconfig.diff.change import Change
from lbconfig.model.firewall import Action, Firewall, Rule, Where

CLIENTS = "This can block clients of virtual services, even in open connections."
STAYS = "Open connections continue until they end."


def firewall(old: Firewall, new: Firewall) -> Iterator[Change]:
    before = {rule.id: rule for rule in old.rules}
    after = {rule.id for rule in new.rules}
    for rule in new.rules:
        if rule.id not in before:
            off = () if rule.enabled else ("It is switched off.",)
            yield Change("added", _object(rule), (f"{_sentence(rule)}.", *off), _impact(rule))
        elif before[rule.id] != rule:
            yield Change("changed", _object(rule), tuple(_changes(before[rule.id], rule)), _impact(rule))
    for rule in old.rules:
        if rule.id not in after:
            allowed = rule.enabled and rule.action is Action.ALLOW and rule.where is not Where.SERVICES
            yield Change("removed", _object(rule), (f"It was: {_sentence(rule)}.",), STAYS if allowed else None)
    kept = [[rule.id for rule in one.rules if rule.id in before and rule.id in after] for one in (old, new)]
    if kept[0] != kept[1]:
        order = ", ".join(f"'{rule.name}'" for rule in new.rules[:10])
        more = f" and {len(new.rules) - 10} more" if len(new.rules) > 10 else ""
        yield Change("changed", "firewall rules", (f"Their order is now {order}{more}.",))


def _object(rule: Rule) -> str:
    return f"firewall rule '{rule.name}'"


def _sentence(rule: Rule) -> str:
    words = rule_words.sentence(rule)
    return f"{words[:1].upper()}{words[1:]}"


def _impact(rule: Rule) -> str | None:
    narrow = rule.action is not Action.ALLOW or rule.limit.rate
    return CLIENTS if rule.enabled and rule.where is Where.SERVICES and narrow else None


def _changes(old: Rule, new: Rule) -> Iterator[str]:
    if old.name != new.name:
        yield f"Name changes from '{old.name}' to '{new.name}'."
    if old.enabled != new.enabled:
        yield "It is switched on." if new.enabled else "It is switched off."
    before, after = _sentence(old), _sentence(new)
    if before != after:
        yield f"It was: {before}."
        yield f"It is now: {after}."
    for field, word in (("sources", "Source"), ("destinations", "Destination")):
        yield from _networks(word, getattr(old, field), getattr(new, field))
    if old.note != new.note:
        yield f"Note: '{new.note}'." if new.note else "The note is removed."


_MOST = 20  # networks that are named one by one


def _networks(word: str, old: tuple[str, ...], new: tuple[str, ...]) -> Iterator[str]:
    """What the sentence of the rule does not show, because the list is long."""
    if old == new or max(len(old), len(new)) <= 3:
        return
    had, has = set(old), set(new)
    lists = (
        (" is added", [one for one in new if one not in had]),
        (" is removed", [one for one in old if one not in has]),
    )
    for what, found in lists:
        yield from (f"{word} {one}{what}." for one in found[:_MOST])
        if len(found) > _MOST:
            yield f"And {len(found) - _MOST} more{what.replace(' is', ' are')}."
    if had == has:
        yield f"Only the order of the {word.lower()}s changes."
