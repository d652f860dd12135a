"""Virtual services: add, copy, edit; every field refused with its reason."""

import dataclasses
import subprocess
from html import unescape

import pytest
import stored
from forms_on_page import form_values, words
from services_on_page import DIRECT, NEW, values_of
from tests.texts import no_address, no_service_name, on_screen, within

from balancing.presets import PRESETS
from draft import store as draft
from draft.merge import changed_to
from lbconfig.model.snapshot import CheckKind, Request, Scheduler, ServerState
from web.fields import CHOOSE, FILL_IN, PORT_NUMBER, PORT_RANGE, WHOLE_NUMBER


def test_add(client):
    answer = client.post("/services/add/", NEW, follow=True)
    assert "web: saved to the draft" in words(answer)
    assert "1 change is not applied" in words(answer)
    service = draft.current().services[-1]
    assert (service.name, service.scheduler, service.check.kind) == ("web", Scheduler.RR, CheckKind.HTTP)
    assert (service.check.expect, service.check.failures, service.check.port) == ("all is well", 3, 0)
    [server] = service.real_servers
    assert (server.address, server.port, server.weight, server.state) == ("10.2.0.41", 8080, 2, "enabled")


@pytest.mark.parametrize("key", PRESETS)
def test_a_preset_fills_a_form_that_can_be_saved(client, key):
    page = client.get(f"/services/add/?preset={key}")
    assert PRESETS[key].help in words(page)
    filled = form_values(page)
    for name, value in PRESETS[key].values.items():
        assert filled[name] == ("on" if value is True else str(value)), name
    mine = {"name": "mine", "address": "192.168.10.90", "servers-0-address": "10.2.0.41"}
    client.post("/services/add/", filled | mine)
    service = draft.current().services[-1]
    port = PRESETS[key].values["port"]
    assert (service.name, service.port) == ("mine", port)
    assert [server.port for server in service.real_servers] == [0 if service.by_mark else port]


def test_no_such_preset_is_an_empty_form(client):
    assert form_values(client.get("/services/add/?preset=x"))["port"] == ""
    assert "Begin with" in words(client.get("/services/add/"))
    assert "Begin with" not in words(client.get("/services/1/"))


def test_on_one_arm_the_form_begins_with_source_nat(client):
    """There plain NAT fails for every client that is in the servers' network."""
    one_network = "This box has one network"
    for url in ("/services/add/", "/services/add/?preset=web"):
        page = client.get(url)
        assert form_values(page)["forwarding"] == "nat" and one_network not in words(page)
    network = draft.current().network
    draft.write_part("network", dataclasses.replace(network, interfaces=network.interfaces[:1]), "admin")
    for url in ("/services/add/", "/services/add/?preset=web"):
        page = client.get(url)
        assert form_values(page)["forwarding"] == "snat" and one_network in words(page)
    for url in ("/services/1/", "/services/add/?like=1"):
        page = client.get(url)
        assert form_values(page)["forwarding"] == "nat" and one_network not in words(page)


def test_several_ports_and_both_protocols(client):
    more = {"more_ports": " 8100, 443,8000-8099 ", "servers-0-port": ""}
    client.post("/services/add/", NEW | more)
    service = draft.current().services[-1]
    assert (service.more_ports, service.by_mark, service.real_servers[0].port) == ("443,8000-8100", True, 0)
    page = values_of(client, service.id)
    assert (page["more_ports"], page["servers-0-port"]) == ("443,8000-8100", "")
    overview = words(client.get("/"))
    assert "192.168.10.90:80 and 443, 8000-8100" in overview
    assert "10.2.0.41:0" not in overview
    answer = client.post(f"/services/{service.id}/", page | {"servers-0-port": "81"})
    assert "Must be empty: a service of several ports" in words(answer)
    client.post(f"/services/{service.id}/", page | {"more_ports": "", "protocol": "tcp+udp"})
    service = draft.current().services[-1]
    assert (service.protocol, service.real_servers[0].port) == ("tcp+udp", 0)


