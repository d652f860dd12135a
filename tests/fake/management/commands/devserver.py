"""For working on screens: a pretended appliance with sample data, on plain HTTP on this machine only."""

import os

from django.contrib.auth import get_user_model
from django.core.management import BaseCommand, call_command
from tests.fake import appliance

USER, PASSWORD = "admin", "fairlead-dev"  # opens nothing but the sample data


class Command(BaseCommand):
    help = "The web UI with the fake applier: prepares build/dev, prints the login, reloads on change."

    def add_arguments(self, parser):
        parser.add_argument("address", nargs="?", default="127.0.0.1:8000")
        parser.add_argument("--no-reload", action="store_true")

    def handle(self, *args, **options):
        child = os.environ.get("RUN_MAIN") == "true"  # the reloader starts this command twice
        if options["no_reload"] or child:
            appliance.box.setup_done = True
        if not child:
            call_command("prepare")
            user, new = get_user_model().objects.get_or_create(username=USER)
            if new or not user.check_password(PASSWORD):
                user.set_password(PASSWORD)
                user.save()
            self.stdout.write(f"ready: http://{options['address']}/   log in as {USER} with {PASSWORD}")
        call_command(
            "runserver",
            options["address"],
            use_reloader=not options["no_reload"],
            insecure_serving=True,
            skip_checks=True,
        )
