"""The decoder against bytes that are built from linux/ip_vs.h without it."""

import socket
import struct

import netlink_bytes as nl
import pytest

from applier.host import ipvs_netlink
from applier.host.ipvs_netlink import Daemon, NetlinkError
from lbconfig.wanted.table import Server, Service


class Kernel:
    """Answers requests; `servers` by port of the service."""

    def __init__(self, services=(), servers=None):
        self.services, self.servers, self.requests = services, servers or {}, []

    def __call__(self, request):
        self.requests.append(request)
        if len(self.requests) == 1:
            return [nl.family()]
        command = request[16]
        if command == 4:
            return [b"".join(nl.message(4, body) for body in self.services), nl.DONE]
        number = len([one for one in self.requests if one[16] == 8 and one[4:6] != b"\x10\x00"]) - 1
        return [*(nl.message(8, body) for body in self.servers.get(number, ())), nl.DONE]


def test_services_and_servers():
    kernel = Kernel(
        [nl.service(6, "192.0.2.1", 80, "wlc"), nl.service(17, "192.0.2.1", 53, "rr", flags=3, timeout=300)],
        {
            0: [nl.dest("10.0.0.1", 80, 5, active=7, inactive=9), nl.dest("10.0.0.2", 8080, 0, method=3)],
            1: [nl.dest("10.0.0.3", 53, 65535, method=2, with_af=False)],
        },
    )
    found = ipvs_netlink.dump(kernel)
    table = ipvs_netlink.to_table(found)
    web, dns = Service("tcp", "192.0.2.1", 80, "wlc"), Service("udp", "192.0.2.1", 53, "rr", persistence=300, prefix=32)
    assert table.services == {
        web: {("10.0.0.1", 80): Server(5, "masq"), ("10.0.0.2", 8080): Server(0, "route")},
        dns: {("10.0.0.3", 53): Server(65535, "tunnel")},
    }
    entry = found[0].servers["10.0.0.1", 80]
    assert (entry.server.weight, entry.active, entry.inactive) == (5, 7, 9)


def test_the_requests_are_what_the_kernel_expects():
    kernel = Kernel([nl.service(6, "192.0.2.1", 80, "wlc")])
    ipvs_netlink.dump(kernel)
    family, services, servers = kernel.requests
    assert family == struct.pack("=IHHIIBBH", 32, 16, 1, 1, 0, 3, 1, 0) + nl.attr(2, b"IPVS\0")
    assert services == struct.pack("=IHHIIBBH", 20, nl.FAMILY, 0x301, 1, 0, 4, 1, 0)
    about = nl.attr(
        0x8001,
        nl.attr(1, struct.pack("=H", socket.AF_INET))
        + nl.attr(2, struct.pack("=H", 6))
        + nl.attr(3, socket.inet_aton("192.0.2.1").ljust(16, b"\0"))
        + nl.attr(4, struct.pack("!H", 80)),
    )
    assert servers == struct.pack("=IHHIIBBH", 20 + len(about), nl.FAMILY, 0x301, 1, 0, 8, 1, 0) + about


def test_ipv6_firewall_marks_and_flags_are_told_apart():
    kernel = Kernel(
        [
            nl.service(6, "2001:db8::1", 80, "mh", flags=0x32, af=socket.AF_INET6),
            nl.fwmark_service(7, "sh"),
            nl.service(132, "192.0.2.9", 9, "rr", flags=0x6),
        ],
        {0: [nl.dest("2001:db8::2", 80, 1, af=socket.AF_INET6)]},
    )
    six, mark, sctp = ipvs_netlink.dump(kernel)
    assert (six.af, six.service) == (socket.AF_INET6, Service("tcp", "2001:db8::1", 80, "mh", ("flag-2", "flag-3")))
    assert list(six.servers) == [("2001:db8::2", 80)]
    assert mark.service == Service("fwm", "", 7, "sh")
    assert sctp.service == Service("sctp", "192.0.2.9", 9, "rr", ("ops",))


@pytest.mark.parametrize(
    ("service", "about"),
    [
        (Service("tcp", "192.0.2.1", 80, "rr"), nl.attr(1, b"\x02\0") + nl.attr(2, b"\x06\0")),
        (Service("sctp", "2001:db8::1", 9, "rr"), nl.attr(1, b"\x0a\0") + nl.attr(2, b"\x84\0")),
        (Service("fwm", "", 7, "sh"), nl.attr(1, b"\x02\0") + nl.attr(5, struct.pack("=I", 7))),
        (Service("fwm6", "", 7, "sh"), nl.attr(1, b"\x0a\0") + nl.attr(5, struct.pack("=I", 7))),
    ],
)
def test_the_servers_of_one_service_alone(service, about):
    kernel = Kernel(servers={0: [nl.dest("10.0.0.1", 80, 5, active=7, inactive=9)]})
    [(place, one)] = ipvs_netlink.servers(kernel, service).items()
    assert (place, one.active, one.inactive) == (("10.0.0.1", 80), 7, 9)
    request = kernel.requests[-1]
    assert request[16] == 8 and request[24 : 24 + len(about)] == about


def test_a_kernel_without_ip_vs():
    with pytest.raises(NetlinkError, match="no IPVS"):
        ipvs_netlink.dump(lambda request: [nl.error(2)])


def test_errors_are_raised_with_their_number():
    answers = iter([[nl.family()], [nl.error(1)]])
    with pytest.raises(NetlinkError, match="error 1"):
        ipvs_netlink.dump(lambda request: next(answers))