def test_several_addresses(client, alice):
    more = {"more_addresses": " 192.168.10.92,192.168.10.91 ", "servers-0-port": ""}
    client.post("/services/add/", NEW | more)
    service = draft.current().services[-1]
    assert service.vips == ("192.168.10.90", "192.168.10.92", "192.168.10.91")
    assert service.by_mark and service.real_servers[0].port == 0
    page = values_of(client, service.id)
    assert page["more_addresses"] == "192.168.10.92, 192.168.10.91"
    assert "also at 192.168.10.92, 192.168.10.91" in words(client.get("/"))
    for value, sentence in (
        ("192.168.10.90", "Must not name 192.168.10.90 twice."),
        ("192.168.10.1", "192.168.10.1 is the default gateway."),
        ("here", on_screen(no_address("here"))),
        ("2001:db8::1", "Must be IPv4 addresses"),
    ):
        assert sentence in words(client.post(f"/services/{service.id}/", page | {"more_addresses": value}))
    assert draft.current().services[-1] == service
    alice.post(f"/services/{service.id}/", page | {"more_addresses": "192.168.10.93"})
    answer = client.post(f"/services/{service.id}/", page | {"name": "mine"})
    assert answer.status_code == 409 and f"{changed_to('alice')} “192.168.10.93”" in words(answer)
    assert client.post(f"/services/{service.id}/", form_values(answer)).status_code == 302
    service = draft.current().services[-1]
    assert (service.name, service.more_addresses) == ("mine", ("192.168.10.93",))


def test_an_address_may_be_spelled_in_any_way(client):
    client.post("/services/add/", NEW | {"address": "2001:0DB8::0:5A", "servers-0-address": "2001:DB8:2::0041"})
    assert stored.named("web") is None  # the box has no IPv6 network yet
    network = draft.current().network
    addresses = {"eth0": ("192.168.10.2/24", "2001:db8::2/64"), "eth1": ("10.2.0.1/24", "2001:db8:2::1/64")}
    both = tuple(dataclasses.replace(one, addresses=addresses[one.name]) for one in network.interfaces)
    draft.write_part("network", dataclasses.replace(network, interfaces=both), "admin")
    client.post("/services/add/", NEW | {"address": "2001:0DB8::0:5A", "servers-0-address": "2001:DB8:2::0041"})
    service = draft.current().services[-1]
    assert (service.address, service.real_servers[0].address) == ("2001:db8::5a", "2001:db8:2::41")
    assert "[2001:db8::5a]:80" in words(client.get("/"))


def test_forwarding_is_the_service_s_and_a_server_may_have_its_own(client):
    client.post("/services/add/", NEW | DIRECT)
    service = draft.current().services[-1]
    assert [service.forwarding_of(server) for server in service.real_servers] == ["direct", "snat"]
    assert [server.forwarding for server in service.real_servers] == [None, "snat"]
    page = values_of(client, service.id)
    assert (page["forwarding"], page["servers-0-forwarding"], page["servers-1-forwarding"]) == ("direct", "", "snat")


def test_what_direct_routing_cannot_do_is_said_beside_the_field(client):
    answer = client.post("/services/add/", NEW | DIRECT | {"port": "80"})
    assert "Must be 80, as the service: direct routing leaves the port as it is." in words(answer)
    assert stored.named("web") is None


OPTIONS = {
    "protocol": "udp",
    "scheduler": "mh",
    "hash_port": "on",
    "hash_next": "on",
    "persistence": "300",
    "persistence_prefix": "24",
    "note": "asked for by <Kim> & “co”",
    "servers-0-state": "quiesced",
    "servers-0-upper": "100",
    "servers-0-lower": "80",
}


def test_every_option_is_kept(client):
    values = NEW | OPTIONS | {"check_port": "80"}
    assert client.post("/services/add/", values).status_code == 302
    service = draft.current().services[-1]
    assert (service.hash_port, service.hash_next, service.one_packet, service.enabled) == (True, True, False, True)
    assert (service.persistence, service.persistence_prefix, service.note) == (300, 24, OPTIONS["note"])
    [server] = service.real_servers
    assert (server.state, server.upper, server.lower) == (ServerState.QUIESCED, 100, 80)
    assert client.post(f"/services/{service.id}/", values_of(client, service.id)).status_code == 302
    assert draft.current().services[-1] == service
    assert "asked for by <Kim>" in words(client.get("/"))

    values = values_of(client, service.id) | {"persistence": "", "persistence_prefix": "", "one_packet": "on"}
    del values["hash_port"], values["enabled"]
    assert client.post(f"/services/{service.id}/", values).status_code == 302
    service = draft.current().services[-1]
    assert (service.hash_port, service.one_packet, service.enabled) == (False, True, False)
    assert (service.persistence, service.persistence_prefix) == (0, 0)
    assert "disabled" in words(client.get("/"))


