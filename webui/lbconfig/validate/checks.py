"""Does the health check of a service make sense?"""

from __future__ import annotations

from collections.abc import Iterator

from lbconfig.model.checks import KINDS, SQL_CHECKS, WEB_CHECKS, unused, uses
from lbconfig.model.names import CHECKS, PROTOCOLS
from lbconfig.model.problem import Place, Problem, each, number
from lbconfig.model.snapshot import (
    MAX_REQUESTS,
    CheckKind,
    HealthCheck,
    HttpMethod,
    Request,
    VirtualService,
)
from lbconfig.validate.fields import (
    certificates,
    expected_text,
    host_header,
    in_range,
    ip_address,
    pattern,
    program,
    statuses,
    url_path,
)


def check_problems(place: Place, service: VirtualService) -> Iterator[Problem]:
    check = service.check
    yield from each(
        place,
        port=_check_port(service),
        path=url_path(check.path),
        **{name: expected_text(getattr(check, name)) for name in ("password", "database", "ask")},
        login=_login(check),
        secret=_secret(check),
        host=host_header(check.host),
        expect=_expect(check),
        program=_program(check),
        authority=certificates(check.authority),
        interval=in_range(check.interval, 1, 3600),
        timeout=in_range(check.timeout, 1, 60),
        failures=in_range(check.failures, 1, 100),
        successes=in_range(check.successes, 1, 100),
        retry=in_range(check.retry, 0, 3600),
        connects=in_range(check.connects, 0, 100),
        statuses=statuses(check.statuses),
        matching=_matching(check),
        more_requests=_more_requests(check),
    )
    for name in unused(check):
        yield place.problem(name, _means_nothing(check, name))


def _means_nothing(check: HealthCheck, name: str) -> str:
    if name == "authority" and "verify" in KINDS[check.kind].fields:
        return "has no effect where any certificate will do: leave it out, or turn on verify"
    if name == "matching" and "matching" in KINDS[check.kind].fields:
        return "has no effect without an expected text: leave it out"
    return f"has no effect for this check ({CHECKS[check.kind].long}): leave it out"


def _login(check: HealthCheck) -> str | None:
    if check.kind in WEB_CHECKS and ":" in check.login:
        return "must be without a colon, which HTTP takes for the end of the name"
    needed = ("ask", "password", *(("database",) if check.kind is CheckKind.MYSQL else ()))
    if check.kind in SQL_CHECKS and not check.login and (said := [name for name in needed if getattr(check, name)]):
        return f"must be filled in where one of these is ({', '.join(said)})"
    return expected_text(check.login)


def _check_port(service: VirtualService) -> str | None:
    check = service.check
    if "tcp" not in service.protocol.parts and KINDS[check.kind].tcp and not check.port:
        name, kind = PROTOCOLS[service.protocol].long, CHECKS[check.kind].long
        return f"{name} servers take no TCP connections: name the TCP port on which they answer the check ({kind})"
    if 0 <= check.port <= 65535:
        return None
    return f"must be 1 to 65535, or 0 for the server's own port, not {number(check.port)}"


def _expect(check: HealthCheck) -> str | None:
    if check.expect and uses(check, "method") and check.method is HttpMethod.HEAD:
        return "cannot be combined with HEAD, whose answer has no body"
    if check.kind is CheckKind.DNS and check.expect:
        return ip_address(check.expect)
    if check.matching.by_pattern:
        return pattern(check.expect)
    return expected_text(check.expect)


def _matching(check: HealthCheck) -> str | None:
    if check.matching.lacks and check.kind is CheckKind.SIMPLETCP:
        return "must be contains or pattern: such an answer has no known end, so nothing can be missing from it"
    return None


def _more_requests(check: HealthCheck) -> str | None:
    if len(check.more_requests) > MAX_REQUESTS:
        return f"must be at most {MAX_REQUESTS} beside the first one, not {len(check.more_requests)}"
    for count, request in enumerate(check.more_requests, 1):
        if sentence := url_path(request.path):
            return f"the path of request {count} {sentence}"
        if sentence := _expect_more(check, request):
            return f"the expected text of request {count} ({request.path}) {sentence}"
    return None


def _expect_more(check: HealthCheck, request: Request) -> str | None:
    if request.expect and check.method is HttpMethod.HEAD:
        return "cannot be combined with HEAD, whose answer has no body"
    if request.expect != request.expect.strip():
        return "must not begin or end with a blank"
    return expected_text(request.expect)


def _program(check: HealthCheck) -> str | None:
    return program(check.program) if check.kind is CheckKind.PROGRAM else None


def _secret(check: HealthCheck) -> str | None:
    if check.kind is CheckKind.RADIUS and not check.secret:
        return "must be the secret that the RADIUS servers and this box share"
    return expected_text(check.secret)
