"""Put a damaged database aside and take the newest good backup. Called from the console of the box."""

import sqlite3

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import BaseCommand, CommandError
from django.db import DatabaseError, connection

from accounts import ledger
from system import tables
from web import backups


class Command(BaseCommand):
    help = "Put a damaged database aside (it is never deleted) and restore the newest good backup."
    requires_system_checks = []

    def add_arguments(self, parser):
        parser.add_argument("--even-if-whole", action="store_true", help="restore although the database is whole")

    def handle(self, *args, **options):
        connection.close()
        try:
            whole = settings.DATABASE.exists() and not backups.damage(settings.DATABASE)
            if whole and not options["even_if_whole"]:
                settings.FAULT_FILE.unlink(missing_ok=True)
                self.stdout.write("The database is whole; nothing was changed.")
                return
            backup = backups.newest_good()
            aside = backups.restore(backup.path if backup else None)
            if aside:
                self.stdout.write(f"The old database is kept in {aside}.")
            tables.bring_up()
            ledger.bring_forward()
        except (OSError, DatabaseError, sqlite3.Error) as error:
            raise CommandError(f"the database could not be restored: {error}") from error
        finally:
            connection.close()
        settings.FAULT_FILE.unlink(missing_ok=True)
        if backup:
            self.stdout.write(f"Restored the backup of {backup.made:%d %B %Y %H:%M} UTC.")
        else:
            self.stdout.write("There is no good backup: the draft starts again from what the box runs.")
        if get_user_model().objects.exists():
            self.stdout.write("Users and API tokens are those that the box had last.")
        else:
            self.stdout.write("There are no users. Ask the console for a new set-up code and open the web page.")