def test_a_copy_is_a_new_service(client):
    values = form_values(client.get("/services/add/?like=1"))
    assert (values["name"], values["servers-0-address"], values["servers-0-id"]) == ("", "10.2.0.11", "")
    assert "a copy of shop" in words(client.get("/services/add/?like=1"))
    assert client.post("/services/add/", values | {"name": "shop 2", "port": "81"}).status_code == 302
    first, *_, copy = draft.current().services
    assert (copy.name, copy.port, copy.check) == ("shop 2", 81, first.check)
    assert [one.address for one in copy.real_servers] == [one.address for one in first.real_servers]
    assert not {one.id for one in copy.real_servers} & {one.id for one in first.real_servers}


@pytest.mark.parametrize("like", ["99", "x", "-1", "9" * 30, "1;drop"])
def test_a_copy_of_nothing_is_an_empty_form(client, like):
    assert form_values(client.get("/services/add/", {"like": like}))["name"] == ""


def test_saving_without_a_change_changes_nothing(client):
    before = draft.current()
    for pk in (1, 2, 3):
        assert client.post(f"/services/{pk}/", values_of(client, pk)).status_code == 302
    assert draft.current() == before


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("name", "", FILL_IN),
        ("name", "shop", "is the name of another virtual service"),
        ("name", "x" * 65, "longer than 64 characters"),
        ("name", "<b>", on_screen(no_service_name("<b>"))),
        ("name", "nul\0", "Null characters"),
        ("address", "", FILL_IN),
        ("address", "192.168.10.300", on_screen(no_address("192.168.10.300"))),
        ("address", "fd00::1", "No interface can carry fd00::1"),
        ("address", "127.0.0.1", "Must be the address of one host"),
        ("port", "", FILL_IN),
        ("port", "0", on_screen(within(1, 65535, 0))),
        ("port", "65536", on_screen(within(1, 65535, 65536))),
        ("port", "hypertext", PORT_NUMBER),
        ("port", "9" * 400, PORT_RANGE),
        ("port", "9" * 9000, PORT_NUMBER),
        ("protocol", "dccp", CHOOSE["invalid_choice"]),
        ("protocol", "", CHOOSE["required"]),
        ("scheduler", "threes", CHOOSE["invalid_choice"]),
        ("persistence", "-1", on_screen(within(0, 2678400, -1))),
        ("persistence", "2678401", on_screen(within(0, 2678400, 2678401))),
        ("persistence", "an hour", WHOLE_NUMBER),
        ("persistence_prefix", "33", on_screen(within(0, 32, 33))),
        ("persistence_prefix", "-1", on_screen(within(0, 32, -1))),
        ("hash_port", "on", "Is an option of source and Maglev hashing"),
        ("one_packet", "on", "Is for UDP only"),
        ("note", "x" * 501, "longer than 500 characters"),
        ("servers-0-state", "asleep", CHOOSE["invalid_choice"]),
        ("servers-0-upper", "-1", on_screen(within(0, 2147483647, -1))),
        ("servers-0-name", "<b>", on_screen(no_service_name("<b>"))),
        ("servers-0-lower", "3", "Needs an upper threshold"),
        ("check_kind", "external", CHOOSE["invalid_choice"]),
        ("check_path", "no slash", "Must begin with /"),
        ("check_expect", "x" * 201, "longer than 200 characters"),
        ("check_matching", "sounds-like", CHOOSE["invalid_choice"]),
        ("check_host", "no host", "Must be the name of a web site"),
        ("check_port", "70000", "Must be 1 to 65535"),
        ("check_interval", "0", on_screen(within(1, 3600, 0))),
        ("check_timeout", "61", on_screen(within(1, 60, 61))),
        ("check_failures", "", FILL_IN),
        ("check_failures", "101", on_screen(within(1, 100, 101))),
        ("check_successes", "0", on_screen(within(1, 100, 0))),
        ("check_retry", "3601", on_screen(within(0, 3600, 3601))),
        ("servers-0-address", "", FILL_IN),
        ("servers-0-address", "elsewhere", on_screen(no_address("elsewhere"))),
        ("servers-0-address", "192.168.10.80", "is the address of virtual service"),
        ("servers-0-port", "-1", on_screen(within(1, 65535, -1))),
        ("servers-0-weight", "", FILL_IN),
        ("servers-0-weight", "65536", on_screen(within(1, 65535, 65536))),
        ("servers-1-port", "80", FILL_IN),
        ("servers-TOTAL_FORMS", "999999", "at most 1000"),
    ],
)
def test_a_wrong_field_is_named_and_nothing_is_saved(client, field, value, sentence):
    before = draft.current()
    answer = client.post("/services/add/", NEW | {field: value})
    assert answer.status_code == 422
    assert sentence in words(answer)
    assert draft.current() == before


