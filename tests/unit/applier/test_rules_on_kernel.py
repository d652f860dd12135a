"""Whether somebody changed the rules by hand, told by a real nft and kernel."""

import shutil

import pytest
from test_network_on_kernel import in_own_network


@pytest.mark.skipif(not shutil.which("nft"), reason="no nft here")
def test_every_change_by_hand_is_seen_and_nothing_else_is(tmp_path):
    done = in_own_network("rules_on_kernel.py", str(tmp_path))
    print(done.stdout)
    assert done.returncode == 0, done.stderr[-6000:]
    assert "rules-of-the-admin: loaded again: None" in done.stdout
