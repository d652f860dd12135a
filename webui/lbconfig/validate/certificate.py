"""The rules for the certificate of the web page and its private key, as far as their texts tell.

The time is not asked here, nor whether the key belongs to the certificate: see applier/kept/page_key.py.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from itertools import pairwise

from lbconfig.model import certificate as pem
from lbconfig.model import der
from lbconfig.model.problem import ACCESS, Problem, each
from lbconfig.model.snapshot import MAX_KEY, MAX_LINES, Management

MAX_CHAIN = 10  # certificates
PLAIN = re.compile(r"(?:-----BEGIN ([A-Z ]+)-----\n(?:[A-Za-z0-9+/=]{1,76}\n)+-----END \1-----(?:\n|\Z))+")
BEGIN = "-----BEGIN CERTIFICATE----- to -----END CERTIFICATE-----"


def certificate_problems(management: Management) -> Iterator[Problem]:
    """Both are empty: the box shows its own."""
    if management.certificate or management.key:
        yield from each(ACCESS, certificate=chain(management.certificate), key=private_key(management.key))


def chain(text: str) -> str | None:
    """That of the web page first, and then the one that signed it, and so on."""
    if not text:
        return "is missing: there is a private key without a certificate"
    if len(text) > MAX_LINES:
        return f"must not be longer than {MAX_LINES} characters, and has {len(text)}"
    kinds = [kind for kind, _ in pem.blocks(text)]
    if set(kinds) != {pem.CERTIFICATE} or not PLAIN.fullmatch(text):
        return f"must be certificates in PEM and nothing else: from {BEGIN}"
    if len(kinds) > MAX_CHAIN:
        return f"must not have more than {MAX_CHAIN} certificates, and has {len(kinds)}"
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)
        found = pem.read(text)
    except (ssl.SSLError, ValueError):
        return "cannot be read: a part of it is missing or damaged"
    return _usable(found[0]) or _in_order(found)


def _usable(shown: pem.Certificate) -> str | None:
    """By browsers."""
    low, high = pem.RSA_BITS
    if not shown.key:
        return "must have a key for RSA, or for ECDSA on the curve P-256 or P-384: browsers take no other"
    if shown.bits and not low <= shown.bits <= high:
        return f"must have an RSA key of {low} to {high} bits, and has one of {shown.bits}"
    return None if shown.for_servers else "must be one for web servers, and its purpose is another one"


def _in_order(found: list[pem.Certificate]) -> str | None:
    for place, (one, signer) in enumerate(pairwise(found), start=1):
        if one.issuer_name != signer.subject_name:
            wrong = f"number {place + 1} has not signed number {place}"
            return f"must be in order, each followed by the one that signed it: {wrong}"
    return None


def private_key(text: str) -> str | None:
    if not text:
        return "is missing: the certificate is of no use without its private key"
    if len(text) > MAX_KEY:
        return f"must not be longer than {MAX_KEY} characters, and has {len(text)}"
    kinds = [kind for kind, _ in pem.blocks(text)]
    if "ENCRYPTED PRIVATE KEY" in kinds or "Proc-Type: 4,ENCRYPTED" in text:
        return "must not be encrypted: the box has nobody to ask for its password"
    if len(kinds) > 1:
        return f"must be one private key, and there are {len(kinds)} blocks"
    if not kinds or kinds[0] not in pem.KEYS or not PLAIN.fullmatch(text):
        return "must be a private key in PEM: from -----BEGIN PRIVATE KEY----- to -----END PRIVATE KEY-----"
    try:
        der.one(pem.data(text)).expect(der.SEQUENCE)
    except ValueError:
        return "cannot be read: a part of it is missing or damaged"
    return None
