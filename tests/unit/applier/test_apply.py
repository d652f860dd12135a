"""An apply from end to end over a model of the box: forward, and back from a failure anywhere."""

import dataclasses

import pytest
from box import DNS, KINDS, ONE, TWO, WEB, Box, running_one

from applier.apply.runs import ALONE, TITLES
from applier.apply.steps import APPLY
from applier.wire.errors import ApplierRefused
from lbconfig.model.snapshot import (
    SORRY_PORT,
    CheckKind,
    Fallback,
    FallbackKind,
    HealthCheck,
    Interface,
    Scheduler,
    ServerState,
    to_data,
)
from lbconfig.validate.cards import Card


def test_the_table_of_steps_and_their_titles_agree():
    assert [step.name for step in APPLY] == list(TITLES)
    assert all(step.why for step in APPLY)


def test_an_apply_brings_everything_about(tmp_path):
    box = running_one(tmp_path)
    run = box.apply(TWO)
    assert run["state"] == "done", run
    host = box.host
    assert host.table == {
        ("tcp", "192.168.10.80", 80): ["rr", {("10.2.0.11", 80): 1}],
        ("tcp", "192.168.10.81", 8080): ["wlc", {("10.2.0.13", 8080): 1, ("10.2.0.12", 8080): 1}],
    }
    assert host.settings["kernel/hostname"] == "two"
    assert sorted(host.links["eth0"].addresses) == ["192.168.10.3/24", "192.168.10.80/32", "192.168.10.81/32"]
    assert [(route.destination, route.via) for route in host.kernel.routes] == [("0.0.0.0/0", "192.168.10.254")]
    assert host.files[box.paths.resolver] == "nameserver 192.168.10.9\nsearch example.org\n"
    assert "server time.example.org iburst" in host.files[box.paths.time]
    assert box.paths.services / "dhcp-eth0" / "run" in host.files
    assert host.director_pid is not None and not host.violations
    status = box.applier.status()
    assert (status["generation"], status["confirmed"]) == (2, 2)
    assert status["snapshot"] == to_data(TWO)
    assert not status["faults"]
    assert box.applier.generations.entry(2)["outcome"] == "confirmed"
    assert [step["state"] for step in box.applier.generations.entry(2)["steps"]] == ["done"] * len(ALONE)


def test_new_servers_of_a_checked_service_wait_for_their_check_and_the_dead_one_is_never_raised(tmp_path):
    box = running_one(tmp_path)
    key = ("tcp", "192.168.10.80", 80)
    assert box.host.table[key][1][("10.2.0.12", 80)] == 0
    box.apply(dataclasses.replace(ONE, services=(dataclasses.replace(WEB, name="other"), DNS)))
    written = [line for line in box.host.log if line.startswith("ipvsadm")]
    assert not [line for line in written if "10.2.0.12" in line]


def test_ldirectord_is_left_alone_when_nothing_about_it_changes(tmp_path):
    box = running_one(tmp_path)
    pid = box.host.director_pid
    management = dataclasses.replace(ONE.management, allow=("192.168.0.0/16", "172.16.0.0/12"))
    run = box.apply(dataclasses.replace(ONE, management=management))
    assert run["state"] == "done"
    assert box.host.director_pid == pid
    assert {box.states()[name] for name in ("ldirectord-stop", "ipvs", "ldirectord-start")} == {"skipped"}
    assert not [entry for entry in box.host.log if "ldirectord" in entry or "ipvsadm" in entry]


def test_a_service_without_check_stops_ldirectord_for_the_table_and_starts_it_again(tmp_path):
    box = running_one(tmp_path)
    pid = box.host.director_pid
    servers = (*DNS.real_servers, dataclasses.replace(DNS.real_servers[0], id=99, address="10.2.0.32"))
    run = box.apply(dataclasses.replace(ONE, services=(WEB, dataclasses.replace(DNS, real_servers=servers))))
    assert run["state"] == "done" and not box.host.violations
    assert box.host.director_pid not in (None, pid)
    assert box.host.table[("udp", "192.168.10.80", 53)][1][("10.2.0.32", 53)] == 1


