"""Nobody is locked out: a change that cuts the admin off goes back by itself, and disturbs no connection."""

import dataclasses
import json

import lbconfig_certificates as pems
import pytest
from board.machines.director import VIP, wish
from board.machines.lab import BALANCED
from board.machines.machine import CommandFailed
from board.machines.updating import set_up
from board.machines.wait import PATIENCE, until
from tests import texts
from tests.lab.fixtures import thorough

from lbconfig.model import certificate
from lbconfig.model.snapshot import SORRY_PORT, Interface, Snapshot, to_json

pytestmark = [pytest.mark.timeout(1200), pytest.mark.usefixtures("balanced")]

CONNECTIONS = 20
LINES = f"{VIP}:7000"
OLD, NEW, WRONG = "10.1.0.1", "10.1.0.7", "10.77.0.7"
WITHIN = 40  # seconds
TAKEN_BACK = WITHIN + PATIENCE  # seconds
# As the web process does it, and nobody confirms by himself.
APPLY = """
import json, sys
from applier.wire.client import connect
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

CONFIRM = "from applier.wire.client import connect; connect().confirm(secret='{}')"
# TLS 1.2, where a session is known as soon as the handshake is over.
VISITOR = """
import os, socket, ssl, sys, time
anyone = ssl._create_unverified_context()
anyone.maximum_version = ssl.TLSVersion.TLSv1_2
kept, visits = None, 0
while True:
    visits += 1
    while not os.path.exists(f"/run/visit-{visits}"):
        time.sleep(0.1)
    with socket.create_connection((sys.argv[1], 443), 10) as plain, anyone.wrap_socket(plain, session=kept) as secure:
        secure.sendall(b"GET /login/ HTTP/1.0\\r\\n\\r\\n")
        secure.recv(100)
        print("again" if secure.session_reused else "new", flush=True)
        kept = secure.session
"""


def at(address: str) -> Snapshot:
    """What is balanced, by a box whose address on the clients' side is this one."""
    first, servers, _ = BALANCED.network.interfaces
    # The virtual addresses stay where they are: in the clients' network.
    clients = Interface("eth2", addresses=(f"{address}/24",) if address != WRONG else (f"{WRONG}/24", "10.1.0.9/24"))
    network = dataclasses.replace(BALANCED.network, interfaces=(first, servers, clients))
    return dataclasses.replace(BALANCED, network=network)


def by(port: int) -> Snapshot:
    """What is balanced, by a box whose web page is at this port."""
    return dataclasses.replace(BALANCED, management=dataclasses.replace(BALANCED.management, port=port))


def showing(chain: str, key: str, port: int = 443) -> Snapshot:
    """What is balanced, by a box whose web page shows this certificate."""
    management = dataclasses.replace(BALANCED.management, certificate=chain, key=key, port=port)
    return dataclasses.replace(BALANCED, management=management)


def fingerprint(chain: str) -> str:
    first = certificate.first(chain)
    assert first
    return first.fingerprint.replace(":", "").lower()


def shown_at(world, address: str, port: int = 443) -> str:
    """The fingerprint (SHA-256, hex) of what the client is shown there, over a new connection."""
    script = (
        "import hashlib, ssl; "
        f"pem = ssl.get_server_certificate(('{address}', {port}), timeout=5); "
        "print(hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest())"
    )
    return world.in_client(f'python3 -c "{script}"').strip()


class Visitor:
    """A client that keeps what it knows of its last visit, and offers it at the next one."""

    def __init__(self, world) -> None:
        self.world, self.visits = world, 0
        world.write("/run/visitor.py", VISITOR)
        world.succeed(f"ip netns exec client python3 /run/visitor.py {OLD} >/run/visits 2>&1 &")
        assert self.next() == "new"

    def next(self) -> str:
        """Visit: was the session from before taken up again, or is it a new one, with the certificate looked at?"""
        self.visits += 1
        self.world.succeed(f"touch /run/visit-{self.visits}")
        lines = until("the visit", lambda: self.world.succeed("cat /run/visits").split()[self.visits - 1 :])
        return lines[0]


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


