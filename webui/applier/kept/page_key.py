"""Certificate and private key of the web page: what only OpenSSL and the clock can say of them.

Nothing is written to a disk for it, and nobody is asked: Django's forms use it as well.
"""

from __future__ import annotations

import os
import ssl

from applier.kept.faults import now
from lbconfig.model import certificate
from lbconfig.model.problem import ACCESS, Problem, each
from lbconfig.model.snapshot import Management, Snapshot

_WORDS = {
    "KEY_VALUES_MISMATCH": ("key", "does not belong to the certificate"),
    "KEY_TYPE_MISMATCH": ("key", "does not belong to the certificate: it is one of another kind"),
    "NO_CERTIFICATE_ASSIGNED": ("key", "does not belong to the certificate: it is one of another kind"),
    "EE_KEY_TOO_SMALL": ("certificate", "has a key that is too weak"),
    "CA_KEY_TOO_SMALL": ("certificate", "is signed by a key that is too weak"),
    "CA_MD_TOO_WEAK": ("certificate", "is signed in a way that is too weak, such as SHA-1"),
}


def changed_problems(new: Snapshot, running: Snapshot) -> list[Problem]:
    """Of a valid snapshot. A certificate that runs may grow old, and other changes are applied anyway."""
    wished = new.management
    if not wished.page_key or wished.page_key == running.management.page_key:
        return []
    return list(each(ACCESS, certificate=out_of_time(wished))) or list(each(ACCESS, **unusable(wished)))


def out_of_time(management: Management) -> str | None:
    shown, at = certificate.first(management.certificate), now()
    if shown is None or shown.begins <= at <= shown.ends:
        return None
    if shown.ends < at:
        return f"ended on {shown.last_day}: browsers refuse it"
    return f"is valid only from {shown.begins[:10]} on, and the clock of this box says {at[:10]}"


def unusable(management: Management) -> dict[str, str]:
    """A sentence beside `certificate` or `key`; empty: a web server can work with both."""
    handle = os.memfd_create("page_key")
    try:
        with open(handle, "w", closefd=False) as file:
            file.write(management.page_key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"/proc/self/fd/{handle}", password=lambda: "")
    except (ssl.SSLError, ValueError) as error:
        reason = getattr(error, "reason", None) or "it cannot be read"
        field, words = _WORDS.get(reason, ("key", f"and the certificate cannot be used together ({reason})"))
        return {field: words}
    finally:
        os.close(handle)
    return {}