@pytest.mark.parametrize(("ends_after", "waits"), [(0, 0.5), (1.2, 1.2), (60, 3.0)])
def test_a_server_that_leaves_may_end_what_it_is_answering(tmp_path, ends_after, waits):
    box = running_one(tmp_path)
    host = box.host
    host.dead.clear()
    host.sleep(1)  # ldirectord finds both up
    written = []
    change = host.change

    def timed(name, *actions):
        if name.startswith("ipvsadm ['-"):
            written.append((name, host.clock))
            host.active["10.2.0.11", 80] = written[0][1] + ends_after
        return change(name, *actions)

    host.change = timed
    less = dataclasses.replace(WEB, real_servers=WEB.real_servers[1:])
    run = box.apply(dataclasses.replace(ONE, services=(less, DNS)))
    assert run["state"] == "done" and not host.violations
    [(hands_over, began), (leaves, left)] = written
    assert hands_over == "ipvsadm ['-e -t 192.168.10.80:80 -r 10.2.0.11:80 -m -w 0']"
    assert leaves == "ipvsadm ['-d -t 192.168.10.80:80 -r 10.2.0.11:80']"
    assert waits <= left - began < waits + 0.2


def test_without_checked_services_ldirectord_stays_down(tmp_path):
    box = running_one(tmp_path)
    assert box.apply(dataclasses.replace(ONE, services=(DNS,)))["state"] == "done"
    assert box.host.director_pid is None
    assert not box.faults()
    assert box.apply(ONE)["state"] == "done"
    assert box.host.director_pid is not None


def number_of_changes(tmp_path, wish) -> int:
    box = running_one(tmp_path / "count")
    assert box.apply(wish)["state"] == "done", box.applier.status()["apply"]
    return box.host.changes


@pytest.mark.parametrize("wish", [TWO, KINDS], ids=["everything", "network"])
@pytest.mark.parametrize("how", ["before", "half", "after"])
def test_a_failure_at_any_change_ends_in_the_state_before(tmp_path, how, wish):
    count = number_of_changes(tmp_path, wish)
    assert count >= (20 if wish is TWO else 8)
    for number in range(count):
        box = running_one(tmp_path / f"{how}{number}")
        before = box.host.state()
        box.host.fail_at, box.host.fail_how = number, how
        run = box.apply(wish)
        place = f"{how} change {number}: {box.host.log[number]}"
        if run["state"] == "done":
            # What the web UI shows after the confirmation may fail, e.g. the note in /run; and checks whose program
            # does not answer are killed.
            assert box.host.log[number] in ("put running.json", "put pending.json", "ldirectord stop"), place
            continue
        assert run["state"] == "rolled back", (place, run)
        assert "the test wanted this to fail" in run["message"], place
        box.host.sleep(30)
        assert box.host.state() == before, place
        assert not box.host.violations, place
        assert box.applier.generations.confirmed_number() == 1, place
        assert box.applier.generations.entry(2)["outcome"] == "rolled back", place
        assert box.applier.status()["generation"] == 1
        assert not box.faults(), place
        states = box.states()
        failed = [name for name, state in states.items() if state == "failed"]
        assert len(failed) == 1, (place, states)
        assert not {"running", "waiting"} & set(states.values()), place
        box.host.fail_at = None
        assert box.apply(TWO)["state"] == "done", place


