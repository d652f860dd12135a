"""Host name, interfaces, gateway; and from where the web UI may be reached."""

from django import forms

from lbconfig.snapshot import Interface, Management, Network

FILL_IN = "Please fill this in."
PLAIN = {"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}
MAX_LINES = 100
MAX_INTERFACES = 64


class Lines(forms.CharField):
    """One entry a line; commas and spaces part them too. Cleans to a tuple of texts."""

    def __init__(self, **kwargs):
        rows = kwargs.pop("rows", 3)
        super().__init__(max_length=50 * MAX_LINES, widget=forms.Textarea(attrs={**PLAIN, "rows": rows}), **kwargs)

    def prepare_value(self, value):
        return value if isinstance(value, str) else "\n".join(value or ())

    def comparable(self, value) -> str:
        return "\n".join(self.prepare_value(value).split())

    def clean(self, value) -> tuple[str, ...]:
        entries = tuple(super().clean(value).replace(",", " ").split())
        if len(entries) > MAX_LINES:
            raise forms.ValidationError(f"These are more than {MAX_LINES} entries.")
        return entries


class NetworkForm(forms.Form):
    hostname = forms.CharField(
        label="Host name", max_length=253, widget=forms.TextInput(attrs=PLAIN), error_messages={"required": FILL_IN}
    )
    gateway = forms.CharField(
        label="Default gateway",
        max_length=45,
        required=False,
        widget=forms.TextInput(attrs=PLAIN),
        help_text="Empty: none, or the one that DHCP brings.",
    )
    gateway6 = forms.CharField(
        label="Default gateway of IPv6",
        max_length=45,
        required=False,
        widget=forms.TextInput(attrs=PLAIN),
        help_text="Empty: none. Router announcements are not listened to.",
    )


class InterfaceForm(forms.Form):
    name = forms.CharField(max_length=64, widget=forms.HiddenInput)
    dhcp = forms.BooleanField(label="Get an address by DHCP", required=False)
    addresses = Lines(
        label="Fixed addresses",
        required=False,
        rows=2,
        help_text="One a line, with the length of the network, such as 10.2.0.1/24 or 2001:db8::1/64.",
    )


class _Interfaces(forms.BaseFormSet):
    default_error_messages = {"missing_management_form": "This form is not complete. Please open the page again."}


InterfaceFormSet = forms.formset_factory(
    InterfaceForm, formset=_Interfaces, extra=0, max_num=MAX_INTERFACES, absolute_max=MAX_INTERFACES
)


class AccessForm(forms.Form):
    allow = Lines(
        label="Networks that may open this web page",
        rows=6,
        help_text="One a line, such as 192.168.0.0/16 or 2001:db8::/48. A single address is written 192.0.2.7/32.",
        error_messages={"required": "Name at least one network."},
    )


def network_wish(form: NetworkForm, rows, known: set[str]) -> Network:
    """Of the cleaned data. An interface without any setting is left out, unless the draft knows it."""
    interfaces = tuple(
        Interface(data["name"], data["dhcp"], data["addresses"])
        for data in (row.cleaned_data for row in rows.forms)
        if data["dhcp"] or data["addresses"] or data["name"] in known
    )
    data = form.cleaned_data
    return Network(data["hostname"], data["gateway"], interfaces, data["gateway6"])


def management_wish(form: AccessForm) -> Management:
    return Management(form.cleaned_data["allow"])
