"""Fields of forms that several pages have. They only give a value its type; what is allowed, lbconfig says."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from django import forms

from lbconfig.model import ports
from lbconfig.model.names import Name
from lbconfig.model.snapshot import Request

FILL_IN = "Fill this in."
CHOOSE = {"required": "Choose one.", "invalid_choice": "Choose one of these."}
WHOLE_NUMBER = "This must be a whole number."
PORT_NUMBER = "This must be a port number, or the name of a service such as https."
PORT_RANGE = "Must be 1 to 65535."  # of a number that is too large for any field
MAX_NUMBER = 2**31 - 1


class TextField(forms.CharField):
    """Browsers send CR LF at the end of each line."""

    def prepare_value(self, value):
        return value.replace("\r\n", "\n") if isinstance(value, str) else value

    def to_python(self, value):
        return str(super().to_python(value)).replace("\r\n", "\n")


class AddressField(forms.CharField):
    """Any spelling of an IP address becomes the usual one; what is no address stays for lbconfig to refuse."""

    def to_python(self, value):
        text = str(super().to_python(value))
        try:
            return str(ipaddress.ip_address(text))
        except ValueError:
            return text


class AddressesField(forms.CharField):
    """Addresses separated by commas or blanks; cleans to a tuple, each in its usual spelling."""

    def prepare_value(self, value):
        return value if isinstance(value, str) else ", ".join(value or ())

    def to_python(self, value):
        one = AddressField()
        return tuple(one.to_python(text) for text in str(super().to_python(value)).replace(",", " ").split())


class TagsField(forms.CharField):
    """Words separated by commas; cleans to a tuple."""

    def prepare_value(self, value):
        return value if isinstance(value, str) else ", ".join(value or ())

    def to_python(self, value):
        return tuple(" ".join(tag.split()) for tag in str(super().to_python(value)).split(",") if tag.strip())


class RequestsField(TextField):
    """Requests of a web check, one per line: a path, then perhaps the text that is expected; cleans to a tuple."""

    def prepare_value(self, value):
        if isinstance(value, str):
            return super().prepare_value(value)
        return "\n".join(f"{one.path} {one.expect}".rstrip() for one in value or ())

    def to_python(self, value):
        lines = (line.strip().partition(" ") for line in super().to_python(value).splitlines() if line.strip())
        return tuple(Request(path, expect.strip()) for path, _, expect in lines)


class PortsField(forms.CharField):
    """In the usual spelling; what is no list of ports stays for lbconfig to refuse."""

    def to_python(self, value):
        text = str(super().to_python(value))
        try:
            return ports.text(ports.parse(text))
        except ValueError:
            return text


class PortField(forms.IntegerField):
    """A number, or the name of a service: "https" is 443."""

    default_error_messages = dict.fromkeys(("max_value", "min_value"), PORT_RANGE)

    def to_python(self, value):
        return super().to_python(ports.number(value) if isinstance(value, str) else value)


class ExplainedField(forms.TypedChoiceField):
    """A choice with a sentence about each value, for the template."""

    sentences: dict[str, str]
    words: Mapping[Any, Name]  # of each value


def enum_field(kind, table: Mapping[Any, Name], widget=forms.RadioSelect, none: str = "", **kwargs) -> ExplainedField:
    """One of an enumeration by the names of its values; `none`: what is said for no choice at all."""
    field = ExplainedField(
        coerce=kind,
        choices=[*([("", none)] if none else []), *((str(value), name.long) for value, name in table.items())],
        widget=widget,
        error_messages=CHOOSE,
        **kwargs,
    )
    field.sentences = {str(value): name.help for value, name in table.items() if name.help}
    field.words = table
    return field


def port_field(label: str, placeholder: str = "", **kwargs) -> forms.IntegerField:
    return number_field(label, placeholder, PortField, PORT_NUMBER, **kwargs)


def number_field(
    label: str,
    placeholder: str = "",
    kind: type[forms.IntegerField] = forms.IntegerField,
    invalid: str = WHOLE_NUMBER,
    **kwargs,
) -> forms.IntegerField:
    return kind(
        label=label,
        max_value=MAX_NUMBER,
        min_value=-MAX_NUMBER,
        error_messages={"required": FILL_IN, "invalid": invalid},
        widget=forms.TextInput(
            attrs={"autocomplete": "off"}
            | ({} if kind is PortField else {"inputmode": "numeric"})  # a name needs letters
            | ({"placeholder": placeholder} if placeholder else {})
        ),
        **kwargs,
    )


def text_field(label: str, limit: int, kind: type[forms.CharField] = forms.CharField, **kwargs) -> forms.CharField:
    attributes = {"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"} | kwargs.pop("attrs", {})
    return kind(
        label=label,
        max_length=limit,
        widget=forms.TextInput(attrs=attributes),
        error_messages={"required": FILL_IN, "max_length": f"This is longer than {limit} characters."},
        **kwargs,
    )


def unseen_field(label: str, help_text: str) -> forms.CharField:
    """Typed unseen, but kept when the form comes back with an error."""
    return forms.CharField(
        label=label,
        max_length=200,
        required=False,
        strip=False,
        widget=forms.PasswordInput(render_value=True, attrs={"autocomplete": "off"}),
        error_messages={"max_length": "This is longer than 200 characters."},
        help_text=help_text,
    )
