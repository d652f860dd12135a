"""Network and access: every field refused with its reason, no way to lock oneself out, two admins."""

import pytest
from forms_on_page import form_values, words

from applier import fake
from changes import draft
from lbconfig.snapshot import FACTORY, Interface


def save(client, url: str, at: str = "127.0.0.1", **changes):
    values = form_values(client.get(url)) | {name.replace("__", "-"): value for name, value in changes.items()}
    return client.post(url, values, REMOTE_ADDR=at)


@pytest.mark.parametrize("url", ["/network/", "/access/"])
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
        ("hostname", "", "Please fill this in."),
        ("hostname", "-edge", "Must be letters, digits, hyphens"),
        ("hostname", "e" * 300, "at most 253 characters"),
        ("gateway", "192.168.99.1", "is in no network of an interface"),
        ("gateway", "somewhere", "Must be an IP address"),
        ("interfaces__0__addresses", "192.168.10.2", "with its prefix length"),
        ("interfaces__0__addresses", "192.168.10.0/24", "network address"),
        ("interfaces__0__addresses", "fd00::/64", "the network address of fd00::/64"),
        ("interfaces__0__addresses", "10.2.0.9/16", "overlaps the network"),
        ("interfaces__0__addresses", " ".join(["10.9.0.1/24"] * 101), "more than 100 entries"),
        ("interfaces__0__name", "eth0; reboot", "Must be 1 to 15"),
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
        ("10.0.0.0/8 10.0.0.0/8", "given twice"),
    ],
)
def test_a_wrong_list_is_refused(client, value, sentence):
    before = draft.current()
    answer = save(client, "/access/", allow=value)
    assert answer.status_code == 422
    assert sentence in words(answer)
    assert draft.current() == before


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
    assert "This draft cannot be applied yet" in words(review)
    assert 'href="/services/1/"' in review.content.decode()


def test_an_interface_without_settings_is_left_out(admin, client):
    fake.reset(snapshot=FACTORY, confirmed=None, setup_done=True)
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
    assert "alice changed this to 192.168.10.254 at" in words(answer)
    assert "alice changed this to hers at" in words(answer)
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
    assert "alice changed this to 192.168.0.0/16 at" in words(answer)
    assert client.post("/access/", form_values(answer)).status_code == 302
    assert draft.current().management.allow == ("10.0.0.0/8",)
