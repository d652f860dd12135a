"""What the pages of the system app take."""

from django import forms
from django.core.validators import RegexValidator

SOURCE = r"^(upload:[0-9a-f]{32}|usb:[0-9a-f]{16})\Z"


class SourceForm(forms.Form):
    """Which bundle: what the applier gave a name to. It checks again."""

    source = forms.CharField(max_length=60, validators=[RegexValidator(SOURCE)])


class TokenForm(forms.Form):
    name = forms.CharField(
        label="What is it for?",
        help_text="A name by which you know it again, for instance the program that uses it.",
        max_length=60,
        error_messages={"required": "Please fill this in."},
    )

    def clean_name(self) -> str:
        name = self.cleaned_data["name"]
        if not name.isprintable():
            raise forms.ValidationError("Only characters that can be printed.")
        return name
