"""What the pages of the system app take."""

from django import forms
from django.core.validators import RegexValidator

SOURCE = r"^(upload:[0-9a-f]{32}|usb:[0-9a-f]{16})\Z"


class SourceForm(forms.Form):
    """Which bundle: what the applier gave a name to. It checks again."""

    source = forms.CharField(max_length=60, validators=[RegexValidator(SOURCE)])
