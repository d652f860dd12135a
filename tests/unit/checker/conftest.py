"""What the tests of checks share."""

import shutil
import ssl
import subprocess

import pytest


@pytest.fixture(scope="session")
def tls(tmp_path_factory):
    if not shutil.which("openssl"):
        pytest.skip("no openssl here")
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=www.example.org",
            "-out",
            "cert.pem",
            "-keyout",
            "key.pem",
        ],
        cwd=folder,
        capture_output=True,
        check=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    context.folder, context.asked = folder, []
    context.sni_callback = lambda _, name, __: context.asked.append(name)
    return context
