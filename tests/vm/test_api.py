"""The API from the clients' network with a token, and the `fairlead` command on the box: what counts is the traffic."""

import json
import re

import pytest
from board.machines.director import APPLY, VIP
from board.machines.machine import CommandFailed
from board.machines.wait import PATIENCE, until
from board.machines.world import SERVERS
from tests.lab.fixtures import thorough
from tests.texts import within

pytestmark = [pytest.mark.timeout(1200), pytest.mark.usefixtures("balanced")]

BOX = "https://10.1.0.1"  # among the clients
ADMIN, PASSWORD = "kim", "rope and tide"
SCRIPT = """
import json, ssl, sys, urllib.error, urllib.request
method, url, token, body, match = sys.argv[1:]
context = ssl._create_unverified_context()
headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
if match: headers["If-Match"] = match
request = urllib.request.Request(url, body.encode() or None, headers, method=method)
try:
    with urllib.request.urlopen(request, context=context, timeout=60) as answer:
        status, text = answer.status, answer.read().decode()
except urllib.error.HTTPError as error:
    status, text = error.code, error.read().decode()
print(json.dumps([status, json.loads(text or "null")]))
"""


@pytest.fixture
def token(director) -> str:
    """Somebody has set the box up; root makes the token for his scripts."""
    assert director.set_up(ADMIN, PASSWORD)[0] == 200
    may = "read,change,apply"
    made = director.succeed(["fairlead", "token", "create", "story", "--may", may, "--only-from", "10.1.0.0/16"])
    return made.strip()


@pytest.fixture
def ask(world, token):
    """ask(method, path, data) -> (status, answer), from the client."""
    world.write("/run/world/ask.py", SCRIPT)

    def one(method: str, path: str, data: object = None, match: str = "", token: str = token):
        body = json.dumps(data) if data is not None else ""
        words = ["python3", "/run/world/ask.py", method, f"{BOX}/api/v1{path}", token, body, match]
        return tuple(json.loads(world.succeed(["ip", "netns", "exec", "client", *words], 90)))

    return one


def apply(ask, comment: str) -> dict:
    """Review and apply what is in the draft; the run at its end."""
    _, review = ask("GET", "/draft/review")
    assert review["problems"] == []
    wish = {"digest": review["digest"], "base": review["base"], "comment": comment}
    status, started = ask("POST", "/applies", wish)
    assert status == 202, started

    def ended():
        _, run = ask("GET", f"/applies/{started['apply']}")
        return run if run["state"] != "running" else None

    return until("the end of the apply", ended, APPLY, 0.5)


def test_a_service_made_by_a_program_gets_its_packets(ask, director, world):
    new = {
        "name": "by program",
        "address": VIP,
        "port": 81,
        "scheduler": "rr",
        "check": {"kind": "http", "path": "/health", "interval": 1, "timeout": 3},
        "real_servers": [{"address": SERVERS[name], "port": 80} for name in ("rs1", "rs2")],
    }
    status, made = ask("POST", "/services", new)
    assert status == 201, made
    assert apply(ask, "a service by a program")["state"] == "done"
    until("both servers up", lambda: world.count(f"{VIP}:81/", 4) == {"rs1": 2, "rs2": 2})
    newest = ask("GET", "/history?limit=1")[1][0]
    assert (newest["comment"], newest["user"]) == ("a service by a program", f"{ADMIN} (token story)")

    status, answer = ask("PATCH", f"/services/{made['id']}", {"port": 0})
    assert status == 422 and answer["error"]["problems"][0]["field"] == "port"
    assert ask("DELETE", f"/services/{made['id']}", match='"of yesterday"')[0] == 412
    assert ask("DELETE", f"/services/{made['id']}", match="*")[0] == 204
    assert apply(ask, "and away again")["state"] == "done"
    world.fail(f"ip netns exec client busybox timeout 3 busybox nc -w 2 {VIP} 81 </dev/null")
    assert world.count(f"{VIP}:80/", 3) == {"rs1": 1, "rs2": 1, "rs3": 1}


@thorough
def test_who_may_not_changes_nothing(ask, director, world):
    assert ask("GET", "/status", token="fairlead_wrong")[0] == 401
    outside = director.succeed(["fairlead", "token", "create", "elsewhere", "--only-from", "10.99.0.0/16"]).strip()
    assert ask("GET", "/status", token=outside)[0] == 403
    reader = director.succeed(["fairlead", "token", "create", "reader"]).strip()
    assert ask("GET", "/draft", token=reader)[0] == 200
    assert ask("POST", "/operations", {"operation": "halt", "address": SERVERS["rs1"]}, token=reader)[0] == 403
    secret = director.read("/run/fairlead/web/console-token").strip()
    assert ask("GET", "/status", token=secret)[0] == 401  # through nginx it is nobody's
    assert world.count(f"{VIP}:80/", 3) == {"rs1": 1, "rs2": 1, "rs3": 1}
    with pytest.raises(CommandFailed):
        director.succeed(["setpriv", "--reuid", "991", "--clear-groups", "cat", "/run/fairlead/web/console-token"])


def test_the_command_on_the_box(director, world):
    """Nobody has set the box up: root needs no token."""
    assert "Configuration" in director.succeed(["fairlead", "status"])
    director.succeed(["fairlead", "drain", SERVERS["rs1"], "--service", "site"], APPLY)
    until("rs1 drained", lambda: world.count(f"{VIP}:80/", 6) == {"rs2": 3, "rs3": 3})
    assert "quiesced" in director.succeed(["fairlead", "show", "services/site"])
    director.succeed(["fairlead", "resume", SERVERS["rs1"]], APPLY)
    director.wait_until_healthy(*SERVERS)

    before = director.succeed(["fairlead", "export"])
    generation = director.status()["generation"]
    director.succeed(["fairlead", "remove", f"services/site/real_servers/{_id_of(before, 'rs3')}"])
    assert "changed: virtual service 'site'" in director.succeed(["fairlead", "review"])
    director.succeed(["fairlead", "apply", "--comment", "rs3 leaves"], APPLY)
    assert world.count(f"{VIP}:80/", 4) == {"rs1": 2, "rs2": 2}
    assert "rs3 leaves" in director.succeed(["fairlead", "history", "--limit", "1"])

    director.succeed(["fairlead", "restore", str(generation)])
    director.succeed(["fairlead", "apply"], APPLY)
    director.wait_until_healthy(*SERVERS)
    assert json.loads(director.succeed(["fairlead", "export"])) == json.loads(before)
    assert world.count(f"{VIP}:80/", 3) == {"rs1": 1, "rs2": 1, "rs3": 1}


@thorough
def test_the_command_refuses_with_a_reason_and_an_exit_code(director):
    said = director.fail(["fairlead", "change", "services/site", '{"port": 0}'])
    assert f"virtual service 'site', port: {within(1, 65535, 0)}" in said
    assert director.execute(["fairlead", "explode"]).exit == 2
    director.succeed(["sv", "-w", "20", "stop", "/run/service/web"])
    assert director.execute(["fairlead", "status"]).exit == 3
    director.succeed(["sv", "up", "/run/service/web"])
    until("the web process", lambda: director.execute(["fairlead", "status"]).exit == 0, PATIENCE, 1)
    other = director.execute(["setpriv", "--reuid", "991", "--clear-groups", "fairlead", "status"])
    assert other.exit == 3 and re.search("Only root|not started", other.errors)


def _id_of(text: str, name: str) -> int:
    site = next(one for one in json.loads(text)["services"] if one["name"] == "site")
    return next(server["id"] for server in site["real_servers"] if server["address"] == SERVERS[name])
