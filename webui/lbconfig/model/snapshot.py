"""The snapshot: one complete, immutable configuration of the box.

A snapshot is plain data. `from_json` checks its *shape* (types, unknown and missing keys) and names
the path of what is wrong; whether it makes sense is `lbconfig.validate`'s question.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from lbconfig.model import ports
from lbconfig.model.firewall import NO_RULES, Firewall
from lbconfig.model.network import INTERFACE
from lbconfig.model.network import Bond as Bond
from lbconfig.model.network import BondMode as BondMode
from lbconfig.model.network import Bridge as Bridge
from lbconfig.model.network import HashPolicy as HashPolicy
from lbconfig.model.network import Interface as Interface
from lbconfig.model.network import LacpRate as LacpRate
from lbconfig.model.network import Network as Network
from lbconfig.model.network import PolicyRoute as PolicyRoute
from lbconfig.model.network import StaticRoute as StaticRoute
from lbconfig.model.network import Vlan as Vlan
from lbconfig.model.pair import Pair as Pair
from lbconfig.model.pair import PairBox as PairBox
from lbconfig.model.ports import PORT, PORTS
from lbconfig.model.reading import MAX_ITEMS as MAX_ITEMS
from lbconfig.model.reading import MAX_TEXT as MAX_TEXT
from lbconfig.model.reading import SnapshotError as SnapshotError
from lbconfig.model.reading import build
from lbconfig.model.tuning import CardChoice as CardChoice
from lbconfig.model.tuning import Power as Power
from lbconfig.model.tuning import SettingChoice as SettingChoice
from lbconfig.model.tuning import Tuning as Tuning
from lbconfig.model.writing import SPARSE, written
from lbconfig.model.writing import plain as plain

Kind = TypeVar("Kind")

SCHEMA = 3
MAX_LINES = 50_000  # characters of a field that may have several lines
MAX_PROGRAM = 16_000  # characters of a program that checks servers
MAX_PROGRAMS = 1_000_000  # of all of them together
MAX_REQUESTS = 5  # of a web check, beside the first one
MAX_KEY = 20_000  # characters of a private key; one of RSA 8192 has about 6,400
SECRET = {"secret": True}  # of a field that is left out where it need not be seen (redact.py)
HTTPS_PORT = 443  # TCP; where a browser looks by itself
SORRY_PORT = 64503  # TCP, on every VIP whose service shows the sorry page; above the ports that the kernel gives away


class Protocol(StrEnum):
    TCP = "tcp"
    UDP = "udp"
    TCP_UDP = "tcp+udp"
    SCTP = "sctp"

    @property
    def by_mark(self) -> bool:
        """Whether a service of it has to be known by a mark: ldirectord has no word for it."""
        return self not in (Protocol.TCP, Protocol.UDP)

    @property
    def parts(self) -> tuple[str, ...]:
        """As the kernel knows them."""
        return tuple(self.value.split("+"))


class Scheduler(StrEnum):
    """The kernel's names (ip_vs_*.ko)."""

    RR = "rr"
    WRR = "wrr"
    LC = "lc"
    WLC = "wlc"
    SED = "sed"
    NQ = "nq"
    SH = "sh"
    MH = "mh"
    DH = "dh"
    LBLC = "lblc"
    LBLCR = "lblcr"
    FO = "fo"
    OVF = "ovf"
    TWOS = "twos"


HASHING = frozenset({Scheduler.SH, Scheduler.MH})  # those that have the options `hash_port` and `hash_next`


class Forwarding(StrEnum):
    """How a packet gets from the box to a real server, and where the answer goes."""

    NAT = "nat"
    SNAT = "snat"  # NAT with the box's own address as the source
    DIRECT = "direct"  # direct routing
    TUNNEL = "tunnel"  # IP in IP
    GRE = "gre"  # a tunnel, too
    GUE = "gue"  # a tunnel, too, in UDP