def page_at(world, place: str) -> bool:
    """Whether the client reaches the web page there, over a new connection; `place`: address, or address:port."""
    script = (
        "import ssl, urllib.request; "
        f"urllib.request.urlopen('https://{place}/login/', timeout=3, context=ssl._create_unverified_context())"
    )
    return world.in_client(f'python3 -c "{script}" >/dev/null 2>&1 && echo yes || echo no').strip() == "yes"


def is_back(director, world, confirmed: int) -> None:
    until(
        "the box is back", lambda: run(director)["state"] == "not confirmed", TAKEN_BACK, 0.2, (CommandFailed, OSError)
    )
    status = director.status()
    assert (status["generation"], status["confirmed"], status["faults"]) == (confirmed, confirmed, [])
    assert outcomes(director)[confirmed + 1] == "not confirmed"
    until("the page at the old address", lambda: page_at(world, OLD))
    assert not page_at(world, NEW)


@thorough
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


@thorough
def test_a_right_one_is_confirmed_over_the_new_address_and_boots(director, world):
    set_up(director)
    held = world.hold(LINES, CONNECTIONS)
    assert held.next_round()["open"] == CONNECTIONS
    secret = apply(director, at(NEW), within=120)
    assert not page_at(world, OLD)

    world.write("/run/arrive.py", ARRIVE)
    until("the page at the new address", lambda: page_at(world, NEW))
    kept = until("it is kept", lambda: arrived(world, secret))
    assert texts.KEPT in kept
    assert run(director)["state"] == "done"
    assert held.end()["broken"] == []

    director.kill()
    director.start()
    director.wait_until_started()
    assert director.status()["generation"] == director.status()["confirmed"]
    until("the page at the new address", lambda: page_at(world, NEW))
    assert not page_at(world, OLD)


def arrived(world, secret: str, place: str = NEW) -> str:
    """The page after it has sent itself; "" as long as it wants a newer connection."""
    page = world.in_client(f"python3 /run/arrive.py https://{place}/confirm/{secret}/")
    return "" if texts.OLD_CONNECTION in page else page


def web_ports(director) -> set[str]:
    """At which TCP ports anything but the sorry page listens."""
    lines = director.succeed("ss -Hlnt").splitlines()
    return {line.split()[3].rpartition(":")[2] for line in lines} - {str(SORRY_PORT)}


def test_the_web_page_at_another_port_comes_back_by_itself(director, world):
    confirmed = director.status()["confirmed"]
    assert page_at(world, OLD) and web_ports(director) == {"443"}
    held = world.hold(LINES, CONNECTIONS)
    apply(director, by(8443))
    assert page_at(world, f"{OLD}:8443") and not page_at(world, OLD)
    assert web_ports(director) == {"8443"}
    is_back(director, world, confirmed)
    assert not page_at(world, f"{OLD}:8443") and web_ports(director) == {"443"}
    assert held.end()["broken"] == []


@thorough
def test_the_web_page_at_another_port_is_confirmed_there_and_boots(director, world):
    set_up(director)
    secret = apply(director, by(8443), within=120)
    world.write("/run/arrive.py", ARRIVE)
    kept = until("it is kept", lambda: arrived(world, secret, f"{OLD}:8443"))
    assert texts.KEPT in kept
    assert run(director)["state"] == "done"

    director.kill()
    director.start()
    director.wait_until_started()
    until("the page at the new port", lambda: page_at(world, f"{OLD}:8443"))
    assert not page_at(world, OLD) and web_ports(director) == {"8443"}
    until("the console tells the port", lambda: f"https://{OLD}:8443" in director.console)


@thorough
def test_the_applier_is_killed_while_the_web_page_is_at_another_port(director, world):
    confirmed = director.status()["confirmed"]
    apply(director, by(8443), within=60)
    director.succeed("kill -9 $(cat /run/service/applier/supervise/pid)")
    director.wait_until_succeeds("fairlead-applier pending")
    assert page_at(world, f"{OLD}:8443") and run(director)["state"] == "waiting"
    is_back(director, world, confirmed)
    assert not page_at(world, f"{OLD}:8443") and web_ports(director) == {"443"}


