"""What the other box is told of each connection, and how it gets there."""

import ipaddress
import socket

import pytest
import sync_bytes
from hypothesis import given
from hypothesis import strategies as st

from applier.host.host import HostError, OutOfTime
from applier.host.ipvs_sync import INACTIVE, LARGEST, NO_OUTPUT, ROUTED, TEMPLATE, TUNNELED
from applier.parts.pair.retell import AT_ONCE, Told, retell
from lbconfig.model.snapshot import (
    SORRY_PORT,
    Fallback,
    FallbackKind,
    Forwarding,
    Protocol,
    RealServer,
    ServerState,
    Snapshot,
    VirtualService,
)
from lbconfig.wanted.pair_link import PairLink

VIP, VIP6, CLIENT, CLIENT6 = "10.1.0.100", "2001:db8:1::100", "10.1.0.10", "2001:db8:1::a"
HEAD = "Pro FromIP   FPrt ToIP     TPrt DestIP   DPrt State       Expires PEName PEData\n"
FIRST = PairLink(0, 51820, "", "", frozenset(), 1)
SECOND = PairLink(1, 51820, "", "", frozenset(), 1)
TCP, UDP, SCTP = socket.IPPROTO_TCP, socket.IPPROTO_UDP, socket.IPPROTO_SCTP


def service(number: int, port: int, protocol=Protocol.TCP, address=VIP, to=None, **fields) -> VirtualService:
    net = "2001:db8:2::" if ":" in address else "10.2.0."
    to = port if to is None else to
    servers = tuple(RealServer(10 * number + one, f"{net}{one}", to) for one in (1, 2))
    return VirtualService(number, f"s{number}", address, port, protocol, real_servers=servers, **fields)


DIRECT = RealServer(33, "10.2.0.3", 80, forwarding=Forwarding.DIRECT)
PAGE = Fallback(FallbackKind.PAGE)
WEB = VirtualService(1, "web", VIP, 80, real_servers=(RealServer(11, "10.2.0.1", 80), DIRECT), fallback=PAGE)
SERVICES = (
    WEB,
    service(2, 53, Protocol.UDP, forwarding=Forwarding.TUNNEL),
    service(3, 80, address=VIP6, persistence=360),
    service(4, 21, persistence=300),
    service(5, 8000, more_ports="8002-8004", persistence=60, to=0),
    service(6, 514, Protocol.TCP_UDP, address=VIP6, persistence=50, to=0),
    service(7, 5060, Protocol.UDP, persistence=40, call_id=True),
    service(8, 123, Protocol.UDP, one_packet=True),
    service(9, 9000, Protocol.SCTP, to=0),
    service(10, 8080, enabled=False),
)
SNAPSHOT = Snapshot(services=SERVICES)


def place(address: str, port: int) -> str:
    parsed = ipaddress.ip_address(address)
    return f"{parsed.packed.hex().upper() if parsed.version == 4 else parsed.exploded} {port:04X}"


def line(protocol, vip, port, server, state, seconds=100, client="", client_port=40000, more="") -> str:
    client = client or (CLIENT6 if ":" in vip else CLIENT)
    ends = " ".join(place(*one) for one in ((client, client_port), (vip, port), server))
    return f"{protocol:<3} {ends} {state:<11} {seconds:7}{more}\n"


class Host:
    """Reads these lines and keeps what is sent."""

    def __init__(self, lines, cut_off=False) -> None:
        self.data = [one.encode() for one in (HEAD, *lines)]
        self.cut_off = cut_off
        self.sent: list[bytes] = []
        self.events: list[str] = []

    def lines(self, path, seconds):
        assert str(path) == "/proc/net/ip_vs_conn"
        yield from self.data
        self.events.append("read")
        if self.cut_off:
            raise OutOfTime(f"read {path}", None, f"it takes longer than {seconds:g} seconds")

    def multicast(self, interface, group, port, datagrams):
        assert (interface, group, port) == ("pair0", "224.0.0.81", 8848) and len(datagrams) <= AT_ONCE
        self.events.append("send")
        self.sent += datagrams

    def sleep(self, seconds):
        assert seconds > 0
        self.events.append("sleep")


def told(*lines, snapshot=SNAPSHOT) -> list[sync_bytes.Entry]:
    host = Host(lines)
    found = retell(host, snapshot, FIRST)
    entries = [entry for one in host.sent for entry in sync_bytes.decode(one, 1, LARGEST)]
    assert found == Told(len(entries), len(lines) - len(entries), True)
    return entries


def test_a_connection_by_nat():
    [entry] = told(line("TCP", VIP, 80, ("10.2.0.1", 80), "ESTABLISHED", 897))
    packed = (b"\x0a\1\0\x0a", 40000), (b"\x0a\1\0\x64", 80), (b"\x0a\2\0\1", 80)
    assert entry == (False, TCP, 0, 1, *packed, 0, 897, b"", b"")


