"""What somebody changed behind the applier's back: found, named and repaired. And what is no difference."""

import dataclasses

import pytest
from box import DNS, KINDS, ONE, TWO, WEB, Box, running_one

from applier.apply.drift import AGAIN, EVERY
from applier.host.host import HostError
from applier.wire.errors import ApplierRefused
from applier.wire.shapes import ENDED
from lbconfig.model.snapshot import CheckKind, Fallback, FallbackKind, HealthCheck, Interface, Protocol, ServerState

WEB_KEY, DNS_KEY = ("tcp", "192.168.10.80", 80), ("udp", "192.168.10.80", 53)


@pytest.fixture
def box(tmp_path) -> Box:
    return running_one(tmp_path)


def look(box: Box) -> dict:
    """Two looks, as far apart as the timer has them."""
    box.applier.drift.look()
    box.boottime += AGAIN
    return box.applier.drift.look()


def objects(box: Box) -> list[str]:
    found = look(box)
    assert not found["trouble"] and not found["fresh"], found
    return [one["object"] for one in found["differences"]]


def repair(box: Box) -> dict:
    assert box.applier.drift.repair("ann")["apply"] == box.applier.applies.record.id
    return box.until(*ENDED)


def ip(*lines: str):
    return lambda box: [box.host.kernel.line(line) for line in lines]


def service_gone(box):
    del box.host.table[DNS_KEY]


def service_by_hand(box):
    box.host.table["tcp", "10.9.9.9", 25] = ["rr", {}]


def scheduler(box):
    box.host.table[DNS_KEY][0] = "sh"


def weight(box):
    box.host.table[DNS_KEY][1]["10.2.0.31", 53] = 7


def checked_weight(box):
    box.host.table[WEB_KEY][1]["10.2.0.11", 80] = 9


def server_gone(box):
    del box.host.table[DNS_KEY][1]["10.2.0.31", 53]


def server_by_hand(box):
    box.host.table[DNS_KEY][1]["10.2.0.99", 53] = 1
    box.host.by_hand.add(("10.2.0.99", 53))


def rules_gone(box):
    box.host.rules = None


def rule_by_hand(box):
    box.host.rules += "add rule inet fairlead input accept"


def setting(box):
    box.host.settings["net/ipv4/ip_forward"] = "0"


def timeouts(box):
    box.host.timeouts = (60, 120, 300)


def host_name(box):
    box.host.settings["kernel/hostname"] = "localhost"


def resolver(box):
    box.host.files[box.paths.resolver] = "nameserver 203.0.113.9\n"


def sorry_page(box):
    del box.host.files[box.paths.sorry_page]


def web_page(box):
    box.host.files[box.paths.web] = "listen 9443 ssl;\n"


def clock(box):
    box.host.files[box.paths.time] = "server evil.example\n"


def checks_file(box):
    box.host.files[box.paths.ldirectord] += "# edited\n"


def checks_down(box):
    box.host.director_pid = None


PLANTED = {
    service_gone: ("table", "virtual service 'service 2'", "in the kernel's table", "not there", ""),
    service_by_hand: ("table", "virtual service at 10.9.9.9:25 (TCP)", "none", "there", "closed"),
    scheduler: ("table", "virtual service 'service 2'", "weighted least connections", "source hashing", "refused"),
    weight: ("table", "real server 10.2.0.31:53 of virtual service 'service 2'", "weight 1", "weight 7", ""),
    checked_weight: ("table", "real server 10.2.0.11:80 of virtual service 'service 1'", "weight 1", "weight 9", ""),
    server_gone: ("table", "real server 10.2.0.31:53 of virtual service 'service 2'", "in the k", "not there", ""),
    server_by_hand: ("table", "real server 10.2.0.99:53 of virtual service 'service 2'", "none", "there", "closed"),
    rules_gone: ("firewall", "rule set of the firewall", "the rules", "not there", ""),
    rule_by_hand: ("firewall", "rule set of the firewall", "the rules", "changed since they were loaded", ""),
    ip("address del 192.168.10.80/32 dev eth0"): (
        "addresses", "virtual address 192.168.10.80", "on eth0", "not there", "",
    ),
    ip("address add 10.77.0.1/24 dev eth1"): ("addresses", "address 10.77.0.1/24", "none", "on eth1", "Connections"),
    ip("route del 0.0.0.0/0 via 192.168.10.1 dev eth0"): (
        "routes", "default route", "via 192.168.10.1 on eth0", "not there", "",
    ),
    ip("route replace 0.0.0.0/0 via 192.168.10.7 dev eth0"): (
        "routes", "default route", "via 192.168.10.1 on eth0", "via 192.168.10.7 on eth0", "this route",
    ),
    ip("route replace 10.7.0.0/16 via 10.2.0.5 dev eth1"): (
        "routes", "route to 10.7.0.0/16 via 10.2.0.5 on eth1", "none", "there", "this route",
    ),
    ip("rule add from 192.168.10.80 lookup 77 preference 1001"): (
        "routes", "rule for packets from 192.168.10.80 (routing table 77)", "none", "there", "",
    ),
    setting: ("settings", "kernel setting net.ipv4.ip_forward", "1", "0", ""),
    timeouts: ("settings", "timeouts of connections", "TCP 900 s", "TCP 60 s", ""),
    host_name: ("settings", "host name", "one", "localhost", ""),
    resolver: ("settings", "name servers (resolv.conf)", "as configured", "another text", ""),
    web_page: ("settings", "web page (web.conf)", "as configured", "another text", ""),
    clock: ("settings", "time servers (chrony.conf)", "as configured", "another text", ""),
    sorry_page: ("settings", "sorry page", "as configured", "another text", ""),
    checks_file: ("checks", "file of the health checks", "as configured", "another text", ""),
    checks_down: ("checks", "health checks (ldirectord)", "running", "not running for", ""),
}  # fmt: skip


