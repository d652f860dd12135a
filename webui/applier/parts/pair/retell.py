"""Tell the other box all connections that there are, where the kernel alone tells only those that speak.

A box that comes later, or back, learns of a connection from the kernel when the next packet of its client passes; a
quiet one it never hears of. So the whole table is sent at once, in the kernel's own format and to its own thread on
the other box (decision 84). What is sent of it:

- Connections in the states in which the kernel itself sends them; of a service with one-packet scheduling there is
  nothing to keep; where the client and the server are of different IP versions the kernel takes none.
- Those that have been half open for a moment, which the kernel does not send. The server may have answered such a
  client: then he is connected, and what he says next comes to the other box after a hand-over. Those that have been so
  for longer are a flood's, and no more than some thousands are told.
- The mark of the service, which is not in the table that can be read. An entry without it is bound to no server at the
  other box, and never will be. A connection of no service that is configured is left out.
- No template of FTP: it has no port, and the other kernel finds no service for it (ip_vs_service_find), so it would
  be given up there.
- The seconds that are left, for the copy should not outlive what it is a copy of. A template is told with the whole
  time of its service: the kernel starts it again with what it was told, for each connection of that client, and with
  a small rest the other box would forget its clients after that.

All of it is read before anything is sent. The kernel lists by position: the longer somebody reads, the more
connections he misses because others have come and gone meanwhile.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from itertools import islice

from applier.host import ipvs_connections, ipvs_sync
from applier.host.host import Host, OutOfTime
from applier.host.ipvs_connections import Connection, ConnectionsError
from applier.host.ipvs_sync import INACTIVE, MASQUERADED, NO_OUTPUT, ROUTED, TEMPLATE, TUNNELED, Record
from lbconfig.model.snapshot import Forwarding, Snapshot, VirtualService
from lbconfig.wanted.pair_link import LINK, PairLink

log = logging.getLogger("applier")

# Before Linux 6.14 each piece of /proc/net/ip_vs_conn is looked for from the beginning (178883fd039d fixes that): the
# time grows with the square of the connections. 20,000 took such a kernel 7.4 s in the lab, 100,000 more than 2 min.
READING = 30.0  # seconds; what was read until then is told
AT_ONCE = 16  # datagrams, and then a pause: the other box's kernel takes them out of a buffer one after the other
PAUSE = 0.002  # seconds

HALF_OPEN = 60  # seconds that the kernel gives one (tcp_timeouts of ip_vs_proto_tcp.c); nobody can set it
MOMENT = 10  # seconds, which a slow box may take for a hand-over
MOST_HALF_OPEN = 5_000

_FORGOTTEN = 0xFFFF  # the port of a template that the kernel has given up (ip_vs_check_template)
_BITS = {
    Forwarding.NAT: MASQUERADED,
    Forwarding.SNAT: MASQUERADED,
    Forwarding.DIRECT: ROUTED | NO_OUTPUT,
    Forwarding.TUNNEL: TUNNELED | NO_OUTPUT,
    Forwarding.GRE: TUNNELED | NO_OUTPUT,
    Forwarding.GUE: TUNNELED | NO_OUTPUT,
}
# Which states are told (ip_vs_sync_conn_needed), by their numbers in net/ip_vs.h, and which of them count as active.
_STATES = {
    socket.IPPROTO_TCP: {b"ESTABLISHED": 1, b"FIN_WAIT": 4, b"TIME_WAIT": 5, b"CLOSE": 6, b"CLOSE_WAIT": 7},
    socket.IPPROTO_UDP: {b"UDP": 0},
    socket.IPPROTO_SCTP: {b"ESTABLISHED": 8, b"S-SENT": 9, b"S-RECEIVED": 10, b"S-ACK-SENT": 11, b"CLOSED": 13},
}
_ACTIVE = (b"ESTABLISHED", b"SYN_RECV")
_OPENING, _OPENING_STATE = b"SYN_RECV", 3
_TEMPLATE_STATES = {b"NONE": 0, b"ASSURED": 1}
_NUMBERS = {"tcp": socket.IPPROTO_TCP, "udp": socket.IPPROTO_UDP, "sctp": socket.IPPROTO_SCTP}


@dataclass(frozen=True, slots=True)
class Told:
    connections: int  # that were sent, templates among them
    left_out: int  # that need not be, or cannot
    whole: bool  # whether all of the table was read

    @property
    def words(self) -> str:
        """For the log."""
        end = "" if self.whole else f"; the rest of the table could not be read within {READING:g} seconds"
        return f"{self.connections} connections told to the other box, {self.left_out} left out{end}"


class Services:
    """Which service a connection belongs to. Of a million connections few have a service that was not asked for."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._places: dict[tuple[int, bytes], list[tuple[int, int, VirtualService]]] = {}
        self._marks: dict[tuple[int, int], VirtualService] = {}  # length of an address, mark
        self._known: dict[tuple[int, bytes, int], VirtualService | None] = {}
        self._methods: dict[tuple[int, bytes, int], int] = {}
        for service in snapshot.enabled_services:
            vips = [ip_address(address).packed for address in service.vips]
            for number in (_NUMBERS[name] for name in service.protocol.parts):
                for vip in vips:
                    ranges = self._places.setdefault((number, vip), [])
                    ranges += ((first, last, service) for first, last in service.port_ranges)
            if service.by_mark:
                self._marks[len(vips[0]), service.mark] = service

    def of(self, one: Connection) -> VirtualService | None:
        """None: it belongs to none that is configured."""
        port = one.virtual_port
        if one.protocol == socket.IPPROTO_IP:
            # The union of an address has the mark in its first four bytes (ip_vs_sched_persist).
            mark = int.from_bytes(one.virtual[:4], "big")
            return None if port == _FORGOTTEN else self._marks.get((len(one.virtual), mark))
        key = (one.protocol, one.virtual, port)
        if key not in self._known:
            ranges = self._places.get((one.protocol, one.virtual), ())
            self._known[key] = next((service for first, last, service in ranges if first <= port <= last), None)
        return self._known[key]

    def method(self, service: VirtualService, server: bytes, port: int) -> int:
        """How packets get to this server, in the bits of a record. One that was removed: as the service does it."""
        key = (service.id, server, port)
        if key not in self._methods:
            there = [one for one in service.machines if ip_address(one.address).packed == server]
            there.sort(key=lambda one: one.port != port)
            self._methods[key] = _BITS[service.forwarding_of(there[0]) if there else service.forwarding]
        return self._methods[key]


