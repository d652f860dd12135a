"""What changes about a health check, in plain words; a program line by line."""

from __future__ import annotations

from collections.abc import Iterator

from lbconfig.diff.files import line_diff
from lbconfig.model import names
from lbconfig.model.checks import KINDS
from lbconfig.model.snapshot import CheckKind, HealthCheck, HttpMethod, Matching, Request


def check_changes(old: HealthCheck, new: HealthCheck) -> Iterator[str]:
    before, after = check_words(old), check_words(new)
    if before != after:
        yield f"Health check changes from {before} to {after}."
    elif old.program != new.program:
        yield "The program of the health check changes."
    elif old != new:
        yield "The health check uses another password, or a setting changes that has no effect now."
    yield from program_lines(old.program, new.program)


_EXPECTING = {
    Matching.CONTAINS: "expecting",
    Matching.LACKS: "expecting an answer without",
    Matching.PATTERN: "expecting the pattern",
    Matching.LACKS_PATTERN: "expecting an answer without the pattern",
}


def check_words(check: HealthCheck) -> str:
    if check.kind == CheckKind.OFF:
        return names.CHECKS[check.kind].long
    words = [names.CHECKS[check.kind].long]
    if check.port and check.kind != CheckKind.PING:
        words.append(f"on port {check.port}")
    told = {
        "method": f"by {check.method.upper()}" if check.method is not HttpMethod.GET else "",
        "path": f"of {check.path}",
        "host": f"with host {check.host}" if check.host else "",
        "login": f"as '{check.login}'" if check.login else "",
        "database": f"in database '{check.database}'" if check.database else "",
        "ask": f"asking '{check.ask}'" if check.ask else "",
        "statuses": f"with status {check.statuses}" if check.statuses else "",
        "expect": f"{_EXPECTING[check.matching]} '{check.expect}'" if check.expect else "",
        "more_requests": " ".join(map(_request_words, check.more_requests)),
        "verify": "with a valid certificate" if check.verify else "",
        "authority": "from a CA of your own" if check.verify and check.authority else "",
        "program": f"of {len(check.program.splitlines())} lines" if check.program else "",
        "old_tls": "with old TLS versions too, which anybody on the path can break" if check.old_tls else "",
        "connects": f"with {check.connects} plain TCP connects in between" if check.connects else "",
    }
    words += [told[name] for name in told if name in KINDS[check.kind].fields and told[name]]
    times = [f"every {check.interval} s", f"timeout {check.timeout} s", f"down after {check.failures}"]
    times += [f"{check.retry} s between them"] if check.retry else []
    times += [f"up again after {check.successes}"] if check.successes > 1 else []
    return f"{' '.join(words)} ({', '.join(times)})"


def _request_words(request: Request) -> str:
    return f"and of {request.path}" + (f" expecting '{request.expect}'" if request.expect else "")


def program_lines(old: str, new: str) -> list[str]:
    """What an admin should have seen before it runs on his box; nothing for a program that goes."""
    if old == new or not new:
        return []
    _, _, *lines = line_diff(old.splitlines(), new.splitlines(), "program")
    words = {"+": "added", "-": "removed"}
    return [f"Program, {words[line[0]]}: '{line[1:]}'." for line in lines if line[0] in words and line[1:].strip()]
