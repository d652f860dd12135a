"""Virtual services and real servers of the draft. Primary keys are the ids of the snapshot."""

from django.db import models

from changes.models import Tracked
from lbconfig.model.addresses import endpoint, shown


class VirtualService(Tracked):
    """The columns are as wide as lbconfig.model.snapshot lets a text be; its rules are in lbconfig.validate.services."""

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
    check_successes = models.PositiveIntegerField(default=1)
    check_retry = models.PositiveIntegerField(default=0)
    check_login = models.CharField(max_length=1024, blank=True)
    check_password = models.CharField(max_length=1024, blank=True)
    check_secret = models.CharField(max_length=1024, blank=True)
    check_database = models.CharField(max_length=1024, blank=True)
    check_ask = models.CharField(max_length=1024, blank=True)
    check_verify = models.BooleanField(default=False)
    check_authority = models.TextField(blank=True)
    check_connects = models.PositiveIntegerField(default=0)
    check_method = models.CharField(max_length=8, default="get")
    check_statuses = models.CharField(max_length=1024, blank=True)
    check_matching = models.CharField(max_length=16, default="contains")
    check_old_tls = models.BooleanField(default=False)
    check_program = models.TextField(blank=True)
    enabled = models.BooleanField(default=True)
    note = models.CharField(max_length=1024, blank=True)
    hash_port = models.BooleanField(default=False)
    hash_next = models.BooleanField(default=False)
    persistence = models.PositiveIntegerField(default=0)
    persistence_prefix = models.PositiveIntegerField(default=0)
    one_packet = models.BooleanField(default=False)
    call_id = models.BooleanField(default=False)
    more_ports = models.CharField(max_length=1024, blank=True)
    more_addresses = models.JSONField(default=list, blank=True)
    fallback_kind = models.CharField(max_length=16, default="none")
    fallback_address = models.CharField(max_length=45, blank=True)
    fallback_port = models.PositiveIntegerField(default=0)
    agent_kind = models.CharField(max_length=16, default="off")
    agent_port = models.PositiveIntegerField(default=3333)
    agent_interval = models.PositiveIntegerField(default=5)
    agent_floor = models.PositiveIntegerField(default=10)
    slow_start = models.PositiveIntegerField(default=0)
    least_healthy_servers = models.PositiveIntegerField(default=0)
    least_healthy_then = models.CharField(max_length=16, default="tell")
    least_healthy_again = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return self.name

    @property
    def place(self) -> str:
        return endpoint(self.address, self.port)


class SorryPage(Tracked):
    """One row (pk 1)."""

    title = models.CharField(max_length=1024)
    paragraphs = models.JSONField(default=list)

    def __str__(self) -> str:
        return self.title


class Policy(Tracked):
    """One row (pk 1)."""

    tcp_timeout = models.PositiveIntegerField()
    fin_timeout = models.PositiveIntegerField()
    udp_timeout = models.PositiveIntegerField()
    release_removed = models.BooleanField()
    release_persistent = models.BooleanField()
    reuse_ports = models.BooleanField()
    adopt = models.BooleanField()
    icmp_errors = models.BooleanField()
    route_answers = models.BooleanField()
    flood_defence = models.CharField(max_length=16, default="automatic")

    def __str__(self) -> str:
        return "how connections are treated"


class RealServer(models.Model):
    """Saved with its virtual service, whose version counts for both."""

    service = models.ForeignKey(VirtualService, on_delete=models.CASCADE, related_name="real_servers")
    address = models.CharField(max_length=45)
    port = models.PositiveIntegerField()
    weight = models.PositiveIntegerField(default=1)
    state = models.CharField(max_length=16, default="enabled")
    upper = models.PositiveIntegerField(default=0)
    lower = models.PositiveIntegerField(default=0)
    forwarding = models.CharField(max_length=16, blank=True)  # "": that of the service
    name = models.CharField(max_length=64, blank=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return shown(self.address, self.port)