TUNNELS = frozenset({Forwarding.TUNNEL, Forwarding.GRE, Forwarding.GUE})
GUE_PORT = 6080  # UDP; IANA's "gue"
THROUGH_THE_BOX = frozenset({Forwarding.NAT, Forwarding.SNAT})  # the answers come back here and are rewritten


class CheckKind(StrEnum):
    """Those that speak a protocol have ldirectord's names (its keyword `service`)."""

    CONNECT = "connect"
    HTTP = "http"
    HTTPS = "https"
    PING = "ping"
    OFF = "off"
    SMTP = "smtp"
    SUBMISSION = "submission"
    IMAP = "imap"
    IMAPS = "imaps"
    POP = "pop"
    POPS = "pops"
    FTP = "ftp"
    NNTP = "nntp"
    DNS = "dns"
    LDAP = "ldap"
    LDAPS = "ldaps"
    MYSQL = "mysql"
    PGSQL = "pgsql"
    RADIUS = "radius"
    SIP = "sip"
    SIMPLETCP = "simpletcp"
    PROGRAM = "program"  # of the admin's own; ldirectord's "external"


class HttpMethod(StrEnum):
    """How a web server is asked."""

    GET = "get"
    HEAD = "head"
    POST = "post"


class Matching(StrEnum):
    """How the expected text is looked for in an answer."""

    CONTAINS = "contains"
    LACKS = "lacks"
    PATTERN = "pattern"  # a regular expression of Perl, of ASCII letters
    LACKS_PATTERN = "lacks-pattern"

    @property
    def by_pattern(self) -> bool:
        return self in (Matching.PATTERN, Matching.LACKS_PATTERN)

    @property
    def lacks(self) -> bool:
        return self in (Matching.LACKS, Matching.LACKS_PATTERN)


@dataclass(frozen=True, slots=True)
class Request:
    """One more request of a web check, beside its first one."""

    path: str
    expect: str = ""  # text that the answer must contain; empty: any good answer


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """How ldirectord asks a real server whether it is up. Times in seconds."""

    # Which kind uses what, checks.py knows.

    kind: CheckKind = CheckKind.CONNECT
    port: int = dataclasses.field(default=0, metadata=PORT)  # 0: the real server's own port
    path: str = "/"  # what is requested
    host: str = ""  # the Host header, and without its port what TLS asks for; empty: the real server's address
    expect: str = ""  # text, or as `matching` has it, that the answer must contain; empty: any good answer
    interval: int = 2
    timeout: int = 2
    failures: int = 2  # failed checks in a row before the server leaves
    successes: int = 1  # good checks in a row before a server that has failed comes back
    retry: int = 0  # seconds between the checks of a server that has failed and is still in; 0: `interval`
    login: str = ""  # empty: the greeting is enough
    password: str = dataclasses.field(default="", metadata=SECRET)
    secret: str = dataclasses.field(default="", metadata=SECRET)  # that RADIUS servers and this box share
    database: str = ""
    ask: str = ""  # dns: a name; ldap: a base that must be there; simpletcp: what is sent, \\n for a new line
    verify: bool = False  # whether the server's certificate must be good and for `host`
    # PEM certificates of those who may have signed it; empty: the public authorities
    authority: str = dataclasses.field(default="", metadata={"longest": MAX_LINES})
    connects: int = 0  # plain TCP connects between two whole checks
    method: HttpMethod = HttpMethod.GET
    statuses: str = ""  # of HTTP, that count as good: 200-299,401; empty: 200-299
    matching: Matching = Matching.CONTAINS  # of `expect`
    old_tls: bool = False  # TLS 1.0 and 1.1 and what goes with them, which anybody on the way can break, will do
    # of PROGRAM: its text, which begins with a "#!" line
    program: str = dataclasses.field(default="", metadata={"longest": MAX_PROGRAM, "tabs": True})
    more_requests: tuple[Request, ...] = ()  # of HTTP: sent after the first one, and their answers must be good as well


