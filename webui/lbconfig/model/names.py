"""The words for the model's values: what the web pages, the diff and the messages call them.

The keys are the kernel's and ldirectord's own names, which is what a snapshot stores.
"""

from __future__ import annotations

from typing import NamedTuple

from lbconfig.model.network import BondMode, HashPolicy, LacpRate
from lbconfig.model.snapshot import (
    GUE_PORT,
    AgentKind,
    CheckKind,
    FallbackCheck,
    FallbackKind,
    FloodDefence,
    Forwarding,
    HttpMethod,
    Matching,
    Protocol,
    Scheduler,
    ServerState,
    TooFew,
)
from lbconfig.model.tuning import Power


class Name(NamedTuple):
    long: str
    help: str  # one sentence: what it does, or when to choose it


SCHEDULERS: dict[Scheduler, Name] = {
    Scheduler.RR: Name(
        "round robin",
        "Each new connection goes to the next server in turn; for equal servers and short requests.",
    ),
    Scheduler.WRR: Name(
        "weighted round robin",
        "In turn, but a server of weight 2 gets twice as many connections as one of weight 1; for unequal servers.",
    ),
    Scheduler.LC: Name(
        "least connections",
        "To the server with the fewest connections; for equal servers and connections of very different length.",
    ),
    Scheduler.WLC: Name(
        "weighted least connections",
        "To the server with the fewest connections for its weight; a good default.",
    ),
    Scheduler.SED: Name(
        "shortest expected delay",
        "Like weighted least connections, but counts the new one too; for few connections and very unequal servers.",
    ),
    Scheduler.NQ: Name(
        "never queue",
        "To a server without connections if there is one, else by shortest expected delay; for long, heavy requests.",
    ),
    Scheduler.SH: Name(
        "source hashing",
        "A client always gets the same server, without a table; many clients move when a server comes or goes.",
    ),
    Scheduler.MH: Name(
        "Maglev hashing",
        "A client always gets the same server, and almost none moves when a server comes or goes; for UDP and caches.",
    ),
    Scheduler.DH: Name(
        "destination hashing",
        "The address asked for decides; for caches and firewalls behind a firewall mark, not for a single address.",
    ),
    Scheduler.LBLC: Name(
        "locality-based least connections",
        "One address asked for stays on one server until that is overloaded; for a group of caches.",
    ),
    Scheduler.LBLCR: Name(
        "locality-based with replication",
        "The same, but a much-wanted address may get several servers; for a group of caches.",
    ),
    Scheduler.FO: Name(
        "weighted failover",
        "All connections to the server with the highest weight that is up; the others stand by.",
    ),
    Scheduler.OVF: Name(
        "weighted overflow",
        "To the server with the highest weight until it has more connections than that, then to the next.",
    ),
    Scheduler.TWOS: Name(
        "power of two choices",
        "Two servers are drawn by weight, and the one with fewer connections gets it; for many servers.",
    ),
}
# The four that most services need; a form shows the others under "more".
COMMON_SCHEDULERS = (Scheduler.WLC, Scheduler.LC, Scheduler.WRR, Scheduler.RR)

PROTOCOLS: dict[Protocol, Name] = {
    Protocol.TCP: Name("TCP", "Connections: web, mail, databases and most other services."),
    Protocol.UDP: Name("UDP", "Single packets: DNS, syslog, RADIUS, some games and voice."),
    Protocol.TCP_UDP: Name(
        "TCP and UDP", "Both on the same port, such as DNS: a client gets the same servers by both."
    ),
    Protocol.SCTP: Name("SCTP", "Associations of telephone networks: SIGTRAN, Diameter, S1 and N2."),
}

CHECKS: dict[CheckKind, Name] = {
    CheckKind.CONNECT: Name("TCP connect", "The server is up when it accepts a TCP connection."),
    CheckKind.HTTP: Name(
        "HTTP", "The server is up when its whole answer comes in time, with a status that counts and the expected text."
    ),
    CheckKind.HTTPS: Name("HTTPS", "The same over TLS; whether its certificate must be good can be chosen."),
    CheckKind.PING: Name(
        "ping", "The server is up when it answers an ICMP echo; says nothing about the service itself."
    ),
    CheckKind.OFF: Name("no check", "The server always counts as up: connections go to it even when it is dead."),
    CheckKind.SMTP: Name("SMTP", "The mail server greets and answers EHLO."),
    CheckKind.SUBMISSION: Name("submission", "The same, for the port of mail programs (587)."),
    CheckKind.IMAP: Name("IMAP", "The mailbox server greets and, with a name and password, lets one in."),
    CheckKind.IMAPS: Name("IMAPS", "The same over TLS."),
    CheckKind.POP: Name("POP3", "The mailbox server greets and, with a name and password, lets one in."),
    CheckKind.POPS: Name("POP3S", "The same over TLS."),
    CheckKind.FTP: Name("FTP", "The server greets and, with a name and password, lets one in."),
    CheckKind.NNTP: Name("NNTP", "The news server greets."),
    CheckKind.DNS: Name("DNS", "The server knows a name; without one, any answer counts."),
    CheckKind.LDAP: Name("LDAP", "The directory takes a bind and, if asked, has an entry."),
    CheckKind.LDAPS: Name("LDAPS", "The same over TLS."),
    CheckKind.MYSQL: Name(
        "MySQL", "The database greets, and is not full; with a name it lets one in, and answers a query."
    ),
    CheckKind.PGSQL: Name(
        "PostgreSQL", "The database asks for a password, or lets one in and answers a query; a starting one is down."
    ),
    CheckKind.RADIUS: Name("RADIUS", "The server answers Status-Server or, with a name and password, accepts them."),
    CheckKind.SIP: Name("SIP", "The telephone server answers OPTIONS."),
    CheckKind.SIMPLETCP: Name("send and expect", "The server answers what is sent with what is expected."),
    CheckKind.PROGRAM: Name("a program of your own", "A script that you write runs on this box; exit code 0 means up."),
}
# Those that most services need; a form shows the others under "more".
COMMON_CHECKS = (CheckKind.CONNECT, CheckKind.HTTP, CheckKind.HTTPS, CheckKind.PING, CheckKind.OFF)

