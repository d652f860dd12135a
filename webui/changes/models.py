"""The history of what was applied, and what waits to become the draft."""

from django.db import models


class Keeping(models.Model):
    """One row (pk 1), or none: how many revisions the history keeps."""

    revisions = models.PositiveIntegerField(default=500)

    def __str__(self) -> str:
        return f"{self.revisions} revisions"


class Candidate(models.Model):
    """A configuration that an admin brought, and that waits for his word before it becomes the draft. One an admin."""

    user = models.CharField(max_length=150, unique=True)
    name = models.CharField(max_length=100)  # of the file
    made = models.DateTimeField(auto_now=True)
    snapshot = models.TextField(help_text="the canonical JSON text")

    def __str__(self) -> str:
        return f"{self.name} of {self.user}"


class SetAside(models.Model):
    """A draft of the pair that was not taken: both boxes were edited while they were apart."""

    digest = models.CharField(max_length=64, unique=True)
    hostname = models.CharField(max_length=253)  # of the box where it was made
    found = models.DateTimeField(auto_now_add=True)
    snapshot = models.TextField(blank=True, help_text="the canonical JSON text; empty: nobody wants it any more")

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"draft of {self.hostname}"


class Revision(models.Model):
    """One apply that the box has ended, with the whole snapshot; the applier's generation has its number."""

    number = models.PositiveIntegerField(unique=True)
    user = models.CharField(max_length=150, blank=True)
    comment = models.CharField(max_length=500, blank=True)
    corrected_by = models.CharField(max_length=150, blank=True)  # who wrote the comment anew
    corrected_at = models.DateTimeField(null=True)
    created = models.DateTimeField()
    outcome = models.CharField(max_length=40)
    seconds = models.FloatField(null=True)
    snapshot = models.TextField(help_text="the canonical JSON text")
    steps = models.JSONField(default=list)

    class Meta:
        ordering = ["-number"]

    def __str__(self) -> str:
        return f"revision {self.number}"

    @property
    def good(self) -> bool:
        return self.outcome == "confirmed"