class FallbackKind(StrEnum):
    NONE = "none"
    PAGE = "page"  # the sorry page of this box
    SERVER = "server"


class FallbackCheck(StrEnum):
    """How a fallback server is asked whether it is up."""

    OFF = "off"  # it gets connections whatever it does
    CONNECT = "connect"  # by a TCP connection to its port
    SAME = "same"  # as the real servers are


@dataclass(frozen=True, slots=True)
class Fallback:
    """Who answers while every real server of a service is down."""

    kind: FallbackKind = FallbackKind.NONE
    address: str = ""  # of SERVER
    port: int = dataclasses.field(default=0, metadata=PORT)  # of SERVER; 0: that of the service
    check: FallbackCheck = FallbackCheck.OFF  # of SERVER; while it is down, clients are refused instead of sent there


class AgentKind(StrEnum):
    """What tells how much load a real server can take."""

    OFF = "off"
    TEXT = "text"  # a line of HAProxy's agent-check or Loadbalancer.org's feedback agent
    HTTP = "http"  # the page /load as Kemp's agents have it: 0 idle, 100 busy
    RESPONSE = "response"  # nobody: the time that its health checks take


@dataclass(frozen=True, slots=True)
class Agent:
    """How the load of the real servers changes their weights."""

    kind: AgentKind = AgentKind.OFF
    port: int = dataclasses.field(default=3333, metadata=PORT)
    interval: int = 5  # seconds between two questions
    floor: int = 10  # per cent of its weight that a server gets at least


class TooFew(StrEnum):
    """What happens when fewer servers are up than there should be."""

    TELL = "tell"
    KEEP = "keep"  # the last ones stay, though their checks fail
    ASIDE = "aside"  # none serves: it is as if all were down


@dataclass(frozen=True, slots=True)
class LeastHealthy:
    """How many real servers must be up."""

    servers: int = 0  # 0: any number will do
    then: TooFew = TooFew.TELL
    again: int = 0  # of ASIDE: so many must be up before they serve again; 0: `servers`


class ServerState(StrEnum):
    """What the admin chose for a real server, whatever its health."""

    ENABLED = "enabled"
    QUIESCED = "quiesced"  # in the table with weight 0: what is open goes on, nothing new comes
    DISABLED = "disabled"  # not in the table


@dataclass(frozen=True, slots=True)
class RealServer:
    """`upper` and `lower` are connections: at `upper` it gets no new ones until it is below `lower`."""

    id: int  # unique within the snapshot, stable while the server is edited
    address: str
    port: int = dataclasses.field(metadata=PORT)  # 0, for services by mark only: the port that the client asked for
    weight: int = 1
    state: ServerState = ServerState.ENABLED
    upper: int = 0  # 0: no limit
    lower: int = 0  # 0: the kernel takes three quarters of `upper`
    forwarding: Forwarding | None = None  # None: that of the service
    name: str = ""  # for people; empty: it is known by its address

    @property
    def in_table(self) -> bool:
        return self.state is not ServerState.DISABLED


