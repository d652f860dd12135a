"""What stands under a review."""

from django import forms

from lbconfig.cutoff import LONGEST, SHORTEST, USUAL


class ApplyForm(forms.Form):
    digest = forms.RegexField(r"^[0-9a-f]{64}$", widget=forms.HiddenInput)
    base = forms.IntegerField(required=False, min_value=0, max_value=2**31, widget=forms.HiddenInput)
    comment = forms.CharField(
        label="Comment",
        required=False,
        max_length=200,
        help_text="For the history: why you do this.",
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
        help_text="You confirm by a click. Otherwise the page does so, as soon as it has reached the box anew.",
    )

    def clean_comment(self) -> str:
        comment = self.cleaned_data["comment"]
        if not comment.isprintable():
            raise forms.ValidationError("Please use letters, digits and punctuation only.")
        return comment
