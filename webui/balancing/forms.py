"""The form of a virtual service and its real servers.

The fields only give a value its type; what is allowed is asked of lbconfig.validate.
"""

from django import forms

from lbconfig import names
from lbconfig.snapshot import CheckKind, Forwarding, HealthCheck, Protocol, Scheduler

FILL_IN = "Please fill this in."
WHOLE_NUMBER = "This must be a whole number."
MAX_NUMBER = 2**31 - 1
MAX_SERVERS = 1000  # rows of one form


def _choices(table) -> list[tuple[str, str]]:
    return [(str(value), name.long) for value, name in table.items()]


def _enum(kind, table, **kwargs) -> forms.TypedChoiceField:
    field = forms.TypedChoiceField(
        coerce=kind,
        choices=_choices(table),
        widget=forms.RadioSelect,
        error_messages={"required": "Please choose one.", "invalid_choice": "Please choose one of these."},
        **kwargs,
    )
    field.sentences = {str(value): name.help for value, name in table.items()}
    return field


def _number(label: str, **kwargs) -> forms.IntegerField:
    field = forms.IntegerField(
        label=label,
        max_value=MAX_NUMBER,
        min_value=-MAX_NUMBER,
        error_messages={"required": FILL_IN, "invalid": WHOLE_NUMBER},
        widget=forms.TextInput(attrs={"inputmode": "numeric", "autocomplete": "off"}),
        **kwargs,
    )
    return field


def _text(label: str, limit: int, **kwargs) -> forms.CharField:
    attributes = {"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"} | kwargs.pop("attrs", {})
    return forms.CharField(
        label=label,
        max_length=limit,
        widget=forms.TextInput(attrs=attributes),
        error_messages={"required": FILL_IN, "max_length": f"This is longer than {limit} characters."},
        **kwargs,
    )


class ServiceForm(forms.Form):
    name = _text("Name", 64, help_text="For yourself, such as “web shop”.")
    address = _text(
        "Virtual address (VIP)", 45, help_text="Where clients connect.", attrs={"placeholder": "10.0.2.100"}
    )
    port = _number("Port")
    protocol = _enum(Protocol, names.PROTOCOLS, label="Protocol")
    scheduler = _enum(Scheduler, names.SCHEDULERS, label="Which server gets the next connection")
    forwarding = _enum(Forwarding, names.FORWARDING, label="Forwarding")
    check_kind = _enum(CheckKind, names.CHECKS, label="How the box asks a server whether it is up")
    check_path = _text(
        "Path", 200, required=False, attrs={"placeholder": "/"}, help_text="What is requested, such as /health."
    )
    check_expect = _text(
        "Expected text",
        200,
        required=False,
        help_text="The answer must contain it. Empty: any successful answer counts.",
    )
    check_host = _text("Host name", 253, required=False, help_text="Sent as Host. Empty: the server's address.")
    check_port = _number("Port of the check", required=False, help_text="Empty: the port of the server itself.")
    check_interval = _number("Seconds between checks")
    check_timeout = _number("Seconds to wait for an answer")
    check_failures = _number("Failed checks until a server leaves")

    def health_check(self) -> HealthCheck:
        """Of the cleaned data."""
        data = self.cleaned_data
        return HealthCheck(
            kind=data["check_kind"],
            port=data["check_port"] or 0,
            path=data["check_path"] or "/",
            host=data["check_host"],
            expect=data["check_expect"],
            interval=data["check_interval"],
            timeout=data["check_timeout"],
            failures=data["check_failures"],
        )


class RealServerForm(forms.Form):
    """One row. A row without address and port is an empty one, and no mistake."""

    id = forms.IntegerField(required=False, widget=forms.HiddenInput, max_value=2**62, min_value=0)
    address = _text("Address", 45, required=False, attrs={"placeholder": "10.2.0.11"})
    port = _number("Port", required=False)
    weight = _number("Weight", required=False)
    enabled = forms.BooleanField(label="Enabled", required=False)
    remove = forms.BooleanField(label="Remove", required=False)

    @property
    def blank(self) -> bool:
        data = self.cleaned_data
        return not self.errors and not data.get("address") and data.get("port") is None

    def clean(self):
        data = super().clean()
        if data.get("remove"):
            self._errors.clear()
            return data
        if not self.errors and (data.get("address") or data.get("port") is not None):
            for name in ("address", "port", "weight"):
                if data.get(name) in ("", None):
                    self.add_error(name, FILL_IN)
        return data


RealServerFormSet = forms.formset_factory(RealServerForm, extra=0, max_num=MAX_SERVERS, absolute_max=MAX_SERVERS)

DEFAULTS = {
    "protocol": "tcp",
    "scheduler": "wlc",
    "forwarding": "nat",
    "check_kind": "connect",
    "check_path": "/",
    "check_interval": 2,
    "check_timeout": 2,
    "check_failures": 2,
}
NEW_ROW = {"weight": 1, "enabled": True}