@pytest.mark.parametrize("step", ALONE)
def test_a_failure_of_each_step_itself_ends_in_the_state_before(tmp_path, monkeypatch, step):
    """Also one that comes from a mistake of ours, after the step has done all it does."""
    box = running_one(tmp_path)
    before = box.host.state()
    chosen = next(one for one in APPLY if one.name == step)
    do = type(chosen).do

    def broken(self, job):
        do(self, job)
        raise KeyError("a mistake")

    monkeypatch.setattr(type(chosen), "do", broken)
    run = box.apply(TWO)
    assert run["state"] == "rolled back", run
    box.host.sleep(30)
    assert box.host.state() == before
    assert box.applier.generations.confirmed_number() == 1
    assert box.states()[step] == "failed"
    assert not box.host.violations
    assert box.power_cut().host.table.keys() == set(before["table"])


def fail_at_each(box: Box, numbers: set[int]) -> None:
    """Let exactly these changes fail, counted from now."""
    change = box.host.change

    def counted(name, action, half=None):
        box.host.fail_at = box.host.changes if box.host.changes in numbers else None
        return change(name, action, half)

    box.host.change = counted


def start_of_ldirectord(tmp_path) -> int:
    box = running_one(tmp_path / "probe")
    box.apply(TWO)
    return box.host.log.index("ldirectord start")


def test_an_undo_that_fails_once_is_tried_again(tmp_path):
    first = start_of_ldirectord(tmp_path)
    for second in range(1, 16):
        box = running_one(tmp_path / str(second))
        before = box.host.state()
        fail_at_each(box, {first, first + second})
        run = box.apply(TWO)
        assert run["state"] == "rolled back", (second, run)
        box.host.sleep(30)
        assert box.host.state() == before, second
        assert not box.host.violations and not box.faults()


def test_what_dhcp_said_counts_again_after_a_change_that_was_taken_back(tmp_path, monkeypatch):
    """Until it answers anew, which takes seconds, the box has its name servers, time servers and address."""
    asks = dataclasses.replace(TWO, network=dataclasses.replace(TWO.network, dns=(), search=(), ntp=()))
    box = running_one(tmp_path)
    assert box.apply(asks)["state"] == "done"
    folder, names, sources = box.paths.run / "dhcp", "nameserver 192.168.10.9\n", "server 192.168.10.8 iburst\n"
    box.host.files |= {folder / "eth0": "192.168.10.77/24\n", box.paths.resolver: names}
    box.host.files |= {folder / "eth0.names": names, folder / "eth0.sources": sources}

    def broken(self, job):
        assert not {folder / "eth0.names", folder / "eth0.sources"} & {*box.host.files}
        raise KeyError("a mistake")

    [verify] = [one for one in APPLY if one.name == "verify"]
    monkeypatch.setattr(type(verify), "do", broken)
    assert box.apply(ONE)["state"] == "rolled back"
    files = box.host.files
    assert (files[folder / "eth0.names"], files[folder / "eth0.sources"], files[box.paths.resolver]) == (
        names,
        sources,
        names,
    )
    assert files[folder / "eth0.kept"] == "192.168.10.77/24\n"  # dhcp-event lets it go for another one
    assert "sv term time" in box.host.log


def test_an_undo_that_fails_twice_is_healed_by_the_way_of_the_boot(tmp_path):
    first = start_of_ldirectord(tmp_path)
    for second in range(1, 16):
        box = running_one(tmp_path / str(second))
        before = box.host.state()
        fail_at_each(box, {first, first + second, first + second + 1})
        run = box.apply(TWO)
        assert run["state"] == "rolled back", (second, run)
        box.host.sleep(30)
        after = box.host.state()
        # Of an interface that is not configured nobody minds whether it is up.
        after["network"]["links"]["eth2"] = before["network"]["links"]["eth2"]
        after["settings"] |= {key: value for key, value in before["settings"].items() if "/eth2/" in key}
        assert after == before, second
        # IPVS was left with what was to come, behind rules without it, until the way of the boot.
        to_come = ("192.168.10.81", "10.2.0.12 . tcp . 8080", "10.2.0.13 . tcp . 8080")
        assert not [said for said in box.host.violations if not any(place in said for place in to_come)]
        assert not box.faults()


