#!/usr/bin/env python3
"""The commands of the web UI: prepare, restore_database, demo, devserver and Django's own."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "fairlead.settings")
    if sys.argv[1:2] == ["devserver"]:  # a browser sends no secure cookie over plain HTTP
        os.environ.setdefault("FAIRLEAD_PLAIN_HTTP", "1")
        os.environ.setdefault("FAIRLEAD_APPLIER", "fake")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
