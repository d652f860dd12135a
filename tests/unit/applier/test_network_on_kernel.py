"""The same walk through random networks, over the kernel itself in a namespace of its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
WEBUI = HERE.parents[2] / "webui"
ROUNDS = os.environ.get("FAIRLEAD_NETWORKS") or "12"
OWN_NETWORK = ["unshare", "-Uurn"]


def in_own_network(*words: str, timeout: float = 600) -> subprocess.CompletedProcess:
    """Run a file of this folder there; skips where that cannot be."""
    if not shutil.which("unshare") or subprocess.run([*OWN_NETWORK, "true"], check=False).returncode:
        pytest.skip("no user namespaces here")
    done = subprocess.run(
        [*OWN_NETWORK, sys.executable, *words],
        cwd=HERE,
        env=os.environ | {"PYTHONPATH": f"{WEBUI}:{HERE}"},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if done.returncode == 77:
        pytest.skip("no pairs of virtual cards here")
    return done


def test_from_any_network_to_any_other_on_a_real_kernel():
    done = in_own_network("network_on_kernel.py", ROUNDS)
    print(done.stdout)
    assert done.returncode == 0, done.stderr[-6000:]


def test_new_addresses_are_announced_and_others_are_not():
    done = in_own_network("announce_on_kernel.py")
    assert done.returncode == 0, done.stderr[-6000:]
