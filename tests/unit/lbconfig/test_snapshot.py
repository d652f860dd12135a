"""What a snapshot's shape allows."""

import dataclasses

import pytest

from lbconfig.model.problem import UNPRINTABLE
from lbconfig.model.reading import wrong_type
from lbconfig.model.snapshot import (
    FACTORY,
    CheckKind,
    HealthCheck,
    SnapshotError,
    VirtualService,
    from_data,
    from_json,
    to_data,
    to_json,
)

LINES = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


def test_certificates_of_an_authority_and_programs_have_lines_and_no_other_text_has():
    check = HealthCheck(CheckKind.HTTPS, authority=LINES * 20, program="#!/bin/sh\n\texit 0\n")
    snapshot = dataclasses.replace(FACTORY, services=(VirtualService(1, "a", "10.0.0.1", 80, check=check),))
    assert from_json(to_json(snapshot)) == snapshot
    for field, wrong, words in (
        ("authority", LINES + "\a", UNPRINTABLE),
        ("authority", "a\n" * 26_000, "longer than 50000"),
        ("authority", 1, wrong_type(str, 1)),
        ("expect", "two\nlines", UNPRINTABLE),
        ("authority", "a\tb", UNPRINTABLE),
        ("program", "a\tb\r\n", UNPRINTABLE),
        ("program", "a" * 16_001, "longer than 16000"),
    ):
        data = to_data(snapshot)
        data["services"][0]["check"][field] = wrong
        with pytest.raises(SnapshotError, match=words) as error:
            from_data(data)
        assert error.value.path == f"services[0].check.{field}"
