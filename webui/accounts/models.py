"""What the box knows of its admins beside Django's own users."""

from django.conf import settings
from django.db import models


class ApiToken(models.Model):
    """The right to use the API in an admin's name. The token itself is shown once; only its digest is kept."""

    name = models.CharField(max_length=60)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    digest = models.CharField(max_length=64, unique=True)  # SHA-256, in hexadecimal
    created = models.DateTimeField(auto_now_add=True)
    used = models.DateTimeField(null=True, blank=True)  # to the hour
    scopes = models.JSONField(default=list)  # of accounts.scopes
    expires = models.DateTimeField(null=True, blank=True)  # None: never
    networks = models.JSONField(default=list)  # "192.0.2.0/24": from where it counts; empty: from everywhere

    class Meta:
        ordering = ["name", "pk"]

    def __str__(self) -> str:
        return f"{self.name} of {self.user}"


class LedgerNumber(models.Model):
    """How new the users and tokens of this database are: one row, which accounts.ledger compares with its file."""

    number = models.PositiveBigIntegerField()

    def __str__(self) -> str:
        return str(self.number)
