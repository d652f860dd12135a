"""Nobody is locked out: a change that cuts the admin off goes back by itself, and disturbs no connection."""

import dataclasses
import json

import pytest
from tests.lab.director import VIP, wish
from tests.lab.fixtures import BALANCED, thorough
from tests.lab.machine import CommandFailed
from tests.lab.updating import set_up
from tests.lab.wait import until

from lbconfig.snapshot import Interface, Snapshot, to_json

pytestmark = [pytest.mark.timeout(600), pytest.mark.usefixtures("balanced")]

CONNECTIONS = 20
LINES = f"{VIP}:7000"
OLD, NEW, WRONG = "10.1.0.1", "10.1.0.7", "10.77.0.7"
WITHIN = 40  # seconds
PATIENCE = WITHIN + 60.0
# As the web process does it, and nobody confirms by himself.
APPLY = """
import json, sys
from applier.client import connect
applier, snapshot = connect(), json.load(open("/run/wish.json"))
review = applier.check(snapshot)
print(json.dumps(applier.apply(snapshot, review["digest"], review["base"], "kim", confirm_within=int(sys.argv[1]))))
"""
# A browser of the client: it loads the page at the box's new address, and the page sends itself.
ARRIVE = """
import http.cookiejar, re, ssl, sys, urllib.parse, urllib.request
url = sys.argv[1]
anyone = ssl._create_unverified_context()
jar = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
browser = urllib.request.build_opener(jar, urllib.request.HTTPSHandler(context=anyone))
page = browser.open(url, timeout=10).read().decode()
token = re.search('name="csrfmiddlewaretoken" value="([^"]+)"', page)[1]
data = urllib.parse.urlencode({"csrfmiddlewaretoken": token, "keep": "1"}).encode()
print(browser.open(urllib.request.Request(url, data, {"Referer": url}), timeout=30).read().decode())
"""


def at(address: str) -> Snapshot:
    """What is balanced, by a box whose address on the clients' side is this one."""
    first, servers, _ = BALANCED.network.interfaces
    # The virtual addresses stay where they are: in the clients' network.
    clients = Interface("eth2", addresses=(f"{address}/24",) if address != WRONG else (f"{WRONG}/24", "10.1.0.9/24"))
    network = dataclasses.replace(BALANCED.network, interfaces=(first, servers, clients))
    return dataclasses.replace(BALANCED, network=network)


def apply(director, snapshot: Snapshot, within: int = WITHIN) -> str:
    """Start it, and come back when it waits to be confirmed; its secret."""
    director.write("/run/wish.json", to_json(snapshot))
    director.write("/run/apply.py", APPLY)
    answer = json.loads(director.succeed(f". /etc/fairlead/environment && python3 /run/apply.py {within}"))
    until("the apply waits", lambda: run(director)["state"] == "waiting", 90)
    return answer["secret"]


def run(director) -> dict:
    return director.status()["apply"] or {"state": "not told yet"}


def outcomes(director) -> dict[int, str]:
    return {one["number"]: one["outcome"] for one in json.loads(director.applier("generations"))}


def page_at(world, address: str) -> bool:
    """Whether the client reaches the web page there, over a new connection."""
    script = (
        "import ssl, urllib.request; "
        f"urllib.request.urlopen('https://{address}/login/', timeout=3, context=ssl._create_unverified_context())"
    )
    return world.in_client(f'python3 -c "{script}" >/dev/null 2>&1 && echo yes || echo no').strip() == "yes"


def is_back(director, world, confirmed: int) -> None:
    until("the box is back", lambda: run(director)["state"] == "not confirmed", PATIENCE, 0.2, (CommandFailed, OSError))
    status = director.status()
    assert (status["generation"], status["confirmed"], status["faults"]) == (confirmed, confirmed, [])
    assert outcomes(director)[confirmed + 1] == "not confirmed"
    until("the page at the old address", lambda: page_at(world, OLD), 30)
    assert not page_at(world, NEW)


