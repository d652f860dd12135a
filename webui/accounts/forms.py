"""Log in, set up, change the password."""

from typing import Any

from django import forms
from django.contrib.auth import get_user_model, password_validation
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.contrib.auth.validators import ASCIIUsernameValidator
from django.core.exceptions import ValidationError

from accounts import credentials, limits
from web.fields import FILL_IN

REQUIRED = {"required": FILL_IN}
MAX_PASSWORD = 128  # characters


def _password(label: str, help_text: str = "", new: bool = True) -> forms.CharField:
    attributes = {"autocomplete": "new-password" if new else "current-password"}
    return forms.CharField(
        label=label,
        help_text=help_text,
        strip=False,
        max_length=MAX_PASSWORD,
        widget=forms.PasswordInput(attrs=attributes),
        error_messages=REQUIRED,
    )


class LogInForm(AuthenticationForm):
    error_messages = {
        "invalid_login": "The user name or the password is wrong.",
        "inactive": "This account is switched off.",
    }

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        fields: dict[str, Any] = self.fields  # each has what its kind has
        fields["username"].label = "User name"
        fields["password"].max_length = MAX_PASSWORD
        for field in self.fields.values():
            field.error_messages.update(REQUIRED)

    def clean(self):
        """Raises limits.Refused, which is no fault of a field."""
        with limits.logging_in(self.request.META["REMOTE_ADDR"] if self.request else ""):
            return super().clean()


class ChangePasswordForm(PasswordChangeForm):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.fields["old_password"] = _password("Your password now", new=False)
        self.fields["new_password1"] = _password("New password", "At least 10 characters.")
        self.fields["new_password2"] = _password("New password again")

    # What Django's own gives back, the user, nobody here asks for.
    def save(self) -> int:  # type: ignore[override]
        """How many of the user's tokens ended with the old password."""
        return credentials.set_password(self.user, self.cleaned_data["new_password1"])


class CodeForm(forms.Form):
    code = forms.CharField(
        label="Set-up code",
        help_text="Shown on the console of the box; looks like ABCD-EFGH-JKMN.",
        max_length=40,
        error_messages=REQUIRED,
        widget=forms.TextInput(
            attrs={"autocomplete": "one-time-code", "autocapitalize": "characters", "autofocus": True}
        ),
    )

    def clean_code(self) -> str:
        """As the console shows it, whatever the case and the dashes that were typed."""
        letters = "".join(letter for letter in self.cleaned_data["code"].upper() if letter.isalnum())
        return "-".join(letters[place : place + 4] for place in range(0, len(letters), 4))


class SetUpForm(CodeForm):
    username = forms.CharField(
        label="User name",
        max_length=150,
        validators=[ASCIIUsernameValidator()],
        error_messages=REQUIRED,
        widget=forms.TextInput(attrs={"autocomplete": "username", "autocapitalize": "none"}),
    )
    password = _password("New password", "At least 10 characters.")
    again = _password("New password again")

    def clean(self):
        super().clean()
        data = self.cleaned_data
        password = data.get("password")
        if password and data.get("again") and password != data["again"]:
            self.add_error("again", "The two passwords are not the same.")
        if password:
            try:
                user = get_user_model()(username=data.get("username", ""))
                password_validation.validate_password(password, user)
            except ValidationError as error:
                self.add_error("password", error)
        return data
