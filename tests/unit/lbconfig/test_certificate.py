"""The certificate of the web page: what it says, what is refused, and what the review tells."""

import base64
import dataclasses

import lbconfig_certificates as pems
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lbconfig_samples import SAMPLE

from lbconfig.diff import cutoff
from lbconfig.diff import services as diff
from lbconfig.model import certificate, der, redact
from lbconfig.model.snapshot import MAX_KEY, MAX_LINES, Snapshot, from_json, to_json
from lbconfig.render import web
from lbconfig.validate.certificate import MAX_CHAIN
from lbconfig.validate.services import validate


def showing(chain: str, key: str = pems.LB_KEY, before: Snapshot = SAMPLE) -> Snapshot:
    return dataclasses.replace(before, management=dataclasses.replace(before.management, certificate=chain, key=key))


GOOD = showing(pems.LB)
FINGERPRINT = "B1:C3:37:10:0B:A9:3C:0D:A6:81:3D:6D:9C:BB:30:29:39:22:6C:0D:94:99:88:96:82:BF:1A:C9:EC:7D:7A:B2"


def wrong(snapshot: Snapshot) -> dict[str, str]:
    return {one.path: one.message for one in validate(snapshot)}


def test_what_a_certificate_says():
    shown = certificate.first(pems.LB + pems.ROOT)
    assert shown.names == ("lb.example.org", "www.example.org", "192.168.10.2")
    assert shown.issuer == "Example Root (Example Trust)" and not shown.by_itself
    assert (shown.begins, shown.ends) == ("2020-01-01T00:00:00Z", "2099-12-31T23:59:59Z")
    # As `openssl x509 -noout -fingerprint -sha256` tells it.
    assert shown.fingerprint == FINGERPRINT
    assert (shown.key, shown.bits, shown.for_servers) == ("ECDSA P-256", 0, True)
    assert certificate.first(pems.RSA).key == "RSA 2048"
    assert certificate.first(pems.ROOT).by_itself
    assert certificate.first(pems.NAMELESS).names == ("No common name",)
    assert not certificate.first(pems.MAIL).for_servers
    assert certificate.first("") is certificate.first("nothing") is None


@pytest.mark.parametrize(
    ("name", "covered"),
    [("lb.example.org", True), ("LB.example.org", True), ("192.168.10.2", True), ("192.168.10.3", False)],
)
def test_for_whom_it_is(name, covered):
    assert certificate.first(pems.LB).covers(name) == covered


def test_a_wildcard_is_for_one_label():
    other = certificate.first(pems.OTHER)
    assert other.covers("a.example.net") and not other.covers("a.b.example.net") and not other.covers("example.net")


@pytest.mark.parametrize(
    ("chain", "key"),
    [
        (pems.LB, pems.LB_KEY),
        (pems.LB + pems.ROOT, pems.LB_KEY),
        (pems.LB, pems.LB_KEY_OF_EC),
        (pems.LB.rstrip(), pems.LB_KEY.rstrip()),
        (pems.RSA, pems.RSA_KEY),
        (pems.ENDED, pems.ENDED_KEY),  # lbconfig has no clock
    ],
)
def test_what_is_good(chain, key):
    assert wrong(showing(chain, key)) == {}


CHAINS = {
    "words": "my certificate",
    "markup": "<script>alert(1)</script>",
    "a shell": "$(reboot); -----BEGIN CERTIFICATE-----",
    "a key": pems.LB_KEY,
    "with its key": pems.LB + pems.LB_KEY,
    "words before it": "subject=lb\n" + pems.LB,
    "a blank line": pems.LB + "\n" + pems.ROOT,
    "cut off": pems.LB[:300],
    "without its middle": pems.LB[:100] + pems.LB[164:],
    "not its base64": pems.LB.replace("M", "!", 1),
    "another text in it": f"-----BEGIN CERTIFICATE-----\n{base64.b64encode(b'hello').decode()}\n"
    "-----END CERTIFICATE-----\n",
    "a request": pems.LB.replace(" CERTIFICATE", " CERTIFICATE REQUEST"),
    "Unicode": pems.LB.replace("-----BEGIN", "\u2014\u2014BEGIN"),
    "directives": pems.LB + "ssl_certificate /etc/shadow;\n",
}


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_what_is_no_chain(chain):
    found = wrong(showing(chain))
    assert list(found) == ["management.certificate"]
    assert "-----BEGIN CERTIFICATE-----" in found["management.certificate"] or "cannot be read" in found.popitem()[1]


@pytest.mark.parametrize(
    ("chain", "words"),
    [
        (pems.ROOT + pems.LB, "must be in order"),
        (pems.LB + pems.OTHER, "number 2 has not signed number 1"),
        (pems.LB + pems.ROOT * MAX_CHAIN, f"more than {MAX_CHAIN} certificates"),
        (pems.LB + pems.ROOT * 100, f"longer than {MAX_LINES} characters"),
        (pems.WEAK, "2048 to 8192 bits, and has one of 1024"),
        (pems.EDWARDS, "browsers take no other"),
        (pems.MAIL, "must be one for web servers"),
    ],
)
def test_what_no_browser_would_take(chain, words):
    said = " ".join(wrong(showing(chain)).values())
    assert words in said