def is_opening(one: Connection) -> bool:
    """Whether its client may have been answered a moment ago, and the kernel has not told of it."""
    tcp = one.protocol == socket.IPPROTO_TCP and not one.template
    return tcp and one.state == _OPENING and one.seconds >= HALF_OPEN - MOMENT


def record(one: Connection, services: Services) -> Record | None:
    """What the other box is told of a connection; None: nothing."""
    service = services.of(one)
    if service is None or len(one.client) != len(one.server):
        return None
    if one.template:
        if not service.persistence:
            return None
        flags, state, seconds = TEMPLATE, _TEMPLATE_STATES[one.state], service.persistence
    else:
        states = _STATES.get(one.protocol, {})
        if is_opening(one):
            states = {_OPENING: _OPENING_STATE}
        one_packet = one.protocol == socket.IPPROTO_UDP and (service.one_packet or service.call_id)
        if one.state not in states or one_packet:
            return None
        flags, state = 0 if one.state in _ACTIVE else INACTIVE, states[one.state]
        seconds = max(1, one.seconds)  # with 0 it would get the whole time
    return Record(
        one.protocol,
        one.client,
        one.client_port,
        one.virtual,
        one.virtual_port,
        one.server,
        one.server_port,
        flags | services.method(service, one.server, one.server_port),
        state,
        service.mark if service.by_mark else 0,
        seconds,
        one.engine,
        one.engine_data,
    )


class _Table:
    """The table, gone through once, and what was counted meanwhile."""

    def __init__(self, host: Host, services: Services) -> None:
        self.told = self.left_out = self.unread = self._opening = 0
        self.whole = True
        self._host = host
        self._services = services

    def records(self) -> Iterator[Record]:
        try:
            for line in self._host.lines(ipvs_connections.PATH, READING):
                if found := self._record(line):
                    self.told += 1
                    yield found
        except OutOfTime:
            self.whole = False

    def _record(self, line: bytes) -> Record | None:
        try:
            one = ipvs_connections.parse(line)
        except ConnectionsError as error:
            if not self.unread:
                log.warning("not told to the other box: %s", error)
            self.unread += 1
            return None
        found = record(one, self._services) if one else None
        if one is not None and found is not None and is_opening(one):
            self._opening += 1
            found = found if self._opening <= MOST_HALF_OPEN else None
        self.left_out += one is not None and found is None
        return found


def retell(host: Host, snapshot: Snapshot, link: PairLink) -> Told:
    """Send the whole table to the other box. Raises HostError where it cannot be read or sent."""
    table = _Table(host, Services(snapshot))
    own, _ = link.sync_ids
    datagrams = list(ipvs_sync.datagrams(table.records(), own))
    for some in _several(datagrams):
        host.multicast(LINK, ipvs_sync.GROUP, ipvs_sync.PORT, some)
        host.sleep(PAUSE)
    told = Told(table.told, table.left_out + table.unread, table.whole)
    log.info("%s", told.words)
    return told


def _several(datagrams: Iterable[bytes]) -> Iterator[list[bytes]]:
    rest = iter(datagrams)
    while some := list(islice(rest, AT_ONCE)):
        yield some
