"""The summary says in words what changes, and what somebody will notice of it."""

import dataclasses
import difflib
import random
import re

import pytest
from lbconfig_samples import DNS, NETWORK, SAMPLE, WEB, with_allow, with_check, with_network, with_server, with_service
from lbconfig_strategies import of_snapshots

from lbconfig.diff import network as diff_network
from lbconfig.diff import services as diff
from lbconfig.diff.files import unified
from lbconfig.diff.services import Change, summary
from lbconfig.model import names
from lbconfig.model.snapshot import (
    Bond,
    BondMode,
    CheckKind,
    Fallback,
    FallbackCheck,
    FallbackKind,
    Forwarding,
    HealthCheck,
    Interface,
    Matching,
    Network,
    PolicyRoute,
    Protocol,
    RealServer,
    Request,
    Scheduler,
    ServerState,
    Snapshot,
    SorryPage,
    StaticRoute,
    Vlan,
)
from lbconfig.render import render


def only(new, old=SAMPLE) -> Change:
    [change] = summary(old, new)
    return change


def test_nothing_changes():
    assert summary(SAMPLE, SAMPLE) == []
    assert unified(render(SAMPLE), render(SAMPLE)) == {}


def test_a_scheduler_change_says_so_and_what_it_costs():
    assert only(with_service(scheduler=Scheduler.RR)) == Change(
        "changed",
        "virtual service 'web'",
        ("Scheduler changes from weighted least connections (wlc) to round robin (rr).",),
        diff.REFUSED,
    )


def test_a_new_service_is_described_in_full():
    added = only(SAMPLE, dataclasses.replace(SAMPLE, services=(WEB,)))
    assert added.kind == "added" and added.object == "virtual service 'dns'" and added.impact is None
    assert added.sentences == (
        "It serves UDP 10.0.2.100:53, round robin (rr), with NAT.",
        "Health check: ping (every 2 s, timeout 2 s, down after 2).",
        "Real server 10.2.0.11:53, weight 1.",
        "Real server 10.2.0.12:53, weight 1, disabled.",
    )


def test_a_removed_service_closes_its_connections():
    removed = only(dataclasses.replace(SAMPLE, services=(DNS,)))
    assert removed == Change("removed", "virtual service 'web'", ("It served TCP 10.0.2.100:80.",), diff.CLOSED)


@pytest.mark.parametrize(
    ("servers", "sentences", "impact"),
    [
        ((*WEB.real_servers, RealServer(20, "10.2.0.13", 80)), ("Real server 10.2.0.13:80, weight 1 is added.",), None),
        (WEB.real_servers[1:], ("Real server 10.2.0.11:8000 is removed.",), diff.SERVER_CLOSED),
        (
            (dataclasses.replace(WEB.real_servers[0], weight=5), WEB.real_servers[1]),
            ("Real server 10.2.0.11:8000: weight changes from 1 to 5.",),
            None,
        ),
        (
            (dataclasses.replace(WEB.real_servers[0], state=ServerState.DISABLED), WEB.real_servers[1]),
            ("Real server 10.2.0.11:8000 is disabled.",),
            diff.SERVER_CLOSED,
        ),
        (
            (dataclasses.replace(WEB.real_servers[0], port=8001), WEB.real_servers[1]),
            ("Real server 10.2.0.11:8001 replaces 10.2.0.11:8000.",),
            diff.SERVER_CLOSED,
        ),
        (WEB.real_servers[::-1], ("The order of its real servers changes.",), None),
    ],
)
def test_real_servers(servers, sentences, impact):
    change = only(with_service(real_servers=servers))
    assert (change.sentences, change.impact) == (sentences, impact)


def test_a_service_that_moves():
    change = only(with_service(name="site", port=8080, scheduler=Scheduler.RR))
    assert change.object == "virtual service 'site'"
    assert change.sentences[:2] == (
        "Name changes from 'web' to 'site'.",
        "Moves from TCP 10.0.2.100:80 to TCP 10.0.2.100:8080.",
    )
    assert change.impact == diff.MOVED


def test_names_of_real_servers():
    assert only(with_server(name="web 1")).sentences == ("Real server 10.2.0.11:8000 is called 'web 1'.",)


