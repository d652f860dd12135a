"""What is kept for a boot without Python, and how the applier goes on from wherever such a boot has come to.

The script that uses it (/etc/init.d/S30early) is run in tests/peers/test_early.py; here it is a few lines of a model.
"""

import dataclasses
import errno
import hashlib
import os

import pytest
from box import KINDS, ONE, Box, running_one
from model_host import BACKLOG
from pair_model import PRIVATE as PRIVATE_KEY
from pair_model import PUBLIC, pair_of

from applier.apply.early import MEMORY, Kept, text
from applier.base import durable
from applier.host.host import PRIVATE
from applier.kept import pair_key
from lbconfig.model.snapshot import FACTORY
from lbconfig.wanted import pair_link
from lbconfig.wanted.netstate import Link

PAIR = pair_of(ONE)
SNAPSHOTS = {"cards": ONE, "bond-bridge-vlan": KINDS, "pair": PAIR}
MEMINFO = "MemTotal:         501234 kB\nMemFree: 1 kB\n"


def remembering(folder, snapshot=ONE) -> Box:
    """A box on which `snapshot` runs, and that has kept it."""
    folder.mkdir(exist_ok=True)
    box = Box(folder)
    box.host.files[MEMORY] = MEMINFO
    box.start()
    pair_key.make(box.host, box.paths)
    assert box.apply(snapshot)["state"] == "done", box.applier.status()["apply"]
    box.host.sleep(60)
    return box


def parts(box: Box) -> tuple[list[str], dict[str, str]]:
    """What it is kept for, and the files."""
    kept, files = [], {}
    lines = iter(box.paths.early.read_text().splitlines(keepends=True))
    for line in lines:
        match line.split():
            case ["file", count, name]:
                files[name] = "".join(next(lines) for _ in range(int(count)))
            case _:
                kept.append(line.rstrip("\n"))
    return kept, files


def actions(box: Box) -> list:
    """What the script does, one after the other."""
    _, files = parts(box)
    host, paths = box.host, box.paths
    put = host.files.__setitem__
    found = [
        lambda: put(paths.module_options, files["options"]),
        lambda: setattr(host, "rules", files["nftables.conf"]),
        lambda: put(paths.rules_seen, files["nftables.seen"]),
        lambda: put(paths.nftables, files["nftables.conf"]),
    ]
    found += [lambda line=line: host._ip([line]) for line in files["links"].splitlines()]
    if "pair.conf" in files:
        found.append(lambda: put(paths.pair_link, files["pair.conf"]))
        found += [lambda line=line: host._ip([line]) for line in files["pair-link"].splitlines()]
        whole = pair_link.with_key(files["pair.conf"], PRIVATE_KEY)
        found.append(lambda: host.pair._sync(whole))
    found += [lambda line=line: host._set(*line.split(maxsplit=1)) for line in files["settings"].splitlines()]
    found.append(lambda: host._set_timeouts(files["timeouts"].split()))
    for name in ("network", "network6", "pair-link-on"):
        found += [lambda line=line: host._ip([line]) for line in files.get(name, "").splitlines()]
    if files["names.conf"]:
        found += [lambda path=path: put(path, files["names.conf"]) for path in (paths.resolver, paths.names)]
    found.append(lambda: put(paths.sorry_page, files["sorry.html"]))
    found += [lambda line=line: host._ipvsadm([line]) for line in files["table"].splitlines()]
    found += [lambda line=line: start_thread(host, line.split()) for line in files.get("daemons", "").splitlines()]
    if "ldirectord.cf" in files:
        found.append(lambda: put(paths.ldirectord, files["ldirectord.cf"]))
        found.append(lambda: put(paths.checks_wanted, ""))
        found.append(lambda: host._direct("start"))
    if "keepalived.conf" in files:
        found += [
            lambda: put(paths.hold, files["hold"]),
            lambda: put(paths.floating, files["floating.json"]),
            lambda: put(paths.keepalived, files["keepalived.conf"]),
            # These two by themselves, once the supervisor has been started.
            lambda: host.pair._sv("vrrp", "up"),
            lambda: host.pair._sv("floater", "up"),
        ]
    return found


def start_thread(host, words) -> None:
    given = dict(zip(words[::2], words[1::2], strict=True))
    kind = {"master": 1, "backup": 2}[given.pop("--start-daemon")]
    interface, numbers = given.pop("--mcast-interface"), (given.pop("--syncid"), given.pop("--sync-maxlen"))
    assert given == {"--mcast-group": "224.0.0.81", "--mcast-port": "8848", "--mcast-ttl": "1"}
    host.pair.daemons[kind] = (interface, *map(int, numbers))


