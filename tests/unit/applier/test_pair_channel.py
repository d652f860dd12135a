"""What the process that talks with the other box needs; what it does: tests/peers/test_pair_channel.py."""

import subprocess
import sys
from pathlib import Path

from applier.base.paths import Paths
from applier.pair import channel

WEBUI = Path(channel.__file__).parents[2]


def test_the_socket_is_that_of_the_paths(tmp_path):
    assert tmp_path / channel.SOCKET == Paths(run=tmp_path).pair_socket


def test_it_loads_neither_the_model_nor_what_only_the_applier_needs():
    """A pair is to take no more than 25 MB of a box."""
    heavy = {"lbconfig.model.snapshot", "applier.wire.shapes", "applier.base.paths", "pathlib", "hashlib", "subprocess"}
    code = "import sys, applier.pair.channel; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], env={"PYTHONPATH": str(WEBUI)}, capture_output=True, text=True, check=True
    )
    assert not heavy & set(done.stdout.split())
