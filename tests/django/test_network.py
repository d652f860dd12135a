"""Network and access: every field refused with its reason, no way to lock oneself out, two admins."""

import dataclasses
import re

import pytest
from forms_on_page import form_values, words
from tests import texts
from tests.fake import appliance
from tests.texts import NO_INTERFACE, no_address, no_interface_name, on_screen, twice, within

from draft import store as draft
from draft.merge import changed_to
from lbconfig.model.firewall import Firewall, Rule, RuleProtocol
from lbconfig.model.snapshot import (
    FACTORY,
    Bond,
    BondMode,
    Bridge,
    Interface,
    PolicyRoute,
    RealServer,
    StaticRoute,
    VirtualService,
    Vlan,
)
from lbconfig.validate.routes import MAX_METRIC
from web.fields import FILL_IN, PORT_NUMBER, PORT_RANGE


def save(client, url: str, at: str = "127.0.0.1", **changes):
    values = form_values(client.get(url)) | {name.replace("__", "-"): value for name, value in changes.items()}
    return client.post(url, values, REMOTE_ADDR=at)


@pytest.mark.parametrize("url", ["/network/", "/network/routes/", "/network/names/", "/access/"])
def test_saving_without_a_change_changes_nothing(client, url):
    before = draft.current()
    assert save(client, url).status_code == 302
    assert draft.current() == before


def test_save_the_network(client):
    changes = {"hostname": "edge", "interfaces__1__addresses": "10.2.0.1/24\r\n10.3.0.1/24"}
    answer = save(client, "/network/", **changes)
    assert answer.headers["Location"] == "/"
    network = draft.current().network
    assert network.hostname == "edge"
    assert network.interfaces[1] == Interface("eth1", addresses=("10.2.0.1/24", "10.3.0.1/24"))


def test_what_the_box_has_stands_beside_the_wish(client):
    text = words(client.get("/network/"))
    assert "52:54:00:00:00:01" in text
    assert "192.168.10.53/32" in text


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("hostname", "", FILL_IN),
        ("hostname", "-edge", "Must be letters, digits, hyphens"),
        ("hostname", "e" * 300, "at most 253 characters"),
        ("gateway", "192.168.99.1", "is in no network of an interface"),
        ("gateway", "somewhere", on_screen(no_address("somewhere"))),
        ("interfaces__0__addresses", "192.168.10.2", "with its prefix length"),
        ("interfaces__0__addresses", "192.168.10.0/24", "network address"),
        ("interfaces__0__addresses", "fd00::/64", "the network address of fd00::/64"),
        ("interfaces__0__addresses", "10.2.0.9/16", "overlaps the network"),
        ("interfaces__0__addresses", " ".join(["10.9.0.1/24"] * 101), "more than 100 entries"),
        ("interfaces__0__name", "eth0; reboot", on_screen(no_interface_name("eth0; reboot"))),
        ("interfaces__TOTAL_FORMS", "x", "form is not complete"),
    ],
)
def test_a_wrong_field_is_named_and_nothing_is_saved(client, field, value, sentence):
    before = draft.current()
    answer = save(client, "/network/", **{field: value})
    assert answer.status_code == 422
    assert sentence in words(answer)
    assert draft.current() == before


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("", "Name at least one network."),
        ("everybody", "Must be networks such as"),
        ("192.168.10.7/24", "probably meant to be 192.168.10.0/24"),
        ("fd00::1/8", "is probably meant to be fd00::/8"),
        ("10.0.0.0/8 10.0.0.0/8", on_screen(twice("10.0.0.0/8"))),
    ],
)
def test_a_wrong_list_is_refused(client, value, sentence):
    before = draft.current()
    answer = save(client, "/access/", allow=value)
    assert answer.status_code == 422
    assert sentence in words(answer)
    assert draft.current() == before


def test_the_port_of_the_web_page(client):
    page = client.get("/access/")
    assert form_values(page)["port"] == "443" and 'class="more" open' not in page.content.decode()
    assert save(client, "/access/", port="8443").status_code == 302
    assert draft.current().management.port == 8443
    page = client.get("/access/")
    assert form_values(page)["port"] == "8443" and 'class="more" open' in page.content.decode()
    assert save(client, "/access/", port="").status_code == 302
    assert draft.current().management.port == 443