def test_when_nothing_works_any_more_the_outcome_says_so(tmp_path):
    box = running_one(tmp_path)
    box.host.fail_at, box.host.fail_forever = 9, True
    run = box.apply(TWO)
    assert run["state"] == "failed"
    assert "not-restored" in box.faults()
    assert box.applier.generations.confirmed_number() == 1
    box.power_cut()
    eth0 = box.host.links["eth0"]
    assert eth0.up and {"192.168.10.2/24", "192.168.10.80/32", "2001:db8:1::2/64"} == {*eth0.addresses}
    assert not box.faults()


def test_ldirectord_that_keeps_dying_is_noticed(tmp_path):
    box = running_one(tmp_path)
    before = box.host.state()
    box.host.dies_at_start = True
    run = box.apply(TWO)
    assert run["state"] == "rolled back"
    assert "ldirectord: not within 15 seconds; seen last: watching for" in run["message"]
    box.host.dies_at_start = False
    box.host.sleep(30)
    assert box.host.state() == before


def test_a_file_that_ldirectord_cannot_read_changes_nothing(tmp_path):
    box = running_one(tmp_path)
    before = box.host.state()
    box.host.bad_checks = "Error [1] reading file at line 7: Unknown command nonsense"
    run = box.apply(TWO)
    assert run["state"] == "rolled back" and "line 7: Unknown command nonsense" in run["message"]
    assert box.states()["nftables"] == "skipped" and box.host.state() == before


def test_a_program_that_starts_the_checks_and_is_switched_off_is_switched_on(tmp_path):
    box = running_one(tmp_path)
    box.host.spawner = False
    assert box.apply(TWO)["state"] == "done"
    assert box.host.spawner and box.host.director_pid is not None


def test_ldirectord_that_does_not_end_in_time_is_killed(tmp_path):
    box = running_one(tmp_path)
    box.host.unkillable = True
    assert box.apply(TWO)["state"] == "done"
    assert any(entry.startswith("kill ") for entry in box.host.log)
    assert not box.host.violations


def test_an_interface_that_is_not_there_is_named_before_anything_is_done(tmp_path):
    box = running_one(tmp_path)
    before = box.host.state()
    more = (*ONE.network.interfaces, Interface("eth7", addresses=("172.20.0.1/24",)))
    data = dataclasses.asdict(dataclasses.replace(ONE, network=dataclasses.replace(ONE.network, interfaces=more)))
    found = box.applier.check(data)
    assert [(one["object"], one["field"]) for one in found["problems"]] == [("interface 'eth7'", "name")]
    assert "is not in this box; cards that nothing uses: eth2 (" in found["problems"][0]["message"]
    assert [one["sentence"] for one in found["missing_cards"]] == ["eth7 (172.20.0.1/24) is not in this box."]
    assert [one["name"] for one in found["free_cards"]] == ["eth2"]
    with pytest.raises(ApplierRefused, match="one problem") as caught:
        box.applier.applies.apply(data, "0" * 64, found["base"], "ann", "", "", None)
    assert caught.value.problems == found["problems"]
    assert box.host.state() == before


def test_a_port_that_is_lent_to_a_measurement_is_a_card_of_the_box(tmp_path, monkeypatch):
    box = running_one(tmp_path)
    more = (*ONE.network.interfaces, Interface("eth2"), Interface("eth7", addresses=("172.20.0.1/24",)))
    data = dataclasses.asdict(dataclasses.replace(ONE, network=dataclasses.replace(ONE.network, interfaces=more)))
    monkeypatch.setattr(box.applier.capacities, "lent", lambda: (Card("eth2"), Card("eth7")))
    assert not box.applier.check(data)["problems"]
    assert [one.name for one in box.applier.cards()].count("eth2") == 1


