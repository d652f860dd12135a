"""The admin's own firewall rules: what is refused, what is rendered, what the diff says of them."""

import dataclasses

import pytest
from hypothesis import HealthCheck as Slow
from hypothesis import given, settings
from hypothesis import strategies as st
from lbconfig_firewall import INTERFACES, aimed, firewalls
from lbconfig_hostile import HOSTILE
from lbconfig_samples import SAMPLE, WEB, with_rule, with_service
from tests.texts import no_address

from lbconfig.diff import rule_words
from lbconfig.diff.services import summary
from lbconfig.judge import Fate, judge, matches
from lbconfig.model.firewall import Action, Firewall, Packet, Per, RateLimit, Rule, RuleProtocol, Where
from lbconfig.render import nftables
from lbconfig.validate.firewall import MAX_NETWORKS, MAX_RULES, covered
from lbconfig.validate.services import admin_problem, lease_problems, validate

quick = settings(max_examples=50, deadline=None, suppress_health_check=list(Slow))
MANY = tuple(f"10.{n // 250}.{n % 250}.0/24" for n in range(MAX_NETWORKS + 1))


def at(snapshot, field: str) -> list[str]:
    return [problem.message for problem in validate(snapshot) if problem.path == f"firewall.rules[id=5].{field}"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("name", text) for text in HOSTILE if text not in ("\uff41", "\u0661")),  # letters
        *(("sources", (text,)) for text in HOSTILE),
        *(("interface", text) for text in HOSTILE if text),
        *(("ports", text) for text in HOSTILE if text),
        ("sources", MANY),
        ("sources", ("10.0.0.0/8", "10.0.0.0/8")),
        ("sources", ("10.0.0.1",)),
        ("destinations", ("fe80::1/10",)),
        ("interface", "eth7"),
        ("ports", "80-70"),
        ("ports", "443"),
        ("ports", "443,64503"),
        ("protocol", RuleProtocol.ANY),
        ("masquerade", True),
        ("limit", RateLimit(-1)),
        ("limit", RateLimit(10**7)),
        ("limit", RateLimit(1, Per.MINUTE, 0)),
        ("limit", RateLimit(0, Per.MINUTE)),
        ("note", "x" * 501),
        ("id", 0),
    ],
)
def test_what_is_refused_names_rule_and_field(field, value):
    snapshot = with_rule(**{field: value})
    problems = validate(snapshot)
    assert problems
    # A text that cannot be one at all is told by its place in the list.
    wanted = {"protocol": "ports", "limit": "limit"}.get(field, field)
    assert all(wanted in problem.path for problem in problems), problems
    assert all(problem.path.startswith("firewall.rules[") for problem in problems)


def test_too_many_rules():
    rules = tuple(Rule(number, f"r{number}") for number in range(1, MAX_RULES + 2))
    [problem] = validate(dataclasses.replace(SAMPLE, firewall=Firewall(rules)))
    assert (problem.path, problem.message) == ("firewall.rules", f"must not be more than {MAX_RULES}")
    assert not validate(dataclasses.replace(SAMPLE, firewall=Firewall(rules[:-1])))


def test_too_many_networks_in_all():
    rules = tuple(Rule(number, f"r{number}", sources=MANY[:-1]) for number in range(1, 12))
    [problem] = validate(dataclasses.replace(SAMPLE, firewall=Firewall(rules)))
    assert problem.path == "firewall.rules[id=11].sources" and "together with those of all rules" in problem.message


def test_the_port_of_the_web_page_moves():
    moved = dataclasses.replace(SAMPLE, management=dataclasses.replace(SAMPLE.management, port=8443))
    at = {port: dataclasses.replace(moved, firewall=with_rule(ports=port).firewall) for port in ("443", "8443")}
    assert validate(at["443"]) == []
    [problem] = validate(at["8443"])
    assert problem.field == "ports" and "the access list decides" in problem.message
    assert "tcp dport { 8443, 64503 } return" in nftables.render(at["443"])


def test_other_ports_beside_the_web_page_are_no_mistake():
    assert validate(with_rule(ports="443-444")) == []
    assert validate(with_rule(ports="443", where=Where.SERVICES)) == []


def test_a_long_list_becomes_a_set_and_one_rule():
    text = nftables.render(with_rule(sources=MANY[:-1]))
    assert text.count("rule_5_from") == 2
    assert text.count('comment "rule 5"') == 1