@pytest.mark.parametrize(
    ("port", "sentence"),
    [
        ("0", on_screen(within(1, 65535, 0))),
        ("65536", on_screen(within(1, 65535, 65536))),
        ("-1", on_screen(within(1, 65535, -1))),
        ("80", "browsers speak HTTP there"),
        ("64503", "the port of the sorry page"),
        ("44443", "the box takes these for connections of its own"),
        ("6000", "browsers open no page there"),
        ("1e3", PORT_NUMBER),
        ("9" * 30, PORT_RANGE),
        ("9" * 5000, PORT_NUMBER),
        ("2525", "192.168.10.2 port 2525 is virtual service 'here': take another port."),
    ],
)
def test_a_port_where_the_web_page_cannot_be_is_told_beside_its_field(client, port, sentence):
    here = VirtualService(9, "here", "192.168.10.2", 2525, real_servers=(RealServer(9, "10.2.0.11", 25),))
    draft.replace(dataclasses.replace(draft.current(), services=(here,)), "admin")
    before = draft.current()
    answer = save(client, "/access/", port=port)
    assert answer.status_code == 422 and draft.current() == before
    page = answer.content.decode()
    assert re.search(r'class="field [^"]*wrong" id="at-id_port"', page)
    assert sentence in words(answer) and 'class="more" open' in page


def test_the_interfaces_of_the_web_page(client):
    page = client.get("/access/")
    assert "interfaces" not in form_values(page) and 'value="eth1"' in page.content.decode()
    assert save(client, "/access/", interfaces=["eth0"]).status_code == 302
    assert draft.current().management.interfaces == ("eth0",)
    page = client.get("/access/")
    assert form_values(page)["interfaces"] == "eth0" and 'class="more" open' in page.content.decode()
    review = words(client.get("/changes/", REMOTE_ADDR="10.2.0.9"))
    assert "The web page answers on eth0 instead of all interfaces." in review
    assert "The web page can be reached on eth0 only." in review
    assert "From where you are, the web page would not answer: what comes from 10.2.0.9 arrives on eth1" in review
    assert "would not answer" not in words(client.get("/changes/", REMOTE_ADDR="192.168.10.50"))
    assert "It answers on eth0 only." in words(client.get("/firewall/"))
    values = form_values(page)
    del values["interfaces"]
    assert client.post("/access/", values).status_code == 302
    assert draft.current().management.interfaces == ()


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["eth9"], f"The web UI would answer on 'eth9', which {NO_INTERFACE}."),
        (["eth0", "eth0"], on_screen(twice("'eth0'")) + "."),
        (["x" * 65], "Select a valid choice."),
    ],
)
def test_interfaces_where_the_web_page_cannot_answer_are_told_beside_the_field(client, names, sentence):
    before = draft.current()
    answer = save(client, "/access/", interfaces=names)
    assert answer.status_code == 422 and draft.current() == before
    assert sentence in words(answer) and 'class="more" open' in answer.content.decode()


def test_the_only_interface_of_the_web_page_is_not_taken_out_unnoticed(client):
    side = Interface("eth2", addresses=("172.20.0.1/24",))
    with_side = (*draft.current().network.interfaces, side)
    network = dataclasses.replace(draft.current().network, interfaces=with_side)
    management = dataclasses.replace(draft.current().management, interfaces=("eth2",))
    draft.replace(dataclasses.replace(draft.current(), network=network, management=management), "admin")
    assert save(client, "/network/", interfaces__2__gone="on").status_code == 302
    told = f"access, interfaces: the web UI would answer on 'eth2', which {NO_INTERFACE}"
    assert f"Before you can apply: {told}" in words(client.get("/"))
    review = client.get("/changes/")
    assert texts.NOT_YET in words(review) and 'href="/access/"' in review.content.decode()