def test_the_first_step_names_an_interface_that_is_not_there_as_well(tmp_path, monkeypatch):
    """It may have gone since the review, or nobody could look."""
    box = running_one(tmp_path)
    before = box.host.state()
    monkeypatch.setattr(box.applier, "cards", tuple)
    more = (*ONE.network.interfaces, Interface("eth7", addresses=("172.20.0.1/24",)))
    run = box.apply(dataclasses.replace(ONE, network=dataclasses.replace(ONE.network, interfaces=more)))
    assert run["state"] == "rolled back"
    assert "interface eth7: this box has no interface of that name (there is: eth0, eth1, eth2)" in run["message"]
    assert box.host.state() == before and not [entry for entry in box.host.log if entry == "nft -f"]


def test_a_card_that_is_gone_stops_no_change_that_is_not_about_it(tmp_path):
    """Not even one that opens the web page again, which answered there only."""
    box = running_one(tmp_path)
    lost = Interface("eth2", addresses=("172.20.0.1/24",), dhcp=True)
    network = dataclasses.replace(ONE.network, interfaces=(*ONE.network.interfaces, lost))
    management = dataclasses.replace(ONE.management, interfaces=("eth2",))
    shut = dataclasses.replace(ONE, network=network, management=management)
    assert box.apply(shut)["state"] == "done"
    del box.host.kernel.links["eth2"]
    run = box.apply(dataclasses.replace(shut, management=ONE.management))
    assert run["state"] == "done", run
    other = dataclasses.replace(lost, mtu=1400)
    network = dataclasses.replace(network, interfaces=(*ONE.network.interfaces, other))
    found = box.applier.check(dataclasses.asdict(dataclasses.replace(ONE, network=network)))
    assert [one["path"] for one in found["problems"]] == ["network.interfaces[eth2].name"]


def test_only_one_apply_at_a_time_and_the_refusal_names_whose(tmp_path):
    box = running_one(tmp_path)
    with (
        box.applier.turn.take("the changes of bob"),
        pytest.raises(ApplierRefused, match="the changes of bob") as caught,
    ):
        box.begin(TWO)
    assert caught.value.code == "busy"
    assert box.apply(TWO)["state"] == "done"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"digest": "0" * 64}, "digest-mismatch"),
        ({"base": 7}, "base-moved"),
        ({"base": None}, "base-moved"),
        ({"client": "203.0.113.7"}, "lock-out"),
    ],
)
def test_an_apply_that_was_not_reviewed_like_this_is_refused(tmp_path, fields, code):
    box = running_one(tmp_path)
    before = box.host.state()
    with pytest.raises(ApplierRefused) as caught:
        box.apply(TWO, **fields)
    assert caught.value.code == code
    assert box.host.state() == before and box.host.changes == 0
    assert box.applier.generations.numbers() == [1]
    assert box.apply(TWO)["state"] == "done"  # and nobody is left holding the lock


def test_a_wrong_snapshot_is_refused_naming_object_and_field(tmp_path):
    box = running_one(tmp_path)
    data = to_data(dataclasses.replace(ONE, services=(dataclasses.replace(WEB, port=0),)))
    review = box.applier.check(data)
    assert review["problems"][0]["object"] == "virtual service 'service 1'"
    assert review["problems"][0]["field"] == "port"
    with pytest.raises(ApplierRefused) as caught:
        box.applier.applies.apply(data, "0" * 64, 1, "ann", "", "", None)
    assert caught.value.code == "problems" and caught.value.problems == review["problems"]
    del data["services"][0]["port"]
    with pytest.raises(ApplierRefused, match=r"services\[0\].port: is missing") as caught:
        box.applier.check(data)
    assert caught.value.code == "bad-snapshot"


def test_a_virtual_service_may_not_take_the_address_that_dhcp_gave(tmp_path):
    box = running_one(tmp_path)
    assert box.apply(TWO)["state"] == "done"
    box.host.links["eth0"].addresses.append("192.168.10.99/24")
    moved = dataclasses.replace(TWO, services=(dataclasses.replace(WEB, address="192.168.10.99"),))
    review = box.applier.check(to_data(moved))
    assert "what DHCP gave" in review["problems"][0]["message"]


