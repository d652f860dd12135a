"""Before the web server starts: folders, secret key, database; or the fault that every page then shows."""

import os
import secrets
import sqlite3
from pathlib import Path

from django.conf import settings
from django.core.management import BaseCommand
from django.db import DatabaseError, connection

from accounts import ledger, sessions
from system import restoring, tables
from web import backups
from web.faults import DAMAGED, fault_of


class Command(BaseCommand):
    help = "Get the data folder ready. Exits 0 also with a damaged database: then every page shows the fault."
    requires_system_checks = []

    def handle(self, *args, **options):
        os.umask(0o077)
        settings.FAULT_FILE.parent.mkdir(parents=True, exist_ok=True)
        settings.FAULT_FILE.unlink(missing_ok=True)
        self.write_secret(settings.CONSOLE_TOKEN_FILE, secrets.token_urlsafe(32))
        try:
            settings.DATA.mkdir(parents=True, exist_ok=True)
            self.make_secret_key()
            if settings.DATABASE.exists() and (found := backups.damage(settings.DATABASE)):
                self.fault(f"{settings.DATABASE.name}: {found}")
                return
            ledger.expect()
            tables.bring_up()
            ledger.bring_forward()
            sessions.clear()
        except (OSError, DatabaseError, sqlite3.Error) as error:
            if fault_of(error) is DAMAGED:
                self.fault(f"{settings.DATABASE.name}: {error}")
            else:  # full, read-only: each page says so for itself, and works again when it is over
                self.stderr.write(f"the database cannot be prepared: {error}")
            return
        finally:
            connection.close()
        restoring.clear("*")
        backups.make_if_due()

    def make_secret_key(self) -> None:
        path = settings.SECRET_KEY_FILE
        if path.exists() and path.stat().st_size:
            return
        part = path.with_name(f".{path.name}.part")
        self.write_secret(part, settings.SECRET_KEY)
        backups.sync(part)
        part.rename(path)
        backups.sync(settings.DATA)

    def write_secret(self, path: Path, text: str) -> None:
        path.unlink(missing_ok=True)
        handle = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(text)

    def fault(self, sentence: str) -> None:
        settings.FAULT_FILE.write_text(sentence + "\n")
        self.stderr.write(f"the database cannot be used: {sentence}")