def test_two_admins_on_the_interfaces_of_the_web_page(client, alice):
    mine, hers = form_values(client.get("/access/")), form_values(alice.get("/access/"))
    alice.post("/access/", hers | {"interfaces": ["eth0", "eth1"]})
    answer = client.post("/access/", mine | {"port": "8443"})
    assert answer.status_code == 409 and f"{changed_to('alice')} eth0 eth1 at" in words(answer)
    assert answer.content.decode().count(" checked") == 2
    assert client.post("/access/", form_values(answer) | {"interfaces": ["eth0", "eth1"]}).status_code == 302
    assert (draft.current().management.interfaces, draft.current().management.port) == (("eth0", "eth1"), 8443)


def test_a_rule_that_decides_nothing_at_the_new_port_is_told(client):
    rule = Rule(1, "https", protocol=RuleProtocol.TCP, ports="8443")
    draft.replace(dataclasses.replace(draft.current(), firewall=Firewall((rule,))), "admin")
    assert save(client, "/access/", port="8443").status_code == 302
    assert "Before you can apply: firewall rule 'https'" in words(client.get("/"))


def test_a_list_that_locks_oneself_out_is_refused(client):
    answer = save(client, "/access/", at="192.168.10.7", allow="10.0.0.0/8")
    assert "You are at 192.168.10.7, which none of these networks contains" in words(answer)
    assert save(client, "/access/", at="10.1.2.3", allow="10.0.0.0/8").status_code == 302


def test_a_network_without_a_way_back_is_told_before_it_is_applied(client):
    assert save(client, "/network/", at="172.16.0.5", gateway="").status_code == 302
    review = words(client.get("/changes/", REMOTE_ADDR="172.16.0.5"))
    assert "From where you are, there would be no way back to you at 172.16.0.5" in review
    assert "no way back" not in words(client.get("/changes/", REMOTE_ADDR="192.168.10.50"))


def test_what_the_network_does_to_services_is_told_and_stops_the_apply(client):
    answer = save(client, "/network/", at="10.2.0.99", gateway="", interfaces__0__addresses="192.168.77.2/24")
    assert answer.status_code == 302
    assert "Before you can apply: virtual service" in words(client.get("/"))
    review = client.get("/changes/")
    assert texts.NOT_YET in words(review)
    assert 'href="/services/1/"' in review.content.decode()


def test_an_interface_without_settings_is_left_out(admin, client):
    appliance.reset(snapshot=FACTORY, confirmed=None, setup_done=True)
    client.post("/changes/discard/")
    assert draft.current() == FACTORY
    values = form_values(client.get("/network/"))
    values |= {"interfaces-TOTAL_FORMS": "2", "interfaces-1-name": "eth7", "interfaces-1-addresses": ""}
    assert client.post("/network/", values).status_code == 302
    assert [one.name for one in draft.current().network.interfaces] == ["eth0"]


def test_two_admins_on_the_network(client, alice):
    mine, hers = form_values(client.get("/network/")), form_values(alice.get("/network/"))
    alice.post("/network/", hers | {"gateway": "192.168.10.254", "hostname": "hers"})
    answer = client.post("/network/", mine | {"hostname": "mine", "interfaces-1-dhcp": "on"})
    assert answer.status_code == 409
    assert f"{changed_to('alice')} 192.168.10.254 at" in words(answer)
    assert f"{changed_to('alice')} hers at" in words(answer)
    again = form_values(answer)
    assert (again["hostname"], again["gateway"], again["interfaces-1-dhcp"]) == ("mine", "192.168.10.254", "on")
    assert client.post("/network/", again).status_code == 302
    network = draft.current().network
    assert (network.hostname, network.gateway, network.interfaces[1].dhcp) == ("mine", "192.168.10.254", True)


def test_two_admins_on_the_access_list(client, alice):
    mine, hers = form_values(client.get("/access/")), form_values(alice.get("/access/"))
    alice.post("/access/", hers | {"allow": "192.168.0.0/16"})
    answer = client.post("/access/", mine | {"allow": "10.0.0.0/8"})
    assert answer.status_code == 409
    assert f"{changed_to('alice')} 192.168.0.0/16 at" in words(answer)
    assert client.post("/access/", form_values(answer)).status_code == 302
    assert draft.current().management.allow == ("10.0.0.0/8",)


# --- VLANs, bonds, bridges -----------------------------------------------------------------------