def test_health_of_each_server(tmp_path):
    box = running_one(tmp_path)
    servers = (
        *WEB.real_servers,
        dataclasses.replace(WEB.real_servers[0], id=98, address="10.2.0.13"),
        dataclasses.replace(WEB.real_servers[0], id=99, address="10.2.0.14", state=ServerState.DISABLED),
    )
    box.host.dead.add(("10.2.0.13", 80))
    box.apply(dataclasses.replace(ONE, services=(dataclasses.replace(WEB, real_servers=servers), DNS)))

    def health():
        return {
            server["address"]: server["health"]
            for one in box.applier.status()["running"]["services"]
            for server in one["real_servers"]
        }

    first = health()
    assert first["10.2.0.11"] == "up" and first["10.2.0.13"] == "checking"
    assert first["10.2.0.14"] == "disabled" and first["10.2.0.31"] == "unchecked"
    box.host.sleep(60)
    assert health() == first | {"10.2.0.12": "down", "10.2.0.13": "down"}


def test_health_checks_that_do_not_run_are_a_fault(tmp_path):
    box = running_one(tmp_path)
    box.host.director_pid = None
    assert "health-checks" in box.faults()
    box.restart_daemon()
    assert not box.faults()


def test_a_fresh_box_has_nothing_confirmed(tmp_path):
    box = Box(tmp_path).start()
    status = box.applier.status()
    assert (status["generation"], status["confirmed"], status["faults"]) == (None, None, [])
    assert status["setup_code_active"]
    assert box.paths.services / "dhcp-eth0" / "run" in box.host.files


def test_a_change_leaves_the_sorry_page_where_it_is_shown(tmp_path):
    page = dataclasses.replace(WEB, fallback=Fallback(FallbackKind.PAGE))
    box = running_one(tmp_path)
    assert box.apply(dataclasses.replace(ONE, services=(page, DNS)))["state"] == "done"
    key, place = ("tcp", "192.168.10.80", 80), ("192.168.10.80", SORRY_PORT)
    assert place not in box.host.table[key][1]
    box.host.dead |= {(one.address, one.port) for one in WEB.real_servers}
    box.host.sleep(30)
    assert box.host.table[key][1][place] == 1
    [web] = [one for one in box.applier.status()["running"]["services"] if one["name"] == WEB.name]
    assert web["fallback"]["serves"] and {one["health"] for one in web["real_servers"]} == {"down"}
    shown = len(box.host.log)
    run = box.apply(dataclasses.replace(ONE, services=(dataclasses.replace(page, scheduler=Scheduler.RR), DNS)))
    assert run["state"] == "done", run
    assert not [line for line in box.host.log[shown:] if str(SORRY_PORT) in line]
    assert box.apply(ONE)["state"] == "done"
    assert place not in box.host.table[key][1]


def test_a_dead_server_of_a_udp_service_stays_out_of_the_table(tmp_path):
    checked = dataclasses.replace(DNS, check=HealthCheck(CheckKind.PING))
    box = running_one(tmp_path)
    first, *others = [(one.address, one.port) for one in DNS.real_servers]
    box.host.dead.add(first)
    for hostname in ("one", "other"):
        network = dataclasses.replace(ONE.network, hostname=hostname)
        run = box.apply(dataclasses.replace(ONE, services=(WEB, checked), network=network))
        assert run["state"] == "done", run
        box.host.sleep(30)
        assert set(box.host.table[("udp", "192.168.10.80", 53)][1]) == set(others)
    box.host.dead.clear()
    box.host.sleep(30)
    assert first in box.host.table[("udp", "192.168.10.80", 53)][1]
    assert not box.host.violations
