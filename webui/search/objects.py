"""Services and real servers of the draft, looked for in the database: nothing else of the configuration is read."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Q, TextField
from django.db.models.functions import Cast
from django.urls import reverse

from balancing.models import RealServer, VirtualService
from lbconfig.model.addresses import shown
from search.entries import Entry

MOST = 50  # rows of each kind that are looked at further
WEIGHT = 4  # what an admin has named himself comes before what the box calls so


def entries(asked: str) -> list[Entry]:
    """Return the services and servers that have every word of it."""
    words = asked.split()
    return [*_services(words), *_servers(words)] if words else []


def _services(words: list[str]) -> Iterator[Entry]:
    rows = VirtualService.objects.annotate(more=Cast("more_addresses", TextField()))
    for word in words:
        rows = rows.filter(_contains(word, "name", "note", "address", "more", "more_ports") | _place(word))
    columns = "pk", "name", "note", "address", "port", "more", "more_ports"
    for pk, name, note, address, port, more, more_ports in rows.values_list(*columns)[:MOST]:
        place = shown(address, port)
        yield Entry(
            name,
            reverse("service-edit", args=[pk]),
            f"Virtual service {place}",
            f"{address} {port} {more_ports} {more}",
            note,
            WEIGHT,
        )


def _servers(words: list[str]) -> Iterator[Entry]:
    """Each address once, whatever services it serves."""
    rows = RealServer.objects.all()
    for word in words:
        rows = rows.filter(_contains(word, "name", "address") | _place(word))
    known: dict[str, tuple[list[str], list[str]]] = {}
    for address, port, name in rows.values_list("address", "port", "name")[:MOST]:
        places, names = known.setdefault(address, ([], []))
        places.append(shown(address, port))
        names.extend([name] if name and name not in names else [])
    for address, (places, names) in known.items():
        yield Entry(
            ", ".join(names) or address,
            reverse("server", args=[address]),
            f"Real server {', '.join(places[:3])}",
            f"{address} {' '.join(places)}",
            weight=WEIGHT,
        )


def _contains(word: str, *columns: str) -> Q:
    """SQLite knows small and capital letters of ASCII alone, and names may be in any script."""
    found = Q()
    for spelling in {word, word.lower(), word.upper(), word.capitalize()}:
        for column in columns:
            found |= Q(**{f"{column}__icontains": spelling})
    return found


def _place(word: str) -> Q:
    """ "443", "10.0.0.1:443" and "[2001:db8::1]:443"."""
    address, colon, port = word.rpartition(":")
    if not port.isdecimal() or len(port) > 5:
        return Q(pk=None)
    if not colon:
        return Q(port=int(port))
    return Q(port=int(port), address__iexact=address.strip("[]"))
