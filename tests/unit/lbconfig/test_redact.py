"""A configuration without its passwords."""

import dataclasses

from lbconfig_samples import SAMPLE
from lbconfig_strategies import of_snapshots

from lbconfig.model import redact
from lbconfig.model.snapshot import CheckKind, HealthCheck, VirtualService, from_json, to_json

CHECK = HealthCheck(CheckKind.RADIUS, login="kim", password="rope and tide", secret="between us")
SECRETIVE = dataclasses.replace(SAMPLE, services=(VirtualService(9, "radius", "10.1.0.9", 1812, check=CHECK),))


def test_passwords_go_and_all_else_stays():
    clean = redact.without_secrets(SECRETIVE)
    assert "rope and tide" not in to_json(clean) and "between us" not in to_json(clean)
    check = dataclasses.replace(clean.services[0].check, password=CHECK.password, secret=CHECK.secret)
    assert dataclasses.replace(clean, services=(dataclasses.replace(clean.services[0], check=check),)) == SECRETIVE


def test_services_that_would_lose_one_are_named():
    clean = redact.without_secrets(SECRETIVE)
    assert redact.losing(SECRETIVE, clean) == ["radius"]
    assert redact.losing(clean, SECRETIVE) == redact.losing(SECRETIVE, SECRETIVE) == []
    assert redact.losing(SECRETIVE, dataclasses.replace(SECRETIVE, services=())) == []
    assert redact.has_secrets(SECRETIVE) and not redact.has_secrets(clean)


@of_snapshots(40)
def test_of_any_configuration(snapshot):
    clean = redact.without_secrets(snapshot)
    assert not redact.has_secrets(clean)
    assert redact.without_secrets(clean) == clean == from_json(to_json(clean))
    assert (clean == snapshot) == (not redact.has_secrets(snapshot))