HTTP_METHODS: dict[HttpMethod, Name] = {
    HttpMethod.GET: Name("GET", "The page is fetched."),
    HttpMethod.HEAD: Name("HEAD", "Only its status is fetched."),
    HttpMethod.POST: Name("POST", "An empty form is sent."),
}

MATCHINGS: dict[Matching, Name] = {
    Matching.CONTAINS: Name("contains", "The text is in the answer."),
    Matching.LACKS: Name("does not contain", "The text is nowhere in the answer."),
    Matching.PATTERN: Name("matches", "The regular expression is found in the answer."),
    Matching.LACKS_PATTERN: Name("does not match", "The regular expression is nowhere found in the answer."),
}

AGENTS: dict[AgentKind, Name] = {
    AgentKind.OFF: Name("nothing", "Each server gets the share that you give it."),
    AgentKind.TEXT: Name(
        "an agent on each server", "It says how much it can take, such as 75%, or drain: HAProxy's agents and others."
    ),
    AgentKind.HTTP: Name(
        "a page /load on each server", "A number from 0, idle, to 100, busy, as Kemp's agents have it."
    ),
    AgentKind.RESPONSE: Name(
        "how long the health checks take", "By the page that is checked, not by those that your users ask for."
    ),
}

TOO_FEW: dict[TooFew, Name] = {
    TooFew.TELL: Name("only say so", "Those that are up get all connections."),
    TooFew.KEEP: Name("keep the last ones", "They get connections although their checks fail."),
    TooFew.ASIDE: Name("serve nobody", "As if all were down: the sorry page, the fallback server, or no answer."),
}

SERVER_STATES: dict[ServerState, Name] = {
    ServerState.ENABLED: Name("enabled", "It gets connections as long as it is up."),
    ServerState.QUIESCED: Name("draining", "No new connections; those that are open go on."),
    ServerState.DISABLED: Name("disabled", "Out of service: its open connections are closed."),
}

FALLBACKS: dict[FallbackKind, Name] = {
    FallbackKind.NONE: Name("nobody", "Clients get no answer until a real server is up again."),
    FallbackKind.PAGE: Name(
        "the sorry page", "This box shows a page of yours, over plain HTTP only: not to browsers that use TLS."
    ),
    FallbackKind.SERVER: Name("a fallback server", "It gets connections only then."),
}

FALLBACK_CHECKS: dict[FallbackCheck, Name] = {
    FallbackCheck.OFF: Name("not checked", "Clients are sent there although it may be down."),
    FallbackCheck.CONNECT: Name("it takes connections", "TCP connections, to the port that clients are sent to."),
    FallbackCheck.SAME: Name("by the health check of this service", "It must answer as the real servers do."),
}

FORWARDING: dict[Forwarding, Name] = {
    Forwarding.NAT: Name(
        "NAT",
        "The box rewrites addresses both ways; the servers need the box as their default gateway, and nothing else.",
    ),
    Forwarding.SNAT: Name(
        "NAT with source NAT",
        "The servers need nothing, and clients may be in their network; but they see the box's address as the client.",
    ),
    Forwarding.DIRECT: Name(
        "direct routing",
        "The servers answer clients themselves: the fastest way. They must be in the box's network, serve the same "
        "port and have the virtual address on an interface that answers no ARP.",
    ),
    Forwarding.TUNNEL: Name(
        "tunnel (IP in IP)",
        "Like direct routing, for servers behind routers: they take the packets out of a tunnel and answer clients "
        "themselves, from the same port.",
    ),
    Forwarding.GRE: Name(
        "tunnel (GRE)",
        "A tunnel, where a network or firewall on the way lets GRE pass, but not IP in IP.",
    ),
    Forwarding.GUE: Name(
        "tunnel (GUE)",
        f"A tunnel of UDP packets to port {GUE_PORT}: passes where other tunnels do not, and network cards spread it "
        "over processors; for servers with Linux.",
    ),
}
# A form shows the others under "more".
COMMON_FORWARDING = (Forwarding.NAT, Forwarding.SNAT, Forwarding.DIRECT, Forwarding.TUNNEL)


