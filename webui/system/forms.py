"""What the pages of the system app take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.core.validators import RegexValidator

from accounts.forms import REQUIRED, CodeForm
from lbconfig.capacity.figures import LONGEST_WATCH, SHORTEST_WATCH, USUAL_WATCH
from lbconfig.joining import CABLE
from network.forms import PLAIN, Lines
from web.fields import CHOOSE

if TYPE_CHECKING:
    from system.joining import Boxes

__all__ = [
    "BetweenForm", "CodeForm", "HoldForm", "JoinForm", "PairForm", "PassphraseForm", "ResetForm", "RestoreForm",
    "SourceForm", "WatchForm",
]  # fmt: skip

SOURCE = r"^(upload:[0-9a-f]{32}|usb:[0-9a-f]{16})\Z"


class SourceForm(forms.Form):
    """Which bundle: what the applier gave a name to. It checks again."""

    source = forms.CharField(max_length=60, validators=[RegexValidator(SOURCE)])


class ChoiceForm(forms.Form):
    """How the update of both boxes goes on."""

    choice = forms.ChoiceField(choices=[(name, name) for name in ("stop", "go-on", "go-back", "leave")])


class WatchForm(forms.Form):
    """How long the box counts what it forwards."""

    seconds = forms.IntegerField(
        label="Seconds",
        min_value=SHORTEST_WATCH,
        max_value=LONGEST_WATCH,
        initial=USUAL_WATCH,
        help_text=f"{SHORTEST_WATCH} to {LONGEST_WATCH}. Let the clients send for at least as long.",
        error_messages=REQUIRED,
    )


class BetweenForm(forms.Form):
    """Two free ports that a cable joins."""

    sender = forms.ChoiceField(label="Send from", error_messages=REQUIRED)
    receiver = forms.ChoiceField(
        label="To", help_text="The port that is measured: what arrives there is forwarded.", error_messages=REQUIRED
    )

    def __init__(self, ports: list[str], *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        fields: dict[str, Any] = self.fields  # each has what its kind has
        for number, name in enumerate(("sender", "receiver")):
            fields[name].choices = [(port, port) for port in ports]
            fields[name].initial = ports[number] if number < len(ports) else ""


class HoldForm(forms.Form):
    """How long this box of the pair is held."""

    hours = forms.ChoiceField(
        label="For how long",
        choices=[("0", "Until somebody releases it"), ("1", "1 hour"), ("4", "4 hours"), ("24", "24 hours"),
                 ("168", "7 days")],
        help_text="After that time it stands by again by itself. A restart does not end a hold.",
        error_messages=CHOOSE | REQUIRED,
    )  # fmt: skip


MIN_PASSPHRASE, MAX_PASSPHRASE = 12, 128  # characters


def _passphrase(label: str, help_text: str = "", shortest: int = 1) -> forms.CharField:
    return forms.CharField(
        label=label,
        help_text=help_text,
        strip=False,
        min_length=shortest,
        max_length=MAX_PASSPHRASE,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        error_messages=REQUIRED,
    )


class PassphraseForm(forms.Form):
    """Of a new backup file."""

    passphrase = _passphrase(
        "Passphrase",
        f"At least {MIN_PASSPHRASE} characters. Without it nobody can open the file, including you.",
        MIN_PASSPHRASE,
    )
    again = _passphrase("Passphrase again")

    def clean(self):
        super().clean()
        data = self.cleaned_data
        if data.get("passphrase") and data.get("again") and data["passphrase"] != data["again"]:
            self.add_error("again", "The two passphrases are not the same.")
        return data


class RestoreForm(forms.Form):
    file = forms.FileField(label="Backup file", max_length=255, allow_empty_file=True, error_messages=REQUIRED)
    passphrase = _passphrase("Passphrase", "The one that was chosen when the file was made.")


class JoinForm(forms.Form):
    """Of the second box: where the first one is, and what it shows."""

    address = forms.CharField(
        label="Address of the other box",
        max_length=253,
        error_messages=REQUIRED,
        widget=forms.TextInput(attrs=PLAIN),
        help_text="The other box shows it beside the code.",
    )
    code = forms.CharField(
        label="Code",
        max_length=40,
        error_messages=REQUIRED,
        widget=forms.TextInput(attrs=PLAIN | {"autocapitalize": "characters"}),
        help_text="Sixteen letters and digits; hyphens and small letters do not matter.",
    )


class PairForm(forms.Form):
    """What becomes of two boxes: the fields are those of their proposal."""

    hostname = forms.CharField(
        label="Host name", max_length=253, error_messages=REQUIRED, widget=forms.TextInput(attrs=PLAIN)
    )

    def __init__(self, boxes: Boxes, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        choice, there = boxes.proposed(), [card.name for card in boxes.facts.cards]
        names = [boxes.first.network.hostname, boxes.facts.network.hostname]
        for number, (name, _) in enumerate(choice.cards):
            self.fields[f"card_{number}"] = forms.CharField(
                label=f"Card for {name}", widget=_select(there), error_messages=REQUIRED
            )
        for number, end in enumerate(choice.ends):
            for box in (0, 1):
                label = f"Own addresses of {names[box]} on {end.interface}"
                self.fields[f"own_{number}_{box}"] = Lines(label=label, rows=2, required=False)
        here = [*dict.fromkeys([*(end.interface for end in choice.ends), *(name for name, _ in choice.cards)])]
        made = [end.interface for end in choice.ends if end.interface not in dict(choice.cards)]
        for box, known in ((0, [*here, *there]), (1, [*there, *made])):
            self.fields[f"cable_{box}"] = forms.CharField(
                label=f"Interface of {names[box]}", widget=_select([*dict.fromkeys(known)]), error_messages=REQUIRED
            )
            self.fields[f"cable_address_{box}"] = forms.CharField(
                label="Address on the cable",
                max_length=50,
                required=False,
                widget=forms.TextInput(attrs=PLAIN),
                help_text=f"Empty: its first own address, or {CABLE[box]} on an unused card.",
            )


def _select(names: list[str]) -> forms.Select:
    """Which of them fit is lbconfig's to say."""
    return forms.Select(choices=[(name, name) for name in names])


class ResetForm(forms.Form):
    hostname = forms.CharField(
        label="Host name of this box",
        max_length=253,
        error_messages=REQUIRED,
        widget=forms.TextInput(attrs=PLAIN),
    )
