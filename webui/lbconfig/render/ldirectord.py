"""ldirectord.cf: one block per service that is checked.

Facts from ldirectord's source (4.12 to 4.16) that this file rests on:
- A real server's identity is check type, protocol, address, port, virtualhost, checkport, weight,
  forwarding, request and receive. Equal identities share one state and one failure counter across
  services, so `receive` gets a prefix with the service's id. It enters the identity for every check
  type, also where nothing is received, and its `{0}` makes it match the empty string.
- It checks one server after the other. On the box a module of ours, loaded into it, checks them side by side
  (overlay/usr/lib/fairlead/perl/Fairlead/Rounds.pm) and each at the interval of its block. ldirectord itself heeds
  that interval only with fork=yes, and warns of it otherwise; with the module nothing else depends on fork.
- `#` cuts a line even inside quotes, and a blank line ends a block.
- A connect check of a UDP service silently becomes a ping: Fairlead/Talks.pm connects, and validate asks for the port.
- Our own checks, instead of its, take their time limit from negotiatetimeout (Fairlead/Talks.pm).
"""

from __future__ import annotations

import string

from lbconfig.model.addresses import endpoint, version
from lbconfig.model.checks import KINDS, connects
from lbconfig.model.kept import kept
from lbconfig.model.snapshot import (
    CheckKind,
    FallbackCheck,
    Forwarding,
    HealthCheck,
    HttpMethod,
    Matching,
    RealServer,
    Request,
    Snapshot,
    VirtualService,
)
from lbconfig.model.spelling import ascii_name
from lbconfig.wanted import table as ipvs

# supervised comes first: with it the log goes to standard output and logfile is not opened.
_GLOBAL = """\
supervised=yes
logfile="daemon"
quiescent=yes
readdquiescent=yes
cleanstop=no
fork=yes
autoreload=no
"""
_METHODS = {
    Forwarding.NAT: "masq",
    Forwarding.SNAT: "masq",
    Forwarding.DIRECT: "gate",
    Forwarding.TUNNEL: "ipip",
    Forwarding.GRE: "ipip",
    Forwarding.GUE: "ipip",
}
_CHECK_TYPES = {CheckKind.CONNECT: "connect", CheckKind.PING: "ping"}  # all others: negotiate
GOOD_STATUSES = "200-299"
_PLAIN = frozenset((string.ascii_letters + string.digits + " ").encode())


def has_checks(text: str) -> bool:
    """Whether the file gives ldirectord anything to do."""
    return any(line.startswith("virtual") for line in text.splitlines())


def watched(snapshot: Snapshot) -> tuple[VirtualService, ...]:
    """The services that have a block: enabled ones with a check and a real server in the table."""
    return tuple(
        service
        for service in snapshot.enabled_services
        if service.check.kind != CheckKind.OFF and any(server.in_table for server in service.real_servers)
    )


def render(snapshot: Snapshot) -> str:
    return _GLOBAL + "".join(f"\n{_block(service)}" for service in watched(snapshot))


@kept
def _block(service: VirtualService) -> str:
    check = service.check
    six = "6" if version(service.address) == 6 else ""
    lines = [
        f"virtual{six}={service.mark if service.by_mark else endpoint(service.address, service.port)}",
        *(f"real{six}={_real(service, server)}" for server in service.real_servers if server.in_table),
        *([f"fallback{six}={_place(service, fallback)}"] if (fallback := service.fallback_server) else []),
        *_tunnels(service),
        *_balance(service),
        *_more_words(service),
        f"protocol={'fwm' if service.by_mark else service.protocol}",
        f"scheduler={service.scheduler}",
        *(["quiescent=no"] if service.dead_leave else []),
        f"checktype={connects(check) or _CHECK_TYPES.get(check.kind, 'negotiate')}",
        f"checktimeout={check.timeout}",
        f"negotiatetimeout={check.timeout}",
        f"checkinterval={check.interval}",
        f"failurecount={check.failures}",
        *_check_port(service),
        *_question(check),
        f'receive="(?:vs{service.id}){{0}}{_pattern(check)}"',
    ]
    return f"{_heading(service.name)}\n" + "\n    ".join(lines) + "\n"


def _heading(name: str) -> str:
    """The name as a comment, and as none of those that the modules of ours read."""
    return f"# service {name}" if name.startswith(("tunnel ", "balance ")) else f"# {name}"


def _real(service: VirtualService, server: RealServer) -> str:
    """A quiesced server has a line too: ldirectord removes from the table what its file does not name."""
    line = f"{_place(service, server)} {ipvs.weight_of(service, server)}"
    return f"{line} l:{server.lower} u:{server.upper}" if server.upper else line


