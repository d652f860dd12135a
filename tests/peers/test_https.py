"""HTTPS of a real web server with several names and certificates: which name the check tells it, and whom it believes.

www.example.org has a certificate of an authority that the box knows, other.example.org shows the same one, and who
asks for anybody else gets one that the server has signed itself.
"""

import pytest
from tests.peers.test_kinds import PATIENCE

from lbconfig.model.snapshot import CheckKind, HealthCheck

SHOP = "the shop is öpen #1"


def ask(lab, six=False, **fields):
    return lab.ask("nginx", 443, HealthCheck(CheckKind.HTTPS, timeout=PATIENCE, **fields), six=six)


@pytest.mark.parametrize("six", [False, True])
@pytest.mark.parametrize(
    ("host", "state", "why"),
    [
        ("www.example.org", "up", "200 OK"),
        ("other.example.org", "down", "hostname verification failed"),
        ("nobody.example.org", "down", "certificate verify failed"),
        ("", "down", "certificate verify failed"),
    ],
)
def test_a_certificate_that_must_be_good(lab, six, host, state, why):
    found = ask(lab, six, host=host, verify=True)
    assert found["state"] == state, found
    assert why in found["message"]


def test_an_authority_of_its_own_is_believed_in_place_of_the_public_ones(lab):
    """The certificate of nobody.example.org is its own authority."""
    alone = (lab.certificates / "etc/ssl/lab/self.pem").read_text()
    assert ask(lab, host="nobody.example.org", verify=True, authority=alone)["state"] == "up"
    assert ask(lab, host="www.example.org", verify=True, authority=alone)["state"] == "down"
    own = (lab.certificates / "etc/ssl/lab/ca.pem").read_text()
    assert ask(lab, host="www.example.org", verify=True, authority=alone + own)["state"] == "up"
    assert ask(lab, host="other.example.org", verify=True, authority=alone + own)["state"] == "down"


@pytest.mark.parametrize("host", ["www.example.org", "other.example.org", "nobody.example.org", ""])
def test_any_certificate_will_do(lab, host):
    found = ask(lab, host=host)
    assert found["state"] == "up", found


@pytest.mark.parametrize(
    ("host", "expect", "state"),
    [
        ("www.example.org", SHOP, "up"),
        ("other.example.org", "another name", "up"),
        ("other.example.org", SHOP, "down"),
        ("", "nobody you know", "up"),
        ("", SHOP, "down"),
    ],
)
@pytest.mark.parametrize("six", [False, True])
def test_the_server_is_told_the_name(lab, host, expect, state, six):
    assert ask(lab, six, host=host, expect=expect)["state"] == state