def test_a_rule_that_is_off_leaves_no_trace():
    assert nftables.render(with_rule(enabled=False)) == nftables.render(SAMPLE)


def firewall(*rules: Rule) -> Firewall:
    return Firewall(tuple(dataclasses.replace(rule, id=place, name=f"r{place}") for place, rule in enumerate(rules, 1)))


TCP = Rule(1, "x", protocol=RuleProtocol.TCP)


@pytest.mark.parametrize(
    ("first", "second", "is_covered"),
    [
        (Rule(1, "x"), TCP, True),
        (TCP, Rule(1, "x"), False),
        (TCP, dataclasses.replace(TCP, ports="22"), True),
        (dataclasses.replace(TCP, ports="20-30"), dataclasses.replace(TCP, ports="22,25-26"), True),
        (dataclasses.replace(TCP, ports="20-30"), dataclasses.replace(TCP, ports="22,31"), False),
        (dataclasses.replace(TCP, ports="22"), TCP, False),
        (TCP, Rule(1, "x", protocol=RuleProtocol.TCP_UDP), False),
        (Rule(1, "x", protocol=RuleProtocol.TCP_UDP), TCP, True),
        (Rule(1, "x", protocol=RuleProtocol.ICMP), Rule(1, "x", protocol=RuleProtocol.PING), True),
        (Rule(1, "x", sources=("10.0.0.0/8",)), Rule(1, "x", sources=("10.2.0.0/16",)), True),
        (Rule(1, "x", sources=("10.0.0.0/9", "10.128.0.0/9")), Rule(1, "x", sources=("10.0.0.0/8",)), True),
        (Rule(1, "x", sources=("10.0.0.0/8",)), Rule(1, "x", sources=("10.2.0.0/16", "::/0")), False),
        (Rule(1, "x", sources=("10.0.0.0/8",)), Rule(1, "x"), False),
        (Rule(1, "x", interface="eth0"), Rule(1, "x"), False),
        (Rule(1, "x"), Rule(1, "x", interface="eth0"), True),
        (Rule(1, "x", enabled=False), Rule(1, "x"), False),
        (Rule(1, "x", where=Where.SERVICES), Rule(1, "x"), False),
    ],
)
def test_a_rule_that_never_decides(first, second, is_covered):
    assert (2 in covered(firewall(first, second))) == is_covered


@quick
@given(firewalls(INTERFACES), st.data())
def test_what_is_covered_never_decides(drawn, data):
    found = covered(drawn)
    for rule in drawn.rules:
        if rule.id in found:
            packet = data.draw(aimed(rule))
            if matches(rule, packet):
                assert matches(found[rule.id], packet)


def test_the_first_rule_that_matches_decides():
    ssh = Packet("10.2.0.9", "10.0.2.15", RuleProtocol.TCP, 22)
    rules = [Rule(1, "deny", Action.DENY, sources=("10.2.0.0/16",)), TCP]
    for order, fate in ((rules, Fate.DROPPED), (rules[::-1], Fate.PASSED)):
        snapshot = dataclasses.replace(SAMPLE, firewall=firewall(*order))
        assert judge(snapshot, ssh).fate is fate


def test_an_address_from_dhcp_is_the_box():
    packet = Packet("10.0.2.9", "10.0.2.77", RuleProtocol.PING)
    assert judge(SAMPLE, packet).where is Where.THROUGH
    assert judge(SAMPLE, packet, {"10.0.2.77"}).where is Where.BOX


@quick
@given(firewalls(["eth0", "eth1"]))
def test_no_rule_locks_the_admin_out(drawn):
    assert admin_problem(dataclasses.replace(SAMPLE, firewall=drawn), "10.0.2.9") is None


def test_words():
    rule = Rule(
        1,
        "x",
        Action.ALLOW,
        Where.THROUGH,
        ("10.2.0.0/24", "10.3.0.7/32"),
        ("2001:db8::7/128", "::/0"),
        RuleProtocol.TCP_UDP,
        "53,8000-8100",
        "eth1",
        RateLimit(5, Per.MINUTE, 9, True),
        True,
        True,
    )
    assert rule_words.sentence(rule) == (
        "allow TCP and UDP 53, 8000-8100 from 10.2.0.0/24, 10.3.0.7 by eth1 through this box to 2001:db8::7, ::/0 "
        "(at most 5 new connections a minute from each source, 9 at once) (with the box's address as the source) "
        "(logged)"
    )
    assert rule_words.sentence(Rule(1, "x", Action.DENY)) == "deny everything to this box"