def test_the_address_and_port_of_another_service(client):
    answer = client.post("/services/add/", NEW | {"address": "192.168.10.80"})
    assert "another virtual service is 192.168.10.80 port 80 tcp" in words(answer).lower().replace("another", "another")


def test_udp_is_checked_by_connecting_to_a_port_that_is_named(client):
    answer = client.post("/services/add/", NEW | {"protocol": "udp", "check_kind": "connect"})
    assert answer.status_code == 422
    assert answer.context["form"].errors["check_port"]


def test_ports_by_the_names_of_their_services(client):
    named = {"port": "HTTP", "more_ports": "https, 8000-8100", "check_port": "http-alt", "servers-0-port": ""}
    answer = client.post("/services/add/", NEW | named)
    assert answer.status_code == 302
    service = max(draft.current().services, key=lambda one: one.id)
    assert (service.port, service.more_ports, service.check.port) == (80, "443,8000-8100", 8080)


def test_the_same_server_twice(client):
    twice = {"servers-1-address": "10.2.0.41", "servers-1-port": "8080"}
    answer = client.post("/services/add/", NEW | twice)
    assert answer.context["servers"].forms[1].errors


def test_a_row_of_another_service_cannot_be_taken_over(client):
    other = draft.service(2).wish.real_servers[0]
    client.post("/services/add/", NEW | {"servers-0-id": str(other.id)})
    assert stored.service_of(other.id).pk == 2 and stored.server(other.id) == other


def test_another_row_keeps_what_was_entered_and_saves_nothing(client):
    before = draft.current()
    answer = client.post("/services/add/", NEW | {"add_server": "1", "port": "not yet"})
    assert answer.status_code == 200
    assert form_values(answer)["servers-TOTAL_FORMS"] == "3"
    assert form_values(answer)["port"] == "not yet"
    assert PORT_NUMBER not in words(answer)
    assert draft.current() == before


def test_remove_change_and_add_servers_in_one_go(client):
    values = values_of(client) | {
        "servers-0-remove": "on",
        "servers-0-address": "nonsense in a row that goes",
        "servers-1-weight": "7",
        "servers-TOTAL_FORMS": "4",
        "servers-3-address": "10.2.0.19",
        "servers-3-port": "80",
        "servers-3-weight": "1",
    }
    assert client.post("/services/1/", values).status_code == 302
    servers = draft.current().services[0].real_servers
    assert [(one.id, one.address, one.weight, one.state) for one in servers][:2] == [
        (2, "10.2.0.12", 7, "enabled"),
        (3, "10.2.0.13", 1, "disabled"),
    ]
    assert (servers[2].address, servers[2].state) == ("10.2.0.19", "enabled")
    assert servers[2].id > 7


def test_the_time_to_notice(client):
    answer = client.post("/services/detection/", NEW)
    assert "seconds at worst" in words(answer)
    assert "keeps getting connections" in words(client.post("/services/detection/", NEW | {"check_kind": "off"}))
    assert "once the form is complete" in words(client.post("/services/detection/", NEW | {"port": ""}))


def test_the_picture_has_words(client):
    page = client.get("/services/1/").content.decode()
    assert 'aria-label="Clients connect to 192.168.10.80 port 80;' in page
    assert "10.2.0.13 port 80 (disabled)" in page