@dataclass(frozen=True, slots=True, weakref_slot=True)
class VirtualService:
    id: int  # unique within the snapshot, stable while the service is edited
    name: str
    address: str  # the VIP
    port: int = dataclasses.field(metadata=PORT)
    protocol: Protocol = Protocol.TCP
    scheduler: Scheduler = Scheduler.WLC
    forwarding: Forwarding = Forwarding.NAT
    check: HealthCheck = HealthCheck()
    real_servers: tuple[RealServer, ...] = ()
    enabled: bool = True  # False: the box does not know it, not even its address
    note: str = ""
    hash_port: bool = False  # of HASHING: the client's port counts too, so one client is spread over servers
    hash_next: bool = False  # of HASHING: a client whose server takes nothing goes to another one
    persistence: int = 0  # seconds for which a client comes back to the same server; 0: not persistent
    persistence_prefix: int = 0  # clients whose addresses agree in so many bits count as one; 0: in all of them
    one_packet: bool = False  # UDP only: each packet is balanced by itself
    call_id: bool = False  # UDP only, with persistence: what comes back to a server is a SIP call, not a client
    fallback: Fallback = Fallback()
    # Beside `port`, as lbconfig.model.ports writes it: "443,8000-8100".
    more_ports: str = dataclasses.field(default="", metadata=PORTS)
    more_addresses: tuple[str, ...] = ()  # beside `address`: it answers at all of them, on the same ports
    agent: Agent = Agent()
    slow_start: int = 0  # seconds in which a server that was down gets back to its weight; 0: at once
    least_healthy: LeastHealthy = LeastHealthy()
    tags: tuple[str, ...] = ()  # for people, who find services by them: whose it is, what it belongs to

    @property
    def weighed(self) -> bool:
        """Whether the health checks decide how much of its weight a server gets."""
        return self.agent.kind is not AgentKind.OFF or self.slow_start > 0

    @property
    def vips(self) -> tuple[str, ...]:
        return (self.address, *self.more_addresses)

    @property
    def port_ranges(self) -> tuple[tuple[int, int], ...]:
        """First and last port of each; the fields must be valid."""
        return ports.parse(f"{self.port},{self.more_ports}" if self.more_ports else str(self.port))

    @property
    def by_mark(self) -> bool:
        """Whether a firewall mark collects its packets."""
        return bool(self.more_ports or self.more_addresses) or self.protocol.by_mark

    @property
    def dead_leave(self) -> bool:
        """Whether a dead server leaves the table instead of staying there with weight 0.

        A UDP client sends to the server that it has been given for as long as its entry lasts, and each packet
        renews that. Only of a server that is gone the kernel forgets the entries (expire_nodest_conn).
        """
        return "udp" in self.protocol.parts

    @property
    def mark(self) -> int:
        return self.id

    def forwarding_of(self, server: RealServer) -> Forwarding:
        return server.forwarding or self.forwarding

    @property
    def fallback_server(self) -> RealServer | None:
        """What ldirectord puts into the table while all real servers are down. Its id is 0."""
        if self.fallback.kind is FallbackKind.PAGE:
            return RealServer(0, self.address, SORRY_PORT, forwarding=Forwarding.NAT)
        if self.fallback.kind is FallbackKind.SERVER:
            return RealServer(0, self.fallback.address, self.fallback.port or self.port)
        return None

    @property
    def machines(self) -> tuple[RealServer, ...]:
        """The real servers, and the fallback server if it is a machine of its own."""
        fallback = self.fallback_server if self.fallback.kind is FallbackKind.SERVER else None
        return (*self.real_servers, fallback) if fallback else self.real_servers


@dataclass(frozen=True, slots=True)
class Management:
    """How the web UI of the box is reached."""

    allow: tuple[str, ...] = ()  # from where: networks as "192.168.0.0/16" or "2001:db8::/32"
    port: int = dataclasses.field(default=HTTPS_PORT, metadata=PORT)
    # PEM, that of the page first, and then who signed it; empty: the box shows its own
    certificate: str = dataclasses.field(default="", metadata={"longest": MAX_LINES})
    key: str = dataclasses.field(default="", repr=False, metadata=SECRET | {"longest": MAX_KEY})  # PEM, not encrypted
    # On which it answers, by where a packet arrives; empty: on all of them.
    interfaces: tuple[str, ...] = dataclasses.field(default=(), metadata=INTERFACE)

    @property
    def page_key(self) -> str:
        """Both as one file, as a web server reads them; empty where the box shows its own."""
        return f"{self.certificate.rstrip()}\n{self.key.rstrip()}\n" if self.certificate else ""

    def answers_on(self, interface: str) -> bool:
        """Whether a packet that arrives on this interface may be for the web page."""
        return not self.interfaces or interface in self.interfaces


