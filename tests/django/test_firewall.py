"""The admin's own firewall rules: each field refused with its reason, the order, two admins, a packet that is tried."""

import dataclasses

import pytest
from forms_on_page import form_values, words
from tests.fake import appliance
from tests.texts import no_address, no_service_name, on_screen, within

from draft import firewall as draft_firewall
from draft import store as draft
from draft.merge import changed_to
from draft.models import Rule as Row
from lbconfig.model.firewall import Action, Per, RateLimit, Rule, RuleProtocol, Where
from lbconfig.model.icmp import MESSAGES
from lbconfig.model.problem import UNPRINTABLE
from web.fields import CHOOSE, FILL_IN, PORT_RANGE, WHOLE_NUMBER

SSH = {"name": "ssh", "action": "allow", "where": "box", "protocol": "tcp", "ports": "22", "sources": "10.0.0.0/8"}


def add(client, **changes):
    values = form_values(client.get("/firewall/add/")) | SSH | changes
    return client.post("/firewall/add/", {name: value for name, value in values.items() if value is not None})


def rules() -> tuple[Rule, ...]:
    return draft.current().firewall.rules


def listed(client) -> str:
    return words(client.get("/firewall/"))


@pytest.fixture
def three(client):
    """Rules one, two and three for the box, and one for services between them."""
    for name, where in (("one", "box"), ("two", "box"), ("web", "services"), ("three", "box")):
        assert add(client, name=name, where=where, ports="80").status_code == 302
    return client


def names(where: Where = Where.BOX) -> list[str]:
    return [rule.name for rule in rules() if rule.where is where]


def test_a_rule_is_saved_reviewed_applied_and_counted(client):
    answer = add(client, sources="10.0.0.0/8, 192.0.2.7\n2001:db8::/32", log="on", rate="5", per="minute", burst="3")
    assert answer.headers["Location"] == "/firewall/"
    [rule] = rules()
    assert rule == Rule(
        rule.id,
        "ssh",
        sources=("10.0.0.0/8", "192.0.2.7/32", "2001:db8::/32"),
        protocol=RuleProtocol.TCP,
        ports="22",
        limit=RateLimit(5, Per.MINUTE, 3),
        log=True,
    )
    sentence = "Allow TCP 22 from 10.0.0.0/8, 192.0.2.7, 2001:db8::/32 to this box (at most 5 new connections a minute"
    assert sentence in listed(client) and "not applied yet" in listed(client)
    review = client.get("/changes/")
    assert "Firewall rule 'ssh'" in words(review) and sentence in words(review)
    assert client.post("/changes/apply/", form_values(review) | {"comment": ""}).status_code == 302
    assert "Matched 1240 packets, 17 of them dropped above the limit." in listed(client)
    assert "not applied yet" not in listed(client)
    assert "rule 1" in appliance.box.generations[0]["files"]["nftables.conf"]


def test_saving_without_a_change_changes_nothing(client):
    add(client, rate="5", interface="eth0", destinations="192.168.10.2", note="x", where="through", masquerade="on")
    before = rules()
    [row] = Row.objects.all()
    assert client.post(f"/firewall/{row.pk}/", form_values(client.get(f"/firewall/{row.pk}/"))).status_code == 302
    assert rules() == before
    assert before[0].masquerade and before[0].interface == "eth0"


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("name", "", FILL_IN),
        ("name", "a;b", on_screen(no_service_name("a;b"))),
        ("name", "x" * 65, "at most 64 characters"),
        ("sources", "everybody", "Must be networks such as"),
        ("sources", "10.0.0.7/8", "probably meant to be 10.0.0.0/8"),
        ("sources", "10.0.0.0/8 10.0.0.0/8", "Must not name 10.0.0.0/8 twice."),
        ("sources", "$(reboot)", "Must be networks such as"),
        ("sources", "10.0.0.0/8\n" * 10_001, "Must not be more than 10000"),
        ("destinations", "2001:db8::/32", "Must have an address of the same kind"),
        ("ports", "22,", "Must be ports and ranges such as"),
        ("ports", "70000", "has a port that is not 1 to 65535".capitalize()),
        ("ports", "443", "The access list decides".lower()),
        ("protocol", "icmp", "Must be empty: ports are for TCP, UDP and SCTP only."),
        ("protocol", "smoke", CHOOSE["invalid_choice"]),
        ("action", "", CHOOSE["required"]),
        ("where", "elsewhere", CHOOSE["invalid_choice"]),
        ("interface", "eth7", "Must be an interface of this box"),
        ("interface", 'eth0" accept', "Must be an interface of this box"),
        ("rate", "-1", on_screen(within(1, 1000000, -1))),
        ("rate", "many", WHOLE_NUMBER),
        ("rate", "9999999", on_screen(within(1, 1000000, 9999999))),
        ("note", "\N{ZERO WIDTH SPACE}", on_screen(f"{UNPRINTABLE}.")),
    ],
)
def test_a_wrong_field_is_named_and_nothing_is_saved(client, field, value, sentence):
    answer = add(client, **{field: value})
    assert answer.status_code == 422
    assert sentence in words(answer)
    assert rules() == ()
    if field not in ("action", "where", "protocol", "name"):
        assert form_values(answer)["name"] == "ssh"


