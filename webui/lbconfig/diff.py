"""What changes from one snapshot to the next: file by file, and in plain words."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from lbconfig import names
from lbconfig.render import ldirectord
from lbconfig.snapshot import CheckKind, HealthCheck, Interface, RealServer, Snapshot, VirtualService


@dataclass(frozen=True, slots=True)
class Change:
    kind: str  # "added", "changed", "removed"
    object: str  # "virtual service 'web'"
    sentences: tuple[str, ...]
    impact: str | None = None  # what clients or the admin notice; None: nothing


REFUSED = "New connections may be refused for a moment."
CLOSED = "Open connections through it are closed."
SERVER_CLOSED = "Open connections to a server that is removed or disabled are closed."
MOVED = "The service leaves its old place: open connections through it are closed."
NETWORK = "The box may be reached at another address, or not at all."


def unified(old_files: Mapping[str, str], new_files: Mapping[str, str]) -> dict[str, str]:
    """The unified diff of every file that differs, in the order of the names."""
    changed = {}
    for name in sorted({*old_files, *new_files}):
        old, new = old_files.get(name, ""), new_files.get(name, "")
        if old != new or (name in old_files) != (name in new_files):
            lines = difflib.unified_diff(
                old.splitlines(keepends=True), new.splitlines(keepends=True), f"running/{name}", f"new/{name}"
            )
            changed[name] = "".join(lines)
    return changed


def summary(old: Snapshot, new: Snapshot) -> list[Change]:
    """The changes in the order of the new snapshot, then what is removed, then network and management."""
    return [
        *_services(old, new),
        *_interval(old, new),
        *_network(old, new),
        *_interfaces(old, new),
        *_management(old, new),
    ]


# --- services ------------------------------------------------------------------------------------


def _services(old: Snapshot, new: Snapshot) -> Iterator[Change]:
    before = {service.id: service for service in old.services}
    after = {service.id for service in new.services}
    for service in new.services:
        if service.id not in before:
            yield Change("added", _object(service), _description(service))
        elif before[service.id] != service:
            yield _service_change(before[service.id], service)
    for service in old.services:
        if service.id not in after:
            yield Change("removed", _object(service), (f"It was {_where(service)}.",), CLOSED)


def _object(service: VirtualService) -> str:
    return f"virtual service '{service.name}'"


def _where(service: VirtualService) -> str:
    return f"{names.PROTOCOLS[service.protocol].long} {service.address}:{service.port}"


def _description(service: VirtualService) -> tuple[str, ...]:
    forwarding = names.FORWARDING[service.forwarding].long
    return (
        f"It is {_where(service)}, {names.scheduler(service.scheduler)}, by {forwarding}.",
        f"Health check: {_check_words(service.check)}.",
        *(f"Real server {_server_words(server)}." for server in service.real_servers),
    )


def _service_change(old: VirtualService, new: VirtualService) -> Change:
    moved = (old.address, old.port, old.protocol) != (new.address, new.port, new.protocol)
    sentences = []
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
    if old.check != new.check:
        sentences.append(f"Health check changes from {_check_words(old.check)} to {_check_words(new.check)}.")
    server_sentences, closed = _server_changes(old, new)
    impacts = [
        text
        for text, true in (
            (MOVED, moved),
            (REFUSED, old.scheduler != new.scheduler and not moved),
            (SERVER_CLOSED, closed),
        )
        if true
    ]
    if not sentences and not server_sentences:
        server_sentences = ["The order of its real servers changes."]
    return Change("changed", _object(new), (*sentences, *server_sentences), " ".join(impacts) or None)


def _server_changes(old: VirtualService, new: VirtualService) -> tuple[list[str], bool]:
    """The sentences, and whether a running real server leaves the table."""
    before = {server.id: server for server in old.real_servers}
    after = {server.id for server in new.real_servers}
    sentences = []
    for server in new.real_servers:
        if server.id not in before:
            sentences.append(f"Real server {_server_words(server)} is added.")
        else:
            sentences += _server_change(before[server.id], server)
    gone = [server for server in old.real_servers if server.id not in after]
    sentences += [f"Real server {server.address}:{server.port} is removed." for server in gone]
    return sentences, bool(_in_table(old) - _in_table(new))


def _in_table(service: VirtualService) -> set[tuple[str, int]]:
    return {(server.address, server.port) for server in service.real_servers if server.enabled}


def _server_change(old: RealServer, new: RealServer) -> Iterator[str]:
    name = f"Real server {new.address}:{new.port}"
    if (old.address, old.port) != (new.address, new.port):
        yield f"{name} replaces {old.address}:{old.port}."
    if old.weight != new.weight:
        yield f"{name}: weight changes from {old.weight} to {new.weight}."
    if old.enabled != new.enabled:
        yield f"{name} is {'enabled' if new.enabled else 'disabled'}."


def _server_words(server: RealServer) -> str:
    return f"{server.address}:{server.port}, weight {server.weight}{'' if server.enabled else ', disabled'}"


def _check_words(check: HealthCheck) -> str:
    if check.kind == CheckKind.OFF:
        return names.CHECKS[check.kind].long
    words = [names.CHECKS[check.kind].long]
    if check.port and check.kind != CheckKind.PING:
        words.append(f"on port {check.port}")
    if check.kind == CheckKind.HTTP:
        words.append(f"of {check.path}")
        words += [f"with host {check.host}"] if check.host else []
        words += [f"expecting '{check.expect}'"] if check.expect else []
    return f"{' '.join(words)} (every {check.interval} s, timeout {check.timeout} s, down after {check.failures})"


def _interval(old: Snapshot, new: Snapshot) -> Iterator[Change]:
    before, after = ldirectord.interval(old), ldirectord.interval(new)
    if before != after and ldirectord.watched(old) and ldirectord.watched(new):
        yield Change(
            "changed",
            "health checks",
            (
                f"All servers are checked every {after} s instead of every {before} s.",
                "The shortest interval of all services counts for all.",
            ),
        )


# --- network and management ----------------------------------------------------------------------


def _network(old: Snapshot, new: Snapshot) -> Iterator[Change]:
    sentences = []
    if old.network.hostname != new.network.hostname:
        sentences.append(f"Host name changes from '{old.network.hostname}' to '{new.network.hostname}'.")
    gateway = old.network.gateway != new.network.gateway
    if gateway:
        sentences.append(
            f"Default gateway changes from {old.network.gateway or 'none'} to {new.network.gateway or 'none'}."
        )
    if sentences:
        yield Change("changed", "network", tuple(sentences), NETWORK if gateway else None)


def _interfaces(old: Snapshot, new: Snapshot) -> Iterator[Change]:
    before = {interface.name: interface for interface in old.network.interfaces}
    after = {interface.name: interface for interface in new.network.interfaces}
    for name, interface in after.items():
        if name not in before:
            yield Change("added", f"interface '{name}'", (f"It has {_interface_words(interface)}.",))
        elif before[name] != interface:
            yield Change("changed", f"interface '{name}'", tuple(_interface_change(before[name], interface)), NETWORK)
    for name in before:
        if name not in after:
            yield Change("removed", f"interface '{name}'", ("It has no address any more.",), NETWORK)


def _interface_words(interface: Interface) -> str:
    words = [*(["an address by DHCP"] if interface.dhcp else []), *interface.addresses]
    return " and ".join(words) or "no address"


def _interface_change(old: Interface, new: Interface) -> Iterator[str]:
    if old.dhcp != new.dhcp:
        yield f"DHCP is switched {'on' if new.dhcp else 'off'}."
    yield from _list_change(old.addresses, new.addresses, lambda text: f"Address {text}")


def _management(old: Snapshot, new: Snapshot) -> Iterator[Change]:
    sentences = tuple(_list_change(old.management.allow, new.management.allow, lambda text: f"Access from {text}"))
    if sentences:
        gone = set(old.management.allow) - set(new.management.allow)
        yield Change(
            "changed", "management", sentences, "The web UI can no longer be reached from there." if gone else None
        )


def _list_change(old: tuple[str, ...], new: tuple[str, ...], words: Callable[[str], str]) -> Iterator[str]:
    yield from (f"{words(text)} is added." for text in new if text not in old)
    yield from (f"{words(text)} is removed." for text in old if text not in new)
    if set(old) == set(new) and old != new:
        yield "Only the order changes."
