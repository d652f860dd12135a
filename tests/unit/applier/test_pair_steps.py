"""What a pair adds to an apply: made, changed, removed, put back and adopted, on a model."""

import base64
import dataclasses
import re
import shutil
import stat
import threading
from typing import NoReturn

import pair_model
import pytest
from box import ONE, Box, running_one
from model_host import BACKLOG
from pair_model import pair_of

from applier.apply.deadline import boottime
from applier.apply.drift import AGAIN
from applier.apply.runs import IN_A_PAIR
from applier.apply.steps import APPLY
from applier.host.host import PROC_SYS, HostError
from applier.host.ipvs_sync import LARGEST, SMALL
from applier.kept import pair_key
from applier.pair import client, watch
from applier.pair.beat import Beat
from applier.pair.messages import FEW, MANY
from applier.pair.ready import SILENT
from applier.pair.roles import Role, role_text
from applier.pair.telling import tell_peer
from applier.parts.pair import daemons, link
from applier.wire.errors import ApplierRefused
from applier.wire.shapes import ENDED
from lbconfig.model import canonical
from lbconfig.model.snapshot import Interface, Scheduler, SettingChoice, Tuning
from lbconfig.validate.services import validate

THOROUGH = pytest.mark.thorough
BOTH = {1: ("pair0", 1, 152), 2: ("pair0", 2, 1392)}
SECOND = {1: ("pair0", 2, 152), 2: ("pair0", 1, 1392)}


ANOTHER = base64.b64encode(bytes([7]) * 32).decode()
PAIR, OTHER_PEER, OTHER_SIDE = pair_of(ONE), pair_of(ONE, ANOTHER), pair_of(ONE, second=True)
# What changes in a pair without a change of who speaks to whom: a server, a VIP that comes and one that goes.
CHANGED = dataclasses.replace(
    PAIR, services=(dataclasses.replace(ONE.services[0], address="192.168.10.90", scheduler=Scheduler.RR),)
)
FASTER = dataclasses.replace(PAIR, pair=dataclasses.replace(PAIR.pair, advert=100))
PAIR_DIGEST = canonical.digest(PAIR)
ALL = {"192.168.10.2/32", "192.168.10.80/32", "2001:db8:1::2/128", "10.2.0.1/32", "2001:db8:2::1/128"}
SNAPSHOTS = {"alone": ONE, "pair": PAIR, "another peer": OTHER_PEER, "the other side": OTHER_SIDE, "changed": CHANGED}
SNAPSHOTS["faster"] = FASTER
for one in SNAPSHOTS.values():
    assert not validate(one), validate(one)


@pytest.fixture
def box(tmp_path) -> Box:
    """A box that runs ONE without a pair."""
    return ready(tmp_path)


def ready(folder, ran: str = "alone") -> Box:
    box = running_one(folder)
    pair_key.make(box.host, box.paths)
    if ran != "alone":
        assert box.apply(SNAPSHOTS[ran])["state"] == "done", box.applier.status()["apply"]
    box.host.changes = 0
    box.host.log.clear()
    return box


def named(name: str):
    """ONE under another name."""
    return dataclasses.replace(ONE, network=dataclasses.replace(ONE.network, hostname=name))


def held(box: Box) -> set[str]:
    """The floating addresses that the box has."""
    return {address for link in box.host.links.values() for address in link.leases}


def objects(box: Box) -> list[tuple[str, str, str]]:
    box.applier.drift.look()
    box.boottime += AGAIN
    found = box.applier.drift.look()
    assert not found["trouble"], found
    return [(one["where"], one["object"], one["present"]) for one in found["differences"]]