def test_a_dump_that_was_disturbed_is_asked_again():
    disturbed = nl.message(4, nl.service(6, "192.0.2.1", 80, "wlc"), flags=0x12)
    good = [nl.message(4, nl.service(6, "192.0.2.1", 80, "rr")), nl.DONE]
    answers = iter([[nl.family()], [disturbed, nl.DONE], good, [nl.DONE]])
    found = ipvs_netlink.dump(lambda request: next(answers))
    assert found[0].service.scheduler == "rr"
    answers = iter([[nl.family()], *([disturbed, nl.DONE] for _ in range(5))])
    with pytest.raises(NetlinkError, match="changed during"):
        ipvs_netlink.dump(lambda request: next(answers))


@pytest.mark.parametrize(
    "datagram",
    [
        nl.message(4, nl.attr(0x8001, nl.attr(1, b"\x02\x00"))),
        nl.message(4, b"\xff\xff\x01\x80"),
        nl.message(4, b"\x02\x00\x01\x80"),
        struct.pack("=IHHII", 400, 29, 2, 1, 0) + b"\0" * 20,
    ],
)
def test_an_answer_cut_short_is_an_error_and_no_crash(datagram):
    answers = iter([[nl.family()], [datagram, nl.DONE]])
    with pytest.raises(NetlinkError):
        ipvs_netlink.dump(lambda request: next(answers))


def test_the_end_of_an_answer():
    assert not ipvs_netlink.is_last(nl.message(4, b""))
    assert ipvs_netlink.is_last(nl.message(4, b"") + nl.DONE)
    assert ipvs_netlink.is_last(nl.error(2))
    assert ipvs_netlink.is_last(nl.family())


def test_tunnels_are_told_apart():
    kinds = {"10.0.0.1": (0, 0, 0), "10.0.0.2": (1, 6080, 0), "10.0.0.3": (2, 0, 1), "10.0.0.4": (1, 5555, 2)}
    servers = [nl.dest(address, 80, 1, method=2, tunnel=kind) for address, kind in kinds.items()]
    # The kernel tells the kind for other methods, too; it means nothing there.
    servers.append(nl.dest("10.0.0.5", 80, 1, method=3, tunnel=(1, 6080, 0)))
    [found] = ipvs_netlink.dump(Kernel([nl.service(6, "192.0.2.1", 80, "wlc")], {0: servers}))
    assert [one.server.tunnel for one in found.servers.values()] == [
        "",
        "--tun-type gue --tun-port 6080 --tun-nocsum",
        "--tun-type gre --tun-csum",
        "--tun-type gue --tun-port 5555 --tun-remcsum",
        "",
    ]


def test_masks_and_thresholds():
    wide, narrow = b"\xff\xff\xfe\x00", struct.pack("=I", 56)
    kernel = Kernel(
        [
            nl.service(6, "192.0.2.1", 80, "sh", flags=0x1 | 0x8, timeout=60, mask=wide),
            nl.service(6, "2001:db8::1", 80, "rr", flags=0x1, timeout=61, af=socket.AF_INET6, mask=narrow),
        ],
        {0: [nl.dest("10.0.0.1", 80, 5, upper=100, lower=80)]},
    )
    four, six = ipvs_netlink.dump(kernel)
    assert four.service == Service("tcp", "192.0.2.1", 80, "sh", ("flag-1",), 60, 23)
    assert six.service == Service("tcp", "2001:db8::1", 80, "rr", (), 61, 56)
    assert four.servers["10.0.0.1", 80].server == Server(5, "masq", 100, 80)


def test_the_daemons_that_run():
    bodies = [nl.daemon(1, "pair0", 1, 1392), nl.daemon(2, "pair0", 2, 1392, "224.0.0.99", 8000)]
    answers = iter([[nl.family()], [b"".join(nl.message(9, body) for body in bodies), nl.DONE]])
    assert ipvs_netlink.daemons(lambda request: next(answers)) == (
        Daemon("master", "pair0", 1),
        Daemon("backup", "pair0", 2, group="224.0.0.99", port=8000),
    )


def test_starting_and_stopping_a_daemon_are_what_the_kernel_expects():
    asked = []

    def kernel(request):
        asked.append(request)
        return [nl.family()] if len(asked) % 2 else [nl.error(0)]

    ipvs_netlink.start_daemon(kernel, Daemon("master", "pair0", 2))
    ipvs_netlink.stop_daemon(kernel, "backup")
    about = nl.attr(
        0x8003,
        nl.attr(1, struct.pack("=I", 1))
        + nl.attr(2, b"pair0\0")
        + nl.attr(3, struct.pack("=I", 2))
        + nl.attr(4, struct.pack("=H", 1392))
        + nl.attr(5, socket.inet_aton("224.0.0.81"))
        + nl.attr(7, struct.pack("=H", 8848))
        + nl.attr(8, b"\1"),
    )
    assert asked[1] == struct.pack("=IHHIIBBH", 20 + len(about), nl.FAMILY, 0x5, 1, 0, 9, 1, 0) + about
    about = nl.attr(0x8003, nl.attr(1, struct.pack("=I", 2)))
    assert asked[3] == struct.pack("=IHHIIBBH", 20 + len(about), nl.FAMILY, 0x5, 1, 0, 10, 1, 0) + about


def test_a_daemon_that_the_kernel_refuses():
    answers = iter([[nl.family()], [nl.error(17)]])
    with pytest.raises(NetlinkError, match="error 17") as caught:
        ipvs_netlink.start_daemon(lambda request: next(answers), Daemon("backup", "pair0", 1))
    assert caught.value.number == 17
