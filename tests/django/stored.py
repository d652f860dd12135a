"""What the draft has stored, and changes of it that nobody made on a page: no version counts them."""

import dataclasses

from draft.documents import text
from draft.models import Service
from lbconfig.model.snapshot import RealServer


def named(name: str) -> Service | None:
    return next((row for row in Service.objects.all() if row.name == name), None)


def server(pk: int) -> RealServer | None:
    found = (one for row in Service.objects.all() for one in row.wish.real_servers if one.id == pk)
    return next(found, None)


def service_of(pk: int) -> Service:
    """The service of a real server."""
    return next(row for row in Service.objects.all() if any(one.id == pk for one in row.wish.real_servers))


def change(pk: int, **fields: object) -> None:
    row = Service.objects.get(pk=pk)
    row.data = text(dataclasses.replace(row.wish, **fields))
    row.save(update_fields=["data"])


def change_server(pk: int, **fields: object) -> None:
    """Without fields it is gone."""
    row = service_of(pk)
    servers = [dataclasses.replace(one, **fields) if one.id == pk else one for one in row.wish.real_servers]
    change(row.pk, real_servers=tuple(one for one in servers if fields or one.id != pk))