def test_without_a_pair_there_are_no_such_steps_and_nothing_is_asked(tmp_path):
    box = running_one(tmp_path)
    asked = []
    command, netlink = box.host.command, box.host.netlink
    box.host.command = lambda argv, *rest, **more: asked.append(argv) or command(argv, *rest, **more)
    box.host.netlink = lambda request: asked.append(request[16]) or netlink(request)
    assert box.apply(named("other"))["state"] == "done"
    assert not {*box.states()} & {*IN_A_PAIR}
    assert not [one for one in asked if one in (9, 10, 11) or (isinstance(one, list) and "wg" in one)]
    assert not [path for path in box.host.files if "pair" in path.name]
    assert not objects(box)


def test_a_pair_is_made(box):
    run = box.apply(PAIR)
    assert run["state"] == "done", run
    host = box.host
    pair0 = host.links["pair0"]
    assert (pair0.kind, pair0.mtu, pair0.up, pair0.addresses) == ("wireguard", 1420, True, ["169.254.64.1/30"])
    assert f"PrivateKey = {pair_model.PRIVATE}\n" in host.pair.conf
    assert f"PublicKey = {pair_model.PEER}\n" in host.pair.conf
    assert host.pair.daemons == BOTH
    states = {step["name"]: step["state"] for step in run["steps"] if step["name"] in IN_A_PAIR}
    assert {name for name, state in states.items() if state == "done"} == {"pair-link", "connections", "vrrp"}
    assert not host.violations and not objects(box)


def test_the_private_key_is_in_its_own_file_alone(box):
    box.apply(PAIR)
    assert pair_model.PRIVATE not in "".join(box.host.files.values())
    assert not [entry for entry in box.host.log if pair_model.PRIVATE in entry]
    folder = box.paths.pair_key.parent
    assert [stat.S_IMODE(one.stat().st_mode) for one in (folder, box.paths.pair_key)] == [0o700, 0o600]
    kept = [path for path in box.paths.state.rglob("*") if path.is_file()]
    assert kept and not [path for path in kept if pair_model.PRIVATE.encode() in path.read_bytes()]


def test_the_daemons_start_after_the_table(box):
    box.apply(CHANGED)
    log = box.host.log
    table = max(number for number, entry in enumerate(log) if entry.startswith("ipvsadm ['-"))
    assert table < log.index("daemon starts") and log.index("wg syncconf") < table


def test_a_change_of_the_other_boxs_key_leaves_the_daemons_alone_only_where_the_link_stays(box):
    box.apply(PAIR)
    box.host.log.clear()
    assert box.apply(CHANGED)["state"] == "done"
    assert not [entry for entry in box.host.log if entry in ("wg syncconf", "daemon starts", "daemon stops")]
    assert box.apply(OTHER_SIDE)["state"] == "done"
    assert box.host.links["pair0"].addresses == ["169.254.64.2/30"] and box.host.pair.daemons == SECOND
    assert not box.host.violations and not objects(box)


def test_a_pair_that_ends_leaves_nothing_behind(box):
    before = {*box.host.files}
    box.apply(PAIR)
    assert {path.name for path in {*box.host.files} - before} >= {"pair.conf"}
    assert box.apply(ONE)["state"] == "done"
    assert "pair0" not in box.host.links and not box.host.pair.daemons
    assert box.paths.pair_link not in box.host.files and not box.host.violations
    box.host.log.clear()
    assert not {*IN_A_PAIR} & {step["name"] for step in box.apply(named("other"))["steps"]}


CHANGES = [
    ("alone", "pair"),
    ("pair", "alone"),
    ("pair", "the other side"),
    ("pair", "another peer"),
    ("pair", "changed"),
    ("pair", "faster"),
]