def test_a_service_has_no_pings(client):
    assert "Must be one that virtual services have" in words(add(client, where="services", protocol="ping", ports=""))


def test_a_burst_without_a_good_value_is_named(client):
    assert on_screen(within(1, 10000, 0)) in words(add(client, rate="5", burst="0"))


def test_what_a_rule_cannot_have_does_not_count(client):
    """The page hides them from rules that they are not for."""
    add(client, action="deny", rate="5", masquerade="on")
    [rule] = rules()
    assert (rule.action, rule.limit, rule.masquerade) == (Action.DENY, RateLimit(), False)


def test_two_rules_of_one_name(client):
    add(client)
    assert "is the name of another firewall rule as well" in words(add(client, name="SSH"))


def one_step(client, name: str, what: str, to: str, version: int | None = None):
    row = next(row for row in Row.objects.all() if row.name == name)
    return client.post(f"/firewall/{row.pk}/{what}/", {"to": to, "version": version or row.version})


def test_the_order_is_that_of_the_rules_for_the_same_packets(three):
    assert names() == ["one", "two", "three"]
    one_step(three, "three", "move", "up")
    assert names() == ["one", "three", "two"]
    one_step(three, "three", "move", "up")
    one_step(three, "three", "move", "up")  # it is the first already
    assert names() == ["three", "one", "two"]
    one_step(three, "three", "move", "down")
    assert names() == ["one", "three", "two"]
    assert names(Where.SERVICES) == ["web"]
    one_step(three, "web", "move", "down")
    assert names() == ["one", "three", "two"]
    review = words(three.get("/changes/"))
    assert "Firewall rule 'one'" in review


def test_the_order_of_what_runs_is_reviewed(three):
    review = three.get("/changes/")
    three.post("/changes/apply/", form_values(review) | {"comment": ""})
    one_step(three, "three", "move", "up")
    assert "Their order is now 'one', 'three'" in words(three.get("/changes/"))
    three.post("/changes/discard/")
    assert names() == ["one", "two", "three"]


def test_on_and_off(three):
    one_step(three, "two", "switch", "off")
    assert [rule.enabled for rule in rules() if rule.where is Where.BOX] == [True, False, True]
    assert "switched off" in listed(three)
    one_step(three, "two", "switch", "on")
    assert all(rule.enabled for rule in rules())


@pytest.mark.parametrize(("what", "to"), [("move", "up"), ("switch", "off")])
def test_a_step_on_what_another_admin_changed_does_nothing(three, alice, what, to):
    seen = next(row for row in Row.objects.all() if row.name == "three").version
    one_step(alice, "three", "move", "up")
    before = rules()
    answer = three.post(
        f"/firewall/{next(row for row in Row.objects.all() if row.name == 'three').pk}/{what}/",
        {"to": to, "version": seen},
        follow=True,
    )
    assert "alice changed or moved “three”" in words(answer)
    assert rules() == before


def test_two_admins_on_one_rule(client, alice):
    add(client)
    [row] = Row.objects.all()
    url = f"/firewall/{row.pk}/"
    mine, hers = form_values(client.get(url)), form_values(alice.get(url))
    alice.post(url, hers | {"ports": "2222", "sources": "192.168.0.0/16", "interface": "eth1"})
    answer = client.post(url, mine | {"ports": "22,23", "log": "on"})
    assert answer.status_code == 409
    text = words(answer)
    assert f"{changed_to('alice')} 2222 at" in text and "you entered something else" in text
    assert f"{changed_to('alice')} 192.168.0.0/16" in text and f"{changed_to('alice')} eth1" in text
    assert client.post(url, form_values(answer)).status_code == 302
    [rule] = rules()
    assert (rule.ports, rule.sources, rule.log, rule.interface) == ("22-23", ("192.168.0.0/16",), True, "eth1")


def test_a_rule_that_another_admin_removed_can_be_added_again(client, alice):
    add(client)
    [row] = Row.objects.all()
    values = form_values(client.get(f"/firewall/{row.pk}/"))
    alice.post(f"/firewall/{row.pk}/delete/", {"version": row.version})
    assert rules() == ()
    answer = client.post(f"/firewall/{row.pk}/", values | {"ports": "23"})
    assert answer.status_code == 409 and "Save to add it again" in words(answer)
    assert client.post("/firewall/add/", form_values(answer)).status_code == 302
    assert rules()[0].ports == "23"
    assert "already removed" in words(client.post(f"/firewall/{row.pk + 7}/delete/", follow=True))


