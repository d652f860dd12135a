"""What the floater reads, and what it tells the kernel."""

import errno
import json
import struct
from pathlib import Path

import pytest

from applier.pair import leases
from applier.pair.leases import Card, Floating, Place, Wrong

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
CARDS = {"eth0": Card(2, "52:54:00:00:00:01"), "wg": Card(9, "")}


def text(**changed) -> str:
    good = {"version": 1, "addresses": [["eth0", "10.1.0.100/24"], ["eth0", "2001:db8:1::100/64"]], "lease": 10}
    return json.dumps(good | changed)


def test_addresses_and_how_long_a_lease_lasts():
    assert leases.read(text()) == Floating((Place("eth0", "10.1.0.100"), Place("eth0", "2001:db8:1::100")), 10)


@pytest.mark.parametrize("path", sorted(GOLDEN.rglob("floating.json")), ids=lambda path: path.parent.name)
def test_what_the_renderer_writes_is_read(path):
    text = path.read_text()
    if text:
        assert len(leases.read(text).places) == len(json.loads(text)["addresses"]) > 0


def test_an_address_is_held_once():
    twice = [["eth0", "10.1.0.100/24"], ["eth0", "10.1.0.100/32"]]
    assert leases.read(text(addresses=twice)).places == (Place("eth0", "10.1.0.100"),)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (text()[:40], "it is not whole: "),
        ("", "it is not whole: "),
        ("[" * 100_000, "it is not whole: "),
        ("[]", "version: must be 1"),
        (text(version=2), "version: must be 1"),
        (text(lease=True), "lease: must be a number of seconds from 4 to 300, not True"),
        (text(lease=3), "lease: must be a number of seconds from 4 to 300, not 3"),
        (text(lease="10"), "lease: must be a number of seconds from 4 to 300, not '10'"),
        (text(lease=10**40), "lease: must be a number of seconds from 4 to 300, not 1000"),
        (text(addresses={}), "addresses: must be a list of 4096 at the most"),
        (text(addresses=[["eth0", "10.1.0.100/24"]] * 4097), "addresses: must be a list of 4096 at the most"),
        (text(addresses=["eth0"]), "address 1: must be an interface and an address, not 'eth0'"),
        (text(addresses=[["eth0", "10.1.0.100/24"], ["eth0"]]), "address 2: must be an interface and an address"),
        (text(addresses=[["eth0", 7]]), "address 1: must be an interface and an address"),
        (text(addresses=[["", "10.1.0.100/24"]]), "address 1: must name an interface of 1 to 15 letters, not ''"),
        (text(addresses=[["e" * 16, "10.1.0.100/24"]]), "address 1: must name an interface of 1 to 15 letters"),
        (text(addresses=[["eth0", "10.1.0.100"]]), "address 1: must be such as 10.1.0.100/24, not '10.1.0.100'"),
        (text(addresses=[["eth0", "10.1.0.300/24"]]), "address 1: must be such as 10.1.0.100/24, not '10.1.0.300/24'"),
        (text(addresses=[["eth0", "10.1.0.100/33"]]), "address 1: must be such as 10.1.0.100/24, not '10.1.0.100/33'"),
    ],
)
def test_what_is_wrong_in_the_file_is_named(given, told):
    with pytest.raises(Wrong) as error:
        leases.read(given)
    assert str(error.value).startswith(told)


def fields(message: bytes) -> list[tuple[int, int, int, int, dict[int, bytes]]]:
    """Type, flags, length of the prefix, index and attributes of each message."""
    found, at = [], 0
    while at < len(message):
        length, kind, flags, number, _ = struct.unpack_from("=IHHII", message, at)
        _, prefix, _, scope, index = struct.unpack_from("=BBBBI", message, at + 16)
        assert (number, scope) == (len(found), 0)
        attributes, place = {}, at + 24
        while place < at + length:
            size, name = struct.unpack_from("=HH", message, place)
            attributes[name] = message[place + 4 : place + size]
            place += size + (-size % 4)
        found.append((kind, flags, prefix, index, attributes))
        at += length
    return found


def test_a_lease_of_ipv4_ends_and_is_of_the_address_alone():
    [batch] = leases.prepare([Place("eth0", "10.1.0.100")], CARDS, 10)
    [(kind, flags, prefix, index, attributes)] = fields(batch.hold)
    assert (kind, flags, prefix, index) == (20, 0x501, 32, 2)
    assert attributes[1] == attributes[2] == bytes([10, 1, 0, 100])
    assert struct.unpack("=IIII", attributes[6])[:2] == (10, 10)
    [(kind, flags, prefix, index, attributes)] = fields(batch.drop)
    assert (kind, flags, prefix, index, set(attributes)) == (21, 1, 32, 2, {1, 2})


def test_a_lease_of_ipv6_is_there_at_once_and_nothing_speaks_from_it():
    [batch] = leases.prepare([Place("eth0", "2001:db8::1")], CARDS, 8)
    [(_, _, prefix, _, attributes)] = fields(batch.hold)
    assert prefix == 128 and struct.unpack("=IIII", attributes[6])[:2] == (0, 8)
    assert struct.unpack("=I", attributes[8]) == (0x202,)  # no detection of duplicates, no route of its own


def test_batches_are_small_and_leave_out_interfaces_that_are_not_there():
    places = [Place("eth0", f"10.1.{at // 250}.{at % 250 + 1}") for at in range(100)] + [Place("gone", "10.3.0.1")]
    batches = leases.prepare(places, CARDS, 10)
    assert [len(batch.places) for batch in batches] == [32, 32, 32, 4]
    assert [place for batch in batches for place in batch.places] == places[:100]
    assert all(len(batch.frames) == len(batch.places) == len(fields(batch.hold)) for batch in batches)


def test_an_interface_without_a_mac_is_not_announced():
    [batch] = leases.prepare([Place("wg", "10.9.0.1")], CARDS, 10)
    assert batch.frames == () and len(fields(batch.hold)) == 1


def test_a_complaint_names_the_address():
    [batch] = leases.prepare([Place("eth0", "10.1.0.100"), Place("eth0", "10.1.0.101")], CARDS, 10)
    refused = struct.pack("=IHHIIi", 36, 2, 0, 1, 0, -errno.ENODEV) + bytes(16)
    done = struct.pack("=IHHIIi", 36, 2, 0, 0, 0, 0) + bytes(16)
    foreign = struct.pack("=IHHIIi", 36, 2, 0, 77, 0, -errno.ENODEV) + bytes(16)
    assert list(leases.complaints(done + refused + foreign, batch)) == [(batch.places[1], errno.ENODEV)]
    assert list(leases.complaints(b"", batch)) == list(leases.complaints(bytes(20), batch)) == []
