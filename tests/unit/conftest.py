"""Settings of Hypothesis for all of these tests."""

from hypothesis import HealthCheck, settings
from tests import parts

# How long an example takes tells more of what else the machine does than of what is tested.
settings.register_profile(
    "busy", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=not parts.ANEW
)
settings.load_profile("busy")
