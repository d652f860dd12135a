"""ldirectord.cf: one block per service that is checked.

Facts from ldirectord's source (4.12 to 4.16) that this file rests on:
- A real server's identity is check type, protocol, address, port, virtualhost, checkport, weight,
  forwarding, request and receive. Equal identities share one state and one failure counter across
  services, so `receive` gets a prefix with the service's id. It enters the identity for every check
  type, also where nothing is received, and its `{0}` makes it match the empty string.
- With fork=no `checkinterval` counts only globally; in a block it is ignored with a warning.
- `#` cuts a line even inside quotes, and a blank line ends a block.
- A connect check of a UDP service silently becomes a ping: validate refuses it.
- connect takes its time limit from checktimeout, http from negotiatetimeout, ping from checktimeout.
"""

from __future__ import annotations

import string

from lbconfig.snapshot import CheckKind, Forwarding, HealthCheck, RealServer, Snapshot, VirtualService

DEFAULT_INTERVAL = 10  # seconds; ldirectord's own, used where nothing is checked

# supervised comes first: with it the log goes to standard output and logfile is not opened.
_GLOBAL = """\
supervised=yes
logfile="daemon"
quiescent=yes
readdquiescent=yes
cleanstop=no
fork=no
autoreload=no
"""
_METHODS = {Forwarding.NAT: "masq"}
_CHECK_TYPES = {CheckKind.CONNECT: "connect", CheckKind.HTTP: "negotiate", CheckKind.PING: "ping"}
_PLAIN = frozenset((string.ascii_letters + string.digits + " ").encode())


def watched(snapshot: Snapshot) -> tuple[VirtualService, ...]:
    """The services that have a block: those with a check and at least one enabled real server."""
    return tuple(
        service
        for service in snapshot.services
        if service.check.kind != CheckKind.OFF and any(server.enabled for server in service.real_servers)
    )


def interval(snapshot: Snapshot) -> int:
    """Seconds between two rounds of checks: the shortest interval of all services counts for all."""
    return min((service.check.interval for service in watched(snapshot)), default=DEFAULT_INTERVAL)


def worst_case_detection(service: VirtualService, snapshot: Snapshot | None = None) -> float:
    """Seconds until a dead server has left its service, at the worst.

    ldirectord checks one server after the other and rests for the interval after each round. The
    worst is a server that dies right after its check while every other server answers so late that
    the check runs into its timeout:

        failures x (interval + sum of the timeouts of all servers that are checked)

    With a snapshot the sum goes over all its services, and the interval is the shortest of them,
    because both are shared; without one, over this service alone. 0 where nothing is checked.
    """
    everything = snapshot or Snapshot(services=(service,))
    checked = watched(everything)
    if not any(other.id == service.id for other in checked):
        return 0.0
    round_of_checks = sum(
        other.check.timeout * sum(server.enabled for server in other.real_servers) for other in checked
    )
    return float(service.check.failures * (interval(everything) + round_of_checks))


def render(snapshot: Snapshot) -> str:
    head = f"{_GLOBAL}checkinterval={interval(snapshot)}\n"
    return head + "".join(f"\n{_block(service)}" for service in watched(snapshot))


def _block(service: VirtualService) -> str:
    check = service.check
    lines = [
        f"virtual={service.address}:{service.port}",
        *(f"real={_real(service, server)}" for server in service.real_servers if server.enabled),
        f"protocol={service.protocol}",
        f"scheduler={service.scheduler}",
        f"checktype={_CHECK_TYPES[check.kind]}",
        f"checktimeout={check.timeout}",
        f"negotiatetimeout={check.timeout}",
        f"failurecount={check.failures}",
        *_check_port(check),
        *_question(check),
        f'receive="(?:vs{service.id}){{0}}{_pattern(check)}"',
    ]
    return f"# {service.name}\n" + "\n    ".join(lines) + "\n"


def _real(service: VirtualService, server: RealServer) -> str:
    return f"{server.address}:{server.port} {_METHODS[service.forwarding]} {server.weight}"


def _check_port(check: HealthCheck) -> list[str]:
    return [f"checkport={check.port}"] if check.port and check.kind != CheckKind.PING else []


def _question(check: HealthCheck) -> list[str]:
    """What is asked. Without `service=` ldirectord would guess it from the port."""
    if check.kind != CheckKind.HTTP:
        return ["service=none"]
    host = [f'virtualhost="{check.host}"'] if check.host else []
    return ["service=http", f'request="{check.path}"', *host]


def _pattern(check: HealthCheck) -> str:
    """A Perl pattern for the literal text: its UTF-8 bytes, all but letters, digits and spaces as \\xHH."""
    if check.kind != CheckKind.HTTP:
        return ""
    return "".join(chr(byte) if byte in _PLAIN else f"\\x{byte:02x}" for byte in check.expect.encode())