@pytest.mark.parametrize("how", [pytest.param("before", marks=THOROUGH), pytest.param("half", marks=THOROUGH), "after"])
@pytest.mark.parametrize(("ran", "wish"), CHANGES)
def test_a_failure_at_any_change_of_it_ends_in_the_state_before(tmp_path, how, ran, wish):
    box = ready(tmp_path / "count", ran)
    assert box.apply(SNAPSHOTS[wish])["state"] == "done"
    pattern = r"pair|wg|daemon|sv .*(vrrp|floater)|put (hold|role|floating|keepalived)"
    about = [number for number, name in enumerate(box.host.log) if re.search(pattern, name)]
    assert len(about) >= 2
    for number in about:
        box = ready(tmp_path / f"{how}{number}", ran)
        before = box.host.state()
        box.host.fail_at, box.host.fail_how = number, how
        run = box.apply(SNAPSHOTS[wish])
        place = f"{how} change {number}: {box.host.log[number]}"
        assert run["state"] == "rolled back", (place, run)
        box.host.sleep(30)
        assert box.host.state() == before, place
        assert not box.host.violations and not box.faults(), place


@pytest.mark.parametrize(
    ("step", "wish"),
    [("pair-link", "pair"), ("connections", "pair"), ("vrrp", "pair"), ("floating-end", "alone"),
     ("floating-add", "changed"), ("floating-remove", "changed"), ("vrrp", "faster")],
)  # fmt: skip
def test_a_mistake_of_ours_after_each_step_ends_in_the_state_before(tmp_path, monkeypatch, step, wish):
    box = ready(tmp_path, "alone" if wish == "pair" else "pair")
    before = box.host.state()
    chosen = next(one for one in APPLY if one.name == step)
    do = type(chosen).do

    def broken(self, job):
        do(self, job)
        raise KeyError("a mistake")

    monkeypatch.setattr(type(chosen), "do", broken)
    assert box.apply(SNAPSHOTS[wish])["state"] == "rolled back"
    box.host.sleep(30)
    assert box.host.state() == before and box.states()[step] == "failed" and not box.host.violations


def test_after_a_kill_the_link_goes_on_and_after_a_power_cut_it_is_made_anew(box):
    box.apply(PAIR)
    box.host.log.clear()
    box.restart_daemon()
    assert not [entry for entry in box.host.log if entry in ("wg syncconf", "daemon starts", "daemon stops")]
    assert box.host.pair.daemons == BOTH
    box.power_cut()
    assert box.host.links["pair0"].addresses == ["169.254.64.1/30"] and box.host.pair.daemons == BOTH
    assert not box.faults() and not box.host.violations


def test_what_a_run_that_was_cut_short_has_made_goes(box):
    box.apply(PAIR)
    box.applier.generations.confirm_again(1)  # as if the power had gone before the confirmation
    box.restart_daemon()
    assert not held(box) and not any(box.host.pair.services.values())
    assert "pair0" not in box.host.links and not box.host.pair.daemons and not box.faults()


def test_a_box_whose_key_is_not_in_the_pair_is_refused_it(box):
    for peer, remove in ((pair_model.PEER, True), (ANOTHER, False)):
        if remove:
            box.paths.pair_key.unlink()
        else:
            box.paths.pair_key.write_text(f"{pair_model.PRIVATE}\n")
        wish = (
            pair_of(ONE, peer)
            if remove
            else dataclasses.replace(
                PAIR, pair=dataclasses.replace(PAIR.pair, boxes=pair_of(ONE, ANOTHER, second=True).pair.boxes)
            )
        )
        wish = wish if remove else _without_own_key(wish)
        [problem] = box.applier.check(dataclasses.asdict(wish))["problems"]
        assert problem["path"] == "pair.id" and "a pair is made by joining two boxes" in problem["message"]


def _without_own_key(snapshot):
    first, second = snapshot.pair.boxes
    boxes = (first, dataclasses.replace(second, key=pair_model.PEER))
    return dataclasses.replace(snapshot, pair=dataclasses.replace(snapshot.pair, boxes=boxes))


