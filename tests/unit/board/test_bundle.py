"""The keys that sign updates, and the bundles that are signed with them."""

import hashlib
import subprocess

import pytest
from board.pc import bundle, keys


@pytest.fixture(scope="module")
def signer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    keys.make(folder)
    return folder


@pytest.fixture
def root(tmp_path):
    path = tmp_path / "root.squashfs"
    path.write_bytes(bytes(range(256)) * 400)
    return path


def purposes(signer) -> str:
    command = ["openssl", "x509", "-in", signer / keys.CERTIFICATE, "-noout", "-ext", "extendedKeyUsage,keyUsage"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_keys_are_made_once(tmp_path):
    keys.make(tmp_path / "keys")
    before = {path.name: path.read_bytes() for path in (tmp_path / "keys").iterdir()}
    assert set(before) == {keys.KEY, keys.CERTIFICATE}
    assert (tmp_path / "keys" / keys.KEY).stat().st_mode & 0o777 == 0o600
    with pytest.raises(keys.KeysError, match="already; nothing was changed"):
        keys.make(tmp_path / "keys")
    assert {path.name: path.read_bytes() for path in (tmp_path / "keys").iterdir()} == before


@pytest.mark.parametrize("kept", [keys.KEY, keys.CERTIFICATE])
def test_half_a_pair_is_left_alone(tmp_path, kept):
    (tmp_path / kept).write_text("precious")
    with pytest.raises(keys.KeysError, match=kept):
        keys.make(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [kept]
    assert (tmp_path / kept).read_text() == "precious"


def test_the_certificate_is_for_signing_code_and_nothing_else(signer):
    text = purposes(signer)
    assert "Code Signing" in text and "Digital Signature" in text
    assert "Certificate Sign" not in text


def test_a_failing_openssl_leaves_nothing(tmp_path):
    with pytest.raises(keys.KeysError, match="openssl failed"):
        keys.make(tmp_path / "keys", name="no subject")
    assert list((tmp_path / "keys").iterdir()) == []


def test_the_manifest():
    text = bundle.manifest("1.2.3", "fairlead-pc", "verity", bundle.FILE_TIME)
    assert text.splitlines() == [
        "[update]",
        "compatible=fairlead-pc",
        "version=1.2.3",
        "build=2026-01-01T00:00:00Z",
        "",
        "[bundle]",
        "format=verity",
        "",
        "[image.rootfs]",
        "filename=rootfs.squashfs",
    ]


def test_equal_inputs_give_the_same_content(root, signer, tmp_path):
    """All but RAUC's salt, the tree of hashes over it, and the signature."""
    first, second = (bundle.make(root, signer, tmp_path / f"{name}.raucb", "1.2.3") for name in "ab")
    data = first.read_bytes()
    assert data[:4] == b"hsqs"
    used = int.from_bytes(data[40:48], "little")  # bytes_used of the squashfs superblock
    assert used > root.stat().st_size  # the image lies there uncompressed
    assert root.read_bytes() in data
    assert hashlib.sha256(data[:used]).digest() == hashlib.sha256(second.read_bytes()[:used]).digest()
    assert not list(tmp_path.glob(".bundle-*"))


def test_what_is_missing_is_named(root, signer, tmp_path):
    with pytest.raises(bundle.BundleError, match="no-keys"):
        bundle.make(root, tmp_path / "no-keys", tmp_path / "b.raucb", "1")
    with pytest.raises(bundle.BundleError, match="no-root"):
        bundle.make(tmp_path / "no-root", signer, tmp_path / "b.raucb", "1")
    assert not (tmp_path / "b.raucb").exists()


def test_a_failing_rauc_keeps_the_older_bundle(root, signer, tmp_path):
    out = tmp_path / "b.raucb"
    out.write_text("older")
    with pytest.raises(bundle.BundleError, match="rauc failed"):
        bundle.make(root, signer, out, "1", form="no-such-format")
    assert out.read_text() == "older"
