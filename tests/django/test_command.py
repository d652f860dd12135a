"""The `fairlead` command against the real API, as root at the box has it: exit codes, what is printed where."""

import io
import json
import re
from dataclasses import replace

import pytest
import stored
from django.core.management import call_command
from django.test import Client
from tests import texts
from tests.fake import drift as fake_drift
from tests.fake import pair as fake_pair
from tests.texts import within

from accounts.models import ApiToken
from api import auth
from applier.apply.runs import confirmed_sentence
from applier.wire.client import ApplierRefused
from changes.models import Revision
from command import verbs
from command.api import Api
from command.main import main
from draft import store as draft
from draft.models import Service
from lbconfig.model.problem import UNKNOWN_FIELD
from lbconfig.model.snapshot import to_data
from system import backupfile, sealed


@pytest.fixture
def run(admin, box, settings, monkeypatch, capsys):
    """run(words, stdin) -> (exit code, standard output, standard error)."""
    settings.CONSOLE_TOKEN_FILE.parent.mkdir(parents=True)
    call_command("prepare")  # the token is made where the web process starts
    monkeypatch.setenv("FAIRLEAD_RUN", str(settings.CONSOLE_TOKEN_FILE.parents[1]))
    browser = Client(REMOTE_ADDR="")  # the UNIX socket has no address

    def exchange(self, method, path, headers, body):
        kind = headers.get("Content-Type", "")
        path, _, query = path.partition("?")
        data = body.read() if hasattr(body, "read") else body or b""
        answer = browser.generic(method, path, data, kind, headers=headers, QUERY_STRING=query)
        return answer.status_code, answer.getvalue()

    monkeypatch.setattr(Api, "exchange", exchange)

    def go(*words: str, stdin: str = ""):
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        capsys.readouterr()
        try:
            code = main(words)
        except SystemExit as end:
            code = end.code
        said = capsys.readouterr()
        return code, said.out, said.err

    return go


def test_looking(run, box):
    code, out, _ = run("status")
    assert code == 0 and "Configuration  3\n" in out and "Faults         none known" in out
    assert "shop     1 of 2" in out
    box.fault("data-full", "The data partition is full.\033[2J")
    assert "FAULT          The data partition is full.?[2J" in run("status")[1]
    assert json.loads(run("status", "--json")[1])["generation"] == 3
    assert "1   shop   192.168.10.80:80  tcp       wrr        1 of 2" in run("services")[1]
    assert len(json.loads(run("services", "--json")[1])) == 3
    assert "shop     2   10.2.0.12:80  DOWN" in run("servers")[1]
    assert "refuses connections to port 80" in run("diagnose", "shop")[1]
    assert "10.2.0.12:80  down" in run("try", "1")[1]
    fallback = {"kind": "server", "address": "10.2.0.99", "check": "connect"}
    assert run("change", "services/1", json.dumps({"fallback": fallback}))[0] == 0
    assert "10.2.0.99:80 (fallback)  up" in run("try", "1")[1]


def test_editing(run):
    assert run("change", "services/shop", '{"scheduler": "lc"}')[0] == 0
    assert Service.objects.get(pk=1).wish.scheduler == "lc"
    assert Service.objects.get(pk=1).changed_by == auth.CONSOLE
    assert run("disable", "mail")[0] == 0 and not Service.objects.get(pk=2).wish.enabled
    assert run("enable", "2")[0] == 0 and Service.objects.get(pk=2).wish.enabled
    new = {"name": "new one", "address": "192.168.10.70", "port": 70}
    assert json.loads(run("add", "services", stdin=json.dumps(new))[1])["name"] == "new one"
    assert run("change", "services/new one/real_servers", "{}")[0] == 1
    server = {"address": "10.2.0.70", "port": 70}
    made = json.loads(run("add", "services/new one/real_servers", stdin=json.dumps(server))[1])
    assert run("remove", f"services/new one/real_servers/{made['id']}")[0] == 0
    assert run("remove", "services/new one")[0] == 0 and Service.objects.count() == 3
    assert json.loads(run("show", "sorry")[1])["title"]
    assert json.loads(run("show", "services/shop/real_servers/1")[1])["weight"] == 2


