"""Certificates and private keys as PEM text, and what a certificate says: for whom, by whom, until when, which key.

What a certificate says is read here, as the standard library does not tell it without a file; whether it is
sound, and whether a key belongs to it, is asked of OpenSSL (applier/kept/page_key.py).
"""

from __future__ import annotations

import binascii
import hashlib
import ipaddress
import re
from dataclasses import dataclass
from functools import lru_cache

from lbconfig.model import der
from lbconfig.model.der import Element

CERTIFICATE = "CERTIFICATE"
KEYS = ("PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY")
BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]{1,40})-----(.*?)-----END \1-----", re.DOTALL)
SHOWN = 3  # names that a sentence tells; the others are counted
_WIDTH = 64

_RSA, _EC = bytes.fromhex("2a864886f70d010101"), bytes.fromhex("2a8648ce3d0201")
_CURVES = {bytes.fromhex("2a8648ce3d030107"): "P-256", bytes.fromhex("2b81040022"): "P-384"}
_COMMON_NAME, _ORGANISATION = bytes.fromhex("550403"), bytes.fromhex("55040a")
_OTHER_NAMES, _PURPOSES = bytes.fromhex("551d11"), bytes.fromhex("551d25")
_FOR_SERVERS = {bytes.fromhex("2b06010505070301"), bytes.fromhex("551d2500")}  # TLS servers; anything
_DNS_NAME, _ADDRESS = 0x82, 0x87
RSA_BITS = (2048, 8192)  # browsers refuse less; more is slow


@dataclass(frozen=True, slots=True)
class Certificate:
    names: tuple[str, ...]  # DNS names and addresses; where it has none, the common name of its subject
    issuer: str
    begins: str  # "2026-03-01T12:00:00Z"
    ends: str
    fingerprint: str  # SHA-256, as "AB:CD:…"
    key: str  # "RSA 2048", "ECDSA P-256"; "" where it is neither
    bits: int  # of an RSA key; 0: it is none
    for_servers: bool
    by_itself: bool  # signed by its own key, as far as its names tell
    subject_name: bytes  # DER
    issuer_name: bytes

    @property
    def for_whom(self) -> str:
        more = len(self.names) - SHOWN
        return ", ".join(self.names[:SHOWN]) + (f" and {more} more" if more > 0 else "")

    @property
    def last_day(self) -> str:
        return self.ends[:10]

    def covers(self, name: str) -> bool:
        """Whether a browser finds this DNS name or address in it."""
        wished, known = name.lower(), [one.lower() for one in self.names]
        return wished in known or (f"*.{wished.partition('.')[2]}" in known and "." in wished)

    @property
    def sentence(self) -> str:
        by = "signed by itself" if self.by_itself else f"issued by {self.issuer}"
        return f"the certificate for {self.for_whom}, {by}, valid until {self.last_day}"


def blocks(text: str) -> list[tuple[str, str]]:
    """The kind and the whole text of each PEM block; what stands around them is left out."""
    return [(match[1], match[0]) for match in BLOCK.finditer(text)]


def tidy(block: str) -> str:
    """The same block as every program writes it. One with headers, as an encrypted key has them, stays as it is."""
    match = BLOCK.fullmatch(block)
    if match is None or ":" in match[2]:
        return block
    body = "".join(match[2].split())
    lines = [body[at : at + _WIDTH] for at in range(0, len(body), _WIDTH)]
    return "\n".join([f"-----BEGIN {match[1]}-----", *lines, f"-----END {match[1]}-----", ""])


def data(block: str) -> bytes:
    """The DER inside. ValueError where there is none."""
    match = BLOCK.fullmatch(block.strip())
    if match is None:
        raise ValueError("this is not a PEM block")
    return binascii.a2b_base64("".join(match[2].split()).encode(), strict_mode=True)


def read(text: str) -> list[Certificate]:
    """Those of a chain, in its order. ValueError where one cannot be read."""
    return [_read(data(block)) for kind, block in blocks(text) if kind == CERTIFICATE]


def first(text: str) -> Certificate | None:
    """The one that browsers are shown; None where there is none, or nobody can read it."""
    return _first(text) if text else None


@lru_cache(maxsize=16)
def _first(text: str) -> Certificate | None:
    try:
        found = read(text)
    except ValueError:
        return None
    return found[0] if found else None


def _read(der_data: bytes) -> Certificate:
    try:
        top = der.one(der_data).expect(der.SEQUENCE).inner
        fields = top[0].expect(der.SEQUENCE).inner
        version = 1 if fields[0].tag == 0xA0 else 0
        issuer, validity, subject, key = fields[version + 2 : version + 6]
        begins, ends = map(der.time, validity.inner)
        rest = [one for one in fields[version + 6 :] if one.tag == 0xA3]
        extensions = _extensions(rest[0]) if rest else {}
        names = _names(extensions.get(_OTHER_NAMES)) or (_said(subject),)
        words, bits = _key(key)
        purposes = extensions.get(_PURPOSES)
    except (IndexError, TypeError) as error:
        raise ValueError(f"something is missing in it: {error}") from None
    digest = hashlib.sha256(der_data).hexdigest().upper()
    return Certificate(
        names=names,
        issuer=_said(issuer),
        begins=begins,
        ends=ends,
        fingerprint=":".join(digest[at : at + 2] for at in range(0, len(digest), 2)),
        key=words,
        bits=bits,
        for_servers=purposes is None or bool({one.content for one in der.one(purposes).inner} & _FOR_SERVERS),
        by_itself=subject.whole == issuer.whole,
        subject_name=subject.whole,
        issuer_name=issuer.whole,
    )


def _extensions(element: Element) -> dict[bytes, bytes]:
    """Object identifier to value."""
    listed = [one.inner for one in der.one(element.content).inner]
    return {parts[0].content: parts[-1].expect(der.OCTET_STRING).content for parts in listed}


def _names(value: bytes | None) -> tuple[str, ...]:
    found = []
    for one in der.one(value).inner if value is not None else ():
        if one.tag == _DNS_NAME:
            found.append(der.text(one)[:253])
        elif one.tag == _ADDRESS:
            found.append(str(ipaddress.ip_address(one.content)))
    return tuple(found)


def _said(name: Element) -> str:
    """A subject or issuer in words: its common name, and whose it is."""
    parts: dict[bytes, str] = {}
    for group in name.inner:
        for one in group.inner:
            kind, value = one.inner
            parts.setdefault(kind.content, der.text(value)[:100])
    common, organisation = parts.get(_COMMON_NAME, ""), parts.get(_ORGANISATION, "")
    if common and organisation and organisation not in common:
        return f"{common} ({organisation})"
    return common or organisation or next(iter(parts.values()), "nobody")


def _key(element: Element) -> tuple[str, int]:
    """In words, and the bits of an RSA key."""
    algorithm, packed = element.inner
    kind, *parameters = algorithm.inner
    if kind.content == _RSA:
        modulus = der.one(packed.content[1:]).inner[0].expect(der.INTEGER)
        bits = int.from_bytes(modulus.content, "big").bit_length()
        return f"RSA {bits}", bits
    curve = _CURVES.get(parameters[0].content) if kind.content == _EC and parameters else None
    return f"ECDSA {curve}" if curve else "", 0