@pytest.mark.parametrize(("plant", "told"), PLANTED.items(), ids=lambda one: one[1] if isinstance(one, tuple) else "")
def test_found_named_and_repaired(box, plant, told):
    assert objects(box) == []
    before = box.host.state()
    plant(box)
    found = look(box)
    assert found["count"] == 1 and not found["trouble"], found
    one = found["differences"][0]
    where, object_, wanted, present, disturbs = told
    assert (one["where"], one["object"]) == (where, object_)
    assert wanted in one["wanted"] and present in one["present"] and one["why"].endswith(".")
    assert disturbs in one["disturbs"] and (disturbs or where == "routes" or not one["disturbs"]), one
    assert box.applier.status()["drift"] == found
    run = repair(box)
    assert run["state"] == "done" and run["message"].endswith("1 difference repaired."), run
    assert (run["kind"], run["user"], run["generation"]) == ("repair", "ann", 1)
    assert box.host.state() == before and not box.host.violations
    assert box.applier.status()["drift"]["count"] == 0 and objects(box) == []
    assert not box.faults() and box.applier.generations.numbers() == [1]


def test_a_link_that_is_off_takes_more_along_and_all_of_it_comes_back(box):
    before = box.host.state()
    ip("link set dev eth1 down")(box)
    assert objects(box) == ["interface eth1", "address 2001:db8:2::1/64"]
    assert look(box)["differences"][0]["present"] == "off"
    assert repair(box)["state"] == "done" and box.host.state() == before


def test_every_kind_of_link(tmp_path):
    box = running_one(tmp_path)
    assert box.apply(KINDS)["state"] == "done"
    box.host.sleep(60)
    assert objects(box) == []
    ip("link delete dev office", "link set dev eth1 nomaster", "link set dev bond0 type bond miimon 777")(box)
    ip("link set dev br0 mtu 1300")(box)
    found = {one["object"]: one for one in look(box)["differences"] if one["where"] == "links"}
    assert found["interface office"]["wanted"] == "a vlan that is on"
    assert found["interface eth1"]["wanted"] == "member of br0"
    assert (found["interface bond0"]["wanted"], found["interface bond0"]["present"]) == ("miimon 100", "miimon 777")
    assert (found["interface br0"]["wanted"], found["interface br0"]["present"]) == ("MTU 1400", "MTU 1300")
    run = repair(box)
    assert run["state"] == "done", run
    assert objects(box) == []


def test_many_at_once_are_repaired_in_one_run_and_nothing_else_is_touched(box):
    before = box.host.state()
    for plant in (service_gone, rule_by_hand, setting, resolver, checks_down):
        plant(box)
    assert len(objects(box)) == 5
    assert repair(box)["message"] == "The box runs what it should: 5 differences repaired."
    assert box.host.state() == before
    box.host.log.clear()
    assert repair(box)["message"] == "Nothing differed." and box.host.log == []


def test_a_flushed_table_of_many_services_is_told_in_part(tmp_path):
    box = Box(tmp_path).start()
    many = tuple(dataclasses.replace(DNS, id=i, name=f"dns {i}", port=i, real_servers=()) for i in range(1, 121))
    assert box.apply(dataclasses.replace(ONE, services=many))["state"] == "done"
    box.host.table.clear()
    found = look(box)
    assert found["count"] == 120 and len(found["differences"]) == 100