def test_compare(run, box):
    assert run("compare") == (0, "what runs and the draft are the same.\n", "")
    run("change", "services/shop", '{"scheduler": "lc"}')
    code, out, _ = run("compare")
    assert code == 0 and out.startswith("From what runs to the draft:\nchanged: virtual service 'shop'\n")
    assert "Files that differ: " in out and "ipvs.rules" in out
    assert json.loads(run("compare", "--json", "3", "draft")[1])["old"] == "revision 3"
    assert run("compare", "99")[0] == 1
    assert run("compare", "../x")[0] == 2


@pytest.mark.django_db(transaction=True)
def test_a_backup_file(run, box, tmp_path, monkeypatch):
    monkeypatch.setattr(sealed.Writer.__init__, "__defaults__", (sealed.Cost(4, 8, 1),))
    file = tmp_path / "box.fairlead-backup"
    assert run("backup", str(file), stdin="a long passphrase\n") == (0, "", "")
    assert file.stat().st_mode & 0o777 == 0o600
    (tmp_path / "opened").mkdir()
    with file.open("rb") as taken:
        assert "about.json" in backupfile.open_into(tmp_path / "opened", taken, "a long passphrase")
    before = file.read_bytes()
    code, _, said = run("backup", str(file), stdin="a long passphrase\n")
    assert code == 1 and "cannot be written: File exists" in said and file.read_bytes() == before
    code, _, said = run("backup", str(tmp_path / "other"), stdin="short\n")
    assert code == 1 and "passphrase" in said and not (tmp_path / "other").exists()


def test_export_and_import(run, box, tmp_path):
    text = run("export")[1]
    assert json.loads(text) == to_data(box.snapshot)
    file = tmp_path / "new.json"
    file.write_text(text.replace('"wrr"', '"rr"'))
    assert run("set", "draft", str(file))[0] == 0
    assert Service.objects.get(pk=1).wish.scheduler == "rr"
    assert json.loads(run("export", "draft")[1])["services"][0]["scheduler"] == "rr"
    assert json.loads(run("export", "2")[1])["services"][0]["scheduler"] == "wrr"
    assert run("discard")[0] == 0 and Service.objects.get(pk=1).wish.scheduler == "wrr"
    assert run("set", "policy", stdin=json.dumps({"tcp_timeout": 60}))[0] == 0
    assert draft.current().policy.tcp_timeout == 60


def test_review_apply_history_restore(run, box):
    assert run("review") == (0, "The box runs what the draft says.\n", "")
    run("change", "services/shop", '{"scheduler": "lc"}')
    code, out, _ = run("review")
    assert code == 0 and "changed: virtual service 'shop'" in out and "ipvs.rules" in out
    code, out, _ = run("apply", "--comment", "quicker")
    assert (code, out) == (0, f"{confirmed_sentence(4)}\n")
    assert box.snapshot.services[0].scheduler == "lc"
    out = run("history", "--limit", "1")[1]
    assert "console" in out and "quicker" in out and len(out.splitlines()) == 2
    assert Revision.objects.get(number=4).user == auth.CONSOLE
    code, out, _ = run("restore", "3")
    assert code == 0 and "`fairlead apply`" in out and Service.objects.get(pk=1).wish.scheduler == "wrr"
    assert box.snapshot.services[0].scheduler == "lc"