KEYS = {
    "locked": (pems.LB_KEY_LOCKED, "must not be encrypted"),
    "locked in the old way": (pems.LB_KEY_LOCKED_OF_EC, "must not be encrypted"),
    "two": (pems.LB_KEY + pems.OTHER_KEY, "there are 2 blocks"),
    "none": ("", "of no use without its private key"),
    "words": ("secret", "must be a private key in PEM"),
    "a certificate": (pems.LB, "must be a private key in PEM"),
    "hidden": ("********", "must be a private key in PEM"),
    "long": (pems.LB_KEY * 100, f"longer than {MAX_KEY} characters"),
    "damaged": (pems.LB_KEY.replace("MIG", "AAA"), "cannot be read"),
    "with words": (pems.LB_KEY + "# note\n", "must be a private key in PEM"),
}


@pytest.mark.parametrize(("key", "words"), KEYS.values(), ids=KEYS)
def test_what_is_no_key(key, words):
    [(path, said)] = wrong(showing(pems.LB, key)).items()
    assert path == "management.key" and words in said
    assert not key or key.splitlines()[min(1, len(key.splitlines()) - 1)] not in said


def test_a_key_alone_is_half_of_it():
    assert wrong(showing(""))["management.certificate"] == "is missing: there is a private key without a certificate"


def test_the_review_tells_it_in_words():
    [change] = diff.summary(SAMPLE, GOOD)
    assert change.sentences == (
        "The web page shows the certificate for lb.example.org, www.example.org, 192.168.10.2, issued by Example Root "
        "(Example Trust), valid until 2099-12-31.",
        f"Its fingerprint (SHA-256) is {FINGERPRINT}.",
    )
    [back] = diff.summary(GOOD, SAMPLE)
    assert back.sentences == ("The web page uses the box's own certificate again, which no browser trusts.",)
    [longer] = diff.summary(GOOD, showing(pems.LB + pems.ROOT))
    assert longer.sentences == ("Other certificates go along with that of the web page.",)
    [rewritten] = diff.summary(GOOD, showing(pems.LB, pems.LB_KEY_OF_EC))
    assert rewritten.sentences == ("Its private key is another one.",)
    assert diff.summary(SAMPLE, showing("rubbish"))[0].sentences == (
        "The web page gets a certificate that cannot be read.",
    )


def test_each_of_these_changes_asks_to_be_confirmed():
    reason = "The web page gets another certificate; your browser may warn about it."
    for old, new in (
        (SAMPLE, GOOD),
        (GOOD, SAMPLE),
        (GOOD, showing(pems.RENEWED)),
        (GOOD, showing(pems.LB + pems.ROOT)),
    ):
        assert cutoff.cutoff(old, new).reasons == (reason,)
    assert not cutoff.cutoff(GOOD, GOOD).asks


def test_what_nginx_reads_names_the_pair_and_does_not_hold_it():
    texts = {web.render(one) for one in (SAMPLE, GOOD, showing(pems.RENEWED), showing(pems.LB, pems.LB_KEY_OF_EC))}
    assert len(texts) == 4
    for text in texts - {web.render(SAMPLE)}:
        assert "PRIVATE" not in text and text.startswith(web.alone(GOOD))
    assert web.render(SAMPLE) == web.alone(SAMPLE) == web.alone(GOOD)
    assert GOOD.management.page_key == showing(pems.LB.rstrip(), pems.LB_KEY.rstrip()).management.page_key


def test_the_key_is_a_secret_and_the_certificate_is_none():
    clean = redact.without_secrets(GOOD)
    assert "PRIVATE" not in to_json(clean) and clean.management.certificate == pems.LB
    assert redact.has_secrets(GOOD) and not redact.has_secrets(clean)
    body = pems.LB_KEY.splitlines()[1]
    assert body not in repr(GOOD) and body in to_json(GOOD)
    assert from_json(to_json(GOOD)) == GOOD


def test_a_file_without_secrets_comes_back():
    clean = redact.without_secrets(GOOD)
    assert redact.with_key(clean, GOOD) == GOOD
    assert redact.with_key(clean, SAMPLE) == SAMPLE
    assert redact.with_key(clean, showing(pems.OTHER, pems.OTHER_KEY)) == SAMPLE
    assert redact.with_key(GOOD, SAMPLE) == GOOD


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_damaged_certificate_is_read_or_refused(data):
    whole = certificate.data(pems.LB)
    at = data.draw(st.integers(0, len(whole) - 1))
    bits = bytearray(whole)
    bits[at] = data.draw(st.integers(0, 255))
    cut = bytes(bits[: data.draw(st.sampled_from([len(bits), at]))])
    text = f"-----BEGIN CERTIFICATE-----\n{base64.encodebytes(cut).decode()}-----END CERTIFICATE-----\n"
    shown = certificate.first(text)
    assert shown is None or shown.sentence.isprintable()
    validate(showing(text))


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_elements_or_refused(data):
    try:
        found = der.elements(data)
    except ValueError:
        return
    assert b"".join(one.whole for one in found) == data
