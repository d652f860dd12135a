"""What changes from one snapshot to the next, in plain words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from lbconfig.diff.balance import balance_changes
from lbconfig.diff.change import REFUSED as REFUSED
from lbconfig.diff.change import Change as Change
from lbconfig.diff.change import list_change
from lbconfig.diff.checks import check_changes, check_words, program_lines
from lbconfig.diff.firewall import firewall
from lbconfig.diff.network import NETWORK as NETWORK
from lbconfig.diff.network import network_changes
from lbconfig.diff.pair import pair_changes
from lbconfig.diff.tuning import tuning_changes
from lbconfig.model import names
from lbconfig.model.addresses import endpoint, shown
from lbconfig.model.certificate import first
from lbconfig.model.snapshot import (
    FallbackCheck,
    FallbackKind,
    FloodDefence,
    Management,
    RealServer,
    ServerState,
    Snapshot,
    VirtualService,
)

CLOSED = "Open connections through it are closed."
SERVER_CLOSED = "Open connections to a server that is removed or disabled are closed."
MOVED = "The service leaves its old address or port: open connections through it are closed."
ALL_SERVICES = "This applies to all services, from the next packet of each connection."


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
            yield Change("removed", _object(service), (f"It served {_where(service)}.",), impact, service.id)


def _object(service: VirtualService) -> str:
    return f"virtual service '{service.name}'"


def _where(service: VirtualService) -> str:
    more = f" and ports {service.more_ports}" if service.more_ports else ""
    more += f", also at {', '.join(service.more_addresses)}" if service.more_addresses else ""
    return f"{names.PROTOCOLS[service.protocol].long} {endpoint(service.address, service.port)}{more}"


def _description(service: VirtualService) -> tuple[str, ...]:
    forwarding = names.FORWARDING[service.forwarding].long
    return (
        f"It serves {_where(service)}, {names.scheduler(service.scheduler)}, with {forwarding}.",
        *([] if service.enabled else ["Disabled: the box does not serve it."]),
        *(option.on for option in _options(service) if option.value),
        f"Health check: {check_words(service.check)}.",
        *program_lines("", service.check.program),
        *(f"Real server {_server_words(service, server)}." for server in service.real_servers),
    )


class _Option(NamedTuple):
    """What most services do not have."""

    value: object
    on: str  # the sentence where it is set
    off: str  # the sentence when it is no longer


def _options(service: VirtualService) -> tuple[_Option, ...]:
    bits = service.persistence_prefix
    together = f"; clients of one /{bits} count as one" if bits else ""
    return (
        _Option(
            (service.persistence, bits) if service.persistence else None,
            f"Persistence: a client keeps its server for {service.persistence} s{together}.",
            "Persistence is off.",
        ),
        _Option(
            service.one_packet,
            "One-packet scheduling: each packet is balanced separately.",
            "One-packet scheduling is off.",
        ),
        _Option(
            service.call_id,
            "Persistence by SIP Call-ID instead of client address.",
            "Persistence by client address instead of SIP Call-ID.",
        ),
        _Option(
            service.hash_port,
            "The client's port is part of the hash.",
            "The client's port is no longer part of the hash.",
        ),
        _Option(
            service.hash_next,
            "A client whose server takes no connections goes to another one.",
            "A client whose server takes no connections gets no answer.",
        ),
        _Option(
            service.fallback if service.fallback.kind is not FallbackKind.NONE else None,
            f"While all real servers are down, {_fallback_words(service)} answers.",
            "While all real servers are down, clients get no answer.",
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
        sentences.append("Enabled: the box serves it." if new.enabled else "Disabled: the box no longer serves it.")
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
    sentences += check_changes(old.check, new.check)
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
        yield f"{name}: {_thresholds(new) or 'has no connection limit'}."
    if old.forwarding != new.forwarding:
        yield f"{name}: forwarding is {names.FORWARDING[new.forwarding].long if new.forwarding else _AS_SERVICE}."
    if old.state != new.state:
        yield f"{name} {_STATES[new.state]}."


_AS_SERVICE = "that of the service"


_STATES = {
    ServerState.ENABLED: "takes connections",
    ServerState.QUIESCED: "drains: no new connections; open ones continue",
    ServerState.DISABLED: "is disabled",
}


def _thresholds(server: RealServer) -> str:
    if not server.upper:
        return ""
    again = f", and again below {server.lower}" if server.lower else ""
    return f"at most {server.upper} connections{again}"


def _server_words(service: VirtualService, server: RealServer) -> str:
    called = f" '{server.name}'" if server.name else ""
    words = [f"{shown(server.address, server.port)}{called}", f"weight {server.weight}"]
    if service.forwarding_of(server) != service.forwarding:
        words.append(f"with {names.FORWARDING[service.forwarding_of(server)].long}")
    words += [_thresholds(server)] if server.upper else []
    words += [] if server.state is ServerState.ENABLED else [names.SERVER_STATES[server.state].long]
    return ", ".join(words)


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
        yield Change("changed", "access", tuple(sentences), " ".join(impacts) or None)


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