@pytest.mark.parametrize("ran", ["pair", "the other side"])
def test_a_box_that_is_in_its_pair_no_more_keeps_its_network_and_holds_nothing(tmp_path, ran):
    """It must not fight for addresses with the box that has replaced it; its admin must reach it."""
    box = ready(tmp_path, ran)
    box.paths.pair_key.unlink()
    box.power_cut()
    own = "192.168.10.71/24" if ran == "pair" else "192.168.10.72/24"
    assert own in box.host.links["eth0"].addresses and not held(box)
    assert not any(box.host.pair.services.values()) and "pair0" not in box.host.links
    assert box.host.table and box.host.director_pid is not None
    assert "Join the pair again, or apply a configuration without a pair." in box.faults()["not-in-pair"]
    assert box.apply(ONE)["state"] == "done" and not box.faults()
    assert "192.168.10.80/32" in box.host.links["eth0"].addresses and not box.host.violations


def test_a_box_that_leads_and_is_in_its_pair_no_more_gives_up_all_at_once(box):
    box.apply(PAIR)
    box.paths.pair_key.unlink()
    box.host.log.clear()
    box.restart_daemon()
    assert "floater keep" not in box.host.log and not held(box)
    assert not any(box.host.pair.services.values()) and not box.host.violations


def test_which_box_it_was_is_known_from_the_second_copy_as_well(tmp_path):
    box = ready(tmp_path, "the other side")
    box.paths.pair_key.unlink()
    shutil.rmtree(box.paths.state / "generations")
    box.power_cut()
    assert "192.168.10.72/24" in box.host.links["eth0"].addresses and "not-in-pair" in box.faults()


def test_a_service_that_the_kernel_does_not_synchronise_is_told(box):
    box.host.pair.mixed = True
    run = box.apply(PAIR)
    assert run["state"] == "rolled back"
    assert "a service over IPv4 has real servers over IPv6" in run["message"]


def test_another_interface_of_that_name_is_told(box):
    box.host.kernel.line("link add name pair0 type bridge")
    run = box.apply(PAIR)
    assert run["state"] == "rolled back" and "there is another interface of the name pair0" in run["message"]
    assert box.host.links["pair0"].kind == "bridge"


def ticks(box: Box, seconds: float) -> None:
    """So long the box looks at its pair."""
    for _ in range(int(seconds) + 1):
        box.applier.pair_watch.tick()
        box.boottime += 1
    box.boottime -= 1


def role(box: Box) -> tuple[str, str]:
    found = client.role(box.host, box.paths)
    return found.role, found.reason


def test_the_box_that_served_alone_goes_on_as_the_one_that_leads(box):
    box.apply(PAIR)
    assert role(box) == ("leads", "") and held(box) == ALL
    assert set(box.host.links["eth0"].addresses) == {"192.168.10.71/24", "2001:db8:1::71/64"}
    assert box.host.files[box.paths.hold] == "0\n" and not objects(box)


@pytest.mark.parametrize(("ran", "wish"), [("alone", "pair"), ("pair", "alone"), ("pair", "changed")])
def test_what_stays_is_held_at_every_moment(tmp_path, monkeypatch, ran, wish):
    """While a pair is made, left and changed."""
    box = ready(tmp_path, ran)

    def there() -> set[str]:
        links = box.host.links.values()
        return {one.partition("/")[0] for link in links for one in (*link.addresses, *link.leases)}

    change, lacks = box.host.change, []
    stays = {address.partition("/")[0] for address in ALL} - ({"192.168.10.80"} if wish == "changed" else set())
    assert stays <= there()

    def watched(name, action, half=None):
        try:
            return change(name, action, half)
        finally:
            lacks.extend((name, one) for one in stays - there())

    monkeypatch.setattr(box.host, "change", watched)
    assert box.apply(SNAPSHOTS[wish])["state"] == "done", box.applier.status()["apply"]
    assert lacks == [] and not box.host.violations and not objects(box)


def test_a_box_that_leaves_to_serve_less_gives_up_all_at_once(box):
    """The other box is about to lead: none of its addresses may be here any longer."""
    box.apply(PAIR)
    box.host.log.clear()
    assert box.apply(dataclasses.replace(ONE, services=()))["state"] == "done"
    assert "floater keep" not in box.host.log and not held(box) and not objects(box)
    assert "192.168.10.80/32" not in box.host.links["eth0"].addresses and not box.host.violations


