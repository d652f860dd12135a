"""One virtual service on the screen: its form, its rows, what another admin changed, what is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from django.forms import BaseFormSet

from balancing.forms import NEW_ROW, RealServerForm, RealServerFormSet, ServiceForm, shown
from balancing.presets import Preset
from draft import merge
from draft import store as draft
from draft.models import Service
from lbconfig.model.flat import defaults, flat, shaped
from lbconfig.model.snapshot import Forwarding, RealServer, Scheduler, Snapshot, VirtualService
from lbconfig.pair import one_armed
from lbconfig.validate import services as validate
from web.fields import ExplainedField

ROW_FIELDS = tuple(name for name in flat(RealServer(0, "", 0)) if name != "id")


def values_of(row: Service | None) -> dict[str, Any]:
    """What the form shows for a stored service; the defaults for a new one."""
    return shown(flat(row.wish)) if row else new_values()


def new_values() -> dict[str, Any]:
    """What the form of a new service begins with: source NAT on one arm, where plain NAT fails for near clients."""
    values = shown(defaults(VirtualService))
    return values | {"forwarding": Forwarding.SNAT} if one_armed(draft.current()) else values


def rows_of(row: Service | None) -> list[dict[str, Any]]:
    if row is None:
        return [dict(NEW_ROW), dict(NEW_ROW)]
    return [{name: value or None for name, value in flat(server).items()} for server in row.wish.real_servers]


@dataclass
class Editor:
    """`row` is the stored service, None for a new one."""

    row: Service | None
    form: ServiceForm
    servers: BaseFormSet[RealServerForm]
    base: str = ""  # what the stored service looked like when this admin opened it (merge.pack)
    version: int = 0
    notes: list[str] = field(default_factory=list)
    preset: Preset | None = None
    copy_of: str = ""  # the name of the service that a new one begins as

    @classmethod
    def show(cls, row: Service | None) -> Editor:
        return cls._unbound(row, values_of(row), rows_of(row), merge.pack(texts(values_of(row), rows_of(row))))

    @classmethod
    def begin(cls, preset: Preset) -> Editor:
        """A new service with what the preset fills in."""
        editor = cls._unbound(None, new_values() | preset.values, rows_of(None), "")
        editor.preset = preset
        return editor

    @classmethod
    def copy(cls, row: Service) -> Editor:
        """A new service that begins as this one; its name and its place have to be its own."""
        rows = [server | {"id": None} for server in rows_of(row)]
        editor = cls._unbound(None, values_of(row) | {"name": "", "enabled": True}, rows, "")
        editor.copy_of = row.name
        return editor

    @classmethod
    def of(cls, row: Service | None, data) -> Editor:
        """From the data of a POST request."""
        version = data.get("version", "")
        return cls(
            row=row,
            form=ServiceForm(data),
            servers=RealServerFormSet(data, prefix="servers"),
            base=data.get("base", ""),
            version=int(version) if version.isascii() and version.isdigit() and len(version) < 19 else 0,
        )

    @classmethod
    def _unbound(cls, row, values: dict, rows: list[dict], base: str) -> Editor:
        return cls(
            row=row,
            form=ServiceForm(initial=values),
            servers=RealServerFormSet(initial=rows, prefix="servers"),
            base=base,
            version=row.version if row else 0,
        )

    # --- without saving ---

    def entered(self) -> tuple[dict, list[dict]]:
        """What stands in the form, valid or not."""
        values = {name: self.form[name].value() for name in self.form.fields}
        rows = [{name: row[name].value() for name in row.fields} for row in self.servers.forms]
        return values, rows

    def with_another_row(self) -> Editor:
        values, rows = self.entered()
        editor = self._unbound(self.row, values, [*rows, dict(NEW_ROW)], self.base)
        editor.version = self.version
        editor.servers.forms[-1].fields["address"].widget.attrs["autofocus"] = True
        return editor

    def merged(self, user: str) -> Editor:
        """The form again, with what another admin saved meanwhile; saving it again is deliberate."""
        values, rows = self.entered()
        mine, stored_rows = texts(values, rows), rows_of(self.row)
        theirs = texts(values_of(self.row), stored_rows)
        base = merge.unpack(self.base)
        result = merge.merge(base, mine, theirs)
        who, when = merge.who_and_when(self.row, user)
        for name in values:
            values[name] = _typed(values[name], result.values[name])
        known = {str(row["id"]) for row in rows if row.get("id")}
        for row in rows:
            for name in ROW_FIELDS:
                key = f"server {row.get('id')} {name}"
                if key in result.taken:
                    row[name] = _typed(row[name], result.values[key])
        added = [
            row for row in stored_rows if str(row["id"]) not in known and f"server {row['id']} address" not in base
        ]
        editor = self._unbound(self.row, values, rows + added, merge.pack(theirs))
        editor._note_fields(result, merge.changed_to(who), when)
        editor._note_rows(result, base, theirs, added, who, when)
        editor.notes.append(merge.saved_meanwhile(who, "virtual service", when))
        return editor

    def _note_fields(self, result: merge.Merged, start: str, when: str) -> None:
        fields: dict[str, Any] = self.form.fields  # `note` and `clash` are for the template
        for name, form_field in fields.items():
            if name in result.taken:
                form_field.note = f"{start} {_words(form_field, result.taken[name])} {when}."
            elif name in result.clashes:
                form_field.note = (
                    f"{start} {_words(form_field, result.clashes[name])} {when}; you entered something else."
                )
                form_field.clash = True

    def _note_rows(self, result, base, theirs, added: list[dict], who: str, when: str) -> None:
        new = {str(row["id"]) for row in added}
        for row in self.servers.forms:
            key = str(row.initial.get("id") or "")
            if key in new:
                row.note = f"{who} added this server {when}."
            elif key and f"server {key} address" in base and f"server {key} address" not in theirs:
                row.note = f"{who} removed this server {when}. It comes back when you save, unless you remove it too."
            else:
                found = result.taken | result.clashes
                changed = [
                    f"{name} to {_words(row.fields[name], found[k])}"
                    for name in ROW_FIELDS
                    if (k := f"server {key} {name}") in found
                ]
                if changed:
                    row.note = f"{who} changed {', '.join(changed)} {when}."

    def taken_back(self, removal, user: str) -> Editor:
        """Somebody removed the service meanwhile: what was entered is kept, saving adds it again."""
        values, rows = self.entered()
        editor = self._unbound(None, values, [row | {"id": None} for row in rows], "")
        who, when = merge.who_and_when(removal, user)
        editor.notes.append(f"{who} removed this virtual service {when}. Save to add it again as it stands here.")
        return editor

    # --- saving ---

    def is_valid(self, snapshot: Snapshot) -> bool:
        """Check types, then every rule of lbconfig against the draft with this service in it."""
        if not (self.form.is_valid() & self.servers.is_valid()):
            return False
        self._report(snapshot)
        return not self.form.errors and not any(row.errors for row in self.servers.forms)

    def wish(self, snapshot: Snapshot) -> VirtualService:
        """The service as entered; new objects get the next free ids, which stand for "new"."""
        key = self.row.pk if self.row else 1 + max((one.id for one in snapshot.services), default=0)
        return self.form.service(key, (server for _, server in self._entered_servers(snapshot)))

    def _entered_servers(self, snapshot: Snapshot) -> Iterator[tuple[int, RealServer]]:
        """(index of the row, server); an id counts only if it belongs to this very service."""
        known = {server.id for server in self.row.wish.real_servers} if self.row else set()
        new = 1 + max((server.id for one in snapshot.services for server in one.real_servers), default=0)
        entered = self.form.cleaned_data
        by_mark = entered["more_ports"] or entered["more_addresses"] or entered["protocol"].by_mark
        for index, row in enumerate(self.servers.forms):
            data = row.cleaned_data
            if data.get("remove") or row.blank:
                continue
            key = data["id"] if data["id"] in known else new + index
            known.discard(key)
            port = (0 if by_mark else entered["port"]) if data["port"] is None else data["port"]
            yield index, shaped(RealServer, {name: data[name] for name in ROW_FIELDS}, id=key, port=port)

    def _report(self, snapshot: Snapshot) -> None:
        """Put every problem that this service has, or newly causes elsewhere, beside its field."""
        wished = self.wish(snapshot)
        row_of = {server.id: index for index, server in self._entered_servers(snapshot)}
        before = set(validate.validate(snapshot))
        # last in line: of two services with one name or address, lbconfig names the later one
        for problem in validate.validate(with_service(snapshot, wished, last=True)):
            match = PATH.match(problem.path)
            if match and int(match["service"]) == wished.id:
                if match["server"] and int(match["server"]) in row_of:
                    form = self.servers.forms[row_of[int(match["server"])]]
                    _add(form, match["field"], problem)
                else:
                    _add(self.form, match["field"].replace(".", "_"), problem)
            elif problem not in before:
                self.form.add_error(None, f"{problem}")

    def save(self, user: str, snapshot: Snapshot) -> Service:
        return draft.write_service(self.wish(snapshot), self.row or Service(), user, new_ids=True)

    # --- shown beside the form ---

    def preview(self, snapshot: Snapshot) -> VirtualService | None:
        """The service as it stands in the form, for the picture; None while it has no sense yet."""
        if self.form.is_bound:
            good = self.form.is_valid() and self.servers.is_valid()
            return self.wish(snapshot) if good else None
        return self.row.wish if self.row else None


PATH = re.compile(
    r"services\[id=(?P<service>\d+)\](?:\.real_servers\[id=(?P<server>\d+)\])?(?:\.(?P<field>[a-z_.]+))?$"
)


def _add(form, name: str | None, problem) -> None:
    """Beside its field where the form has it, otherwise above the form."""
    message = problem.message[:1].upper() + problem.message[1:]
    if not message.endswith((".", "?", "!")):
        message += "."
    if name in form.fields:
        form.add_error(name, message)
    else:
        form.add_error(None, f"{problem.field}: {problem.message}" if problem.field else message)


def with_service(snapshot: Snapshot, service: VirtualService, last: bool = False) -> Snapshot:
    others = [one for one in snapshot.services if one.id != service.id]
    together = [*others, service]
    return replace(snapshot, services=tuple(together if last else sorted(together, key=lambda one: one.id)))


def texts(values: dict, rows: list[dict]) -> dict[str, str]:
    """As draft.merge compares it; rows are told apart by their ids, new ones have none."""
    found = {name: _text(value) for name, value in values.items()}
    for row in rows:
        if row.get("id"):
            found |= {f"server {row['id']} {name}": _text(row.get(name)) for name in ROW_FIELDS}
    return found


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value).strip()


def _typed(old: object, text: str) -> object:
    return text == "yes" if isinstance(old, bool) else text


def _words(form_field, text: str) -> str:
    """A value as a person reads it: "Least connections (lc)", "“web”", "nothing"."""
    if isinstance(form_field, ExplainedField):
        for value, words in form_field.words.items():
            if str(value) == text:
                return f"{words.long} ({value})" if isinstance(value, Scheduler) else words.long
    return f"“{text}”" if text else "nothing"