def cut_power(box: Box) -> None:
    """As Box.power_cut does it, before the applier starts."""
    dead = box.host.dead
    box.host = type(box.host)(box.paths)
    box.host.files[MEMORY] = MEMINFO
    box.host.dead = dead


@pytest.mark.parametrize("snapshot", SNAPSHOTS.values(), ids=SNAPSHOTS.keys())
def test_the_applier_takes_over_what_the_boot_scripts_have_brought_up(tmp_path, snapshot):
    box = remembering(tmp_path, snapshot)
    cut_power(box)
    for action in actions(box):
        action()
    box.host.check_health()
    pid, table = box.host.director_pid, dict(box.host.table)
    box.restart_daemon()
    assert box.applier.status()["generation"] == 1 and not box.faults() and not box.host.violations
    assert (box.host.director_pid, box.host.table) == (pid, table)
    # No rule is loaded, no line of ip or ipvsadm is carried out.
    name, channel = ("lb1", ["sv up pair"]) if snapshot is PAIR else ("one", [])
    assert [name for name in box.host.log if not name.startswith("put ")] == [
        f"tell /proc/sys/{BACKLOG}",
        f"set kernel/hostname={name}",
        "sv time",
        *channel,
    ]
    assert box.host.sent, "the neighbours were not told where the addresses are"


@pytest.mark.parametrize("snapshot", SNAPSHOTS.values(), ids=SNAPSHOTS.keys())
def test_wherever_the_boot_scripts_end_the_applier_goes_on_from_there(tmp_path, snapshot):
    box = remembering(tmp_path, snapshot)
    box.host.dead.add(("10.2.0.12", 80))
    count = len(actions(box))
    cut_power(box)
    expected = settled(box)
    for number in range(count + 1):
        cut_power(box)
        for action in actions(box)[:number]:
            action()
        assert settled(box) == expected, number
        assert not box.faults() and not box.host.violations, number


def test_a_box_that_leads_before_the_applier_is_loaded_goes_on_leading(tmp_path):
    """As it does where the other one is silent (overlay/etc/sv/lead)."""
    box = remembering(tmp_path, PAIR)
    cut_power(box)
    for action in actions(box):
        action()
    box.host.files[box.paths.hold] = "0\n"
    box.host.pair.elect()
    leases = {name: link.leases for name, link in box.host.links.items()}
    assert leases["eth0"] and leases["eth1"]
    box.restart_daemon()
    box.applier.pair_watch.tick()
    look(box)
    assert {name: link.leases for name, link in box.host.links.items()} == leases
    assert not box.faults() and not box.host.violations
    [change] = box.applier.pairs.changes.newest()
    assert (change["leads"], change["reason"]) == ("lb1", "lb2 was not heard")
    box.restart_daemon()
    look(box)
    assert len(box.applier.pairs.changes.newest()) == 1, "the applier was started anew, and not the box"


def look(box: Box) -> None:
    pairs = box.applier.pairs
    box.applier.lookout.note(pairs.seen(pairs.boxes()))


def test_a_box_of_a_pair_keeps_it_for_its_key_and_without_the_private_one(tmp_path):
    box = remembering(tmp_path, PAIR)
    kept, files = parts(box)
    assert kept[-1] == f"pair {PUBLIC}" and PRIVATE_KEY not in box.paths.early.read_text()
    assert (files["hold"], files["may-lead"]) == ("1\nnot ready yet\n", "eth2\n")
    kept, files = parts(remembering(tmp_path / "alone"))
    assert kept[-1].startswith("card ") and not {*files} & {"pair.conf", "daemons", "keepalived.conf", "may-lead"}


def settled(box: Box) -> dict:
    box.restart_daemon()
    box.host.sleep(30)
    found = box.host.state()
    # The daemon loads the balancer before it starts; and who starts ldirectord keeps its own mark.
    others = {str(box.paths.module_options), str(box.paths.checks_wanted)}
    return found | {"files": {path: one for path, one in found["files"].items() if path not in others}}


def test_no_server_that_is_checked_gets_clients_before_its_first_check(tmp_path):
    box = remembering(tmp_path)
    assert [line for line in parts(box)[1]["table"].splitlines() if line.startswith("-a")] == [
        "-a -t 192.168.10.80:80 -r 10.2.0.11:80 -m -w 0",
        "-a -t 192.168.10.80:80 -r 10.2.0.12:80 -m -w 0",
        "-a -u 192.168.10.80:53 -r 10.2.0.31:53 -m -w 1",
    ]


