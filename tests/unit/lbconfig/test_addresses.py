"""What counts as one client, and how networks of both kinds lie in each other."""

from ipaddress import ip_network

import pytest

from lbconfig.model.addresses import LONGEST_KEPT, MOST_KEPT, collapsed, kept_by_text, parse_address, source, within


@pytest.mark.parametrize(
    ("address", "counts_as"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:0:1::1", "2001:db8:0:1::/64"),
        ("2001:db8:0:1:ffff:ffff:ffff:ffff", "2001:db8:0:1::/64"),
        ("2001:db8:0:2::1", "2001:db8:0:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_the_source_of_a_client(address, counts_as):
    assert source(address) == counts_as


def test_networks_of_both_kinds_are_collapsed_each_for_itself():
    texts = ("2001:db8::/33", "10.0.1.0/24", "2001:db8:8000::/33", "10.0.0.0/24", "10.0.0.128/25")
    assert [str(one) for one in collapsed(map(ip_network, texts))] == ["10.0.0.0/23", "2001:db8::/32"]


def test_a_network_lies_within_one_of_its_own_kind_alone():
    assert within(ip_network("10.0.1.0/24"), ip_network("10.0.0.0/8"))
    assert within(ip_network("2001:db8::/64"), ip_network("2001:db8::/64"))
    assert not within(ip_network("10.0.0.0/8"), ip_network("10.0.1.0/24"))
    assert not within(ip_network("10.0.0.0/8"), ip_network("::/0"))
    assert not within(ip_network("2001:db8::/64"), ip_network("0.0.0.0/0"))


def test_what_is_known_of_addresses_is_bounded():
    asked = []

    @kept_by_text
    def length(text):
        asked.append(text)
        return len(text)

    short = [f"10.{number // 250}.{number % 250}.1" for number in range(MOST_KEPT + 1)]
    for text in (short[0], short[0], "x" * (LONGEST_KEPT + 1), "x" * (LONGEST_KEPT + 1)):
        assert length(text) == len(text)
    assert [len(text) for text in asked] == [len(short[0]), LONGEST_KEPT + 1, LONGEST_KEPT + 1]
    for text in (*short, short[0]):
        length(text)
    assert asked.count(short[0]) == 2


def test_an_address_that_is_none_is_refused_each_time():
    for _ in range(2):
        with pytest.raises(ValueError, match=r"192\.0\.2\.256"):
            parse_address("192.0.2.256")