def test_an_apply_that_is_put_back_and_one_that_is_not_waited_for(run, box):
    box.failing_step = "ldirectord-start"
    run("change", "services/shop", '{"scheduler": "lc"}')
    code, out, err = run("apply")
    assert code == 1 and not out and "put back" in err
    assert json.loads(run("apply", "--json")[1])["state"] == "rolled back"
    box.failing_step, box.instant = None, False
    assert run("apply", "--no-wait") == (0, "apply-6\n", "")
    box.finish()
    run("change", "services/shop", '{"scheduler": "sed"}')
    code, _, err = run("apply", "--timeout", "0")
    assert code == verbs.TIMED_OUT and "it goes on" in err


def test_changes_that_wait(run, box):
    run("change", "services/shop", '{"scheduler": "lc"}')
    code, _, err = run("apply", "--confirm-within", "60", "--timeout", "0.5")
    assert code == verbs.TIMED_OUT and "it goes on" in err
    assert run("confirm")[0] == 0
    assert box.snapshot.services[0].scheduler == "lc"
    code, _, err = run("roll-back")
    assert code == 1 and "No changes wait" in err
    run("change", "services/shop", '{"scheduler": "sed"}')
    run("apply", "--confirm-within", "60", "--no-wait")
    assert run("roll-back")[0] == 0
    assert box.snapshot.services[0].scheduler == "lc"
    run("change", "network", '{"interfaces": [{"name": "eth0", "addresses": ["192.168.10.3/24"]}, '
        '{"name": "eth1", "addresses": ["10.2.0.1/24"]}]}')  # fmt: skip
    assert run("apply")[0] == 0  # it asks to be confirmed, and the command does so
    assert box.snapshot.network.interfaces[0].addresses == ("192.168.10.3/24",)


def test_operations(run, box):
    assert run("drain", "10.2.0.11")[0] == 0
    assert box.snapshot.services[0].real_servers[0].state == "quiesced"
    assert stored.server(1).state == "quiesced"
    assert run("halt", "10.2.0.11", "--service", "shop")[0] == 0
    assert run("resume", "10.2.0.11", "--service", "1", "--server", "1")[0] == 0
    assert box.snapshot.services[0].real_servers[0].state == "enabled"
    code, out, err = run("resume", "10.2.0.11")
    assert (code, out) == (1, "") and "in that state already" in err
    assert run("drain", "10.2.0.11", "--service", "nobody")[0] == 1


def test_tokens(run, django_user_model):
    code, out, _ = run("token", "create", "monitor", "--may", "read,change", "--days", "7", "--only-from", "10.0.0.0/8")
    record = ApiToken.objects.get()
    assert code == 0 and out.startswith("fairlead_") and record.scopes == ["read", "change"]
    assert record.networks == ["10.0.0.0/8"] and record.user.username == "admin"
    assert "monitor" in run("token", "list")[1] and out.strip() not in run("token", "list", "--json")[1]
    assert run("token", "revoke", str(record.pk))[0] == 0 and not ApiToken.objects.exists()
    django_user_model.objects.create_user("kim")
    code, _, err = run("token", "create", "x")
    assert code == 1 and "token, user: must be one of the box's users (admin, kim)" in err


@pytest.mark.parametrize(
    ("words", "stdin", "said"),
    [
        (("change", "services/shop", '{"port": 0}'), "", f"virtual service 'shop', port: {within(1, 65535, 0)}"),
        (("change", "services/shop", '{"colour": 1}'), "", f"virtual service 'shop', colour: {UNKNOWN_FIELD}"),
        (("change", "services/shop", "{"), "", "the fields: this is not JSON"),
        (("change", "services/nobody", "{}"), "", "no virtual service 'nobody'"),
        (("change", "services/99", "{}"), "", "no virtual service 99"),
        (("change", "nothing at/all\n", "{}"), "", "no such thing"),
        (("set", "draft", "/nowhere.json"), "", "/nowhere.json cannot be read"),
        (("set", "draft"), "[]", "snapshot: must be an object"),
        (("set", "draft"), '{"services": [{}]}', "services[0].id: is missing"),
        (("restore", "99"), "", "no revision 99"),
    ],
    ids=str,
)
def test_what_is_refused_names_object_and_field(run, words, stdin, said):
    before = draft.is_filled() and draft.current()
    code, out, err = run(*words, stdin=stdin)
    assert (code, out) == (1, "") and said in err
    assert not before or draft.current() == before


