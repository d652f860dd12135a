"""The network page and the access page: what is stored, what was entered, what another admin changed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from django.forms import BooleanField

from changes import draft, merge
from lbconfig import validate
from lbconfig.snapshot import Snapshot
from network.forms import AccessForm, InterfaceFormSet, NetworkForm, management_wish, network_wish
from network.models import Interface, Management, Network

INTERFACE = re.compile(r"network\.interfaces\[(?P<name>.+)\]\.(?P<field>[a-z]+)$")


@dataclass
class Page:
    """One form that is saved as a whole, with its rows (none for the access page)."""

    row: Network | Management | None
    form: NetworkForm | AccessForm
    rows: list = field(default_factory=list)
    formset: InterfaceFormSet | None = None
    base: str = ""
    version: int = 0
    notes: list[str] = field(default_factory=list)
    consequences: list[str] = field(default_factory=list)

    def flat(self) -> dict[str, str]:
        found = {name: _text(self.form, name) for name in self.form.fields}
        for row in self.rows:
            name = row["name"].value()
            found |= {f"{name} {key}": _text(row, key) for key in ("dhcp", "addresses")}
        return found

    @property
    def stale(self) -> bool:
        return self.row is not None and self.version != self.row.version

    @property
    def good(self) -> bool:
        return not self.form.errors and not any(row.errors for row in self.rows)


def network_page(status: dict | None, data=None) -> Page:
    row = Network.objects.filter(pk=draft.ONLY_ROW).first()
    if data is not None:
        formset = InterfaceFormSet(data, prefix="interfaces")
        return _finish(Page(row, NetworkForm(data), formset.forms, formset), data)
    stored = {entry.name: entry for entry in Interface.objects.all()}
    found = [entry["name"] for entry in (status or {}).get("interfaces", []) if entry["name"] != "lo"]
    initial = [
        {
            "name": name,
            "dhcp": name in stored and stored[name].dhcp,
            "addresses": stored[name].addresses if name in stored else [],
        }
        for name in [*stored, *(name for name in found if name not in stored)]
    ]
    formset = InterfaceFormSet(initial=initial, prefix="interfaces")
    form = NetworkForm(initial={"hostname": row.hostname, "gateway": row.gateway} if row else None)
    return _finish(Page(row, form, formset.forms, formset))


def access_page(data=None) -> Page:
    row = Management.objects.filter(pk=draft.ONLY_ROW).first()
    form = AccessForm(data) if data is not None else AccessForm(initial={"allow": row.allow if row else []})
    return _finish(Page(row, form), data)


def _finish(page: Page, data=None) -> Page:
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
        rows = [_initial(row, f"{row['name'].value()} ", result) for row in fresh.rows]
        page.formset = InterfaceFormSet(initial=rows, prefix="interfaces")
        page.rows = page.formset.forms
    page.base, page.version = merge.pack(theirs), fresh.row.version
    for form in (page.form, *page.rows):
        _note_fields(
            form, "" if form is page.form else f"{form.initial['name']} ", result, f"{who} changed this to", when
        )
    page.notes.append(f"{who} saved this page {when}, after you had opened it. Nothing of yours is saved yet.")
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


def check_network(page: Page, snapshot: Snapshot, client: str) -> Snapshot | None:
    """The draft with this network; None when a field is wrong, with the reason beside it."""
    if not (page.form.is_valid() & page.formset.is_valid()):
        return None
    known = {entry.name for entry in snapshot.network.interfaces}
    candidate = replace(snapshot, network=network_wish(page.form, page.formset, known))
    return _check(page, snapshot, candidate, client, "network.")


def check_access(page: Page, snapshot: Snapshot, client: str) -> Snapshot | None:
    if not page.form.is_valid():
        return None
    candidate = replace(snapshot, management=management_wish(page.form))
    return _check(page, snapshot, candidate, client, "management.")


def _check(page: Page, before: Snapshot, candidate: Snapshot, client: str, own: str) -> Snapshot | None:
    """Problems of this page are refused; those it causes elsewhere are told, and stop the apply later."""
    known = set(validate.validate(before))
    for problem in validate.validate(candidate):
        if problem.path.startswith(own):
            _beside_field(page, problem)
        elif problem not in known:
            page.consequences.append(f"{problem}.")
    if page.good and client and (problem := validate.admin_problem(candidate, client)):
        _beside_field(page, problem)
    return candidate if page.good else None


def _beside_field(page: Page, problem) -> None:
    message = f"{problem.message[:1].upper()}{problem.message[1:]}."
    if match := INTERFACE.match(problem.path):
        for row in page.rows:
            if row["name"].value() == match["name"]:
                row.add_error(match["field"] if match["field"] in row.fields else None, message)
                return
    page.form.add_error(problem.field if problem.field in page.form.fields else None, message)


def _text(form, name: str) -> str:
    """The value as a person sees it, for comparing."""
    value = form[name].value()
    if isinstance(form.fields[name], BooleanField):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return "\n".join(value)
    return "\n".join(str(value or "").split())


def _typed(form_field, text: str) -> object:
    return text == "yes" if isinstance(form_field, BooleanField) else text
