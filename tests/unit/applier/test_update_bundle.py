"""What a bundle is and holds, and every way in which a file is none."""

import shlex
from pathlib import Path

import pytest
from host_recording import Replay
from hypothesis import given, settings
from hypothesis import strategies as st
from update_box import bundle_bytes, manifest

from applier.host.host import HostError
from applier.update import bundle as update_bundle
from applier.update.bundle import check_shape, describe, from_manifest, order, parse, refusal
from applier.wire.errors import ApplierRefused


def host_that_says(path, exit=0, stdout="", stderr=""):
    argv = ["rauc", "--conf=/etc/rauc/system.conf", "info", "--output-format=shell", str(path)]
    return Replay([{"argv": argv, "stdin": "", "exit": exit, "stdout": stdout, "stderr": stderr}])


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "b.raucb"
    file.write_bytes(bundle_bytes())
    return file


def test_a_good_bundle(path):
    bundle = describe(host_that_says(path, stdout=manifest(RAUC_IMAGE_SIZE_0="47000000")), path)
    assert (bundle.version, bundle.build, bundle.size) == ("0.2.0", "2026-02-01T00:00:00Z", 47_000_000)
    assert len(bundle.digest) == 64


# Recorded from RAUC 1.13; the last is what a signature made for other purposes gives.
@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("signature verification failed: Verify error: self-signed certificate", "bundle-signature"),
        ("signature verification failed: Verify error: unsuitable certificate purpose", "bundle-signature"),
        ("Failed to verify signature: CMS error", "bundle-signature"),
        ("Bundle format 'plain' not allowed", "bundle-refused"),
        ("", "bundle-refused"),
        ("Invalid bundle format: \x1b[31msomething", "bundle-refused"),
    ],
)
def test_what_rauc_refuses(path, said, code):
    noise = "rauc-Message: 13:24:48.051: Reading bundle: /w/b.raucb\nConsider setting 'data-directory=<path>'\n"
    with pytest.raises(ApplierRefused) as caught:
        describe(host_that_says(path, exit=1, stderr=f"{noise}{said}\n"), path)
    assert caught.value.code == code
    assert "rauc-Message" not in caught.value.message and "Consider" not in caught.value.message
    assert caught.value.message.isprintable()
    if said.isprintable():
        assert said in caught.value.message


def test_rauc_that_cannot_be_run(path):
    class NoRauc:
        def command(self, *_, **__):
            raise HostError("rauc", None, "it cannot be run")

    with pytest.raises(ApplierRefused, match="cannot be checked") as caught:
        describe(NoRauc(), path)
    assert caught.value.code == "bundle-unchecked"


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "not-a-bundle"),
        (b"hsqs", "not-a-bundle"),
        (b"PK\3\4" + bytes(5000), "not-a-bundle"),
        (bundle_bytes()[:-700], "bundle-incomplete"),
        (bundle_bytes()[:3000], "bundle-incomplete"),
        (b"hsqs" + bytes(5000), "bundle-incomplete"),  # a squashfs without a signature
        (bundle_bytes(signature=70_000), "bundle-incomplete"),
    ],
)
def test_files_that_are_no_whole_bundle(tmp_path, data, code):
    path = tmp_path / "x"
    path.write_bytes(data)
    with pytest.raises(ApplierRefused) as caught:
        check_shape(path)
    assert caught.value.code == code


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(ApplierRefused, match="cannot be read"):
        check_shape(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"RAUC_MF_COMPATIBLE": "toaster"}, "wrong-product", "another product (toaster)"),
        ({"RAUC_MF_COMPATIBLE": ""}, "wrong-product", "another product ()"),
        ({"RAUC_MF_VERSION": ""}, "bundle-refused", "its version"),
        ({"RAUC_MF_VERSION": "../etc"}, "bundle-refused", "its version"),
        ({"RAUC_MF_VERSION": "1" * 65}, "bundle-refused", "its version"),
        ({"RAUC_MF_FORMAT": "plain"}, "bundle-refused", "its format"),
        ({"RAUC_MF_IMAGES": "2"}, "bundle-refused", "the number of its images"),
        ({"RAUC_IMAGE_NAME_0": "../../etc/shadow"}, "bundle-refused", "the name of its image"),
        ({"RAUC_IMAGE_DIGEST_0": "00"}, "bundle-refused", "the digest"),
        ({"RAUC_IMAGE_SIZE_0": "0"}, "bundle-refused", "the size"),
        ({"RAUC_IMAGE_SIZE_0": "-1"}, "bundle-refused", "the size"),
        ({"RAUC_IMAGE_SIZE_0": "9" * 30}, "bundle-refused", "the size"),
        ({"RAUC_IMAGE_SIZE_0": "²"}, "bundle-refused", "the size"),
        ({"RAUC_MF_HOOKS": "install-check"}, "bundle-refused", "hooks"),
        ({"RAUC_IMAGE_HOOKS_0": "post-install"}, "bundle-refused", "hooks"),
    ],
)
def test_signed_bundles_that_are_not_for_this_box(changes, code, words):
    with pytest.raises(ApplierRefused) as caught:
        from_manifest(parse(manifest(**changes)))
    assert caught.value.code == code and words in caught.value.message


@settings(deadline=None)
@given(st.dictionaries(st.from_regex(r"[A-Z_]{1,20}", fullmatch=True), st.text(), max_size=8))
def test_the_shell_format_is_read_as_a_shell_reads_it(fields):
    text = "".join(f"{name}={shlex.quote(value)}\n" for name, value in fields.items())
    assert parse(text) == fields


@settings(deadline=None)
@given(st.text())
def test_no_description_brings_anything_else_than_a_refusal(text):
    with pytest.raises(ApplierRefused):
        from_manifest(parse(text))


@settings(deadline=None)
@given(st.text())
def test_a_refusal_is_one_printable_line(said):
    assert refusal(said).message.isprintable()


@pytest.mark.parametrize(
    ("older", "newer"),
    [("0.9.0", "0.10.0"), ("1.0-rc1", "1.0"), ("1.0-rc1", "1.0-rc2"), ("1.0", "1.0.1"), ("1.0-rc9", "1.0-rc10")],
)
def test_versions_have_an_order(older, newer):
    assert order(older) < order(newer)
    assert not order(newer) < order(older)


@settings(deadline=None)
@given(st.text(), st.text())
def test_any_two_versions_can_be_compared(one, other):
    assert (order(one) < order(other)) + (order(other) < order(one)) <= 1


def test_the_product_is_the_one_that_rauc_knows():
    conf = Path(__file__).parents[3] / "overlay/etc/rauc/system.conf"
    assert f"compatible={update_bundle.PRODUCT}" in conf.read_text().splitlines()
