"""The way from one table to another where the kernel does not answer as one would like."""

import dataclasses

import pytest
from box import DNS, ONE, WEB, running_one

from applier.host import ipvs_netlink
from applier.host.ipvs_netlink import Interrupted, NetlinkError


@pytest.mark.parametrize(
    ("error", "state"), [(Interrupted("the table changed"), "done"), (NetlinkError("error 3"), "rolled back")]
)
def test_looking_whether_a_server_that_leaves_is_idle(tmp_path, monkeypatch, error, state):
    box = running_one(tmp_path)
    box.host.dead.clear()
    box.host.sleep(1)  # ldirectord finds both up
    asked = []
    servers = ipvs_netlink.servers

    def once_not(exchange, service):
        asked.append(service)
        if len(asked) == 1:
            raise error
        return servers(exchange, service)

    monkeypatch.setattr(ipvs_netlink, "servers", once_not)
    before = box.host.state()
    less = dataclasses.replace(WEB, real_servers=WEB.real_servers[1:])
    run = box.apply(dataclasses.replace(ONE, services=(less, DNS)))
    assert run["state"] == state, run
    assert len(asked) == (2 if state == "done" else 1)
    if state != "done":
        assert "error 3" in run["message"]
        assert box.host.state() == before