def test_a_wrong_management_address_comes_back_by_itself_and_no_connection_breaks(director, world, capsys):
    confirmed = director.status()["confirmed"]
    assert page_at(world, OLD)
    held = world.hold(LINES, CONNECTIONS)
    assert held.next_round()["open"] == CONNECTIONS

    apply(director, at(WRONG))
    assert not page_at(world, OLD)
    assert held.next_round()["broken"] == []
    is_back(director, world, confirmed)

    report = held.end()
    with capsys.disabled():
        print(f"\n{CONNECTIONS} connections through a change and its return: {len(report['broken'])} broken")
    assert (report["open"], report["broken"]) == (CONNECTIONS, [])
    assert world.count(f"{VIP}:80/", 6) == {"rs1": 2, "rs2": 2, "rs3": 2}


def test_a_right_one_is_confirmed_over_the_new_address_and_boots(director, world):
    set_up(director)
    held = world.hold(LINES, CONNECTIONS)
    assert held.next_round()["open"] == CONNECTIONS
    secret = apply(director, at(NEW), within=120)
    assert not page_at(world, OLD)

    world.write("/run/arrive.py", ARRIVE)
    until("the page at the new address", lambda: page_at(world, NEW), 30)
    kept = until("it is kept", lambda: arrived(world, secret), 30)
    assert "The changes are kept" in kept
    assert run(director)["state"] == "done"
    assert held.end()["broken"] == []

    director.kill()
    director.start()
    director.wait_until_started()
    assert director.status()["generation"] == director.status()["confirmed"]
    until("the page at the new address", lambda: page_at(world, NEW), 60)
    assert not page_at(world, OLD)


def arrived(world, secret: str) -> str:
    """The page after it has sent itself; "" as long as it wants a newer connection."""
    page = world.in_client(f"python3 /run/arrive.py https://{NEW}/confirm/{secret}/")
    return "" if "old connection" in page else page


@thorough
def test_the_applier_is_killed_while_it_waits(director, world):
    confirmed = director.status()["confirmed"]
    apply(director, at(NEW), within=60)
    left = run(director)["confirm"]["left"]
    director.succeed("kill -9 $(cat /run/service/applier/supervise/pid)")
    director.wait_until_succeeds("fairlead-applier pending", 60)
    waits = run(director)
    assert waits["state"] == "waiting" and waits["confirm"]["left"] < left
    assert page_at(world, NEW)
    is_back(director, world, confirmed)


@thorough
def test_the_applier_is_away_at_the_deadline(director, world):
    confirmed = director.status()["confirmed"]
    apply(director, at(NEW), within=15)
    director.succeed("sv -w 10 force-stop /run/service/applier; sleep 20; sv start /run/service/applier")
    is_back(director, world, confirmed)


def test_the_power_goes_while_it_waits(director, world):
    confirmed = director.status()["confirmed"]
    apply(director, at(NEW), within=600)
    director.kill()
    director.start()
    director.wait_until_started()
    status = director.status()
    assert (status["generation"], status["confirmed"], status["faults"]) == (confirmed, confirmed, [])
    assert outcomes(director)[confirmed + 1] == "not confirmed"
    until("the page at the old address", lambda: page_at(world, OLD), 60)
    assert not page_at(world, NEW)


@thorough
def test_the_wall_clock_jumps_while_it_waits(director, world):
    confirmed = director.status()["confirmed"]
    apply(director, at(NEW), within=40)
    director.succeed("date -s '2031-01-01 12:00:00'")
    assert run(director)["state"] == "waiting"
    director.succeed("date -s '2020-01-01 12:00:00'")
    is_back(director, world, confirmed)


def test_a_change_of_services_alone_does_not_ask(director, world):
    director.write("/run/wish.json", to_json(wish(*BALANCED.services[:1])))
    director.applier("apply", "/run/wish.json", "--wait", timeout=90)
    assert run(director)["state"] == "done" and run(director)["confirm"] is None