def _tunnels(service: VirtualService) -> list[str]:
    """ldirectord has no words for other tunnels than IP in IP; Table.pm reads these comments."""
    return [
        f"# tunnel {name} -r {endpoint(*place)} {options}" for (name, place), options in ipvs.tunnels(service).items()
    ]


def _balance(service: VirtualService) -> list[str]:
    """ldirectord has no words for weights that follow the load; Weights.pm reads this comment."""
    agent, least = service.agent, service.least_healthy
    if not (service.weighed or least.servers):
        return []
    words = {
        "id": service.id, "agent": agent.kind, "port": agent.port, "interval": agent.interval, "floor": agent.floor,
        "slow": service.slow_start, "least": least.servers, "then": least.then, "again": least.again,
    }  # fmt: skip
    return [f"# balance {ipvs.service_name(service)} {' '.join(f'{name}={value}' for name, value in words.items())}"]


def _more_words(service: VirtualService) -> list[str]:
    """What ldirectord has no words for; Words.pm reads this comment."""
    check = service.check
    program = check.kind is CheckKind.PROGRAM
    words = {
        "successes": check.successes if check.successes > 1 else 0,
        "retry": check.retry,
        "old_tls": int(check.old_tls),
        "requests": _hidden("\n".join(map(_request, check.more_requests))) if check.more_requests else "",
        **_fallback_words(service),
        "matching": check.matching if check.matching is not Matching.CONTAINS else "",
        "vip": service.address if program else "",
        "port": service.port if program else 0,
        "protocol": service.protocol if program else "",
        "program": _hidden(check.program) if program else "",
    }
    said = " ".join(f"{word}={value}" for word, value in words.items() if value)
    return [f"# check vs{service.id} {said}"] if said else []


def _place(service: VirtualService, server: RealServer) -> str:
    return f"{endpoint(server.address, server.port)} {_METHODS[service.forwarding_of(server)]}"


def _check_port(service: VirtualService) -> list[str]:
    """Servers of a service by mark have no port of their own."""
    port = service.check.port or (service.port if service.by_mark else 0)
    return [f"checkport={port}"] if port and service.check.kind != CheckKind.PING else []


def _question(check: HealthCheck) -> list[str]:
    """What is asked. Without `service=` ldirectord would guess it from the port."""
    if check.kind in _CHECK_TYPES:
        return ["service=none"]
    uses = KINDS[check.kind].fields
    # It has no word for programs but one that root would run; Programs.pm does it, where the comment names one.
    lines = [f"service={CheckKind.SIMPLETCP if check.kind is CheckKind.PROGRAM else check.kind}"]
    if "path" in uses:
        lines.append(f'request="{check.path}"')
    if "host" in uses and check.host:
        name, colon, port = check.host.partition(":")
        lines.append(f'virtualhost="{ascii_name(name)}{colon}{port}"')
    if "method" in uses and (check.method, check.statuses) != (HttpMethod.GET, ""):
        # ldirectord has no words for them; Web.pm reads this one.
        lines.append(f'database="{_hidden(f"{check.method.upper()} {check.statuses or GOOD_STATUSES}")}"')
    if check.verify and "verify" in uses:
        # ldirectord has no word for it; Web.pm reads this one.
        certificate = f"verify\n{check.authority}"
        lines.append(f'secret="{_hidden(certificate)}"')
    for name, word in _WORDS.items():
        if name in uses and (value := getattr(check, name)):
            lines.append(f'{word}="{_hidden(value)}"')
    return lines


_WORDS = {"login": "login", "password": "passwd", "secret": "secret", "database": "database", "ask": "request"}


def _fallback_words(service: VirtualService) -> dict[str, object]:
    """How a fallback server is checked, and at which port: that of the check, or its own (Fallback.pm)."""
    server, how = service.fallback_server, service.fallback.check
    if server is None or how is FallbackCheck.OFF:
        return {}
    own = how is FallbackCheck.CONNECT or not service.check.port
    return {"fallback": how, "fallback_port": server.port if own else service.check.port}


def _request(request: Request) -> str:
    """A path has no blank in it."""
    return f"{request.path} {request.expect}"


def _hidden(text: str) -> str:
    """So that no character of it means anything to ldirectord; our own checks read it (Fairlead/Talks.pm)."""
    return f"hex:{text.encode().hex()}"


def _pattern(check: HealthCheck) -> str:
    """A Perl pattern for the literal text: its UTF-8 bytes, all but letters, digits and spaces as \\xHH."""
    if "expect" not in KINDS[check.kind].fields:
        return ""
    return "".join(chr(byte) if byte in _PLAIN else f"\\x{byte:02x}" for byte in check.expect.encode())