def test_health_checks():
    change = only(with_check(kind=CheckKind.OFF, interval=9))
    assert change.sentences == (
        "Health check changes from HTTP of /alive with host www.example.org expecting 'fine' "
        "(every 2 s, timeout 2 s, down after 2) to no check.",
    )
    sentence = only(with_check(kind=CheckKind.HTTP, expect="a|b", matching=Matching.LACKS_PATTERN)).sentences[0]
    assert "expecting an answer without the pattern 'a|b'" in sentence
    sentence = only(with_check(kind=CheckKind.HTTPS, old_tls=True)).sentences[0]
    assert "with old TLS versions too, which anybody on the path can break" in sentence
    program = with_check(kind=CheckKind.PROGRAM, program="#!/bin/sh\nexit 0\n")
    assert only(program).sentences[1:] == ("Program, added: '#!/bin/sh'.", "Program, added: 'exit 0'.")
    [added] = [one for one in diff.summary(Snapshot(), program) if one.service == 3]
    assert "Program, added: 'exit 0'." in added.sentences
    changed = with_check(kind=CheckKind.PROGRAM, program="#!/bin/sh\nexit 1\n")
    [change] = diff.summary(program, changed)
    assert change.sentences == (
        "The program of the health check changes.", "Program, removed: 'exit 0'.", "Program, added: 'exit 1'.",
    )  # fmt: skip
    assert "to a program of your own of 2 lines (every" in only(program).sentences[0]
    times = "(every 2 s, timeout 2 s, down after 2, 1 s between them, up again after 3)"
    assert times in only(with_check(retry=1, successes=3)).sentences[0]
    assert "TCP connect on port 81" in only(with_check(kind=CheckKind.CONNECT, port=81)).sentences[0]


def test_network_and_management():
    changed = with_network(
        hostname="lb2", gateway="", interfaces=(Interface("eth0", True, ("10.0.2.16/24",)), Interface("eth2"))
    )
    texts = {change.object: (change.kind, change.sentences, change.impact) for change in summary(SAMPLE, changed)}
    assert texts == {
        "network": (
            "changed",
            ("Host name changes from 'lb1' to 'lb2'.", "Default gateway changes from 10.0.2.2 to none."),
            diff_network.NETWORK,
        ),
        "interface 'eth0'": (
            "changed",
            ("DHCP is switched on.", "Address 10.0.2.16/24 is added.", "Address 10.0.2.15/24 is removed."),
            diff_network.NETWORK,
        ),
        "interface 'eth2'": ("added", ("It has no address.",), None),
        "interface 'eth1'": ("removed", ("It loses its addresses.",), diff_network.NETWORK),
    }
    allow = only(with_allow("192.0.2.0/24"))
    assert allow.sentences == ("Access from 192.0.2.0/24 is added.", "Access from 10.0.2.0/24 is removed.")
    assert allow.impact == "The web UI can no longer be reached from there."
    assert only(with_allow("10.0.2.0/24", "192.0.2.0/24")).impact is None
    moved = only(dataclasses.replace(SAMPLE, management=dataclasses.replace(SAMPLE.management, port=8443)))
    assert moved.sentences == ("The web page moves from port 443 to port 8443.",)
    assert moved.impact == "The web UI can no longer be reached on port 443."


@pytest.mark.parametrize(
    ("before", "after", "words", "loses"),
    [
        ((), ("eth0",), "eth0 instead of all interfaces", True),
        (("eth0", "eth1"), ("eth1",), "eth1 instead of eth0 and eth1", True),
        (("eth0",), ("eth0", "eth1"), "eth0 and eth1 instead of eth0", False),
        (("eth0",), (), "all interfaces instead of eth0", False),
    ],
)
def test_the_interfaces_of_the_web_page(before, after, words, loses):
    old, new = (
        dataclasses.replace(SAMPLE, management=dataclasses.replace(SAMPLE.management, interfaces=names))
        for names in (before, after)
    )
    [change] = summary(old, new)
    assert change.sentences == (f"The web page answers on {words}.",)
    assert bool(change.impact) == loses


def test_unified_names_each_file_that_differs():
    old, new = render(SAMPLE), render(with_service(scheduler=Scheduler.RR))
    texts = unified(old, new)
    assert sorted(texts) == ["ipvs.rules", "ldirectord.cf"]
    assert texts["ipvs.rules"].splitlines()[:2] == ["--- running/ipvs.rules", "+++ new/ipvs.rules"]
    assert "-" + "-A -t 10.0.2.100:80 -s wlc\n+-A -t 10.0.2.100:80 -s rr\n" in texts["ipvs.rules"]
    assert sorted(unified({}, {"a": "1\n"})) == sorted(unified({"a": "1\n"}, {})) == ["a"]


