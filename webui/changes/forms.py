"""What stands under a review."""

from django import forms


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

    def clean_comment(self) -> str:
        comment = self.cleaned_data["comment"]
        if not comment.isprintable():
            raise forms.ValidationError("Please use letters, digits and punctuation only.")
        return comment