def add(client, kind: str, url: str = "/network/", **entered):
    """The page after "Add …", and the number of its new row."""
    answer = client.post(url, form_values(client.get(url)) | entered | {"add": kind})
    assert answer.status_code == 200
    prefix = "routes" if "routes" in url else "interfaces"
    return answer, int(form_values(answer)[f"{prefix}-TOTAL_FORMS"]) - 1


def test_add_a_vlan_by_three_fields(client):
    page, new = add(client, "vlan", hostname="entered")
    assert draft.current().network.hostname == "sample", "adding a row saves nothing"
    row = {
        f"interfaces-{new}-parent": "eth1",
        f"interfaces-{new}-tag": "20",
        f"interfaces-{new}-addresses": "10.3.0.1/24",
    }
    assert client.post("/network/", form_values(page) | row).status_code == 302
    network = draft.current().network
    assert network.hostname == "entered", "what was entered before is not lost"
    assert network.interfaces[-1] == Interface("eth1.20", addresses=("10.3.0.1/24",), vlan=Vlan("eth1", 20))
    assert save(client, "/network/").status_code == 302 and draft.current().network == network


def test_add_a_bond_and_a_bridge_and_remove_them(client):
    page, new = add(client, "bond")
    assert form_values(page)[f"interfaces-{new}-name"] == "bond0"
    row = {f"interfaces-{new}-members": "eth1", f"interfaces-{new}-mode": "802.3ad", "interfaces-1-addresses": ""}
    row |= {f"interfaces-{new}-addresses": "10.2.0.1/24"}
    assert client.post("/network/", form_values(page) | row).status_code == 302
    bond = draft.current().network.interfaces[-1]
    assert bond == Interface("bond0", addresses=("10.2.0.1/24",), bond=Bond(("eth1",), BondMode.LACP))
    page, new = add(client, "bridge")
    assert client.post("/network/", form_values(page)).status_code == 302
    assert draft.current().network.interfaces[-1] == Interface("br0", bridge=Bridge())
    values = form_values(client.get("/network/"))
    gone = {
        name.replace("-name", "-gone"): "on"
        for name, value in values.items()
        if value in ("bond0", "br0") and name.endswith("-name")
    }
    back = {"interfaces-1-addresses": "10.2.0.1/24"}
    assert client.post("/network/", values | gone | back).status_code == 302
    assert [one.name for one in draft.current().network.interfaces] == ["eth0", "eth1"]


@pytest.mark.parametrize(
    ("kind", "field", "value", "sentence"),
    [
        ("vlan", "tag", "4095", on_screen(within(1, 4094, 4095))),
        ("vlan", "tag", "many", "Enter a whole number"),
        ("vlan", "tag", "", "Must be 1 to 15 letters"),
        ("vlan", "name", "a" * 16, no_interface_name("a" * 16)),
        ("vlan", "name", "eth0", "another interface has this name"),
        ("vlan", "mtu", "99999999999", on_screen(within(576, 9216, 99999999999))),
        ("bond", "members", "eth0", "a member has none"),
        ("bond", "miimon", "0", on_screen(within(10, 10000, 0))),
        ("bond", "primary", "eth9; reboot", "is not one of its members"),
        ("bond", "mode", "balance", "Select a valid choice"),
        ("bridge", "members", "$(reboot)", no_interface_name("$(reboot)")),
        ("bridge", "note", "a" * 501, "at most 500 characters"),
    ],
)
def test_a_wrong_field_of_a_new_interface_is_named(client, kind, field, value, sentence):
    page, new = add(client, kind)
    start = {f"interfaces-{new}-parent": "eth1", f"interfaces-{new}-tag": "20"} if kind == "vlan" else {}
    before = draft.current()
    answer = client.post("/network/", form_values(page) | start | {f"interfaces-{new}-{field}": value})
    assert answer.status_code == 422
    assert sentence.casefold() in words(answer).casefold()
    assert draft.current() == before