@of_snapshots(100, together=2)
def test_whatever_changes_a_file_is_told(old, new):
    changes = summary(old, new)
    assert bool(changes) or not unified(render(old), render(new))
    assert bool(changes) == (old != new) or reordered(old, new)
    for change in changes:
        assert change.kind in ("added", "changed", "removed") and change.sentences
        assert all(sentence.endswith(".") for sentence in change.sentences)


def reordered(old, new) -> bool:
    """The order of services and interfaces means nothing to anybody."""
    return set(old.services) == set(new.services) and set(old.network.interfaces) == set(new.network.interfaces)


def test_everything_has_a_name():
    for table, kind in (
        (names.SCHEDULERS, Scheduler),
        (names.PROTOCOLS, Protocol),
        (names.CHECKS, CheckKind),
        (names.FORWARDING, Forwarding),
    ):
        assert set(table) == set(kind)
        assert all(name.long and name.help.endswith(".") for name in table.values())
    assert names.scheduler(Scheduler.WRR) == "weighted round robin (wrr)"


def test_the_words_of_a_network_are_kept_short():
    assert only(with_network(interfaces=(*NETWORK.interfaces, Interface("eth9", dhcp=True)))).sentences == (
        "It has an address from DHCP.",
    )
    assert HealthCheck().kind == CheckKind.CONNECT


def test_options_of_a_service():
    first, second = WEB.real_servers
    servers = (
        dataclasses.replace(first, state=ServerState.QUIESCED),
        dataclasses.replace(second, upper=100, lower=80),
    )
    new = with_service(
        scheduler=Scheduler.SH, hash_port=True, hash_next=True, persistence=300, persistence_prefix=24,
        note="ask Kim", real_servers=servers,
    )  # fmt: skip
    change = only(new)
    assert change.sentences[1:] == (
        "Persistence: a client keeps its server for 300 s; clients of one /24 count as one.",
        "The client's port is part of the hash.",
        "A client whose server takes no connections goes to another one.",
        "Note: 'ask Kim'.",
        "Real server 10.2.0.11:8000 drains: no new connections; open ones continue.",
        "Real server 10.2.0.12:8000: at most 100 connections, and again below 80.",
    )
    assert change.impact == diff.REFUSED  # the scheduler; draining closes nothing
    assert summary(new, SAMPLE)[0].sentences[1:] == (
        "Persistence is off.",
        "The client's port is no longer part of the hash.",
        "A client whose server takes no connections gets no answer.",
        "The note is removed.",
        "Real server 10.2.0.11:8000 takes connections.",
        "Real server 10.2.0.12:8000: has no connection limit.",
    )


def test_who_answers_while_all_are_down():
    page = with_service(fallback=Fallback(FallbackKind.PAGE))
    assert only(page).sentences == ("While all real servers are down, the sorry page answers.",)
    other = with_service(fallback=Fallback(FallbackKind.SERVER, "10.2.0.99"))
    assert summary(page, other)[0].sentences == (
        "While all real servers are down, a fallback server 10.2.0.99:80 answers.",
    )
    checked = with_service(fallback=Fallback(FallbackKind.SERVER, "10.2.0.99", check=FallbackCheck.CONNECT))
    assert summary(other, checked)[0].sentences == (
        "While all real servers are down, a fallback server 10.2.0.99:80 (checked: it takes connections) answers.",
    )
    assert summary(other, SAMPLE)[0].sentences == ("While all real servers are down, clients get no answer.",)
    [change] = summary(SAMPLE, dataclasses.replace(SAMPLE, sorry=SorryPage("Soon", ())))
    assert change.object == "sorry page" and change.impact is None
    assert change.sentences == ("Its title changes from 'We will be back soon' to 'Soon'.", "Its text changes.")


def test_several_requests_of_a_check():
    asks = with_check(kind=CheckKind.HTTP, more_requests=(Request("/api/health", "all is well"), Request("/b")))
    [sentence] = only(asks).sentences
    assert "expecting 'fine' and of /api/health expecting 'all is well' and of /b (every" in sentence


def test_a_service_is_disabled_and_enabled():
    off = with_service(enabled=False)
    change = only(off)
    assert (change.sentences, change.impact) == (("Disabled: the box no longer serves it.",), diff.CLOSED)
    change = only(SAMPLE, off)
    assert (change.sentences, change.impact) == (("Enabled: the box serves it.",), None)
    gone = dataclasses.replace(SAMPLE, services=(DNS,))
    assert only(gone, off).impact is None
    assert "Disabled: the box does not serve it." in only(off, gone).sentences


