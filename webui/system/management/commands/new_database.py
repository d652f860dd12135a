"""Called when an image is built: the database that each new box of it begins with."""

from pathlib import Path

from django.core.management import BaseCommand

from system import tables


class Command(BaseCommand):
    help = "Write a database with all tables and nothing in them."
    requires_system_checks = []

    def add_arguments(self, parser):
        parser.add_argument("file", type=Path)

    def handle(self, *args, **options):
        tables.make_new(options["file"])