def test_delete_asks_and_asks_again_when_it_changed(client, alice):
    add(client)
    [row] = Row.objects.all()
    url = f"/firewall/{row.pk}/delete/"
    question = client.get(url)
    assert "Allow TCP 22 from 10.0.0.0/8 to this box." in words(question)
    one_step(alice, "ssh", "switch", "off")
    answer = client.post(url, form_values(question))
    assert answer.status_code == 409 and "alice changed this rule" in words(answer)
    assert client.post(url, form_values(answer)).status_code == 302
    assert rules() == ()


def test_a_note_stands_below_its_rule(client):
    add(client, note="Since the attack in May.")
    assert "Since the attack in May." in listed(client)


def test_what_the_box_brings_stands_around_the_rules(client):
    text = listed(client)
    for sentence in (
        "The web UI (TCP 443) is open to the networks under Access and to nobody else: 127.0.0.0/8",
        "Pings pass, at most 50 a second.",
        "shop at 192.168.10.80:80, mail at 192.168.10.25:25",
        "Answers of real servers to their clients pass.",
    ):
        assert sentence in text


def test_a_rule_that_never_decides_is_told(client):
    add(client, name="wide", protocol="any", ports="", sources="10.0.0.0/8")
    add(client, name="narrow", sources="10.2.0.0/16")
    assert "It never decides: “wide” above it matches all that it would." in listed(client)
    one_step(client, "narrow", "move", "up")
    assert "It never decides" not in listed(client)


def test_without_the_applier_there_are_no_counters(client, box):
    add(client)
    box.reachable = False
    assert "Packet counts are not available" in listed(client)


PACKET = {"source": "203.0.113.7", "destination": "192.168.10.80", "protocol": "tcp", "port": "80", "interface": "eth0"}


def tried(client, **changes) -> str:
    return words(client.get("/firewall/test/", PACKET | changes))


def test_a_packet_is_tried(client):
    assert "It passes It goes to virtual service 'shop', which is open to everybody." in tried(client)
    add(client, name="attackers", where="services", action="deny", sources="203.0.113.0/24", ports="", protocol="any")
    text = tried(client)
    assert "It is dropped Rule 'attackers' denies it; the sender is told nothing." in text
    assert "What runs at the moment says otherwise: it passes. It goes to virtual service 'shop'" in text
    assert "It passes" in tried(client, source="198.51.100.1")
    assert "The access list lets it open the web UI." in tried(
        client, source="192.168.10.77", destination="192.168.10.2", port="443"
    )
    assert "the box routes only what a rule allows" in tried(client, destination="198.51.100.1")
    assert "The way back to 10.2.0.11 is by eth1" in tried(client, source="10.2.0.11")
    assert "The box answers pings" in tried(client, protocol="ping", port="")
    query = next(number for number, one in enumerate(MESSAGES) if one.type == 130)
    listens = {"source": "fe80::7", "destination": "ff02::1", "protocol": "icmp", "port": "", "icmp": str(query)}
    assert "It passes Switches and routers learn from it" in tried(client, **listens)
    assert "It is dropped No rule allows it" in tried(client, **(listens | {"source": "2001:db8::7"}))


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("source", "", "This field is required."),
        ("source", "somebody", on_screen(no_address("somebody"))),
        ("destination", "224.0.0.1", "a multicast address"),
        ("destination", "2001:db8::1", "Must be an IPv4 address, as the source is."),
        ("port", "", FILL_IN),
        ("port", "0", on_screen(within(1, 65535, 0))),
        ("port", "9" * 30, PORT_RANGE),
        ("source_port", "65536", on_screen(within(1, 65535, 65536))),
        ("interface", "eth9", CHOOSE["invalid_choice"]),
        ("protocol", "any", CHOOSE["invalid_choice"]),
        ("protocol", "icmp", CHOOSE["required"]),
        ("icmp", "99", CHOOSE["invalid_choice"]),
    ],
)
def test_a_packet_that_makes_no_sense_is_told_by_its_field(client, field, value, sentence):
    answer = client.get("/firewall/test/", PACKET | {field: value})
    assert answer.status_code == 422
    assert sentence in words(answer)


def test_a_draft_with_problems_says_so(client):
    add(client, interface="eth1")
    network = form_values(client.get("/network/"))
    row = Row.objects.get()
    draft_firewall.write(dataclasses.replace(row.wish, interface="eth9"), row, "admin")
    assert network and "The draft has problems" in tried(client)
    review = client.get("/changes/")
    assert f'href="/firewall/{row.pk}/"' in review.content.decode()


def test_strangers_see_nothing(stranger):
    for url in ("/firewall/", "/firewall/add/", "/firewall/test/"):
        assert stranger.get(url).status_code == 302


def test_ten_thousand_networks(client):
    many = "\n".join(f"10.{n // 250}.{n % 250}.0/24" for n in range(10_000))
    assert add(client, sources=many).status_code == 302
    assert len(rules()[0].sources) == 10_000
    assert "10.0.0.0/24, 10.0.1.0/24, 10.0.2.0/24 and 9997 more" in listed(client)
    assert draft_firewall.current() == draft.current().firewall
