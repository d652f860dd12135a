"""What stands under a review, and on the pages of the history."""

from django import forms

from changes import revisions
from lbconfig.diff.cutoff import LONGEST, SHORTEST, USUAL

COMMENT = 200  # characters


class CommentForm(forms.Form):
    comment = forms.CharField(
        label="Comment",
        required=False,
        max_length=COMMENT,
        help_text="Why you do this, for the history. May be empty.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    confirm_within = forms.IntegerField(
        label="Go back unless confirmed within (seconds)",
        required=False,
        min_value=SHORTEST,
        max_value=LONGEST,
        help_text=f"{SHORTEST} to {LONGEST}. Empty: {USUAL} where the change may cut you off, otherwise no question.",
        widget=forms.NumberInput(attrs={"placeholder": USUAL}),
    )
    decide = forms.BooleanField(
        label="Let me look first",
        required=False,
        help_text="You confirm with a click. Otherwise the page confirms as soon as it has reached the box again.",
    )

    def clean_comment(self) -> str:
        comment = self.cleaned_data["comment"]
        if not comment.isprintable():
            raise forms.ValidationError("Use letters, digits and punctuation only.")
        return comment


class ApplyForm(CommentForm):
    digest = forms.RegexField(r"^[0-9a-f]{64}$", widget=forms.HiddenInput)
    base = forms.IntegerField(required=False, min_value=0, max_value=2**31, widget=forms.HiddenInput)


class KeepingForm(forms.Form):
    revisions = forms.IntegerField(
        label="How many are kept",
        min_value=revisions.LEAST,
        max_value=revisions.MOST,
        help_text=f"{revisions.LEAST} to {revisions.MOST}; the oldest go first.",
    )


class OutlookForm(forms.Form):
    """Which draft the admin looked at."""

    counter = forms.IntegerField(min_value=0, max_value=2**63 - 1)


class ImportForm(forms.Form):
    """A file or a pasted text; `json` is what was read, `name` what to call it."""

    file = forms.FileField(label="File", required=False, max_length=200, allow_empty_file=True)
    text = forms.CharField(
        label="Or paste it here",
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 6, "spellcheck": "false", "class": "code"}),
    )

    def clean(self):
        super().clean()
        data = self.cleaned_data
        file, text = data.get("file"), data.get("text", "")
        if file and text.strip():
            raise forms.ValidationError("Choose a file or paste a text, not both.")
        if not file and not text.strip():
            raise forms.ValidationError("Choose a file, or paste the text of one.")
        data["json"], data["name"] = (_decoded(file), _printable(file.name)) if file else (text, "the pasted text")
        return data


def _decoded(file) -> str:
    try:
        return file.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise forms.ValidationError(f"This is not UTF-8 text: byte {error.start} does not fit.") from None


def _printable(name: str) -> str:
    """Somebody's name of a file: short, and nothing in it acts."""
    return "".join(letter if letter.isprintable() else "?" for letter in name)[:80] or "the file"