# --- the network ---------------------------------------------------------------------------------


def network_summary(old: tuple, new: tuple, **fields) -> list:
    home = Interface("eth0", addresses=("10.0.2.15/24",))
    before = Snapshot(network=Network(interfaces=(home, *old)))
    after = Snapshot(network=Network(interfaces=(home, *new), **fields))
    return [(change.kind, change.object, change.sentences, change.impact) for change in summary(before, after)]


BOND = Interface("bond0", addresses=("10.1.0.1/24",), bond=Bond(("eth1", "eth2"), primary="eth1"))


def test_a_new_bond_is_described_with_its_members():
    ((kind, name, sentences, impact),) = network_summary((), (BOND,))
    assert (kind, name) == ("added", "interface 'bond0'")
    assert sentences[0] == "It is a bond of eth1 and eth2; one active, the others stand by (active-backup)."
    assert "Primary member: eth1." in sentences
    assert "stops for a moment while the card joins" in impact


def test_what_is_taken_apart_is_said():
    other = dataclasses.replace(BOND, bond=Bond(("eth1", "eth2"), BondMode.LACP))
    (change,) = network_summary((BOND,), (other,))
    assert "It is rebuilt" in change[3]
    more = dataclasses.replace(BOND, bond=dataclasses.replace(BOND.bond, miimon=50))
    (change,) = network_summary((BOND,), (more,))
    assert change[2:] == (("Link check interval: 50 ms.",), None)


def test_a_vlan_moves_and_a_note_goes():
    old = Interface("office", note="second floor", vlan=Vlan("eth0", 20))
    (change,) = network_summary((old,), (Interface("office", mtu=1400, vlan=Vlan("eth0", 30)),))
    assert change[2] == (
        "It becomes VLAN 30 on eth0; it was VLAN 20 on eth0.",
        "Its MTU is 1400.",
        "The note is removed.",
    )
    assert "rebuilt" in change[3]


def test_routes_ways_out_names_and_time_are_told():
    found = network_summary(
        (),
        (),
        routes=(StaticRoute("10.9.0.0/16", "10.0.2.9", metric=5),),
        policies=(PolicyRoute("10.0.2.100", "10.0.2.8", "eth0"),),
        dns=("10.0.2.3",),
        ntp=("pool.ntp.org",),
    )
    assert [one[:3] for one in found] == [
        ("changed", "network", ("Name server 10.0.2.3 is added.", "Time server pool.ntp.org is added.")),
        ("added", "route to 10.9.0.0/16", ("It goes via 10.0.2.9 (metric 5).",)),
        ("added", "source-based route of 10.0.2.100", ("Packets from this address leave via 10.0.2.8 on eth0.",)),
    ]
    assert all("the new route" in one[3] for one in found[1:])


def patched(old: list[str], lines: list[str]) -> list[str]:
    """What `patch` makes of it; every line it names must be there."""
    made, place = [], 0
    for line in lines[2:]:
        if found := re.match(r"@@ -(\d+)(,0)?", line):
            begin = int(found[1]) - (not found[2])
            made += old[place:begin]
            place = begin
            continue
        if line[0] in " -":
            assert old[place] == line[1:]
            place += 1
        made += [line[1:]] if line[0] in " +" else []
    return made + old[place:]


def test_a_diff_is_one_that_patch_can_follow():
    chance = random.Random(4)
    for few in range(1, 400):
        old = [f"{chance.randrange(few)}\n" for _ in range(chance.randrange(40))]
        new = list(old)
        for _ in range(chance.randrange(1, 4)):
            place = chance.randrange(len(new) + 1)
            new[place : place + chance.randrange(3)] = [
                f"{chance.randrange(few)}\n" for _ in range(chance.randrange(3))
            ]
        found = unified({"a": "".join(old)}, {"a": "".join(new)}).get("a", "").splitlines(keepends=True)
        assert patched(old, found) == new
        assert found[:2] in ([], ["--- running/a\n", "+++ new/a\n"])


def test_a_diff_of_files_with_different_lines_is_that_of_difflib():
    old = [f"line {number}\n" for number in range(40)]
    new = [*old[:7], "new\n", *old[8:20], *old[22:], "end\n"]
    expected = "".join(difflib.unified_diff(old, new, "running/a", "new/a"))
    assert unified({"a": "".join(old)}, {"a": "".join(new)}) == {"a": expected}
