"""The draft in the database: each object is a document, with who changed it when.

A document is the JSON that a snapshot has of the object. What its fields are, lbconfig.model alone says; an index is
what is asked for by itself: the id, and the order of rules.
"""

from __future__ import annotations

from typing import Any

from django.db import models

from draft import documents
from lbconfig.model import firewall
from lbconfig.model.addresses import endpoint
from lbconfig.model.snapshot import SCHEMA, VirtualService


class Draft(models.Model):
    """One row (pk 1): the draft has been filled, and how often it was changed.

    `counter` gives every changed object its `version`; it never goes back, so that a form which was
    opened before "discard draft" is still recognised as old.
    """

    counter = models.PositiveBigIntegerField(default=0)
    last_server = models.PositiveBigIntegerField(default=0)  # the highest id that a real server ever had
    schema = models.PositiveIntegerField(default=SCHEMA)  # of the documents
    filled_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"draft at change {self.counter}"


class Tracked(models.Model):
    """An object of the draft: who changed it last, when, and which change of the draft that was."""

    version = models.PositiveBigIntegerField(default=0)
    changed_by = models.CharField(max_length=150, blank=True)
    changed_at = models.DateTimeField(null=True)

    class Meta:
        abstract = True


class Document(Tracked):
    data = models.TextField()

    class Meta:
        abstract = True


class Service(Document):
    """A virtual service with its real servers. The primary key is its id in the snapshot."""

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return self.name

    @property
    def wish(self) -> VirtualService:
        return documents.read(VirtualService, self.data)

    @property
    def name(self) -> str:
        return self.wish.name

    @property
    def place(self) -> str:
        return endpoint(self.wish.address, self.wish.port)


class Rule(Document):
    """A firewall rule of the admin's. The primary key is its id in the snapshot."""

    position = models.PositiveIntegerField(db_index=True)  # the first that matches decides; only the order counts

    class Meta:
        ordering = ["position", "id"]

    def __str__(self) -> str:
        return self.name

    @property
    def wish(self) -> firewall.Rule:
        return documents.read(firewall.Rule, self.data)

    @property
    def name(self) -> str:
        return self.wish.name


class Part(Document):
    """A part of the snapshot that there is once: the network, the policy …"""

    name = models.CharField(max_length=32, primary_key=True)  # of the snapshot's field

    def __str__(self) -> str:
        return self.name

    @property
    def wish(self) -> Any:
        return documents.read((documents.PARTS | documents.OPTIONAL)[self.name], self.data)


class Removal(models.Model):
    """A virtual service that was removed from the draft: so that an open form of it can say by whom."""

    service = models.PositiveBigIntegerField(unique=True)
    name = models.CharField(max_length=64)
    changed_by = models.CharField(max_length=150)
    changed_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name}, removed by {self.changed_by}"
