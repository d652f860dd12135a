"""A change that waits to be confirmed, as a browser sees it: applied, waited for, and asked over a new connection."""

import re

import pytest
from forms_on_page import form_values, words

OLD, NEW = "192.168.10.2", "192.168.10.7"
HERE = {"HTTP_HOST": OLD, "REMOTE_ADDR": "192.168.10.50"}


@pytest.fixture
def moved(client):
    """A draft that moves the box to another address."""
    page = form_values(client.get("/network/"))
    client.post("/network/", page | {"interfaces-0-addresses": f"{NEW}/24"})


def apply(client, secure=False, **changes) -> str:
    """Apply what was reviewed; the path of its page, which comes at once: the box may be gone for a second question."""
    values = form_values(client.get("/changes/", secure=secure, **HERE)) | changes
    answer = client.post("/changes/apply/", values, secure=secure, **HERE)
    assert answer.status_code == 200, words(answer)
    return re.search(r'id="follow" data-here="([^"]+)"', answer.text)[1]


def ago(box, seconds=30.0) -> None:
    """The waiting began so long ago, and goes on: a test takes as long as it takes."""
    deadline = box.run.deadline
    now = deadline.begun
    deadline.begun, deadline._clock = now - seconds, lambda: now


def new_connection(seconds=1.0) -> dict:
    return {"HTTP_X_CONNECTION_AGE": f"{seconds}"}