def test_a_box_that_does_not_lead_at_once_is_a_pair_all_the_same(box):
    box.host.pair.rival = True
    assert box.apply(PAIR)["state"] == "done"
    assert role(box)[0] == "stands by" and not held(box)
    assert set(box.host.links["eth0"].addresses) == {"192.168.10.71/24", "2001:db8:1::71/64"} and not objects(box)


def test_a_box_that_comes_to_a_pair_is_held_until_it_is_ready(tmp_path):
    """The other one has the addresses until the change is confirmed."""
    box = ready(tmp_path)
    elsewhere = (Interface("eth0", addresses=("192.168.10.9/24",)), Interface("eth1", addresses=("10.2.0.9/24",)))
    network = dataclasses.replace(ONE.network, interfaces=elsewhere, gateway6="")
    assert box.apply(dataclasses.replace(ONE, services=(), network=network))["state"] == "done"
    box.begin(OTHER_SIDE)
    box.until("waiting")
    ticks(box, 60)
    assert role(box) == ("held", "not ready yet") and not held(box)
    box.applier.applies.confirm("", box.secret, "")
    box.until(*ENDED)
    ticks(box, 10)
    assert role(box) == ("leads", "") and held(box) == ALL and not box.host.violations


def test_a_change_of_services_moves_addresses_and_neither_role_nor_election(box):
    box.apply(PAIR)
    before, hold = role(box), box.host.files[box.paths.hold]
    for wish, gone, come in ((CHANGED, "192.168.10.80/32", "192.168.10.90/32"), (PAIR, "192.168.10.90/32", None)):
        assert box.apply(wish)["state"] == "done"
        assert gone not in held(box) and (come is None or come in held(box))
        assert (role(box), box.host.files[box.paths.hold]) == (before, hold)
    assert box.host.pair.restarts == 0 and not box.host.violations and not objects(box)


def test_what_leaves_is_held_until_the_table_has_changed(box):
    box.apply(PAIR)
    box.host.log.clear()
    box.apply(CHANGED)
    log = box.host.log
    table = max(number for number, entry in enumerate(log) if entry.startswith("ipvsadm ["))
    assert log.index("floater reload") < table < log.index("floater reload remove")


def nobody_answers(verb: str, arguments: object, within: float) -> NoReturn:
    raise ApplierRefused("peer-away", "lb2 did not answer.")


@pytest.mark.parametrize(("ready_peer", "led"), [(True, "stands by"), (False, "leads")])
def test_before_keepalived_is_restarted_the_other_box_leads_if_it_can(box, ready_peer, led):
    box.apply(PAIR)
    box.applier.errands.ask = nobody_answers
    beat = Beat("lb2", "stands by", 9.0, "", "1", 2, PAIR_DIGEST, (PAIR_DIGEST,), ready_peer, 0, 0)
    box.applier.peer.says(beat, box.boottime)
    assert box.apply(FASTER)["state"] == "done"
    assert role(box)[0] == led and box.host.pair.restarts == 1 and not box.host.violations


def test_after_a_start_the_box_leads_once_its_servers_were_checked_or_ten_seconds_later(box):
    box.apply(PAIR)
    box.power_cut()
    assert role(box) == ("held", "not ready yet") and not held(box) and not box.faults()
    ticks(box, 9)
    assert role(box)[0] == "held"
    ticks(box, 2)
    assert role(box)[0] == "leads" and held(box) == ALL
    box.power_cut()
    box.host.files[box.paths.first_round] = ""
    ticks(box, 3)
    assert role(box)[0] == "leads"


