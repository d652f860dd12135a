"""The encoder of the sync protocol against a decoder that was written from the kernel's."""

import struct

import pytest
import sync_bytes
from hypothesis import given
from hypothesis import strategies as st

from applier.host.ipvs_sync import INACTIVE, LARGEST, NO_OUTPUT, ROUTED, TEMPLATE, Record, datagrams, encode

PORTS = st.integers(0, 65535)
STATES = {6: 10, 17: 0, 132: 13}


@st.composite
def records(draw):
    width = draw(st.sampled_from((4, 16)))
    client, virtual, server = (draw(st.binary(min_size=width, max_size=width)) for _ in range(3))
    template = draw(st.booleans())
    protocol = draw(st.sampled_from((0, 6, 17, 132) if template else (6, 17, 132)))
    flags = TEMPLATE if template else draw(st.sampled_from((0, INACTIVE)))
    engine = draw(st.binary(min_size=1, max_size=255)) if template and draw(st.booleans()) else b""
    return Record(
        protocol,
        client,
        draw(PORTS),
        virtual,
        draw(PORTS),
        server,
        draw(PORTS),
        flags | draw(st.sampled_from((0, ROUTED | NO_OUTPUT))),
        draw(st.integers(0, 1 if template else STATES[protocol])),
        draw(st.integers(0, 2**32 - 1)),
        draw(st.integers(0, 2**31)),
        "sip" if engine else "",
        engine,
    )


def seen(record):
    """The record as a decoded entry."""
    ends = (
        (record.client, record.client_port),
        (record.virtual, record.virtual_port),
        (record.server, record.server_port),
    )
    rest = (record.mark, record.seconds, record.engine.encode(), record.engine_data)
    return len(record.client) == 16, record.protocol, record.flags, record.state, *ends, *rest


@given(st.lists(records(), max_size=120), st.integers(0, 255), st.integers(512, 9000))
def test_the_kernel_reads_what_was_written(given_ones, sync_id, largest):
    made = list(datagrams(given_ones, sync_id, largest))
    read = [entry for one in made for entry in sync_bytes.decode(one, sync_id, largest)]
    assert [tuple(entry) for entry in read] == [seen(record) for record in given_ones]


def four(number: int) -> Record:
    client = struct.pack(">I", 0x0A010000 + number)
    return Record(6, client, 40000, b"\x0a\1\0\x64", 80, b"\x0a\2\0\x0b", 8080, 0, 1, 0, 900)


def six(number: int) -> Record:
    return Record(6, bytes(15) + bytes([number]), 40000, bytes(16), 80, bytes(16), 8080, 0, 1, 0, 900)


def test_a_record_byte_by_byte():
    record = Record(6, b"\x0a\1\0\x0a", 40001, b"\x0a\1\0\x64", 7000, b"\x0a\2\0\x0b", 80, INACTIVE, 4, 7, 120)
    assert encode(record).hex(" ", 4) == (
        "00060024 00000100 00049c41 1b580050 00000007 00000078 0a01000a 0a010064 0a02000b"
    )
    assert next(datagrams([record], 2)).hex(" ", 4).startswith("0002002c 01010000 00060024")


@pytest.mark.parametrize(("make", "size", "fit"), [(four, 36, 38), (six, 72, 19)], ids=["IPv4", "IPv6"])
def test_a_datagram_is_as_full_as_it_can_be(make, size, fit):
    for count, sizes in ((0, []), (1, [1]), (fit, [fit]), (fit + 1, [fit, 1]), (3 * fit, [fit] * 3)):
        made = list(datagrams(map(make, range(count)), 1))
        assert [len(one) for one in made] == [8 + size * number for number in sizes]
        assert all(len(one) <= LARGEST for one in made)
    assert 8 + size * (fit + 1) > LARGEST


def test_no_datagram_has_more_records_than_its_byte_can_count():
    made = list(datagrams(map(four, range(300)), 1, 65000))
    assert [one[4] for one in made] == [255, 45]


def test_what_follows_a_record_of_an_odd_length_begins_at_a_multiple_of_four():
    odd = Record(17, b"\x0a\1\0\0", 0, b"\x0a\1\0\x64", 5060, b"\x0a\2\0\x0b", 5060, TEMPLATE, 1, 0, 60, "sip", b"a@b")
    [made] = datagrams([odd, four(1)], 1)
    assert len(made) == 8 + 48 + 36  # 36, 5 for the Call-ID, 5 for the engine's name, 2 for nothing
    assert len(sync_bytes.decode(made, 1, LARGEST)) == 2