# --- no difference -----------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, 1, 2])
def test_weights_of_checked_servers_up_to_the_wished_one(box, value):
    wished = dataclasses.replace(
        WEB, real_servers=tuple(dataclasses.replace(one, weight=2) for one in WEB.real_servers)
    )
    box.apply(dataclasses.replace(ONE, services=(wished, DNS)))
    box.host.table[WEB_KEY][1]["10.2.0.11", 80] = value
    assert objects(box) == []


def test_a_dead_server_of_a_checked_udp_service_that_left(tmp_path):
    box = Box(tmp_path).start()
    names = dataclasses.replace(WEB, protocol=Protocol.UDP, check=HealthCheck(CheckKind.PING))
    assert names.dead_leave
    assert box.apply(dataclasses.replace(ONE, services=(names,)))["state"] == "done"
    box.host.dead.add(("10.2.0.12", 80))
    box.host.sleep(60)
    assert list(box.host.table["udp", "192.168.10.80", 80][1]) == [("10.2.0.11", 80)]
    assert objects(box) == []


def test_the_fallback_server_while_all_are_down(box):
    fallback = Fallback(FallbackKind.SERVER, "10.2.0.99", 80)
    box.apply(dataclasses.replace(ONE, services=(dataclasses.replace(WEB, fallback=fallback), DNS)))
    box.host.dead |= {("10.2.0.11", 80), ("10.2.0.12", 80)}
    box.host.sleep(60)
    assert ("10.2.0.99", 80) in box.host.table[WEB_KEY][1]
    assert objects(box) == []


def test_a_drained_server(box):
    drained = dataclasses.replace(WEB.real_servers[0], state=ServerState.QUIESCED)
    box.apply(dataclasses.replace(ONE, services=(dataclasses.replace(WEB, real_servers=(drained,)), DNS)))
    box.host.sleep(60)
    assert objects(box) == []


def lease(box, address="192.168.10.77/24"):
    ip(f"address add {address} dev eth0", "route replace 0.0.0.0/0 via 192.168.10.254 dev eth0 metric 100")(box)
    folder = box.paths.run / "dhcp"
    box.host.files |= {folder / "eth0": f"{address}\n", folder / "eth0.names": "nameserver 192.168.10.9\n"}
    box.host.files[box.paths.resolver] = "nameserver 192.168.10.9\n"


def test_what_dhcp_brought_and_what_somebody_put_beside_it(tmp_path):
    box = Box(tmp_path).start()
    network = dataclasses.replace(
        ONE.network, gateway="", gateway6="", interfaces=(Interface("eth0", dhcp=True), ONE.network.interfaces[1])
    )
    assert box.apply(dataclasses.replace(ONE, network=network))["state"] == "done"
    ip("address add 192.168.10.76/24 dev eth0")(box)
    assert objects(box) == []  # its lease is not noted yet
    ip("address del 192.168.10.76/24 dev eth0")(box)
    lease(box)
    assert objects(box) == []
    ip("address add 192.168.10.66/24 dev eth0")(box)
    assert objects(box) == ["address 192.168.10.66/24"]
    assert repair(box)["state"] == "done"
    assert "192.168.10.77/24" in box.host.links["eth0"].addresses and len(box.host.kernel.routes) == 1
    box.host.files.pop(box.paths.services / "dhcp-eth0" / "run")
    assert objects(box) == ["interface eth0"]


def test_interfaces_that_the_configuration_does_not_name_are_not_its_business(box):
    ip("link set dev eth2 up", "address add 10.50.0.1/24 dev eth2", "route replace 10.60.0.0/16 dev eth2")(box)
    assert objects(box) == []


# --- when --------------------------------------------------------------------------------------------


def test_what_is_seen_once_is_not_told(box):
    weight(box)
    found = box.applier.drift.look()
    assert (found["count"], found["fresh"]) == (0, 1)
    box.boottime += AGAIN / 2
    assert box.applier.drift.look()["count"] == 0  # a second look, but too soon
    box.host.table[DNS_KEY][1]["10.2.0.31", 53] = 1
    box.boottime += AGAIN
    assert box.applier.drift.look()["fresh"] == 0
    weight(box)
    assert box.applier.drift.look()["count"] == 0  # it began anew
    box.boottime += AGAIN
    assert box.applier.drift.look()["count"] == 1