def comes_back(box: Box, established: int) -> list[str]:
    """It was away, and the other box leads and has so many connections; the list gets what that one is asked."""
    box.apply(PAIR)
    box.power_cut()
    box.host.pair.rival = True
    box.host.files[box.paths.first_round] = ""
    asked = []

    def ask(verb: str, arguments: object, within: float) -> dict[str, int]:
        asked.append(verb)
        return {"established": established}

    box.applier.errands.ask = ask
    return asked


def beside(box: Box, seconds: int, leads: str = "leads") -> None:
    """So long it looks at its pair, and the other one says what it does."""
    beat = Beat("lb2", leads, 9.0, "", "1", 2, PAIR_DIGEST, (PAIR_DIGEST,), True, 0, 0)
    for _ in range(seconds):
        box.applier.peer.says(beat, box.boottime)
        box.host.pair.received += 100
        box.applier.pair_watch.tick()
        for thread in threading.enumerate():
            if thread.name == "learning":
                thread.join(20)
        box.boottime += 1


def test_a_box_that_comes_back_stands_by_once_it_knows_the_connections(box, monkeypatch):
    monkeypatch.setattr(watch, "tell_peer", lambda core: None)
    asked = comes_back(box, 1240)
    known = [0]
    monkeypatch.setattr(box.applier, "established", lambda: known[0])
    beside(box, 2)  # sooner than it would ask again
    assert role(box) == ("held", "not ready yet") and asked == ["pair_retell"]
    known[0] = 1240
    beside(box, 1)
    assert role(box) == ("stands by", "") and asked == ["pair_retell"]


def test_a_box_that_comes_back_to_one_that_leads_nothing_or_dies_waits_for_nobody(box, monkeypatch):
    monkeypatch.setattr(watch, "tell_peer", lambda core: None)
    asked = comes_back(box, 1240)
    monkeypatch.setattr(box.applier, "established", lambda: 0)
    beside(box, 5)
    assert role(box)[0] == "held" and asked
    ticks(box, SILENT + 1)  # the other one says nothing any more
    assert role(box)[0] == "stands by"
    box.power_cut()
    box.host.files[box.paths.first_round] = ""
    beside(box, 5, leads="stands by")
    assert role(box)[0] == "leads"


@pytest.mark.parametrize("gone", [("hold",), ("hold", "floating"), ("keepalived", "floating", "hold")])
def test_a_kill_while_a_pair_was_left_is_put_right(box, gone):
    box.apply(PAIR)
    box.host.pair.services.update(vrrp=False, floater=False)
    for name in gone:
        del box.host.files[getattr(box.paths, name)]
    box.host.pair.elect()
    box.restart_daemon()
    ticks(box, 10)
    assert role(box)[0] == "leads" and held(box) == ALL and not objects(box) and not box.faults()


def test_a_hold_of_the_admin_and_a_running_pair_are_left_alone(box):
    box.apply(PAIR)
    box.host.put(box.paths.hold, "1\nby hand\n")
    box.restart_daemon()
    ticks(box, 60)
    assert role(box) == ("held", "by hand")
    box.host.put(box.paths.hold, "0\n")
    box.restart_daemon()
    assert role(box)[0] == "leads" and box.host.pair.restarts == 0


def test_a_box_that_came_back_hears_of_all_connections_once(box, monkeypatch):
    told = []
    monkeypatch.setattr(watch, "tell_peer", lambda core: told.append(core.running.number))
    box.apply(PAIR)
    beat = Beat("lb2", "stands by", 9.0, "", "1", 2, PAIR_DIGEST, (PAIR_DIGEST,), True, 0, 0)
    for heard, count in ((False, 0), (True, 1), (True, 1), (False, 1), (True, 2)):
        for _ in range(6):
            box.boottime += 1
            if heard:
                box.applier.peer.says(beat, box.boottime)
            box.applier.pair_watch.tick()
        assert len(told) == count, (heard, count)


