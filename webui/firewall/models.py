"""The admin's own firewall rules of the draft. Primary keys are the ids of the snapshot."""

from django.db import models

from changes.models import Tracked


class Rule(Tracked):
    """The columns are as wide as lbconfig.model.snapshot lets a text be; its rules are in lbconfig.validate.firewall."""

    position = models.PositiveIntegerField()  # the first that matches decides; only the order counts
    name = models.CharField(max_length=1024)
    enabled = models.BooleanField(default=True)
    action = models.CharField(max_length=16, default="allow")
    where = models.CharField(max_length=16, default="box")
    sources = models.JSONField(default=list)
    destinations = models.JSONField(default=list)
    protocol = models.CharField(max_length=16, default="any")
    ports = models.CharField(max_length=1024, blank=True)
    interface = models.CharField(max_length=1024, blank=True)
    rate = models.PositiveIntegerField(default=0)
    per = models.CharField(max_length=16, default="second")
    burst = models.PositiveIntegerField(default=20)
    each_source = models.BooleanField(default=False)
    masquerade = models.BooleanField(default=False)
    log = models.BooleanField(default=False)
    note = models.CharField(max_length=1024, blank=True)

    class Meta:
        ordering = ["position", "id"]

    def __str__(self) -> str:
        return self.name