def test_two_admins_and_a_new_vlan(client, alice):
    page, new = add(client, "vlan")
    mine = form_values(page) | {f"interfaces-{new}-parent": "eth1", f"interfaces-{new}-tag": "20"}
    mine |= {f"interfaces-{new}-name": "office"}
    alice.post("/network/", form_values(alice.get("/network/")) | {"hostname": "hers"})
    answer = client.post("/network/", mine)
    assert answer.status_code == 409 and f"{changed_to('alice')} hers" in words(answer)
    assert client.post("/network/", form_values(answer)).status_code == 302
    network = draft.current().network
    assert network.hostname == "hers" and network.interfaces[-1].vlan == Vlan("eth1", 20)


# --- routes, names and time ----------------------------------------------------------------------


def test_add_a_route_and_a_way_out_and_remove_them(client):
    page, new = add(client, "route", "/network/routes/")
    row = {f"routes-{new}-target": "10.9.0.0/16", f"routes-{new}-via": "192.168.10.9"}
    assert client.post("/network/routes/", form_values(page) | row).status_code == 302
    page, new = add(client, "policy", "/network/routes/")
    row = {f"routes-{new}-target": "192.168.10.80", f"routes-{new}-via": "192.168.10.8"}
    assert client.post("/network/routes/", form_values(page) | row).status_code == 302
    network = draft.current().network
    assert network.routes == (StaticRoute("10.9.0.0/16", "192.168.10.9"),)
    assert network.policies == (PolicyRoute("192.168.10.80", "192.168.10.8"),)
    assert save(client, "/network/routes/").status_code == 302 and draft.current().network == network
    assert save(client, "/network/routes/", routes__0__gone="on", routes__1__gone="on").status_code == 302
    assert draft.current().network.routes == draft.current().network.policies == ()


@pytest.mark.parametrize(
    ("kind", "field", "value", "sentence"),
    [
        ("route", "target", "10.9.0.1/16", "probably meant to be 10.9.0.0/16"),
        ("route", "target", "$(reboot)", "Must be a network such as"),
        ("route", "via", "10.77.0.1", "is in no network of an interface"),
        ("route", "metric", "-1", on_screen(within(0, MAX_METRIC, -1))),
        ("route", "interface", "eth9", NO_INTERFACE),
        ("policy", "target", "everything", on_screen(no_address("everything"))),
        ("policy", "via", "", on_screen(no_address(""))),
    ],
)
def test_a_wrong_route_is_named(client, kind, field, value, sentence):
    page, new = add(client, kind, "/network/routes/")
    good = {"target": "10.9.0.0/16" if kind == "route" else "192.168.10.80", "via": "192.168.10.9"} | {field: value}
    before = draft.current()
    answer = client.post("/network/routes/", form_values(page) | {f"routes-{new}-{k}": v for k, v in good.items()})
    assert answer.status_code == 422 and sentence in words(answer)
    assert draft.current() == before


def test_save_names_and_time(client):
    assert "nobody sets the clock" in words(client.get("/network/names/"))
    changes = {"dns": "192.168.10.53 2001:db8::53", "search": "example.org", "ntp": "pool.ntp.org"}
    assert save(client, "/network/names/", **changes).status_code == 302
    network = draft.current().network
    assert (network.dns, network.search, network.ntp) == (
        ("192.168.10.53", "2001:db8::53"),
        ("example.org",),
        ("pool.ntp.org",),
    )


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("dns", "1.1.1.1 1.1.1.2 1.1.1.3 1.1.1.4", "Must not be more than 3"),
        ("dns", "dns.example.org", on_screen(no_address("dns.example.org"))),
        ("search", "a_b;reboot", "Must be a domain"),
        ("ntp", "time time", on_screen(twice("time"))),
        ("ntp", "$(reboot)", "Must be an address or a DNS name"),
    ],
)
def test_wrong_names_are_refused(client, field, value, sentence):
    before = draft.current()
    answer = save(client, "/network/names/", **{field: value})
    assert answer.status_code == 422 and sentence in words(answer)
    assert draft.current() == before


@pytest.mark.parametrize("url", ["/network/routes/", "/network/names/"])
def test_two_admins_on_the_other_pages_of_the_network(client, alice, url):
    mine = form_values(client.get(url))
    alice.post("/network/names/", form_values(alice.get("/network/names/")) | {"dns": "192.168.10.53"})
    assert client.post(url, mine).status_code == 409