def test_problems_of_the_draft_stop_an_apply(run, box):
    run("status"), run("review")
    stored.change(1, port=0)
    for word in ("review", "apply"):
        code, _, err = run(word)
        assert code == 1 and "virtual service 'shop', port:" in err
    box.refuse = ApplierRefused("busy", "Right now the changes of kim are being applied.")
    code, _, err = run("apply")
    assert code == 1 and err == "fairlead: busy: Right now the changes of kim are being applied.\n"


@pytest.mark.parametrize("words", [(), ("explode",), ("restore", "x"), ("export", "../x"), ("token",), ("drain",)])
def test_wrong_words(run, words):
    code, out, err = run(*words)
    assert code == 2 and not out and "usage: fairlead" in err


def test_without_an_applier_and_without_the_token(run, box, settings):
    run("services")
    box.reachable = False
    code, _, err = run("status")
    assert code == 1 and "applier-down" in err
    settings.CONSOLE_TOKEN_FILE.unlink()
    code, _, err = run("status")
    assert code == 3 and "has not started yet" in err


def test_drift(run, box):
    code, out, _ = run("drift")
    assert code == 0 and out == "The box runs what it should.\n"
    box.drift.found, box.drift.fresh = fake_drift.sample(), 1
    code, out, _ = run("drift")
    assert code == 1 and "virtual service 'names'\n  should be: round robin\n  is: source hashing\n" in out
    assert "When repaired: New connections to it may be refused" in out and "still there in a moment: 1" in out
    assert json.loads(run("drift", "--json")[1])["count"] == 2
    assert "DRIFT          2 differences" in run("status")[1]
    code, out, _ = run("drift", "--repair")
    assert code == 0 and "2 differences repaired" in out and box.run.kind == "repair"
    box.drift.found, box.failing_step = fake_drift.sample(), "ipvs"
    code, _, err = run("drift", "--repair")
    assert code == 1 and "Not as it should be" in err


def test_hardware(run, box):
    code, out, _ = run("hardware")
    assert code == 0 and texts.HEALTHY in out
    assert re.search(r"^0 +25 % +0 +eth0 queue 0, eth1, eth1 helping", out, re.MULTILINE), out
    box.machine.machine = replace(box.machine.machine, processes=frozenset({"irqbalance"}))
    one, other = box.machine.machine.cards
    box.machine.machine = replace(box.machine.machine, cards=(one, replace(other, rps=((),))))
    code, out, _ = run("hardware")
    assert code == 1 and "COSTS  eth1 (r8169) has one queue for 4 cores" in out and "LISA 2001" in out
    assert "fairlead hardware tune: Lets the kernel spread" in out and "Not as planned:" in out
    assert {one["code"] for one in json.loads(run("hardware", "--json")[1])["findings"]} == {"one-queue", "meddler"}
    code, out, _ = run("hardware", "tune")
    assert "has one queue for 4 cores" not in out and box.machine.tuned


def test_the_pair(run, box):
    assert run("pair") == (0, "This box is in no pair.\n", "")
    assert run("pair", "hand-over")[0] == 1
    box.pair = fake_pair.sample()
    code, said, _ = run("pair")
    assert code == 0 and said.startswith(
        "lb1 leads, lb2 stands by and is in step; it knows 1,238 of 1,240 connections.\n"
    )
    assert "lb2  stands by  7400 s  0.2.0    3         1238" in said and "lb1 took the lead: admin asked for it" in said
    code, said, _ = run("pair", "hand-over")
    assert code == 0 and said.startswith("lb2 leads, lb1 stands by and is in step;")
    code, _, complaint = run("pair", "hand-over")
    assert code == 1 and complaint.startswith("fairlead: not-leading: lb1 stands by")
    assert "lb1 is held (by " in run("pair", "hold", "--hours", "4")[1]
    assert "for another 4.0 h" in run("pair", "show")[1] and run("pair", "show")[0] == 1
    assert run("pair", "hold", "--hours", "999")[0] == 1
    assert json.loads(run("pair", "release", "--json")[1])["hold"] is None
    box.pair.silent = 900.0
    assert "lb2  AWAY (leads before)" in run("pair")[1]
    box.pair.peer = None
    assert "lb2  never heard" in run("pair")[1]


