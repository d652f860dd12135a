"""The code, and what both boxes prove with it. Pure but for the dice.

Whoever sits between the two has to show the second box a certificate of his own. Its digest is part of what both
prove, so neither believes the other, and of the code he learns nothing: a guess costs him a whole try at the box, of
which there are few.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from typing import Literal

Role = Literal["first box", "second box"]

BYTES = 10  # of a code
LETTERS, GROUP = 16, 4
NONCE_BYTES = 32
_ALIKE = str.maketrans("018", "OIB")  # no digits of base32, and easily taken for these letters


def new_code() -> str:
    letters = base64.b32encode(secrets.token_bytes(BYTES)).decode()
    return "-".join(letters[begin : begin + GROUP] for begin in range(0, LETTERS, GROUP))


def plain(code: str) -> str:
    """As a person may type it: small letters, blanks or nothing instead of the hyphens. Empty: it is no code."""
    letters = "".join(code.split()).replace("-", "").upper().translate(_ALIKE)
    try:
        good = len(letters) == LETTERS and len(base64.b32decode(letters)) == BYTES
    except ValueError:
        return ""
    return letters if good else ""


def mark(code: str) -> str:
    """By which a box knows that this code was entered before, without keeping it."""
    return hashlib.sha256(f"fairlead code {plain(code)}".encode()).hexdigest()


def secret(code: str, certificate: bytes) -> bytes:
    """The key of all proofs; `certificate`: the digest of the one that the first box shows."""
    return hashlib.scrypt(plain(code).encode(), salt=certificate, n=1 << 14, r=8, p=1, dklen=32)


def prove(secret: bytes, role: Role, certificate: bytes, nonces: tuple[str, str], keys: tuple[str, str]) -> str:
    """That `role` knows the code. `nonces` and `keys`: of the first box and of the second one."""
    said = "\n".join((role, certificate.hex(), *nonces, *keys))
    return hmac.new(secret, said.encode(), hashlib.sha256).hexdigest()


def same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())
