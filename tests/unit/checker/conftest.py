"""What the tests of checks share."""

import contextlib
import shutil
import ssl
import subprocess
import tempfile
from pathlib import Path

import pytest
from weighing import Checks


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


@pytest.fixture
def checks(tmp_path):
    """checks(scheduler, slow) -> Checks, ended at the end of the test."""
    with contextlib.ExitStack() as stack:

        def start(scheduler="wlc", slow=0):
            one = Checks(Path(tempfile.mkdtemp(dir=tmp_path)), scheduler, slow)
            stack.callback(one.end)
            return one

        yield start