@dataclass(frozen=True, slots=True)
class SorryPage:
    """What clients see where a service has FallbackKind.PAGE; plain text."""

    title: str = "We will be back soon"
    paragraphs: tuple[str, ...] = ("This site does not answer at the moment. Please try again in a few minutes.",)


class FloodDefence(StrEnum):
    """When IPVS makes room in its table of connections: the half-open ones go first."""

    AUTOMATIC = "automatic"  # as soon as memory runs short, and then it turns new ones away, too
    ALWAYS = "always"  # all the time; new ones are turned away as with AUTOMATIC
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Policy:
    """How IPVS treats connections, of all services alike. Times in seconds; the kernel's own values to begin with."""

    tcp_timeout: int = 900  # until a silent TCP connection is forgotten
    fin_timeout: int = 120  # until one is that is being closed
    udp_timeout: int = 300  # until a silent UDP exchange is
    release_removed: bool = True  # clients of a server that is not in the table any more are balanced anew
    release_persistent: bool = True  # a persistent client leaves a server of weight 0
    reuse_ports: bool = True  # a client that uses a port again is balanced anew
    adopt: bool = False  # TCP connections whose beginning the box has not seen are taken
    icmp_errors: bool = False  # ICMP errors of connections that the box does not know are passed on
    route_answers: bool = True  # the route of an answer is looked up again once it has the VIP as its source
    flood_defence: FloodDefence = FloodDefence.AUTOMATIC


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Snapshot:
    services: tuple[VirtualService, ...] = ()
    network: Network = Network()  # noqa: RUF009 (frozen)
    management: Management = Management()
    sorry: SorryPage = SorryPage()
    policy: Policy = Policy()
    firewall: Firewall = NO_RULES
    tuning: Tuning = Tuning()  # noqa: RUF009
    schema: int = SCHEMA
    # Two boxes: then `network` and `tuning` are empty, and each of its boxes has its own (lbconfig.pair.view).
    pair: Pair | None = dataclasses.field(default=None, metadata=SPARSE)

    @property
    def enabled_services(self) -> tuple[VirtualService, ...]:
        return tuple(service for service in self.services if service.enabled)

    @property
    def own_ports(self) -> frozenset[int]:
        """TCP: web UI and sorry page of the box; what opens them is no firewall rule's to decide."""
        return frozenset({self.management.port, SORRY_PORT})


# What a box that nobody has set up yet runs: an address from DHCP on its first interface, and the web
# page for the private networks (RFC 1918) and link-local addresses only.
FACTORY = Snapshot(
    network=Network(interfaces=(Interface("eth0", dhcp=True),)),
    management=Management(allow=("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16")),
)


def to_data(snapshot: Snapshot) -> dict[str, object]:
    """The snapshot as plain dicts, lists, strings, ints and bools (tuples become lists)."""
    return {name: plain(getattr(snapshot, name)) for name in written(snapshot)}


def to_json(snapshot: Snapshot) -> str:
    """A text for people: sorted keys, two spaces, a newline at the end; equal snapshots, equal text."""
    return json.dumps(to_data(snapshot), sort_keys=True, indent=2, ensure_ascii=False) + "\n"


def from_json(text: str) -> Snapshot:
    """Read the canonical text, or any JSON of that shape. Raises SnapshotError."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SnapshotError("", f"is not JSON: {error}") from None
    return from_data(data)


def from_data(data: object, exact: bool = False) -> Snapshot:
    """Build a snapshot from plain data, checking every type; `exact`: as `build` has it. Raises SnapshotError."""
    if isinstance(data, Mapping) and data.get("schema", SCHEMA) != SCHEMA:
        raise SnapshotError("schema", f"must be {SCHEMA}: this software reads no other")
    return build(Snapshot, data, "", exact)


def part(kind: type[Kind], data: object, path: str = "", exact: bool = False) -> Kind:
    """The same for one of its dataclasses, or for another one made of the same types. Raises SnapshotError."""
    return build(kind, data, path, exact)