BOND_MODES: dict[BondMode, Name] = {
    BondMode.ACTIVE_BACKUP: Name(
        "one active, the others stand by (active-backup)",
        "Any switches, also two different ones; nothing to set there.",
    ),
    BondMode.LACP: Name("all share the load (LACP, 802.3ad)", "The switch must have the same ports in one LACP group."),
    BondMode.XOR: Name("all share the load, without LACP (balance-xor)", "The switch needs a fixed port group."),
    BondMode.ALB: Name(
        "the box shares both ways (balance-alb)", "Nothing to set at the switch; not below a bridge, and IPv4 alone."
    ),
    BondMode.TLB: Name("the box shares what it sends (balance-tlb)", "Nothing to set at the switch."),
    BondMode.RR: Name("packet by packet (balance-rr)", "Packets arrive out of order; for direct cables only."),
    BondMode.BROADCAST: Name("everything on all (broadcast)", "Each packet leaves by every member; for two networks."),
}
COMMON_BOND_MODES = (BondMode.ACTIVE_BACKUP, BondMode.LACP)

HASH_POLICIES: dict[HashPolicy, Name] = {
    HashPolicy.LAYER23: Name("MAC and IP addresses", "The packets of two machines stay on one cable."),
    HashPolicy.LAYER34: Name("IP addresses and ports", "Each connection by itself: shares best."),
    HashPolicy.LAYER2: Name("MAC addresses", "Behind one router everything takes one cable."),
}

LACP_RATES: dict[LacpRate, Name] = {
    LacpRate.SLOW: Name("every 30 seconds", "What most switches expect."),
    LacpRate.FAST: Name("every second", "A dead link is noticed sooner."),
}

POLICY: dict[str, Name] = {
    "tcp_timeout": Name(
        "A silent TCP connection is forgotten after",
        "Longer for clients that say nothing for hours, such as terminals and databases.",
    ),
    "fin_timeout": Name("A TCP connection that is being closed, after", "The last packets still find their way."),
    "udp_timeout": Name("A silent UDP exchange is forgotten after", "Until then the client keeps its server."),
    "release_removed": Name(
        "Release clients of a server that is gone",
        "Their next packet goes to another server. Without it they get no answer until their time is over; UDP clients "
        "of a dead server would stay with it.",
    ),
    "release_persistent": Name(
        "Persistent clients leave a server that drains or is down",
        "Without it they come back to it for as long as their persistence lasts.",
    ),
    "reuse_ports": Name(
        "A port that a client uses again is a new connection",
        "For clients with many short connections, such as proxies and load tests.",
    ),
    "adopt": Name(
        "Take TCP connections that began elsewhere",
        "After a move from another balancer; otherwise their clients have to connect again.",
    ),
    "icmp_errors": Name(
        "Pass on ICMP errors of connections that are not known here",
        "For several boxes side by side, with Maglev hashing.",
    ),
    "route_answers": Name(
        "Look up the route of each answer again",
        "For routes that depend on the source address. Without it the box saves a little work.",
    ),
    "flood_defence": Name(
        "Forget half-open connections, and turn some new ones away",
        "A flood of meaningless connections would fill the memory of the box. Most half-open connections belong to "
        "the flood; a real client simply retries.",
    ),
}

FLOOD_DEFENCES: dict[FloodDefence, Name] = {
    FloodDefence.AUTOMATIC: Name("when memory runs short", "Nothing is dropped until then."),
    FloodDefence.ALWAYS: Name(
        "half-open ones all the time",
        "The table stays smaller; connections of few packets are closed after a silent minute.",
    ),
    FloodDefence.NEVER: Name("never", "For tests: a flood can fill the memory."),
}

OF_A_CARD = {"queues": "Queues", "rx_ring": "Receive ring (packets)", "tx_ring": "Send ring (packets)"}

POWER: dict[Power, Name] = {
    Power.BALANCED: Name(
        "ready within 100 µs",
        "Full clock as soon as there is work, and no sleep that takes longer to end; right for most.",
    ),
    Power.LATENCY: Name(
        "ready within 10 µs", "Hardly any sleep at all: the first packet after a pause is as quick as the next; warmer."
    ),
    Power.BOARD: Name("as the board has it", "Nothing is set; the firmware and the kernel decide."),
}


# What a field of the model is called where its own name would have to be decoded.
FIELDS = {
    "allow": "allowed networks",
    "call_id": "persistence by Call-ID",
    "dns": "name servers",
    "gateway6": "IPv6 gateway",
    "lower": "lower threshold",
    "miimon": "link check interval",
    "ntp": "time servers",
    "one_packet": "one-packet scheduling",
    "persistence_prefix": "persistence mask",
    "search": "search domains",
    "upper": "upper threshold",
    "via": "router",
}


def field(name: str) -> str:
    """The field of a problem, for people: "tcp_timeout" is "tcp timeout"."""
    return FIELDS.get(name, name.replace("_", " "))


def scheduler(value: Scheduler) -> str:
    """As it stands in a sentence: "round robin (rr)"."""
    return f"{SCHEDULERS[value].long} ({value})"