@pytest.mark.parametrize(
    ("server", "flags"),
    [
        ((WEB.real_servers[0].address, 80), 0),
        ((DIRECT.address, 80), ROUTED | NO_OUTPUT),
        (("10.2.0.99", 80), 0),  # removed: as the service does it
        ((VIP, SORRY_PORT), 0),  # the other box resets it, so the client does not wait
    ],
)
def test_how_packets_get_to_the_server(server, flags):
    [entry] = told(line("TCP", VIP, 80, server, "ESTABLISHED"))
    assert entry.flags == flags
    [entry] = told(line("UDP", VIP, 53, ("10.2.0.1", 53), "UDP"))
    assert entry.flags == TUNNELED | NO_OUTPUT | INACTIVE and entry.state == 0


@pytest.mark.parametrize(
    ("protocol", "port", "states"),
    [
        (
            "TCP", 80,
            {"NONE": None, "ESTABLISHED": 1, "SYN_SENT": None, "FIN_WAIT": 4, "TIME_WAIT": 5, "CLOSE": 6,
             "CLOSE_WAIT": 7, "LAST_ACK": None, "LISTEN": None, "SYNACK": None, "ERR!": None},
        ),
        (
            "SCTP", 9000,
            {"NONE": None, "INIT1": None, "C-WAIT": None, "C-ECHOED": None, "ESTABLISHED": 8, "S-SENT": 9,
             "S-RECEIVED": 10, "S-ACK-SENT": 11, "REJECTED": None, "CLOSED": 13},
        ),
    ],
)  # fmt: skip
def test_the_states_that_the_kernel_itself_tells(protocol, port, states):
    for state, number in states.items():
        found = told(line(protocol, VIP, port, ("10.2.0.1", port), state))
        assert [one.state for one in found] == ([] if number is None else [number]), state
        assert [bool(one.flags & INACTIVE) for one in found] == ([state != "ESTABLISHED"] if found else [])


def test_the_mark_of_a_service_of_several_ports_and_of_several_protocols():
    for port in (8000, 8002, 8004):
        [entry] = told(line("TCP", VIP, port, ("10.2.0.1", port), "ESTABLISHED"))
        assert entry.mark == 5
    assert not told(line("TCP", VIP, 8001, ("10.2.0.1", 8001), "ESTABLISHED"))
    for protocol, state in (("TCP", "ESTABLISHED"), ("UDP", "UDP")):
        [entry] = told(line(protocol, VIP6, 514, ("2001:db8:2::1", 514), state))
        assert (entry.mark, entry.six) == (6, True)


def test_templates_are_told_with_the_whole_time_of_their_service():
    """The other box starts them again with what it was told, whenever that client comes."""
    plain = line("TCP", VIP6, 80, ("2001:db8:2::1", 80), "ASSURED", 3, client_port=0)
    [entry] = told(plain)
    assert (entry.flags, entry.state, entry.timeout, entry.mark) == (TEMPLATE, 1, 360, 0)
    [entry] = told(plain.replace("ASSURED", "NONE   "))
    assert (entry.state, entry.timeout) == (0, 360)
    [mark] = told(line("IP", "0.0.0.5", 0, ("10.2.0.1", 0), "NONE", 3, client_port=0))
    assert (mark.protocol, mark.timeout, mark.mark, mark.virtual) == (0, 60, 5, (b"\0\0\0\5", 0))
    [six] = told(line("IP", "0:6::", 0, ("2001:db8:2::1", 0), "NONE", 3, client=CLIENT6, client_port=0))
    assert (six.timeout, six.mark) == (50, 6)
    call = line("UDP", VIP, 5060, ("10.2.0.1", 5060), "ASSURED", 3, client_port=0, more=" sip a@b")
    [entry] = told(call)
    assert (entry.engine, entry.engine_data, entry.timeout) == (b"sip", b"a@b", 40)


@pytest.mark.parametrize(
    "one",
    [
        line("TCP", VIP, 81, ("10.2.0.1", 81), "ESTABLISHED"),  # of a service that was removed
        line("TCP", "10.1.0.101", 80, ("10.2.0.1", 80), "ESTABLISHED"),
        line("TCP", VIP, 8080, ("10.2.0.1", 80), "ESTABLISHED"),  # … or switched off
        line("IP", "0.0.0.77", 0, ("10.2.0.1", 0), "NONE", client_port=0),
        line("IP", "0.0.0.6", 0, ("10.2.0.1", 0), "NONE", client_port=0),  # a mark of the other IP version
        line("TCP", VIP, 80, ("2001:db8:2::1", 80), "ESTABLISHED"),  # mixed
        line("TCP", VIP, 0, ("10.2.0.1", 0), "ASSURED", client_port=0),  # FTP
        line("IP", "0.0.0.5", 65535, ("10.2.0.1", 65535), "NONE", client_port=0),  # given up by the kernel
        line("TCP", VIP, 80, ("10.2.0.1", 80), "NONE", client_port=0),  # a template of what is no longer persistent
        line("UDP", VIP, 123, ("10.2.0.1", 123), "UDP"),  # one packet and no more
        line("UDP", VIP, 5060, ("10.2.0.1", 5060), "UDP"),
        "TCP nonsense\n",
    ],
)
def test_what_is_left_out(one):
    good = line("TCP", VIP, 80, ("10.2.0.2", 80), "ESTABLISHED")
    assert [entry.server for entry in told(good, one, good)] == [(b"\x0a\2\0\2", 80)] * 2


