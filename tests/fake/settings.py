"""The settings of the web UI with the pretended appliance behind it: for `make dev`, and for tests/peers."""

from fairlead.settings import *  # noqa: F403
from fairlead.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.fake"]