def test_a_silent_path_and_a_drill_of_the_pair(run, box):
    box.pair = fake_pair.sample()
    box.pair.paths[0] |= {"alive": False, "silent": 700.0}
    assert "No answer on the pair cable (eth2) from 192.0.2.2 for 700 s." in run("pair")[1]
    code, said, _ = run("pair", "drill", "--back")
    assert code == 0 and said.count("The addresses answered at ") == 2
    assert run("pair", "drill")[0] == 0 and run("pair", "drill")[2].startswith("fairlead: not-leading: ")


def test_a_pair_ends(run, box):
    assert run("pair", "leave")[0] == 1
    box.pair = fake_pair.sample()
    code, said, _ = run("pair", "leave")
    assert code == 0 and confirmed_sentence(4) in said and box.pair is None
    box.pair = fake_pair.sample()
    box.pair.silent = 900.0
    assert run("pair", "leave")[2].startswith("fairlead: peer-away: lb2 is not heard")
    assert run("pair", "alone", "--no-wait")[0] == 0 and box.pair is None


def test_the_update_of_both_boxes(run, box, settings, tmp_path):
    box.pair = fake_pair.sample()
    assert run("pair", "update")[:2] == (0, "The two boxes have not been updated together yet.\n")
    assert "no-bundle: /nowhere.raucb: No such file" in run("pair", "update", "--bundle", "/nowhere.raucb")[2]
    settings.UPLOADS = tmp_path / "uploads"
    bundle = tmp_path / "new.raucb"
    bundle.write_bytes(b"hsqs" + bytes(5000))
    code, said, _ = run("pair", "update", "--bundle", str(bundle))
    assert code == 0 and said.startswith("The bundle is sent to lb2: 50 %.\n  > Send the bundle to lb2\n")
    assert said.endswith("fairlead pair update --decide stop\n")
    code, said, _ = run("pair", "update", "--decide", "stop")
    assert code == 1 and "console has stopped the update." in said and "  ! Send the bundle to lb2" in said
    assert json.loads(run("pair", "update", "--json")[1])["choices"] == ["leave"]
    assert run("pair", "update", "--decide", "go-on")[0] == 1


def test_what_the_box_can_forward(run, box):
    assert "never measured on this hardware" in run("bench")[1]
    code, said, _ = run("bench", "--watch", "20")
    assert code == 0 and "Counting for 20 seconds." in said and "and kept." in said
    assert "Packets/s      at least 60,000, now 60,000 (100%)" in said
    assert json.loads(run("bench", "--json")[1])["load"]["figure"] == "connections"
    assert json.loads(run("bench", "--watch", "20", "--json")[1])["job"]["state"] == "done"  # nothing else is printed
    assert run("bench", "--stop")[0] == 1
    code, said, _ = run("bench", "--between", "eth4", "eth5")
    assert code == 0 and "sent by itself, eth4 to eth5" in said
    code, _, complaint = run("bench", "--between", "eth4", "eth4")
    assert code == 1 and "must be another port than the sender's" in complaint
    code, _, complaint = run("bench", "--watch", "5")
    assert code == 1 and "must be 10 to 600" in complaint
    box.capacity.now = None
    code, _, complaint = run("bench", "--watch", "20")
    assert code == 1 and "nothing was kept" in complaint
