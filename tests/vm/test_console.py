"""The console when the network is gone: an address, an earlier configuration, a password."""

import re
import urllib.parse
import urllib.request

import pytest
from board.machines.director import APPLY, VIP, browser, read_page, service, wish
from board.machines.wait import PATIENCE, found, until
from tests.lab.fixtures import thorough

pytestmark = pytest.mark.timeout(1200)

LOST = 60.0  # seconds until the console has done what was asked for


def test_an_address_that_is_set_carries_packets_and_the_draft_keeps_it(balanced, director, world):
    """The clients' side of the box moves to another address; whoever balances behind it goes on."""
    director.succeed(["fairlead", "change", "services/lines", '{"scheduler": "lc"}'])  # somebody's draft
    director.pick("Set an IP address")
    shown = director.answer("Number of the interface", "3")
    assert "eth2" in shown
    director.answer("Address with its prefix length", "10.1.0.77/24")
    director.answer("Default gateway", "none")
    director.answer("Type yes to apply it", "yes")
    director.wait_for_console("The draft on the web page has it as well", APPLY)
    assert "10.1.0.77/24" in director.succeed(["ip", "-4", "address", "show", "dev", "eth2"])
    assert "10.1.0.1/24" not in director.succeed(["ip", "-4", "address", "show", "dev", "eth2"])
    world.succeed("ip netns exec client ping -c 1 -W 2 10.1.0.77")
    assert world.count(f"{VIP}:80/", 3) == {"rs1": 1, "rs2": 1, "rs3": 1}
    assert '"lc"' in director.succeed(["fairlead", "show", "services/lines"])
    assert "10.1.0.77/24" in director.succeed(["fairlead", "show", "network"])

    director.kill()
    director.start()
    director.wait_until_started()
    assert "10.1.0.77/24" in director.succeed(["ip", "-4", "address", "show", "dev", "eth2"])


@thorough
def test_back_to_the_configuration_before(balanced, director, world):
    director.apply(wish(service(5, "other", port=99)))
    assert "error" in world.get(f"{VIP}:80/")[0]
    director.pick("Go back to an earlier configuration")
    director.answer("Number of the line", "1")
    director.answer("Type yes to apply it", "yes")
    director.wait_for_console("runs and is confirmed", APPLY)
    until("the site again", lambda: len(world.count(f"{VIP}:80/", 3)) == 3)


@thorough
def test_a_forgotten_password_and_a_locked_log_in(fresh, director):
    assert director.set_up("kim", "rope and tide")[0] == 200
    for _ in range(7):
        status, _ = log_in(director, "kim", "wrong")
    assert status == 429
    director.pick("Reset an administrator's password")
    director.answer("Number of the administrator", "1")
    director.answer("Type yes to go on", "yes")
    console = director.wait_for_console("The new password of kim is", LOST)
    password = found(r"The new password of kim is +(\S+)", console)
    until("the web page", lambda: director.page()[0] == 200, PATIENCE, 1)
    status, text = log_in(director, "kim", password)
    assert status == 200 and "Overview" in text


def log_in(director, user: str, password: str) -> tuple[int, str]:
    one, address = browser(), f"{director.url}/login/"
    _, form = read_page(one, address)
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form)
    assert token, form
    values = {"csrfmiddlewaretoken": token[1], "username": user, "password": password}
    body = urllib.parse.urlencode(values).encode()
    return read_page(one, urllib.request.Request(address, body, {"Referer": address}))