def test_a_box_that_could_not_be_told_is_told_as_soon_as_that_works(box, monkeypatch):
    told, works = [], False

    def tell(core):
        if not works:
            raise HostError("send", None, "Network is unreachable")
        told.append(core.running.number)

    monkeypatch.setattr(watch, "tell_peer", tell)
    box.apply(PAIR)
    beat = Beat("lb2", "stands by", 9.0, "", "1", 2, PAIR_DIGEST, (PAIR_DIGEST,), True, 0, 0)
    for _ in range(3):
        box.boottime += 1
        box.applier.peer.says(beat, box.boottime)
        with pytest.raises(HostError):
            box.applier.pair_watch.tick()
        assert not box.applier.pair_watch.told, "an update of both boxes would go on"
    works = True
    for _ in range(3):
        box.applier.pair_watch.tick()
    assert len(told) == 1 and box.applier.pair_watch.told


def test_a_link_that_sends_elsewhere_is_led_back_while_the_other_box_is_not_heard(box, monkeypatch):
    """What was on its way while both changed the path had moved it, and the pair stayed apart until an admin came."""
    monkeypatch.setattr(watch, "tell_peer", lambda core: None)
    box.apply(PAIR)
    beat = Beat("lb2", "stands by", 9.0, "", "1", 2, PAIR_DIGEST, (PAIR_DIGEST,), True, 0, 0)
    box.host.pair.strayed = "10.2.0.5:51820"
    box.boottime += 100
    box.applier.peer.says(beat, box.boottime)
    ticks(box, 2)
    assert box.host.pair.strayed, "it is heard: all is well as it is"
    with box.applier.turn.take("something else changes the system"):
        ticks(box, 20)
    assert box.host.pair.strayed
    ticks(box, 0)
    assert not box.host.pair.strayed
    box.host.log.clear()
    ticks(box, 20)
    assert not [entry for entry in box.host.log if entry == "wg set"]


def test_messages_about_connections_are_large_while_many_come(box, monkeypatch):
    """And the next applier, an apply and drift leave them as they are."""
    told, total = [], 0
    monkeypatch.setattr(watch, "tell_peer", lambda core: told.append(box.host.pair.daemons[1][2]))

    def come(rate: int, seconds: int) -> int:
        nonlocal total
        for _ in range(seconds):
            total += rate
            box.host.files[watch.TOTALS] = f"   Total\n  {total:X} 0 0 0 0\n"
            ticks(box, 0)
            box.boottime += 1
        return box.host.pair.daemons[1][2]

    box.apply(PAIR)
    few, usual, many = int(FEW / 2), int((FEW + MANY) / 2), int(2 * MANY)
    assert come(usual, 30) == come(many, 9) == come(usual, 1) == SMALL and not told
    assert come(many, 13) == LARGEST and told == [LARGEST]
    assert box.host.pair.daemons[2] == BOTH[2], "the other thread goes on"
    box.restart_daemon()
    assert not objects(box) and come(usual, 700) == LARGEST
    assert box.apply(CHANGED)["state"] == "done" and come(few, 590) == LARGEST
    with box.applier.turn.take("something else changes the system"):
        assert come(few, 20) == LARGEST and len(told) == 1
    assert come(few, 610) == SMALL and told == [LARGEST, SMALL]


def test_each_box_is_tuned_by_its_own_choice(box):
    before = box.host.files[PROC_SYS / BACKLOG]
    choice = Tuning((SettingChoice(BACKLOG, "512"),))
    for number, value in ((1, before), (0, "512")):
        boxes = list(PAIR.pair.boxes)
        boxes[number] = dataclasses.replace(boxes[number], tuning=choice)
        wish = dataclasses.replace(PAIR, pair=dataclasses.replace(PAIR.pair, boxes=tuple(boxes)))
        assert box.apply(wish)["state"] == "done" and not objects(box)
        assert box.host.files[PROC_SYS / BACKLOG] == value


def test_a_box_without_a_pair_looks_at_nothing(box):
    box.host.log.clear()
    ticks(box, 3)
    assert not box.host.log and tell_peer(box.applier) is None


