"""The form that makes a token."""

from __future__ import annotations

from django import forms

from accounts.scopes import SCOPES
from accounts.tokens import MAX_NAME, MAX_NETWORKS
from lbconfig.validate.fields import allowed_network
from web.fields import FILL_IN

DAYS = {"30": "a month", "90": "three months", "365": "a year", "": "never"}
MAX_TEXT = MAX_NETWORKS * 50


class Networks(forms.CharField):
    """Separated by commas, blanks or lines; cleans to a list."""

    def clean(self, value) -> list[str]:
        found = super().clean(value).replace(",", " ").split()
        if len(found) > MAX_NETWORKS:
            raise forms.ValidationError(f"Not more than {MAX_NETWORKS} networks.")
        for network in found:
            if sentence := allowed_network(network):
                raise forms.ValidationError(f"{sentence[:1].upper()}{sentence[1:]}.")
        return found


class TokenForm(forms.Form):
    name = forms.CharField(
        label="What is it for?",
        help_text="A name by which you know it again, for instance the program that uses it.",
        max_length=MAX_NAME,
        error_messages={"required": FILL_IN},
    )
    scopes = forms.MultipleChoiceField(
        label="What may it do?",
        choices=[(scope, words) for scope, (words, _) in SCOPES.items()],
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one."},
    )
    days = forms.TypedChoiceField(
        label="It ends after",
        choices=list(DAYS.items()),
        required=False,
        coerce=int,
        empty_value=None,
        initial="365",
        help_text="So one that is forgotten stops by itself.",
    )
    networks = Networks(
        label="It counts only from",
        required=False,
        max_length=MAX_TEXT,
        help_text="Networks such as 192.0.2.0/24, or 192.0.2.7/32 for one machine. Empty: from wherever the web page "
        "may be opened.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    def clean_name(self) -> str:
        name = self.cleaned_data["name"]
        if not name.isprintable():
            raise forms.ValidationError("Only characters that can be printed.")
        return name

    @property
    def choices(self) -> list[dict]:
        """Each scope with its sentence, as the page shows them."""
        chosen = self["scopes"].value() or []
        return [
            {"value": scope, "label": label, "words": words, "checked": scope in chosen}
            for scope, (label, words) in SCOPES.items()
        ]