@thorough
def test_another_certificate_comes_back_by_itself(director, world):
    confirmed, before = director.status()["confirmed"], shown_at(world, OLD)
    held, visitor = world.hold(LINES, CONNECTIONS), Visitor(world)
    assert visitor.next() == "again"
    apply(director, showing(pems.LB, pems.LB_KEY))
    assert shown_at(world, OLD) == fingerprint(pems.LB) != before
    assert page_at(world, OLD)
    # What a browser has kept of its last visit must not stand for the new certificate.
    assert visitor.next() == "new"
    is_back(director, world, confirmed)
    assert shown_at(world, OLD) == before
    assert director.succeed("ls /run/fairlead/certificates").strip() == ""
    assert held.end()["broken"] == []


@thorough
def test_another_certificate_is_confirmed_and_boots_and_the_own_one_is_kept(director, world):
    set_up(director)
    own = shown_at(world, OLD)
    secret = apply(director, showing(pems.LB + pems.ROOT, pems.LB_KEY, 8443), within=120)
    assert shown_at(world, OLD, 8443) == fingerprint(pems.LB)
    world.write("/run/arrive.py", ARRIVE)
    kept = until("it is kept", lambda: arrived(world, secret, f"{OLD}:8443"))
    assert texts.KEPT in kept and run(director)["state"] == "done"
    # The key is for root and nginx; nobody else on the box reads it.
    holders = director.succeed("stat -c '%u %g %a' /run/fairlead/certificates/*.pem /run/fairlead/running.json")
    assert holders.splitlines() == ["0 991 640", "0 0 600"]
    director.fail("setpriv --reuid 990 --regid 990 --clear-groups cat /run/fairlead/certificates/*.pem")

    director.kill()
    director.start()
    director.wait_until_started()
    until("the new certificate", lambda: shown_at(world, OLD, 8443) == fingerprint(pems.LB))
    assert director.status()["faults"] == []
    apply(director, BALANCED)
    until("the own one", lambda: shown_at(world, OLD) == own)


@thorough
def test_a_boot_that_cannot_use_the_certificate_shows_the_own_one_and_says_so(director, world):
    """As after an update whose OpenSSL takes it for too weak: nginx is made to refuse it."""
    own = shown_at(world, OLD)
    secret = apply(director, showing(pems.LB, pems.LB_KEY), within=120)
    director.succeed(f'. /etc/fairlead/environment && python3 -c "{CONFIRM.format(secret)}"')
    director.succeed("rm -rf /run/fairlead/certificates/* /run/fairlead/web.conf /run/fairlead/web.read")
    director.succeed("chown 0:0 /run/fairlead/certificates")  # nginx can read nothing of what comes there
    director.succeed("sv restart /run/service/nginx; kill -9 $(cat /run/service/applier/supervise/pid)")
    until("a web page", lambda: page_at(world, OLD))
    assert shown_at(world, OLD) == own
    [fault] = until("the fault", lambda: director.status()["faults"], TAKEN_BACK, 0.5, (CommandFailed, OSError))
    assert "shows the box's own certificate, as yours cannot be used" in fault["message"]


@thorough
def test_the_applier_is_killed_while_it_waits(director, world):
    confirmed = director.status()["confirmed"]
    apply(director, at(NEW), within=60)
    left = run(director)["confirm"]["left"]
    director.succeed("kill -9 $(cat /run/service/applier/supervise/pid)")
    director.wait_until_succeeds("fairlead-applier pending")
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


@thorough
def test_the_power_goes_while_it_waits(director, world):
    confirmed = director.status()["confirmed"]
    apply(director, at(NEW), within=600)
    director.kill()
    director.start()
    director.wait_until_started()
    status = director.status()
    assert (status["generation"], status["confirmed"], status["faults"]) == (confirmed, confirmed, [])
    assert outcomes(director)[confirmed + 1] == "not confirmed"
    until("the page at the old address", lambda: page_at(world, OLD))
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
