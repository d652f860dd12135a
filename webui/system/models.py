"""What the database must remember of a restore until all of it is done, and of the pair that the box is in."""

from django.db import models


class Restored(models.Model):
    """One row (pk 1), or none: the backup file that this database came out of.

    It comes into the box together with the users and all else. Root's part follows; until it is `done`, certificate
    and key wait here, so that a power cut in between only delays it.
    """

    made = models.DateTimeField()  # the backup file
    hostname = models.CharField(max_length=253)  # of the box that made it
    by = models.CharField(max_length=150)
    number = models.PositiveIntegerField(default=0)  # of the newest revision
    certificate = models.TextField(blank=True)
    key = models.TextField(blank=True)
    done = models.BooleanField(default=False)
    trouble = models.TextField(blank=True)  # what the applier said against it

    def __str__(self) -> str:
        return f"backup file of {self.hostname}"


class Together(models.Model):
    """One row (pk 1), or none: what this box had in common with the other one of its pair last."""

    pair = models.CharField(max_length=32)  # its id; users and draft are those of this pair
    draft = models.CharField(max_length=90, blank=True)  # stamp of the last one that both had; "": none yet

    def __str__(self) -> str:
        return f"pair {self.pair}"
