"""What changes from one snapshot to the next: file by file, and in plain words."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from lbconfig.diff.balance import balance_changes
from lbconfig.diff.change import Change as Change
from lbconfig.diff.change import list_change
from lbconfig.diff.firewall import firewall
from lbconfig.diff.network import NETWORK as NETWORK
from lbconfig.diff.network import network_changes
from lbconfig.diff.pair import pair_changes
from lbconfig.diff.tuning import tuning_changes
from lbconfig.model import names
from lbconfig.model.addresses import endpoint, shown
from lbconfig.model.certificate import first
from lbconfig.model.checks import KINDS
from lbconfig.model.snapshot import (
    CheckKind,
    FallbackCheck,
    FallbackKind,
    FloodDefence,
    HealthCheck,
    HttpMethod,
    Management,
    Matching,
    RealServer,
    Request,
    ServerState,
    Snapshot,
    VirtualService,
)

REFUSED = "New connections may be refused for a moment."
CLOSED = "Open connections through it are closed."
SERVER_CLOSED = "Open connections to a server that is removed or disabled are closed."
MOVED = "The service leaves its old place: open connections through it are closed."
CONTEXT = 3  # lines around a change
ALL_SERVICES = "It holds for all services, from the next packet of each connection on."


def unified(old_files: Mapping[str, str], new_files: Mapping[str, str]) -> dict[str, str]:
    """The unified diff of every file that differs, in the order of the names."""
    changed = {}
    for name in sorted({*old_files, *new_files}):
        old, new = old_files.get(name, ""), new_files.get(name, "")
        if old != new or (name in old_files) != (name in new_files):
            changed[name] = "".join(_unified(old.splitlines(keepends=True), new.splitlines(keepends=True), name))
    return changed


def _unified(old: list[str], new: list[str], name: str) -> Iterator[str]:
    """As difflib.unified_diff has it, which would look at every line of files that differ in few of very many."""
    begin = _alike(old, new)
    end = min(_alike(old[::-1], new[::-1]), len(old) - begin, len(new) - begin)
    old_end, new_end = len(old) - end, len(new) - end
    between = difflib.SequenceMatcher(None, old[begin:old_end], new[begin:new_end]).get_opcodes()
    whole = difflib.SequenceMatcher(None, "", "")
    # get_opcodes keeps what it found there, and finds it there; the type stubs know only what is documented.
    whole.opcodes = [  # type: ignore[attr-defined]
        *([("equal", 0, begin, 0, begin)] if begin else []),
        *((tag, *(place + begin for place in places)) for tag, *places in between),
        *([("equal", old_end, len(old), new_end, len(new))] if end else []),
    ]
    yield from (f"--- running/{name}\n", f"+++ new/{name}\n")
    for group in whole.get_grouped_opcodes(CONTEXT):
        (_, old_from, _, new_from, _), (_, _, old_to, _, new_to) = group[0], group[-1]
        yield f"@@ -{_range(old_from, old_to)} +{_range(new_from, new_to)} @@\n"
        for tag, old_from, old_to, new_from, new_to in group:
            if tag == "equal":
                yield from (f" {line}" for line in old[old_from:old_to])
            else:
                yield from (f"-{line}" for line in old[old_from:old_to])
                yield from (f"+{line}" for line in new[new_from:new_to])


def _alike(one: list[str], other: list[str]) -> int:
    """How many lines both begin with."""
    for count, (here, there) in enumerate(zip(one, other, strict=False)):
        if here != there:
            return count
    return min(len(one), len(other))


def _range(begin: int, end: int) -> str:
    """Lines as a diff counts them: from 1, and where there are none, the one before."""
    length = end - begin
    return str(begin + 1) if length == 1 else f"{begin + bool(length)},{length}"


def summary(old: Snapshot, new: Snapshot) -> list[Change]:
    """The changes in the order of the new snapshot, then what is removed, then network and management."""
    paired = old.pair is not None or new.pair is not None
    return [
        *_services(old, new),
        *(pair_changes(old, new) if paired else network_changes(old.network, new.network)),
        *_management(old, new),
        *firewall(old.firewall, new.firewall),
        *_sorry(old, new),
        *_policy(old, new),
        *(() if paired else tuning_changes(old.tuning, new.tuning)),
    ]


# --- services ------------------------------------------------------------------------------------


def _services(old: Snapshot, new: Snapshot) -> Iterator[Change]:
    before = {service.id: service for service in old.services}
    after = {service.id for service in new.services}
    for service in new.services:
        if service.id not in before:
            yield Change("added", _object(service), _description(service), service=service.id)
        elif before[service.id] != service:
            yield _service_change(before[service.id], service)
    for service in old.services:
        if service.id not in after:
            impact = CLOSED if service.enabled else None
            yield Change("removed", _object(service), (f"It was {_where(service)}.",), impact, service.id)


def _object(service: VirtualService) -> str:
    return f"virtual service '{service.name}'"


def _where(service: VirtualService) -> str:
    more = f" and ports {service.more_ports}" if service.more_ports else ""
    more += f", also at {', '.join(service.more_addresses)}" if service.more_addresses else ""
    return f"{names.PROTOCOLS[service.protocol].long} {endpoint(service.address, service.port)}{more}"


def _description(service: VirtualService) -> tuple[str, ...]:
    forwarding = names.FORWARDING[service.forwarding].long
    return (
        f"It is {_where(service)}, {names.scheduler(service.scheduler)}, with {forwarding}.",
        *([] if service.enabled else ["It is disabled: the box does not serve it."]),
        *(option.on for option in _options(service) if option.value),
        f"Health check: {_check_words(service.check)}.",
        *_program_lines("", service.check.program),
        *(f"Real server {_server_words(service, server)}." for server in service.real_servers),
    )


class _Option(NamedTuple):
    """What most services do not have."""

    value: object
    on: str  # the sentence where it is set
    off: str  # the sentence when it is no longer


def _options(service: VirtualService) -> tuple[_Option, ...]:
    bits = service.persistence_prefix
    together = f", clients of one /{bits} together" if bits else ""
    return (
        _Option(
            (service.persistence, bits) if service.persistence else None,
            f"A client comes back to its server for {service.persistence} s{together}.",
            "Persistence is switched off.",
        ),
        _Option(service.one_packet, "Each packet is balanced by itself.", "One-packet scheduling is switched off."),
        _Option(
            service.call_id,
            "SIP calls (by Call-ID) are kept together, not clients.",
            "Clients are kept together, not SIP calls.",
        ),
        _Option(
            service.hash_port, "The client's port counts for the hash.", "The client's port does not count any more."
        ),
        _Option(
            service.hash_next,
            "A client whose server takes no connections goes to another one.",
            "A client whose server takes no connections gets no answer.",
        ),
        _Option(
            service.fallback if service.fallback.kind is not FallbackKind.NONE else None,
            f"While all real servers are down, {_fallback_words(service)} answers.",
            "While all real servers are down, nobody answers.",
        ),
        _Option(service.tags, f"Tags: {', '.join(service.tags)}.", "The tags are removed."),
        _Option(service.note, f"Note: '{service.note}'.", "The note is removed."),
    )


def _fallback_words(service: VirtualService) -> str:
    words = names.FALLBACKS[service.fallback.kind].long
    if service.fallback.kind is FallbackKind.SERVER:
        words += f" {shown(service.fallback.address, service.fallback.port or service.port)}"
    if service.fallback.check is not FallbackCheck.OFF:
        words += f" (checked: {names.FALLBACK_CHECKS[service.fallback.check].long})"
    return words


def _front(service: VirtualService) -> tuple[object, ...]:
    return service.vips, service.port, service.protocol, service.more_ports


def _service_change(old: VirtualService, new: VirtualService) -> Change:
    moved = _front(old) != _front(new)
    sentences = []
    if old.enabled != new.enabled:
        sentences.append(
            "Is enabled: the box serves it." if new.enabled else "Is disabled: the box does not serve it any more."
        )
    if old.name != new.name:
        sentences.append(f"Name changes from '{old.name}' to '{new.name}'.")
    if moved:
        sentences.append(f"Moves from {_where(old)} to {_where(new)}.")
    if old.scheduler != new.scheduler:
        sentences.append(
            f"Scheduler changes from {names.scheduler(old.scheduler)} to {names.scheduler(new.scheduler)}."
        )
    if old.forwarding != new.forwarding:
        words = names.FORWARDING
        sentences.append(f"Forwarding changes from {words[old.forwarding].long} to {words[new.forwarding].long}.")
    for before, after in zip(_options(old), _options(new), strict=True):
        if before.value != after.value:
            sentences.append(after.on if after.value else after.off)
    if old.check != new.check:
        check, now = _check_words(old.check), _check_words(new.check)
        sentences.append(
            f"Health check changes from {check} to {now}."
            if check != now
            else "The health check uses another password, or a setting that is not in use changes."
            if old.check.program == new.check.program
            else "The program of the health check changes."
        )
        sentences += _program_lines(old.check.program, new.check.program)
    server_sentences, closed = _server_changes(old, new)
    impacts = [
        text
        for text, true in (
            (CLOSED, old.enabled and not new.enabled),
            (MOVED, moved and old.enabled and new.enabled),
            (REFUSED, old.scheduler != new.scheduler and not moved and old.enabled and new.enabled),
            (SERVER_CLOSED, closed and old.enabled and new.enabled),
        )
        if true
    ]
    sentences += balance_changes(old, new)
    if not sentences and not server_sentences:
        server_sentences = ["The order of its real servers changes."]
    return Change("changed", _object(new), (*sentences, *server_sentences), " ".join(impacts) or None, new.id)


def _server_changes(old: VirtualService, new: VirtualService) -> tuple[list[str], bool]:
    """The sentences, and whether a running real server leaves the table."""
    before = {server.id: server for server in old.real_servers}
    after = {server.id for server in new.real_servers}
    sentences = []
    for server in new.real_servers:
        if server.id not in before:
            sentences.append(f"Real server {_server_words(new, server)} is added.")
        else:
            sentences += _server_change(before[server.id], server)
    gone = [server for server in old.real_servers if server.id not in after]
    sentences += [f"Real server {shown(server.address, server.port)} is removed." for server in gone]
    return sentences, bool(_in_table(old) - _in_table(new))


def _in_table(service: VirtualService) -> set[tuple[str, int]]:
    return {(server.address, server.port) for server in service.real_servers if server.in_table}


def _server_change(old: RealServer, new: RealServer) -> Iterator[str]:
    name = f"Real server {shown(new.address, new.port)}"
    if (old.address, old.port) != (new.address, new.port):
        yield f"{name} replaces {shown(old.address, old.port)}."
    if old.name != new.name:
        yield f"{name} is called {new.name!r}." if new.name else f"{name} is no longer called {old.name!r}."
    if old.weight != new.weight:
        yield f"{name}: weight changes from {old.weight} to {new.weight}."
    if (old.upper, old.lower) != (new.upper, new.lower):
        yield f"{name}: {_thresholds(new) or 'takes connections without a limit'}."
    if old.forwarding != new.forwarding:
        yield f"{name}: forwarding is {names.FORWARDING[new.forwarding].long if new.forwarding else _AS_SERVICE}."
    if old.state != new.state:
        yield f"{name} {_STATES[new.state]}."


_AS_SERVICE = "that of the service"


_STATES = {
    ServerState.ENABLED: "takes connections",
    ServerState.QUIESCED: "drains: no new connections, those that are open go on",
    ServerState.DISABLED: "is disabled",
}


def _thresholds(server: RealServer) -> str:
    if not server.upper:
        return ""
    again = f", new ones again below {server.lower}" if server.lower else ""
    return f"at most {server.upper} connections{again}"


def _server_words(service: VirtualService, server: RealServer) -> str:
    called = f" '{server.name}'" if server.name else ""
    words = [f"{shown(server.address, server.port)}{called}", f"weight {server.weight}"]
    if service.forwarding_of(server) != service.forwarding:
        words.append(f"with {names.FORWARDING[service.forwarding_of(server)].long}")
    words += [_thresholds(server)] if server.upper else []
    words += {ServerState.QUIESCED: ["draining"], ServerState.DISABLED: ["disabled"]}.get(server.state, [])
    return ", ".join(words)


_EXPECTING = {
    Matching.CONTAINS: "expecting",
    Matching.LACKS: "expecting an answer without",
    Matching.PATTERN: "expecting the pattern",
    Matching.LACKS_PATTERN: "expecting an answer without the pattern",
}


def _check_words(check: HealthCheck) -> str:
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
        "verify": "with a good certificate" if check.verify else "",
        "authority": "from an authority of its own" if check.verify and check.authority else "",
        "program": f"of {len(check.program.splitlines())} lines" if check.program else "",
        "old_tls": "with old TLS versions too, which anybody on the path can break" if check.old_tls else "",
        "connects": f"with {check.connects} plain connects in between" if check.connects else "",
    }
    words += [told[name] for name in told if name in KINDS[check.kind].fields and told[name]]
    times = [f"every {check.interval} s", f"timeout {check.timeout} s", f"down after {check.failures}"]
    times += [f"{check.retry} s between them"] if check.retry else []
    times += [f"up again after {check.successes}"] if check.successes > 1 else []
    return f"{' '.join(words)} ({', '.join(times)})"


def _request_words(request: Request) -> str:
    return f"and of {request.path}" + (f" expecting '{request.expect}'" if request.expect else "")


def _program_lines(old: str, new: str) -> list[str]:
    """What an admin should have seen before it runs on his box; nothing for a program that goes."""
    if old == new or not new:
        return []
    _, _, *lines = _unified(old.splitlines(), new.splitlines(), "program")
    words = {"+": "added", "-": "removed"}
    return [f"Program, {words[line[0]]}: '{line[1:]}'." for line in lines if line[0] in words and line[1:].strip()]


# --- management, and what there is once ----------------------------------------------------------


def _management(old: Snapshot, new: Snapshot) -> Iterator[Change]:
    before, after = old.management, new.management
    sentences = list(list_change(before.allow, after.allow, lambda text: f"Access from {text}"))
    impacts = ["The web UI can no longer be reached from there."] if {*before.allow} - {*after.allow} else []
    if before.port != after.port:
        sentences.append(f"The web page moves from port {before.port} to port {after.port}.")
        impacts.append(f"The web UI can no longer be reached on port {before.port}.")
    if {*before.interfaces} != {*after.interfaces}:
        sentences.append(f"The web page answers on {_answers_on(after)} instead of {_answers_on(before)}.")
        if after.interfaces and not (before.interfaces and {*before.interfaces} <= {*after.interfaces}):
            impacts.append("The web UI can no longer be reached on the other interfaces.")
    if before.page_key != after.page_key:
        sentences += certificate_words(before, after)
        impacts.append("A browser that does not trust this certificate warns, and asks whether to go on.")
    if sentences:
        yield Change("changed", "management", tuple(sentences), " ".join(impacts) or None)


def _answers_on(management: Management) -> str:
    return " and ".join(management.interfaces) or "all interfaces"


def certificate_words(before: Management, after: Management) -> Iterator[str]:
    """Of two different ones."""
    old, new = first(before.certificate), first(after.certificate)
    if not after.certificate:
        yield "The web page uses the box's own certificate again, which no browser trusts."
    elif new is None:
        yield "The web page gets a certificate that cannot be read."
    elif old != new:
        yield f"The web page shows {new.sentence}."
        yield f"Its fingerprint (SHA-256) is {new.fingerprint}."
    if new and old == new and before.certificate != after.certificate:
        yield "Other certificates go along with that of the web page."
    if new and old == new and before.key != after.key:
        yield "Its private key is another one."


def _sorry(old: Snapshot, new: Snapshot) -> Iterator[Change]:
    sentences = []
    if old.sorry.title != new.sorry.title:
        sentences.append(f"Its title changes from '{old.sorry.title}' to '{new.sorry.title}'.")
    if old.sorry.paragraphs != new.sorry.paragraphs:
        sentences.append("Its text changes.")
    if sentences:
        yield Change("changed", "sorry page", tuple(sentences))


def _policy(old: Snapshot, new: Snapshot) -> Iterator[Change]:
    sentences = []
    for name, words in names.POLICY.items():
        before, after = getattr(old.policy, name), getattr(new.policy, name)
        if before == after:
            continue
        if isinstance(after, bool):
            sentences.append(f"{words.long}: {'yes' if after else 'no'}.")
        elif isinstance(after, FloodDefence):
            said = names.FLOOD_DEFENCES
            sentences.append(f"{words.long}: {said[after].long} instead of {said[before].long}.")
        else:
            sentences.append(f"{words.long}: {after} s instead of {before} s.")
    if sentences:
        yield Change("changed", "connections", tuple(sentences), ALL_SERVICES)
