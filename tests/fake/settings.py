"""The settings of the web UI with the pretended appliance behind it: `make dev`, and a web page in a room of its own."""

from fairlead.settings import *  # noqa: F403
from fairlead.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.fake"]
