"""What the real servers of a service need: the page that says so, and a script for each of their systems."""

import pytest
from forms_on_page import words
from services_on_page import DIRECT, NEW

from balancing.server_systems import SYSTEMS
from draft import store as draft


def test_each_server_of_direct_routing_has_a_script(client):
    client.post("/services/add/", NEW | DIRECT)
    service = draft.current().services[-1]
    assert "Get a script for each server" in words(client.get(f"/services/{service.id}/"))
    page = words(client.get(f"/services/{service.id}/servers/"))
    assert "sh fairlead-server.sh verify" in page
    assert "10.2.0.42 Nothing: it answers this box." in page
    answer = client.get(f"/services/{service.id}/servers/10.2.0.41/script/")
    assert answer["Content-Disposition"] == 'attachment; filename="fairlead-server.sh"'
    script = answer.content.decode()
    assert "\nserver=10.2.0.41\n" in script
    assert "\ndirect=10.2.0.100\n" in script
    for elsewhere in ("10.2.0.42", "10.2.0.43", "x", "%2e%2e", "10.2.0.41;reboot"):
        assert client.get(f"/services/{service.id}/servers/{elsewhere}/script/").status_code == 404
    assert client.get("/services/99/servers/").status_code == 404


@pytest.mark.parametrize("key", SYSTEMS)
def test_the_script_for_the_chosen_system(client, key):
    client.post("/services/add/", NEW | DIRECT)
    service = draft.current().services[-1]
    page = client.get(f"/services/{service.id}/servers/?system={key}")
    assert f"{SYSTEMS[key].run} undo" in words(page)
    href = f"/services/{service.id}/servers/10.2.0.41/script/?system={key}"
    assert f'href="{href}"' in page.content.decode()
    answer = client.get(href)
    assert answer["Content-Disposition"] == f'attachment; filename="{SYSTEMS[key].file}"'
    assert "10.2.0.100" in answer.content.decode()


@pytest.mark.parametrize("wrong", ["", "linux;reboot", "../head"])
def test_a_system_that_there_is_none_of_is_plain_linux(client, wrong):
    client.post("/services/add/", NEW | DIRECT)
    service = draft.current().services[-1]
    answer = client.get(f"/services/{service.id}/servers/10.2.0.41/script/", {"system": wrong})
    assert "with ip alone, until the next restart" in answer.content.decode()


def test_windows_has_no_tunnels(client):
    client.post("/services/add/", NEW | DIRECT | {"forwarding": "tunnel"})
    service = draft.current().services[-1]
    page = words(client.get(f"/services/{service.id}/servers/?system=windows"))
    assert "Windows takes no packets out of tunnels." in page
    assert "fairlead-server" not in page
    assert client.get(f"/services/{service.id}/servers/10.2.0.41/script/?system=windows").status_code == 404


def test_a_system_that_has_some_tunnels_says_which(client):
    client.post("/services/add/", NEW | DIRECT | {"forwarding": "gue"})
    service = draft.current().services[-1]
    for system in ("networkd", "netplan", "networkmanager"):
        page = words(client.get(f"/services/{service.id}/servers/?system={system}"))
        assert "its script can set up only tunnel (IP in IP) and tunnel (GRE). Choose that for this server" in page
    page = words(client.get(f"/services/{service.id}/servers/?system=linux"))
    assert "UDP port 6080, from this box" in page


def test_servers_by_nat_need_a_gateway_and_no_script(client):
    client.post("/services/add/", NEW)
    service = draft.current().services[-1]
    page = words(client.get(f"/services/{service.id}/servers/"))
    assert "Its default gateway must be this box" in page
    assert "ip -4 route replace default via" in page
    assert "nmcli connection modify" in words(client.get(f"/services/{service.id}/servers/?system=networkmanager"))
    assert client.get(f"/services/{service.id}/servers/10.2.0.41/script/").status_code == 404


BY_AGENT = NEW | {"scheduler": "wrr", "agent_kind": "text", "agent_port": "3334"}


def test_a_service_whose_weights_follow_agents_has_a_script_by_nat_too(client):
    client.post("/services/add/", BY_AGENT)
    service = draft.current().services[-1]
    assert service.agent.port == 3334
    page = words(client.get(f"/services/{service.id}/servers/"))
    assert "It needs an agent that says how much load it can take, on TCP port 3334" in page
    assert "touch /run/fairlead-agent-10.2.0.41/drain there" in page
    assert "sh fairlead-server.sh verify" in page and "does not answer ARP" not in page
    script = client.get(f"/services/{service.id}/servers/10.2.0.41/script/").content.decode()
    assert "\nagent_ports=3334\n" in script and "\ndirect=''\n" in script


@pytest.mark.parametrize("key", ["freebsd", "windows"])
def test_a_system_whose_script_has_no_agent_says_so(client, key):
    client.post("/services/add/", BY_AGENT)
    service = draft.current().services[-1]
    page = words(client.get(f"/services/{service.id}/servers/?system={key}"))
    assert f"The script for {SYSTEMS[key].name} brings none: any agent for HAProxy" in page
    assert "fairlead-server" not in page
    assert client.get(f"/services/{service.id}/servers/10.2.0.41/script/?system={key}").status_code == 404