def test_it_is_kept_for_one_version_generation_memory_and_set_of_cards(tmp_path):
    box = remembering(tmp_path)
    kept, _ = parts(box)
    snapshot = (box.paths.state / "generations/000001/snapshot.json").read_bytes()
    assert kept == [
        "version development",
        "confirmed generations/000001",
        f"snapshot {hashlib.sha256(snapshot).hexdigest()}",
        "memory 7",
        "card eth0 52:54:00:00:00:00",
        "card eth1 52:54:00:00:00:01",
    ]
    assert box.paths.early_digest.read_text() == f"{hashlib.sha256(box.paths.early.read_bytes()).hexdigest()}  early\n"
    assert box.paths.early.stat().st_mode & 0o777 == PRIVATE  # passwords of checks are in it
    assert box.apply(dataclasses.replace(ONE, services=ONE.services[1:]))["state"] == "done"
    kept, files = parts(box)
    assert kept[1] == "confirmed generations/000002" and "ldirectord.cf" not in files


def test_a_boot_keeps_what_the_version_before_did_not(tmp_path):
    box = remembering(tmp_path)
    whole = box.paths.early.read_bytes()
    box.paths.early.unlink()
    cut_power(box)
    box.restart_daemon()
    assert box.paths.early.read_bytes() == whole
    written = box.paths.early.stat().st_ino
    cut_power(box)
    box.restart_daemon()
    assert box.paths.early.stat().st_ino == written, "the same was written once more"


def test_what_waits_to_be_confirmed_is_not_kept(tmp_path):
    box = remembering(tmp_path)
    box.begin(dataclasses.replace(ONE, services=()), confirm_within=60)
    box.until("waiting")
    assert parts(box)[0][1] == "confirmed generations/000001"
    box.applier.applies.roll_back("", box.secret, "")
    box.until("not confirmed")
    assert parts(box)[0][1] == "confirmed generations/000001"


def test_nothing_is_kept_of_a_start_that_was_not_whole(tmp_path):
    """Nor of the factory configuration, which no generation holds."""
    box = remembering(tmp_path)
    box.paths.early.unlink()
    for broken in (lambda: box.host.links.pop("eth1"), lambda: setattr(box.host, "bad_rules", True)):
        cut_power(box)
        broken()
        box.restart_daemon()
        assert "start" in box.faults() and not box.paths.early.exists()
    box = Box(tmp_path / "new")
    box.host.files[MEMORY] = MEMINFO
    box.start()
    assert box.applier.running.snapshot == FACTORY and not box.paths.early.exists()


def test_a_disk_that_does_not_take_it_fails_no_apply(tmp_path, monkeypatch):
    box = remembering(tmp_path)
    replace = durable.replace

    def full(path, data):
        if path == box.paths.early:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace(path, data)

    monkeypatch.setattr(durable, "replace", full)
    assert box.apply(dataclasses.replace(ONE, services=ONE.services[1:]))["state"] == "done"
    assert not box.faults()
    assert parts(box)[0][1] == "confirmed generations/000001", "the boot sees that this is not the confirmed one"


def test_checks_that_are_still_being_loaded_are_waited_for(tmp_path):
    """The boot scripts have said that they are wanted; the program that starts them does not answer yet."""
    box = remembering(tmp_path)
    cut_power(box)
    for action in actions(box)[:-1]:
        action()
    box.host.spawner = False
    box.restart_daemon()
    assert not box.faults() and box.host.director_pid is not None and not box.host.violations


def test_what_was_held_back_starts_with_the_applier_where_the_first_round_was_over_before(tmp_path):
    box = running_one(tmp_path)
    box.paths.first_round.parent.mkdir(parents=True, exist_ok=True)
    box.paths.first_round.touch()
    assert box.power_cut().host.log[-1] == "sv down later"


def test_a_line_that_looks_like_the_head_of_a_file_stays_a_line():
    kept = Kept("1", 2, "aa", 3, (Link("eth0", mac="52:54:00:00:00:00"),))
    whole = text(kept, {"sorry.html": "file 1 table\n-C\n", "empty": "", "last": "x\n"})
    assert whole.splitlines()[5:] == ["file 2 sorry.html", "file 1 table", "-C", "file 0 empty", "file 1 last", "x"]
    with pytest.raises(ValueError, match=r"the last line of sorry\.html"):
        text(kept, {"sorry.html": "no end"})
