"""Backup files: taken, sent to the box, opened without it and sealed again."""

import io
import tarfile

import pytest
from django.contrib.auth import get_user_model
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.utils import ConnectionHandler
from forms_on_page import form_values, words

from accounts import tokens
from accounts.models import ApiToken
from changes.models import Revision
from draft import store as draft
from system import restoring, sealed

PASSPHRASE = "rope and tide and moon"


@pytest.fixture(autouse=True)
def any_database(transactional_db, monkeypatch):
    """Django's tests admit no databases that are listed and not theirs; that of a backup file is such a one."""
    listed = ConnectionHandler.__iter__
    hidden = lambda handler: (alias for alias in listed(handler) if alias != restoring.ALIAS)  # noqa: E731
    monkeypatch.setattr(ConnectionHandler, "__iter__", hidden)


@pytest.fixture(autouse=True)
def cheap(monkeypatch):
    """A test need not cost a guesser anything."""
    monkeypatch.setattr(sealed.Writer.__init__, "__defaults__", (sealed.Cost(4, 8, 1),))


@pytest.fixture
def file(client, admin, box) -> bytes:
    """Of a box with a token, a history, and a draft that does not run."""
    tokens.make(admin, "night job")
    edit(client, "mail of the file")
    return take(client)


def take(client) -> bytes:
    answer = client.post("/system/backup/", {"passphrase": PASSPHRASE, "again": PASSPHRASE})
    assert answer.headers["Content-Disposition"].endswith('.fairlead-backup"'), words(answer)
    return b"".join(answer.streaming_content)


def edit(client, name):
    client.post("/services/2/", form_values(client.get("/services/2/")) | {"name": name})


def send(client, content, passphrase=PASSPHRASE, url="/system/backup/restore/"):
    return client.post(url, {"file": SimpleUploadedFile("x.fairlead-backup", content), "passphrase": passphrase})


def opened(content: bytes, tmp_path) -> dict[str, bytes]:
    """The archive inside, by nothing but the library's own means."""
    plain = sealed.Reader(io.BytesIO(content), PASSPHRASE).read()
    with tarfile.open(fileobj=io.BytesIO(plain), mode="r:gz") as archive:
        return {member.name: archive.extractfile(member).read() for member in archive}


def sealed_up(members: dict[str, bytes]) -> bytes:
    plain, out = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    writer = sealed.Writer(out, PASSPHRASE)
    writer.write(plain.getvalue())
    writer.close()
    return out.getvalue()


def state() -> tuple:
    """What a refused file must not touch."""
    users = list(get_user_model().objects.order_by("pk").values_list("username", "password"))
    return users, draft.current(), list(Revision.objects.values_list("number", "user")), ApiToken.objects.count()
