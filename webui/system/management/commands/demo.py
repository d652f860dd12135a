"""Make the box a demonstration: an admin with a given password, and a given snapshot that runs."""

import os
import sys
import time
from pathlib import Path

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import BaseCommand, CommandError

from accounts import credentials
from applier.wire.client import ApplierDown, ApplierRefused, connect
from applier.wire.shapes import ENDED
from changes import actions
from draft import store as draft
from lbconfig.model.snapshot import SnapshotError, from_json

WAIT = 90  # seconds for the apply


class Command(BaseCommand):
    help = "Create an admin, load a snapshot into the draft and apply it; standard input: password, set-up code."

    def add_arguments(self, parser):
        parser.add_argument(
            "--password-stdin",
            action="store_true",
            required=True,
            help="first line: the password; second line, if given: the set-up code, which is spent",
        )
        parser.add_argument("--user", default="admin")
        parser.add_argument(
            "--snapshot", type=Path, help="JSON of lbconfig.model.snapshot; without it nothing is applied"
        )

    def handle(self, *args, **options):
        if os.getuid() == 0 and settings.DATA.stat().st_uid != 0:
            raise CommandError("run this as the owner of the data folder, not as root")
        password, _, code = (part.strip() for part in sys.stdin.read().partition("\n"))
        if not password:
            raise CommandError("no password on standard input")
        try:
            self.create(options["user"], password, code)
            actions.fill_if_empty()
            if options["snapshot"]:
                self.load(options["snapshot"], options["user"])
        except (ApplierDown, ApplierRefused, SnapshotError, OSError) as error:
            raise CommandError(str(error)) from error

    def create(self, name: str, password: str, code: str) -> None:
        user = get_user_model().objects.filter(username=name).first() or get_user_model()(username=name)
        credentials.set_password(user, password)
        if code:
            connect().setup_done(code)

    def load(self, path: Path, user: str) -> None:
        draft.replace(from_json(path.read_text()), user)
        snapshot = draft.current()
        found = actions.review(snapshot)
        if found["problems"]:
            sentences = (f"{one['object']}, {one['field']}: {one['message']}" for one in found["problems"])
            raise CommandError("; ".join(sentences))
        if not found["changes"] and not found["diff"]:
            self.stdout.write("The box runs this snapshot already.")
            return
        answer = actions.apply(snapshot, found["digest"], found["base"], user, "demonstration", "")
        self.wait(answer["apply"])
        actions.keep_history()

    def wait(self, number: str) -> None:
        end = time.monotonic() + WAIT
        while time.monotonic() < end:
            run = connect().progress()
            if run and run["id"] == number and run["state"] == "waiting":
                connect().confirm(apply=number, user=run["user"])
            elif run and run["id"] == number and run["state"] in ENDED:
                self.stdout.write(run["message"])
                if run["state"] != "done":
                    raise CommandError(f"the snapshot does not run: {run['message']}")
                return
            time.sleep(0.2)
        raise CommandError(f"the apply did not end within {WAIT} seconds")
