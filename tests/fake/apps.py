"""The pretended appliance as an app of Django: whoever connects to the applier gets it.

FAIRLEAD_FAKE=instant    every apply ends at once
"""

import os

from django.apps import AppConfig
from tests.fake import appliance

from applier.wire import client


class FakeConfig(AppConfig):
    name = "tests.fake"

    def ready(self) -> None:
        appliance.box.instant = os.environ.get("FAIRLEAD_FAKE") == "instant"
        client.dial = appliance.Fake
