"""Pages of the draft that are one form: what is stored, what was entered, what another admin changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.forms import BaseFormSet, BooleanField

from draft import merge
from draft.models import Tracked
from lbconfig.model.problem import Problem
from lbconfig.model.snapshot import Snapshot
from lbconfig.validate import services as validate


@dataclass
class Page:
    """One form that is saved as a whole, with its rows where it has any."""

    row: Tracked | None
    form: Any  # of the page's own kind
    rows: list = field(default_factory=list)
    formset: BaseFormSet | None = None
    base: str = ""
    version: int = 0
    notes: list[str] = field(default_factory=list)
    consequences: list[str] = field(default_factory=list)

    def flat(self) -> dict[str, str]:
        found = {name: _text(self.form, name) for name in self.form.fields}
        for row in self.rows:
            name = row["name"].value()
            found |= {f"{name} {key}": _text(row, key) for key in row.fields if key != "name"}
        return found

    @property
    def stale(self) -> bool:
        return self.row is not None and self.version != self.row.version

    @property
    def good(self) -> bool:
        return not self.form.errors and not any(row.errors for row in self.rows)


def finish(page: Page, data=None) -> Page:
    """With what the page carries along; `data`: of a POST request."""
    if data is None:
        page.base, page.version = merge.pack(page.flat()), page.row.version if page.row else 0
    else:
        version = data.get("version", "")
        page.base = data.get("base", "")
        page.version = int(version) if version.isascii() and version.isdigit() and len(version) < 19 else 0
    return page


def merged(mine: Page, fresh: Page, user: str) -> Page:
    """`fresh`, as it is stored now, with what this admin entered in `mine`, and a note at each difference."""
    theirs = fresh.flat()
    result = merge.merge(merge.unpack(mine.base), mine.flat(), theirs)
    who, when = merge.who_and_when(fresh.row, user)
    page = Page(fresh.row, type(fresh.form)(initial=_initial(fresh.form, "", result)))
    if fresh.formset is not None:
        known = {row["name"].value() for row in fresh.rows}
        base = merge.unpack(mine.base)
        added = [
            row
            for row in mine.rows
            if row["name"].value() not in known and not any(key.startswith(f"{row['name'].value()} ") for key in base)
        ]
        rows = [_initial(row, f"{row['name'].value()} ", result) for row in (*fresh.rows, *added)]
        page.formset = type(fresh.formset)(initial=rows, prefix=fresh.formset.prefix)
        page.rows = page.formset.forms
    page.base, page.version = merge.pack(theirs), fresh.row.version if fresh.row else 0
    for form in (page.form, *page.rows):
        prefix = "" if form is page.form else f"{form.initial['name']} "
        _note_fields(form, prefix, result, merge.changed_to(who), when)
    page.notes.append(merge.saved_meanwhile(who, "page", when))
    return page


def _initial(form, prefix: str, result: merge.Merged) -> dict:
    return {
        name: _typed(form_field, result.values.get(prefix + name, _text(form, name)))
        for name, form_field in form.fields.items()
    }


def _note_fields(form, prefix: str, result: merge.Merged, start: str, when: str) -> None:
    for name, form_field in form.fields.items():
        key = prefix + name
        theirs = result.taken.get(key, result.clashes.get(key))
        if theirs is not None:
            words = {"yes": "on", "no": "off", "": "nothing"}.get(theirs, theirs.replace("\n", ", "))
            end = "; you entered something else." if key in result.clashes else "."
            form_field.note = f"{start} {words} {when}{end}"


def check(
    page: Page,
    before: Snapshot,
    candidate: Snapshot,
    own: str | tuple[str, ...],
    beside: Callable[[Page, Problem, str], bool] | None = None,
) -> Snapshot | None:
    """The candidate; None when something on this page is wrong, with the reason beside its field.

    `own`: how the paths of this page's problems begin. Problems that it causes elsewhere are told, and stop the apply
    later. `beside` puts a sentence beside a field of a row; False where it belongs to none.
    """
    known = set(validate.validate(before))
    for problem in validate.validate(candidate):
        if problem.path.startswith(own):
            add(page, problem, beside)
        elif problem not in known:
            page.consequences.append(f"{problem}.")
    return candidate if page.good else None


def add(page: Page, problem: Problem, beside: Callable[[Page, Problem, str], bool] | None = None) -> None:
    message = f"{problem.message[:1].upper()}{problem.message[1:]}."
    if not (beside and beside(page, problem, message)):
        page.form.add_error(problem.field if problem.field in page.form.fields else None, message)


def _text(form, name: str) -> str:
    """The value as a person sees it, for comparing."""
    value, form_field = form[name].value(), form.fields[name]
    if isinstance(form_field, BooleanField):
        return "yes" if value else "no"
    comparable = getattr(form_field, "comparable", None)
    return comparable(value) if comparable else str(value or "").replace("\r\n", "\n").strip()


def _typed(form_field, text: str) -> object:
    return text == "yes" if isinstance(form_field, BooleanField) else text
