"""The network and the management access of the draft: one row each (pk 1)."""

from django.db import models

from changes.models import Tracked


class Network(Tracked):
    hostname = models.CharField(max_length=253, default="fairlead")
    gateway = models.CharField(max_length=45, blank=True)
    gateway6 = models.CharField(max_length=45, blank=True)
    routes = models.JSONField(default=list)  # as the snapshot has them
    policies = models.JSONField(default=list)
    dns = models.JSONField(default=list)
    search = models.JSONField(default=list)
    ntp = models.JSONField(default=list)

    def __str__(self) -> str:
        return self.hostname


class Interface(models.Model):
    """Saved with the network, whose version counts for all of it."""

    position = models.PositiveIntegerField()
    name = models.CharField(max_length=15, unique=True)
    dhcp = models.BooleanField(default=False)
    addresses = models.JSONField(default=list)
    on = models.BooleanField(default=True)
    mtu = models.PositiveIntegerField(default=0)
    note = models.CharField(max_length=500, blank=True)
    vlan = models.JSONField(null=True)  # each as the snapshot has it; null: it is none
    bond = models.JSONField(null=True)
    bridge = models.JSONField(null=True)

    class Meta:
        ordering = ["position"]

    def __str__(self) -> str:
        return self.name


class Management(Tracked):
    allow = models.JSONField(default=list)
    port = models.PositiveIntegerField(default=443)
    certificate = models.TextField(blank=True, default="")  # of the web page, PEM; empty: the box's own
    key = models.TextField(blank=True, default="")
    interfaces = models.JSONField(default=list)  # empty: all of them

    def __str__(self) -> str:
        return ", ".join(self.allow)
