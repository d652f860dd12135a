"""What WireGuard's file of a pair says."""

import pytest

from lbconfig.model.network import Interface, Network
from lbconfig.model.pair import Pair, PairBox
from lbconfig.model.snapshot import Snapshot
from lbconfig.model.tuning import Tuning
from lbconfig.target import Target
from lbconfig.wanted.pair_link import PairLink, read, with_key

CONF = """\
# Made by this box
[Interface]
ListenPort = 51820

[Peer]
PublicKey = cHVibGljIGtleSBvZiB0aGUgb3RoZXIgYm94LCAzMmI=
Endpoint = 192.0.2.2:51820
AllowedIPs = 169.254.64.2/32, 224.0.0.81/32, ff02::81/128
PersistentKeepalive = 1
"""
ALLOWED = frozenset({"169.254.64.2/32", "224.0.0.81/32", "ff02::81/128"})
FIRST = PairLink(0, 51820, "cHVibGljIGtleSBvZiB0aGUgb3RoZXIgYm94LCAzMmI=", "192.0.2.2:51820", ALLOWED, 1)


def test_the_first_box_and_the_second():
    assert read(CONF) == FIRST
    assert (FIRST.address, FIRST.sync_ids) == ("169.254.64.1/30", (1, 2))
    second = read(CONF.replace("64.2/32", "64.1/32"))
    assert (second.own, second.address, second.sync_ids) == (1, "169.254.64.2/30", (2, 1))


def test_it_is_written_in_any_way_that_wg_takes():
    assert read(CONF.replace(" = ", "=").replace(", ", ",").replace("[Peer]", "[peer] # the other one")) == FIRST


def test_the_key_is_added_as_wg_takes_it():
    assert with_key(CONF, "a=").endswith("PersistentKeepalive = 1\n\n[Interface]\nPrivateKey = a=\n")
    assert read(with_key(CONF, "a=")) == FIRST


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("PublicKey", "Public", "pair.conf has no publickey"),
        ("ListenPort = 51820", "", "pair.conf has no listenport"),
        ("169.254.64.2/32, ", "", "AllowedIPs has neither box's address"),
        ("224.0.0.81/32", "224.0.0.81/8", "224.0.0.81/8 has host bits set"),
        ("51820\n\n", "many\n\n", "invalid literal"),
        ("PersistentKeepalive = 1", "nonsense", "a line that cannot be read: 'nonsense'"),
    ],
)
def test_a_file_of_another_form_is_refused_with_the_reason(old, new, sentence):
    with pytest.raises(ValueError, match=sentence):
        read(CONF.replace(old, new))


def test_what_is_rendered_for_each_box_is_read_as_it_is_meant():
    keys = "cHVibGljIGtleSBvZiB0aGUgZmlyc3QgYm94LCAzMiA=", FIRST.peer
    boxes = tuple(
        PairBox(Network(f"lb{one}", interfaces=(Interface("eth2", addresses=(place,)),)), Tuning(), "eth2", place, key)
        for one, place, key in ((1, "192.0.2.1/30", keys[0]), (2, "192.0.2.2/30", keys[1]))
    )
    snapshot = Snapshot(pair=Pair("0" * 32, (boxes[0], boxes[1])))
    assert read(Target(1, snapshot, 0).pair_conf) == FIRST
    second = read(Target(1, snapshot, 1).pair_conf)
    assert (second.own, second.peer, second.endpoint) == (1, keys[0], "192.0.2.1:51820")
    assert Target(1, Snapshot()).pair_conf == ""
