"""Virtual services and real servers of the draft. Primary keys are the ids of the snapshot."""

from django.db import models

from changes.models import Tracked


class VirtualService(Tracked):
    """The columns are as wide as lbconfig.snapshot lets a text be; its rules are in lbconfig.validate."""

    name = models.CharField(max_length=64)
    address = models.CharField(max_length=45)
    port = models.PositiveIntegerField()
    protocol = models.CharField(max_length=8, default="tcp")
    scheduler = models.CharField(max_length=16, default="wlc")
    forwarding = models.CharField(max_length=16, default="nat")
    check_kind = models.CharField(max_length=16, default="connect")
    check_port = models.PositiveIntegerField(default=0)
    check_path = models.CharField(max_length=1024, default="/")
    check_host = models.CharField(max_length=1024, blank=True)
    check_expect = models.CharField(max_length=1024, blank=True)
    check_interval = models.PositiveIntegerField(default=2)
    check_timeout = models.PositiveIntegerField(default=2)
    check_failures = models.PositiveIntegerField(default=2)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return self.name


class RealServer(models.Model):
    """Saved with its virtual service, whose version counts for both."""

    service = models.ForeignKey(VirtualService, on_delete=models.CASCADE, related_name="real_servers")
    address = models.CharField(max_length=45)
    port = models.PositiveIntegerField()
    weight = models.PositiveIntegerField(default=1)
    enabled = models.BooleanField(default=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.address}:{self.port}"
