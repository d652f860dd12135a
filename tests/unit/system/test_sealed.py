"""The outside of a backup file: what opens it, and that nothing in it can be altered unseen."""

import hashlib
import io
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from system import sealed
from system.sealed import FRAME, TAG, Cost, NotOpened, Reader, Writer

QUICK = Cost(4, 8, 1)  # a test need not cost a guesser anything
PASS = "rope and tide"
HEAD = 52  # bytes


def seal(content: bytes, passphrase: str = PASS, pieces: int = 7000) -> bytes:
    file = io.BytesIO()
    writer = Writer(file, passphrase, QUICK)
    for place in range(0, len(content), pieces):
        writer.write(content[place : place + pieces])
    writer.close()
    return file.getvalue()


def unseal(data: bytes, passphrase: str = PASS, pieces: int = 10_000) -> bytes:
    reader = Reader(io.BytesIO(data), passphrase)
    content = b""
    while part := reader.read(pieces):
        content += part
    assert reader.ended
    return content


def content(size: int) -> bytes:
    return random.Random(size).randbytes(size)


@pytest.mark.parametrize("size", [0, 1, FRAME - 1, FRAME, FRAME + 1, 2 * FRAME, 3 * FRAME + 17])
def test_what_goes_in_comes_out(size):
    sealed_once = seal(content(size))
    assert unseal(sealed_once) == content(size)
    assert len(sealed_once) == HEAD + size + TAG * max(1, -(-size // FRAME))
    assert seal(content(size)) != sealed_once  # another salt
    assert Reader(io.BytesIO(sealed_once), PASS).read() == content(size)


@settings(max_examples=30, deadline=None)
@given(st.binary(max_size=3 * FRAME), st.text(min_size=1, max_size=40), st.integers(1, 2 * FRAME))
def test_in_pieces_of_any_size_with_any_passphrase(data, passphrase, pieces):
    try:
        passphrase.encode()
    except UnicodeEncodeError:
        return  # a form lets none of these through
    assert unseal(seal(data, passphrase, pieces), passphrase, pieces) == data


def test_by_another_hand():
    """With nothing but what the decision record says: the format, and not this module, is what lasts."""
    from Cryptodome.Cipher import AES

    data = seal(content(2 * FRAME + 5), "Gr\u00fc\u00dfe")
    assert data[:16] == b"FAIRLEAD BACKUP\n" and data[16:20] == bytes([1, 4, 8, 1])
    key = hashlib.scrypt(
        "Gr\u00fc\u00dfe".encode(), salt=data[20:52], n=2 ** data[17], r=data[18], p=data[19], dklen=32
    )
    frames = [data[place : place + 65552] for place in range(52, len(data), 65552)]
    found = b""
    for number, frame in enumerate(frames):
        nonce = number.to_bytes(11, "big") + (b"\1" if number == len(frames) - 1 else b"\0")
        cipher = AES.new(key, AES.MODE_GCM, nonce=nonce)
        cipher.update(data[:52])
        found += cipher.decrypt_and_verify(frame[:-16], frame[-16:])
    assert found == content(2 * FRAME + 5)


def test_a_keyboard_that_composes_its_letters_otherwise():
    assert unseal(seal(b"x", "Gr\u00fc\u00dfe"), "Gru\u0308\u00dfe") == b"x"


@pytest.mark.parametrize("passphrase", ["", "rope and tid", "Rope and tide", PASS + " "])
def test_another_passphrase_opens_nothing(passphrase):
    with pytest.raises(NotOpened, match="passphrase is wrong"):
        unseal(seal(content(3 * FRAME)), passphrase)


SIZE = 2 * FRAME + 300
REGIONS = {
    "magic": (range(16), sealed.NO_BACKUP),
    "version": (range(16, 17), None),
    "cost": (range(17, 20), None),
    "salt": (range(20, HEAD), sealed.WRONG),
    "first frame": ((HEAD, HEAD + 1, HEAD + FRAME // 2, HEAD + FRAME - 1), sealed.WRONG),
    "first tag": (range(HEAD + FRAME, HEAD + FRAME + TAG), sealed.WRONG),
    "second frame": ((HEAD + FRAME + TAG, HEAD + 2 * FRAME), sealed.DAMAGED),
    "second tag": (range(HEAD + 2 * FRAME + TAG, HEAD + 2 * (FRAME + TAG)), sealed.DAMAGED),
    "last frame": (range(HEAD + 2 * (FRAME + TAG), HEAD + 2 * (FRAME + TAG) + 300, 7), sealed.DAMAGED),
    "last tag": (range(HEAD + SIZE + 2 * TAG, HEAD + SIZE + 3 * TAG), sealed.DAMAGED),
}


@pytest.fixture(scope="module")
def whole():
    return seal(content(SIZE))


@pytest.mark.parametrize("region", REGIONS)
def test_an_altered_byte_anywhere_is_refused(whole, region):
    places, sentence = REGIONS[region]
    for place in places:
        for bit in (1, 128):
            altered = bytearray(whole)
            altered[place] ^= bit
            with pytest.raises(NotOpened) as refusal:
                unseal(bytes(altered))
            assert sentence is None or str(refusal.value) == sentence, place


@pytest.mark.parametrize(
    "left", [0, 1, 15, 16, 17, 51, HEAD, HEAD + 1, HEAD + 15, HEAD + 16, HEAD + FRAME, HEAD + FRAME + TAG, -17, -16, -1]
)
def test_a_file_that_was_cut_off_is_refused(whole, left):
    with pytest.raises(NotOpened) as refusal:
        unseal(whole[:left])
    if left == HEAD + FRAME + TAG:  # exactly at the end of a frame
        assert str(refusal.value) == sealed.CUT_OFF


def test_frames_cannot_be_moved_left_out_doubled_or_joined(whole):
    head, body = whole[:HEAD], whole[HEAD:]
    step = FRAME + TAG
    one, two, three = body[:step], body[step : 2 * step], body[2 * step :]
    other = seal(content(SIZE))
    joined = [
        two + one + three,
        one + three,
        two + three,
        one + two + two + three,
        one + one,
        body + three,
        body + b"x",
    ]
    for frames in (*joined, body + other, other[HEAD:], one + other[HEAD + step :]):
        with pytest.raises(NotOpened):
            unseal(head + frames)


@pytest.mark.parametrize("version", [0, 2, 255])
def test_another_version_of_the_format(whole, version):
    with pytest.raises(NotOpened) as refusal:
        unseal(whole[:16] + bytes([version]) + whole[17:])
    assert str(refusal.value) == (sealed.TOO_NEW if version else sealed.DAMAGED)


@pytest.mark.parametrize(
    "cost", [(18, 8, 1), (255, 255, 255), (15, 255, 1), (15, 8, 255), (0, 8, 1), (4, 0, 1), (4, 8, 0)]
)
def test_a_header_cannot_make_the_box_spend_memory_or_time(whole, cost, monkeypatch):
    monkeypatch.setattr(hashlib, "scrypt", None)
    with pytest.raises(NotOpened):
        unseal(whole[:17] + bytes(cost) + whole[20:])


def test_what_a_backup_costs_a_guesser():
    file = io.BytesIO()
    Writer(file, PASS).close()
    assert file.getvalue()[17:20] == bytes([15, 8, 3])
    assert unseal(file.getvalue()) == b""
