"""nft as a judge of what was rendered."""

import os
import shutil
import subprocess

import pytest

NFT = shutil.which("nft", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
ALONE = ["unshare", "--user", "--map-root-user", "--net"]


@pytest.fixture(scope="session")
def nft_check():
    """Asks nft about a file, in a network namespace that all questions share."""
    if NFT is None:
        pytest.skip("nft is not installed")
    with subprocess.Popen(
        [*ALONE, "sh", "-c", "echo ready; read -r line"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as namespace:
        if (said := namespace.stdout.readline()) != "ready\n":
            pytest.skip(f"no namespaces here: {said.strip()}")
        inside = ["nsenter", "--target", str(namespace.pid), "--user", "--net", "--preserve-credentials"]

        def check(text):
            words = [*inside, NFT, "-c", "-f", "-"]
            return subprocess.run(words, input=text, capture_output=True, text=True, timeout=30, check=False)

        yield check
        namespace.communicate()
