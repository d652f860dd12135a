"""A stream that only a passphrase opens: what a backup file is on the outside (docs/decisions/0019).

    "FAIRLEAD BACKUP\\n"  16 bytes
    version              1 byte: 1
    log2 N, r, p         1 byte each: of scrypt (RFC 7914), which makes the key (32 bytes) of passphrase and salt
    salt                 32 bytes
    frames               65536 bytes of the content each, the last one fewer (or as many); AES-256-GCM with a tag of
                         16 bytes behind each, the 52 bytes above as associated data, and as nonce (12 bytes) the
                         frame's number from 0, big-endian in 11 bytes, and 1 byte: 1 in the last frame, else 0

So nothing can be altered, left out, moved or cut off without being noticed. The passphrase is UTF-8 in NFC.
"""

from __future__ import annotations

import hashlib
import secrets
import struct
import unicodedata
from typing import BinaryIO, NamedTuple

from Cryptodome.Cipher import AES

MAGIC = b"FAIRLEAD BACKUP\n"
VERSION = 1
SALT = 32  # bytes
FRAME = 65536  # bytes of content
TAG = 16  # bytes
_HEAD = struct.Struct(f">{len(MAGIC)}sBBBB{SALT}s")
_NONCE_NUMBER = 11  # bytes


class Cost(NamedTuple):
    """Of a guess: 2**log_n * 128 * r bytes of memory, p times over."""

    log_n: int
    r: int
    p: int

    @property
    def memory(self) -> int:
        return 128 * self.r << self.log_n


COST = Cost(15, 8, 3)  # 32 MB: the smallest box has that to spare
MOST = Cost(17, 8, 4)  # a header cannot make the box spend more


class NotOpened(Exception):
    """The text is a sentence for an admin."""


NO_BACKUP = "This is not a Fairlead backup file."
TOO_NEW = "This backup file was made by a newer version of Fairlead. Update this box first."
WRONG = "The passphrase is wrong, or the file is damaged at its beginning."
DAMAGED = "The file is damaged, or somebody has altered it: it is not as the box wrote it."
CUT_OFF = "The file is not complete: its end is missing. Copy or download it again."


class Writer:
    """A file to write to; close() ends the stream and leaves the file below open."""

    def __init__(self, file: BinaryIO, passphrase: str, cost: Cost = COST) -> None:
        salt = secrets.token_bytes(SALT)
        self._file = file
        self._head = _HEAD.pack(MAGIC, VERSION, *cost, salt)
        self._key = _key(passphrase, salt, cost)
        self._number = 0
        self._waiting = bytearray()
        file.write(self._head)

    def write(self, data: bytes) -> int:
        self._waiting += data
        while len(self._waiting) > FRAME:  # the last frame has to be known as such
            self._frame(bytes(self._waiting[:FRAME]), last=False)
            del self._waiting[:FRAME]
        return len(data)

    def flush(self) -> None:
        """A frame is written when it is full."""

    def close(self) -> None:
        self._frame(bytes(self._waiting), last=True)
        self._waiting.clear()

    def _frame(self, content: bytes, last: bool) -> None:
        cipher = _cipher(self._key, self._number, last, self._head)
        sealed, tag = cipher.encrypt_and_digest(content)
        self._file.write(sealed + tag)
        self._number += 1


class Reader:
    """A file to read from. read() raises NotOpened for all that is not as it was written."""

    def __init__(self, file: BinaryIO, passphrase: str) -> None:
        self._file = file
        self._head = file.read(_HEAD.size)
        cost, salt = _parse(self._head)
        self._key = _key(passphrase, salt, cost)
        self._number = 0
        self._ready = bytearray()
        self._next = file.read(FRAME + TAG)
        if not self._next:
            raise NotOpened(CUT_OFF)

    def read(self, size: int = -1) -> bytes:
        while self._next and (size < 0 or len(self._ready) < size):
            self._ready += self._open()
        size = len(self._ready) if size < 0 else size
        data = bytes(self._ready[:size])
        del self._ready[:size]
        return data

    @property
    def ended(self) -> bool:
        return not self._next and not self._ready

    def _open(self) -> bytes:
        frame, self._next = self._next, self._file.read(FRAME + TAG)
        last = not self._next
        try:
            content = self._decrypt(frame, last)
        except ValueError:
            raise NotOpened(self._reason(frame, last)) from None
        self._number += 1
        return content

    def _decrypt(self, frame: bytes, last: bool) -> bytes:
        cipher = _cipher(self._key, self._number, last, self._head)
        return cipher.decrypt_and_verify(frame[:-TAG], frame[-TAG:])

    def _reason(self, frame: bytes, last: bool) -> str:
        if last:
            try:
                self._decrypt(frame, last=False)
            except ValueError:
                pass
            else:
                return CUT_OFF
        return DAMAGED if self._number else WRONG


def _parse(head: bytes) -> tuple[Cost, bytes]:
    if not head.startswith(MAGIC):
        raise NotOpened(NO_BACKUP)
    if len(head) < _HEAD.size:
        raise NotOpened(CUT_OFF)
    _, version, *numbers, salt = _HEAD.unpack(head)
    if version != VERSION:
        raise NotOpened(TOO_NEW if version > VERSION else DAMAGED)
    cost = Cost(*numbers)
    if not (1 <= cost.log_n <= MOST.log_n and 1 <= cost.r <= MOST.r and 1 <= cost.p <= MOST.p):
        raise NotOpened(DAMAGED)
    return cost, salt


def _key(passphrase: str, salt: bytes, cost: Cost) -> bytes:
    text = unicodedata.normalize("NFC", passphrase).encode()
    room = cost.memory + (1 << 20)
    return hashlib.scrypt(text, salt=salt, n=1 << cost.log_n, r=cost.r, p=cost.p, maxmem=room, dklen=32)


def _cipher(key: bytes, number: int, last: bool, head: bytes):
    nonce = number.to_bytes(_NONCE_NUMBER, "big") + bytes([last])
    cipher = AES.new(key, AES.MODE_GCM, nonce=nonce, mac_len=TAG)
    cipher.update(head)
    return cipher
