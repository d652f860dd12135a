"""Services and real servers of the draft."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.urls import reverse

from draft import store
from lbconfig.model.addresses import shown
from lbconfig.model.snapshot import VirtualService
from search.entries import Entry

MOST = 50  # of each kind that are looked at further
WEIGHT = 4  # what an admin has named himself comes before what the box calls so


def entries(asked: str) -> list[Entry]:
    """Return the services and servers that have every word of it."""
    words = asked.casefold().split()
    if not words:
        return []
    services = store.current().services
    return [*_services(services, words), *_servers(services, words)]


def _services(services: Sequence[VirtualService], words: list[str]) -> Iterator[Entry]:
    left = MOST
    for service in services:
        places = [shown(vip, service.port) for vip in service.vips]
        if left and _has((service.name, service.note, *service.tags, service.more_ports, *places), words):
            left -= 1
            yield Entry(
                service.name,
                reverse("service-edit", args=[service.id]),
                f"Virtual service {places[0]}",
                " ".join((service.address, str(service.port), service.more_ports, *places[1:], *service.tags)),
                service.note,
                WEIGHT,
            )


def _servers(services: Sequence[VirtualService], words: list[str]) -> Iterator[Entry]:
    """Each address once, whatever services it serves."""
    found: dict[str, tuple[list[str], list[str]]] = {}
    for service in services:
        for server in service.real_servers:
            place = shown(server.address, server.port)
            if (server.address in found or len(found) < MOST) and _has((server.name, place), words):
                places, names = found.setdefault(server.address, ([], []))
                places.append(place)
                names.extend([server.name] if server.name and server.name not in names else [])
    for address, (places, names) in found.items():
        yield Entry(
            ", ".join(names) or address,
            reverse("server", args=[address]),
            f"Real server {', '.join(places[:3])}",
            f"{address} {' '.join(places)}",
            weight=WEIGHT,
        )


def _has(texts: Sequence[str], words: list[str]) -> bool:
    text = "\n".join(texts).casefold()
    return all(word in text for word in words)
