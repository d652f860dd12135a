"""The text of the sorry page, which is the same for all services."""

from __future__ import annotations

from dataclasses import asdict, replace

from django import forms
from django.http import HttpResponse
from django.shortcuts import render

from draft import editing
from draft import store as draft
from draft.pages import Page, check, finish
from lbconfig.model.snapshot import FallbackKind, Snapshot, SorryPage
from lbconfig.render import sorry
from lbconfig.validate.fields import MAX_NOTE, MAX_PARAGRAPHS, MAX_TITLE
from web.fields import FILL_IN
from web.kept_input import keeps_input

SAVED = "Saved to the draft. The box shows it after you have reviewed and applied the changes."


class Paragraphs(forms.CharField):
    """One per line; cleans to a tuple of texts."""

    def prepare_value(self, value):
        return value if isinstance(value, str) else "\n".join(value or ())

    def comparable(self, value) -> str:
        return "\n".join(self.clean(self.prepare_value(value)))

    def clean(self, value) -> tuple[str, ...]:
        return tuple(line for text in super().clean(value).splitlines() if (line := text.strip()))


class SorryForm(forms.Form):
    title = forms.CharField(label="Title", max_length=MAX_TITLE, error_messages={"required": FILL_IN})
    paragraphs = Paragraphs(
        label="Text",
        max_length=MAX_PARAGRAPHS * MAX_NOTE,
        required=False,
        widget=forms.Textarea(attrs={"rows": 5}),
        help_text="Plain text; each line is a paragraph.",
    )


@keeps_input
def edit(request):
    return editing.edit(request, _page, _check, editing.part("sorry"), _show, then="sorry", saved=lambda _: SAVED)


def preview(request):
    """As it stands in the draft."""
    answer = HttpResponse(sorry.render(draft.current()))
    answer["Content-Security-Policy"] = "default-src 'none'; style-src 'unsafe-inline'"
    return answer


def _page(data=None) -> Page:
    row = draft.part("sorry")
    stored = draft.current().sorry
    form = SorryForm(data) if data is not None else SorryForm(initial=asdict(stored))
    return finish(Page(row, form), data)


def _check(page: Page, snapshot: Snapshot) -> Snapshot | None:
    if not page.form.is_valid():
        return None
    candidate = replace(snapshot, sorry=SorryPage(**page.form.cleaned_data))
    return check(page, snapshot, candidate, "sorry.")


def _show(request, page: Page, status: int = 200):
    uses = [one.name for one in draft.current().services if one.fallback.kind is FallbackKind.PAGE]
    return render(request, "balancing/sorry.html", {"page": page, "form": page.form, "uses": uses}, status=status)
