"""A new password for an administrator. Called from the console of the box."""

import secrets

from django.contrib.auth import get_user_model
from django.core.management import BaseCommand, CommandError
from django.db import DatabaseError

from accounts import credentials
from lbconfig.model.problem import quote

LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # none that is read for another one
GROUPS, LENGTH = 4, 4  # about 79 bits


class Command(BaseCommand):
    help = "Print the names of the users, one per line; with a name: give it a new password, and print that."
    requires_system_checks = []

    def add_arguments(self, parser):
        parser.add_argument("name", nargs="?", default="")

    def handle(self, *args, name: str, **options):
        users = get_user_model().objects
        try:
            if not name:
                self.stdout.write("\n".join(users.order_by("username").values_list("username", flat=True)))
                return
            user = users.filter(username=name).first()
            if user is None:
                raise CommandError(f"There is no user {quote(name)}.")
            password = new_password()
            credentials.set_password(user, password)
        except (DatabaseError, OSError) as error:
            raise CommandError(f"The database of the web page: {error}.") from error
        self.stdout.write(password)


def new_password() -> str:
    return "-".join("".join(secrets.choice(LETTERS) for _ in range(LENGTH)) for _ in range(GROUPS))
