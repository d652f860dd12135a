import os

import pytest


@pytest.fixture(autouse=True)
def quick_disk(request, monkeypatch):
    """The disk of a test need not survive; those about power cuts watch the syncs themselves."""
    if "power" not in request.node.name:
        monkeypatch.setattr(os, "fsync", lambda handle: None)