def test_the_timer_looks_once_a_minute_and_sooner_at_what_is_new(box):
    watch = box.applier.drift
    watch.tick()
    assert not watch.to_data()["looked"]  # the start has just compared everything
    box.boottime += EVERY
    watch.tick()
    assert watch.to_data()["looked"]
    weight(box)
    box.boottime += EVERY - 1
    watch.tick()
    assert watch.to_data()["fresh"] == 0  # not yet
    box.boottime += 1
    watch.tick()
    assert watch.to_data()["fresh"] == 1
    box.boottime += AGAIN
    watch.tick()
    assert watch.to_data()["count"] == 1


def test_nothing_is_compared_while_something_is_changed(box):
    look(box)
    with box.applier.turn.take("the changes of bob are being applied"):
        weight(box)
        assert box.applier.status()["drift"]["looked"] == ""
        box.boottime += EVERY
        box.applier.drift.tick()
        with pytest.raises(ApplierRefused, match="changes of bob"):
            box.applier.drift.look()
        with pytest.raises(ApplierRefused, match="changes of bob"):
            box.applier.drift.repair("ann")
    box.applier.drift.tick()
    assert box.applier.status()["drift"]["fresh"] == 1


def test_a_look_into_which_a_change_came_counts_for_nothing(box, monkeypatch):
    read = box.host.netlink

    def meanwhile(request):
        with box.applier.turn.take("the changes of bob are being applied"):
            monkeypatch.setattr(box.host, "netlink", read)
        return read(request)

    monkeypatch.setattr(box.host, "netlink", meanwhile)
    with pytest.raises(ApplierRefused, match="look again"):
        box.applier.drift.look()
    assert box.applier.drift.look()["looked"]


def test_a_repair_is_refused_while_a_change_waits_to_be_confirmed(box):
    box.begin(TWO)
    box.until("waiting")
    for ask in (box.applier.drift.look, lambda: box.applier.drift.repair("bob")):
        with pytest.raises(ApplierRefused, match="changes of ann wait to be confirmed"):
            ask()
    box.applier.applies.roll_back("", box.secret, "")
    box.until(*ENDED)
    assert objects(box) == []


def test_after_a_restart_of_the_daemon_the_rules_are_still_known(box):
    box.restart_daemon()
    assert objects(box) == []
    rule_by_hand(box)
    assert objects(box) == ["rule set of the firewall"]
    box.restart_daemon()  # which repairs it
    assert objects(box) == []


# --- what can fail -----------------------------------------------------------------------------------


def test_what_cannot_be_read_is_told_and_the_rest_is_compared(box, monkeypatch):
    setting(box)
    ask = box.host.netlink
    monkeypatch.setattr(box.host, "netlink", lambda request: (_ for _ in ()).throw(HostError("netlink", None, "busy")))
    found = look(box)
    assert "netlink: busy" in found["trouble"] and found["count"] == 1
    monkeypatch.setattr(box.host, "netlink", ask)
    found = look(box)
    assert not found["trouble"] and found["differences"][0]["where"] == "settings"


def test_rules_of_which_nobody_noted_what_the_kernel_made(box):
    del box.host.files[box.paths.rules_seen]
    assert "nobody noted" in look(box)["trouble"]
    assert repair(box)["state"] == "done"
    assert objects(box) == []


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '{"seen": 1}'])
def test_a_damaged_note(box, text):
    box.host.files[box.paths.rules_seen] = text
    assert "nobody noted" in look(box)["trouble"]


def test_a_repair_that_fails_says_what_is_left_and_repairs_the_rest(box):
    weight(box)
    setting(box)
    look(box)
    change = box.host.change

    def refuses(name, action, half=None):
        if name.startswith("ipvsadm"):
            raise HostError(name, 1, "no")
        return change(name, action, half)

    box.host.change = refuses
    run = repair(box)
    assert run["state"] == "failed" and "real server 10.2.0.31:53" in run["message"], run
    assert "ipvsadm" in run["message"] and box.host.settings["net/ipv4/ip_forward"] == "1"
    assert [one["where"] for one in box.applier.status()["drift"]["differences"]] == ["table"]
    box.host.change = change
    assert repair(box)["state"] == "done"


def test_a_table_that_was_flushed_whole_keeps_dead_servers_out(box):
    box.host.table.clear()
    assert objects(box) == ["virtual service 'service 1'", "virtual service 'service 2'"]
    box.host.log.clear()
    repair(box)
    assert "10.2.0.12:80 -m -w 0" in next(line for line in box.host.log if line.startswith("ipvsadm"))
    box.host.sleep(30)
    assert box.host.table[WEB_KEY][1] == {("10.2.0.11", 80): 1, ("10.2.0.12", 80): 0} and not box.host.violations