def changes(old: Firewall, new: Firewall):
    return summary(dataclasses.replace(SAMPLE, firewall=old), dataclasses.replace(SAMPLE, firewall=new))


def test_the_diff_of_rules():
    one, two = Rule(1, "one", Action.DENY, Where.SERVICES, ("10.0.0.0/8",)), Rule(2, "two")
    [added] = changes(Firewall(), Firewall((one,)))
    assert (added.kind, added.object) == ("added", "firewall rule 'one'")
    assert added.sentences == ("Deny everything from 10.0.0.0/8 to virtual services.",)
    assert "This can block clients of virtual services" in added.impact
    [removed] = changes(Firewall((two,)), Firewall())
    assert (
        removed.sentences == ("It was: Allow everything to this box.",) and "continue until they end" in removed.impact
    )
    [moved] = changes(Firewall((one, two)), Firewall((two, one)))
    assert moved.sentences == ("Their order is now 'two', 'one'.",)
    [off] = changes(Firewall((two,)), Firewall((dataclasses.replace(two, enabled=False),)))
    assert off.sentences == ("It is switched off.",)


def test_the_diff_of_a_long_list_names_what_changes():
    old, new = Rule(1, "x", sources=MANY[:50]), Rule(1, "x", sources=(*MANY[1:50], "192.0.2.0/24"))
    [change] = changes(Firewall((old,)), Firewall((new,)))
    assert "Source 192.0.2.0/24 is added." in change.sentences and "Source 10.0.0.0/24 is removed." in change.sentences
    [change] = changes(Firewall((Rule(1, "x", sources=MANY[:4]),)), Firewall((old,)))
    assert "And 26 more are added." in change.sentences


@quick
@given(firewalls(INTERFACES), firewalls(INTERFACES))
def test_every_change_is_told(old, new):
    told = changes(old, new)
    assert bool(told) == (old != new)
    assert all(change.sentences for change in told)


# --- services at several addresses ---------------------------------------------------------------

SERVERS = tuple(dataclasses.replace(server, port=0) for server in WEB.real_servers)
TWO = with_service(more_addresses=("10.0.2.101", "10.0.2.102"), real_servers=SERVERS)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("10.0.2.100",), "must not name 10.0.2.100 twice"),
        (("10.0.2.101", "10.0.2.101"), "must not name 10.0.2.101 twice"),
        (("2001:db8::1",), "must be IPv4 addresses, as the first one is"),
        (("10.0.2",), no_address("10.0.2")),
        (("10.0.2.101; reboot",), no_address("10.0.2.101; reboot")),
        (("10.0.2.2",), "is the default gateway"),
        (("10.0.2.255",), "broadcast"),
        (tuple(f"10.0.2.{n}" for n in range(256)), "must not be more than 255"),
    ],
)
def test_further_addresses_that_are_refused(more, words):
    found = validate(with_service(more_addresses=more, real_servers=SERVERS))
    assert any(words in problem.message for problem in found if problem.path == "services[id=3].more_addresses"), found


def test_a_service_at_several_addresses_is_one_mark():
    assert validate(TWO) == []
    web = TWO.services[0]
    assert web.by_mark
    text = nftables.render(TWO)
    for vip in web.vips:
        assert f'{vip} . tcp . 80 comment "web" : 3,' in text
        packet = Packet("203.0.113.7", vip, RuleProtocol.TCP, 80)
        assert judge(TWO, packet).service == web


def test_two_services_do_not_share_one_of_their_addresses():
    web = TWO.services[0]
    other = dataclasses.replace(web, id=9, name="other", address="10.0.2.102", more_addresses=(), real_servers=())
    [problem] = validate(dataclasses.replace(TWO, services=(web, other)))
    assert problem.message == "another virtual service is 10.0.2.102 port 80 tcp already"


def test_what_dhcp_holds_is_named_by_its_field():
    [problem] = lease_problems(TWO, {"eth0": "10.0.2.101/24"})
    assert problem.path == "services[id=3].more_addresses"


def test_the_move_to_several_addresses_is_told():
    old = dataclasses.replace(
        TWO, services=(dataclasses.replace(TWO.services[0], more_addresses=()), *TWO.services[1:])
    )
    [change] = summary(old, TWO)
    assert change.sentences == ("Moves from TCP 10.0.2.100:80 to TCP 10.0.2.100:80, also at 10.0.2.101, 10.0.2.102.",)