@pytest.mark.parametrize("url", ["/services/77/", "/services/99999999999999999999/"])
def test_a_service_that_never_was(client, url):
    assert client.get(url).status_code == 404
    assert client.post(url, NEW).status_code == 404


def test_a_form_that_was_tampered_with(client):
    values = values_of(client)
    for change in ({"version": "x"}, {"version": "9" * 40}, {"base": "[" * 5000}, {"base": '{"name": 3}'}):
        answer = client.post("/services/1/", values | {"version": "1"} | change)
        assert answer.status_code in (302, 409)
    assert client.post("/services/add/", {}).status_code == 422
    assert client.get("/services/detection/").status_code == 405


def test_a_program_comes_to_the_box_as_it_was_written(client):
    """Browsers end lines with CR LF, which no interpreter takes in the first one; tabs and the last end stay."""
    text = '#!/bin/sh\r\n\techo "$3"\r\n'
    answer = client.post("/services/add/", NEW | {"check_kind": "program", "check_program": text})
    assert answer.status_code == 302
    assert draft.current().services[-1].check.program == text.replace("\r", "")
    review = client.get("/changes/")
    assert not review.context["problems"]
    assert "Program, added: &#x27;\techo &quot;$3&quot;&#x27;." in review.content.decode()
    page = client.post("/services/add/", NEW | {"check_kind": "program", "check_program": "exit 0"})
    assert page.status_code == 422
    assert "Must begin with a line such as #!/bin/sh" in page.content.decode()


def test_several_requests_are_entered_one_a_line(client):
    text = "/api/health  all is well\r\n\r\n /b \r\n"
    assert client.post("/services/add/", NEW | {"check_more_requests": text}).status_code == 302
    made = draft.current().services[-1]
    assert made.check.more_requests == (Request("/api/health", "all is well"), Request("/b"))
    values = values_of(client, made.id)
    assert values["check_more_requests"] == "/api/health all is well\n/b"
    assert client.post(f"/services/{made.id}/", values).status_code == 302
    assert draft.service(made.id).wish == made


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("/a\r\nhealth ok", "The path of request 2 must begin with /"),
        ("/a\r\n" * 6, "Must be at most 5 beside the first one, not 6"),
        (f"/a {'x' * 201}", "The expected text of request 1 (/a) must not be longer than 200 characters"),
    ],
)
def test_a_request_that_is_none_is_named_beside_its_field(client, text, sentence):
    page = client.post("/services/add/", NEW | {"check_more_requests": text})
    assert page.status_code == 422
    [error] = page.context["form"].errors["check_more_requests"]
    assert sentence in error
    assert text.replace("\r", "").strip() in unescape(page.content.decode())


@pytest.mark.parametrize(
    ("field", "kind", "before", "after"),
    [
        ("check_more_requests", "http", "/a one\n/b", "/a one\n/c"),
        ("check_program", "program", "#!/bin/sh\nexit 0\n", "#!/bin/sh\nexit 1\n"),
    ],
)
def test_what_another_admin_changed_is_taken_where_a_browser_only_ended_lines_anew(client, field, kind, before, after):
    client.post("/services/add/", NEW | {"check_kind": kind, field: before})
    url = f"/services/{draft.current().services[-1].id}/"
    opened = form_values(client.get(url))
    client.post(url, opened | {field: after})
    page = client.post(url, opened | {field: before.replace("\n", "\r\n"), "note": "mine"})
    assert page.status_code == 409
    bound = page.context["form"][field]
    assert (bound.value().strip(), getattr(bound.field, "clash", False)) == (after.strip(), False)


def test_an_authority_of_its_own_comes_to_the_box_as_it_was_pasted(client, tmp_path):
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"]
    words += ["-subj", "/CN=own", "-keyout", tmp_path / "key", "-out", tmp_path / "pem"]
    subprocess.run(words, check=True, capture_output=True)
    pem = (tmp_path / "pem").read_text()
    answer = client.post(
        "/services/add/",
        NEW | {"check_kind": "https", "check_host": "www.example.org", "check_verify": "on", "check_authority": pem},
    )
    assert answer.status_code == 302
    assert draft.current().services[-1].check.authority.strip() == pem.strip()
    review = client.get("/changes/")
    assert review.context["changes"] and not review.context["problems"]