def test_a_connection_that_is_half_open_for_a_moment_is_told():
    """Its client may have been answered, and says the next word to the other box."""
    lines = [line("TCP", VIP, 80, ("10.2.0.1", 80), "SYN_RECV", left, client_port=left) for left in (60, 50, 49, 1)]
    assert [(one.client[1], one.state, one.flags & INACTIVE, one.timeout) for one in told(*lines)] == [
        (60, 3, 0, 60), (50, 3, 0, 50),
    ]  # fmt: skip


def test_a_flood_is_not_told(monkeypatch):
    monkeypatch.setattr("applier.parts.pair.retell.MOST_HALF_OPEN", 3)
    lines = [line("TCP", VIP, 80, ("10.2.0.1", 80), "SYN_RECV", 59, client_port=port) for port in range(10)]
    assert len(told(*lines, line("TCP", VIP, 80, ("10.2.0.1", 80), "ESTABLISHED"))) == 4


def test_the_rest_of_the_time_is_told_and_never_0_which_means_all_of_it():
    times = {seconds: line("TCP", VIP, 80, ("10.2.0.1", 80), "ESTABLISHED", seconds) for seconds in (0, 1, 5, 899)}
    assert [entry.timeout for entry in told(*times.values())] == [1, 1, 5, 899]


def test_a_server_that_was_switched_off_is_forwarded_to_as_before():
    off = RealServer(99, "10.2.0.9", 80, state=ServerState.DISABLED, forwarding=Forwarding.DIRECT)
    snapshot = Snapshot(services=(VirtualService(1, "web", VIP, 80, real_servers=(off,)),))
    [entry] = told(line("TCP", VIP, 80, ("10.2.0.9", 80), "ESTABLISHED"), snapshot=snapshot)
    assert entry.flags == ROUTED | NO_OUTPUT


def many(count: int) -> list[str]:
    return [
        line(
            "TCP",
            VIP,
            80,
            ("10.2.0.1", 80),
            "ESTABLISHED",
            client=f"10.{1 + one // 60000}.0.1",
            client_port=one % 60000,
        )
        for one in range(count)
    ]


def test_all_is_read_before_anything_is_sent_and_there_are_pauses():
    host = Host(many(38 * 40))
    assert retell(host, SNAPSHOT, SECOND).connections == 1520
    assert host.events == ["read", "send", "sleep", "send", "sleep", "send", "sleep"]
    assert [len(sync_bytes.decode(one, 2, LARGEST)) for one in host.sent] == [38] * 40


def test_a_table_that_takes_too_long_is_told_as_far_as_it_was_read():
    host = Host(many(50), cut_off=True)
    found = retell(host, SNAPSHOT, FIRST)
    assert found == Told(50, 0, False)
    assert found.words.endswith("; the rest of the table could not be read within 30 seconds")
    assert len(host.sent) == 2


def test_an_empty_table_sends_nothing():
    host = Host([])
    assert retell(host, SNAPSHOT, FIRST) == Told(0, 0, True) and not host.sent


def test_no_link_is_an_error_and_not_silence():
    host = Host(many(1))

    def multicast(*_):
        raise HostError("send by pair0", None, "No such device")

    host.multicast = multicast
    with pytest.raises(HostError, match="No such device"):
        retell(host, SNAPSHOT, FIRST)


FAMILIES = {VIP: (CLIENT, "10.2.0."), VIP6: (CLIENT6, "2001:db8:2::")}


@st.composite
def connections(draw):
    vip, protocol, port, state = draw(
        st.sampled_from(
            [(VIP, "TCP", 80, "ESTABLISHED"), (VIP, "UDP", 53, "UDP"), (VIP6, "TCP", 80, "FIN_WAIT"),
             (VIP6, "UDP", 514, "UDP"), (VIP, "SCTP", 9000, "S-SENT"), (VIP, "TCP", 8003, "TIME_WAIT")]
        )
    )  # fmt: skip
    server = f"{FAMILIES[vip][1]}{draw(st.integers(1, 2))}"
    return protocol, vip, port, (server, port), state, draw(st.integers(1, 10**6)), "", draw(st.integers(1, 65535))


@given(st.lists(connections(), max_size=60))
def test_what_the_kernel_lists_is_what_the_other_kernel_gets(given_ones):
    entries = told(*(line(*one) for one in given_ones))
    assert len(entries) == len(given_ones)
    for one, entry in zip(given_ones, entries, strict=True):
        protocol, vip, port, server, _, seconds, _, client_port = one
        ends = (FAMILIES[vip][0], client_port), (vip, port), server
        assert (entry.client, entry.virtual, entry.server) == tuple(
            (ipaddress.ip_address(address).packed, number) for address, number in ends
        )
        assert (entry.protocol, entry.timeout) == ({"TCP": TCP, "UDP": UDP, "SCTP": SCTP}[protocol], seconds)