def test_addresses_are_not_compared_while_the_role_changes(box, monkeypatch):
    box.apply(PAIR)
    box.host.links["eth0"].leases.clear()
    found = Role("leads", boottime(), "")
    box.host.files[box.paths.role] = role_text(found)
    assert not objects(box)
    box.host.files[box.paths.role] = role_text(found._replace(since=found.since - 60))
    assert ("pair", "floating address 192.168.10.80", "not there") in objects(box)


def without_link(box):
    box.host.pair.daemons.clear()
    box.host.kernel.line("link delete dev pair0")


def other_address(box):
    box.host.pair.daemons.clear()
    box.host.kernel.line("address add 169.254.64.9/30 dev pair0")


def other_peer(box):
    box.host.pair.conf = box.host.pair.conf.replace(pair_model.PEER, ANOTHER)


def other_key(box):
    box.host.pair.conf = box.host.pair.conf.replace(pair_model.PRIVATE, ANOTHER)


def no_floater(box):
    box.host.pair.services["floater"] = False


LINK = ("pair", "link to the other box (pair0)")
ELECTION = ("pair", "election of the box that leads (keepalived, floater)")
PLANTED = {
    without_link: (*LINK, "not there"),
    other_address: (*LINK, "with the addresses 169.254.64.1/30, 169.254.64.9/30 on it"),
    other_peer: (*LINK, "to another box"),
    other_key: (*LINK, "with another key or port"),
    lambda box: box.host.kernel.line("link set dev pair0 down"): (*LINK, "switched off"),
    lambda box: box.host.kernel.line("link set dev pair0 mtu 1500"): (*LINK, "with an MTU of 1500"),
    lambda box: box.host.files.pop(box.paths.pair_link): (*LINK, "made for another configuration"),
    no_floater: (*ELECTION, "not running"),
    lambda box: box.host.links["eth1"].leases.remove("10.2.0.1/32"): (
        "pair", "floating address 10.2.0.1", "not there",
    ),
    lambda box: box.host.pair.daemons.pop(2): ("pair", "synchronisation of connections", "not so"),
    lambda box: box.host.pair.daemons.update({1: ("eth0", 1, 1392)}): (
        "pair", "synchronisation of connections", "not so",
    ),
}  # fmt: skip


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_what_somebody_changes_by_hand_is_told_and_repaired(box, plant):
    box.apply(PAIR)
    assert not objects(box)
    plant(box)
    assert objects(box) == [PLANTED[plant]]
    box.applier.drift.repair("ann")
    assert box.until(*ENDED)["state"] == "done"
    assert box.host.pair.daemons == BOTH and not objects(box) and not box.host.violations


def test_the_link_is_none_of_the_cards(box):
    box.apply(PAIR)
    assert "pair0" not in [one["name"] for one in box.applier.status()["interfaces"]]
    assert "pair0" not in [card.name for card in box.applier.cards()]


def test_what_the_link_says_of_the_other_box(box):
    assert link.peer(box.host) is None
    box.apply(PAIR)
    peer = link.peer(box.host)
    assert (peer.key, peer.handshake, peer.received, peer.sent) == (pair_model.PEER, 0, 0, 148)


@pytest.mark.parametrize("damaged", ["", "short\n", pair_model.PRIVATE[:-1], "\xff" * 44, f"{pair_model.PRIVATE}\n\n#"])
def test_a_damaged_key_is_told_and_never_shown(box, damaged):
    assert pair_key.public(box.host, box.paths) == pair_model.PUBLIC
    box.paths.pair_key.write_text(damaged)
    with pytest.raises(HostError, match="is damaged; the pair has to be made anew") as caught:
        pair_key.public(box.host, box.paths)
    assert damaged.strip()[:5] not in str(caught.value) or not damaged


def test_daemons_that_run_are_left_alone(box):
    box.apply(PAIR)
    assert daemons.put(box.host, daemons.running(box.host)) == 0
