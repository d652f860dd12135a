"""What an admin gives as the certificate of the web page: pasted or as files, in whatever order and with whatever
stands around it; cleaned to the two texts that the draft keeps."""

from __future__ import annotations

from typing import Any, cast

from django import forms
from django.http import QueryDict

from lbconfig.model import certificate as pem
from lbconfig.model.snapshot import MAX_KEY, MAX_LINES, Management

LIMIT = 256 * 1024  # bytes of both files
UNSEEN = {"spellcheck": "false", "autocomplete": "off", "autocapitalize": "none", "class": "code"}
NO_PEM = (
    "This is not PEM text, which begins with -----BEGIN. Of a .pfx or .p12 file, "
    "“openssl pkcs12 -in FILE -nodes” makes one."
)
NO_USE = {
    "CERTIFICATE REQUEST": "This is the request for a certificate, not what the authority made of it.",
    "NEW CERTIFICATE REQUEST": "This is the request for a certificate, not what the authority made of it.",
    "PUBLIC KEY": "This is a public key. The private one is needed.",
    "PKCS7": "This is a PKCS #7 file. “openssl pkcs7 -in FILE -print_certs” makes PEM certificates of it.",
    "OPENSSH PRIVATE KEY": "This is a key for SSH, which no web server takes.",
}
HARMLESS = ("EC PARAMETERS", "DH PARAMETERS")


class CertificateForm(forms.Form):
    """`found`: the Management that it describes, once it is valid."""

    certificate = forms.CharField(
        label="Certificate, and those that signed it",
        required=False,
        strip=False,
        max_length=MAX_LINES,
        widget=forms.Textarea(attrs={**UNSEEN, "rows": 6, "placeholder": "-----BEGIN CERTIFICATE-----"}),
        help_text="In PEM: the one for this box first, then the intermediate ones.",
    )
    certificate_file = forms.FileField(label="Or its file", required=False, max_length=200, allow_empty_file=True)
    key = forms.CharField(
        label="Private key",
        required=False,
        strip=False,
        max_length=MAX_KEY,
        widget=forms.Textarea(attrs={**UNSEEN, "rows": 4, "placeholder": "-----BEGIN PRIVATE KEY-----"}),
    )
    key_file = forms.FileField(label="Or its file", required=False, max_length=200, allow_empty_file=True)

    def __init__(self, before: Management, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.before = before
        kept = " Empty: the one that the draft has." if before.key else ""
        self.fields["key"].help_text = f"In PEM, without a password.{kept}"

    def clean(self):
        super().clean()
        data = self.cleaned_data
        blocks = [one for name in ("certificate", "key") for one in self._given(data, name)]
        if self.errors:
            return data
        chain = "".join(pem.tidy(text) for kind, text in blocks if kind == pem.CERTIFICATE)
        key = "".join(pem.tidy(text) for kind, text in blocks if kind != pem.CERTIFICATE)
        if not chain:
            self.add_error("certificate", "Paste the certificate, or choose its file.")
        if not key and not self.before.key:
            self.add_error("key", "Paste the private key of the certificate, or choose its file.")
        data["chain"], data["pair_key"] = chain, key or self.before.key
        return data

    def _given(self, data: dict, name: str) -> list[tuple[str, str]]:
        """The blocks of the text or of the file; what came as a file is shown as a text if the form comes back."""
        text, file = data.get(name) or "", data.get(f"{name}_file")
        if file and text.strip():
            self.add_error(name, "Choose a file or paste a text, not both.")
            return []
        if file:
            text = file.read().decode("latin-1")
            fields: dict[str, Any] = self.fields  # each has what its kind has
            longest = fields[name].max_length
            if len(text) > longest:
                self.add_error(name, f"This is longer than {longest} characters.")
                return []
        found = [one for one in pem.blocks(text) if one[0] not in HARMLESS]
        if file and found:
            shown = cast(QueryDict, self.data).copy()  # that of a request: without a file there is nothing to show
            shown[self.add_prefix(name)] = "\n".join(block for _, block in found) + "\n"
            self.data = shown
        if text.strip() and not found:
            self.add_error(name, NO_PEM)
        for kind, _ in found:
            if kind in NO_USE:
                self.add_error(name, NO_USE[kind])
        return found
