"""Lines of /proc/net/ip_vs_conn, as ip_vs_conn_seq_show() prints them."""

import pytest

from applier.host.ipvs_connections import Connection, ConnectionsError, parse

LISTED = b"""\
Pro FromIP   FPrt ToIP     TPrt DestIP   DPrt State       Expires PEName PEData
TCP 0A01000A 9C41 0A010064 1B58 0A02000B 1B58 ESTABLISHED     897
IP  0A010000 0000 00000007 0000 0A02000C 0000 ASSURED         299
UDP 0A010000 0000 0A010064 13C4 0A02000B 13C4 NONE             59 sip a84b4c76e66710@pc33.example.com
TCP 2001:0db8:0001:0000:0000:0000:0000:000a 9C42 2001:0db8:0001:0000:0000:0000:0000:0100 0050 \
2001:0db8:0002:0000:0000:0000:0000:000b 0050 FIN_WAIT        118
ICMP 0A01000A 0000 0A010064 0000 0A02000B 0000 ERR!              1
""".splitlines(keepends=True)

CLIENT, VIP, SERVER = b"\x0a\1\0\x0a", b"\x0a\1\0\x64", b"\x0a\2\0\x0b"


def test_each_kind_of_line():
    head, tcp, mark, call, six, other = map(parse, LISTED)
    assert head is None and other is None
    assert tcp == Connection(6, CLIENT, 40001, VIP, 7000, SERVER, 7000, b"ESTABLISHED", 897)
    assert (mark.protocol, mark.virtual, mark.template, mark.seconds) == (0, b"\0\0\0\7", True, 299)
    assert (call.engine, call.engine_data, call.template) == ("sip", b"a84b4c76e66710@pc33.example.com", True)
    assert (six.client.hex(), six.server_port, six.template) == ("20010db800010000000000000000000a", 80, False)


def test_what_a_telephone_wrote_is_taken_as_it_is():
    """Letters of Latin-1 are letters to the kernel; blanks never are part of a Call-ID."""
    line = LISTED[3].replace(b"a84b4c76e66710", b"\xc2\xa0\xe9\xff\xe2\x80\x83")
    assert parse(line).engine_data == b"\xc2\xa0\xe9\xff\xe2\x80\x83@pc33.example.com"


def test_a_connection_that_waits_for_the_clients_port_is_no_template():
    assert not parse(LISTED[1].replace(b"9C41", b"0000").replace(b"ESTABLISHED", b"LISTEN     ")).template


@pytest.mark.parametrize(
    "line",
    [
        b"TCP",
        b"\n",
        b"TCP 0A01000A 9C41 0A010064 1B58 0A02000B 1B58 ESTABLISHED\n",
        b"TCP 0A0100 9C41 0A010064 1B58 0A02000B 1B58 ESTABLISHED 897\n",
        b"TCP 0A01000A 9C4G 0A010064 1B58 0A02000B 1B58 ESTABLISHED 897\n",
        b"TCP 0A01000A 9C41 0A010064 1B58 0A02000B 1B58 ESTABLISHED soon\n",
        b"TCP 0A01000A 9C41 0A010064 1B58 0A02000B 1B58 ESTABLISHED 897 sip\n",
        b"TCP \xff\xff 9C41 0A010064 1B58 0A02000B 1B58 ESTABLISHED 897\n",
    ],
)
def test_a_line_that_is_none_is_named(line):
    with pytest.raises(ConnectionsError, match="no connection: b'"):
        parse(line)
