"""A port may be given by the name of its service, wherever one is given: in forms, in files, by the API."""

import dataclasses
import json
import typing

import pytest
from api_robot import error, robot
from django import forms
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import get_resolver
from forms_on_page import form_values, words
from services_on_page import NEW

from api import bodies
from draft import store as draft
from lbconfig.model.snapshot import Snapshot, to_data
from web.fields import PORT_NUMBER, PortField, PortsField

IN_REQUESTS = [kind for kind in vars(bodies).values() if isinstance(kind, type) and dataclasses.is_dataclass(kind)]


def below(kind):
    """A class and all that are derived from it."""
    return {kind, *(deeper for one in kind.__subclasses__() for deeper in below(one))}


def inside(kind):
    """A dataclass and those that its fields are made of."""
    found = {kind}
    for hint in typing.get_type_hints(kind).values():
        for one in (hint, *typing.get_args(hint)):
            if dataclasses.is_dataclass(one):
                found |= inside(one)
    return found


def is_port(name: str) -> bool:
    return name == "port" or name.endswith("_port")


def is_ports(name: str) -> bool:
    return name == "ports" or name.endswith("_ports")


def test_no_field_of_a_form_is_forgotten():
    assert get_resolver().url_patterns  # whatever has a page is loaded
    every = [(form, getattr(form, "base_fields", {})) for form in below(forms.BaseForm)]
    fields = {
        (form, name): one for form, own in every for name, one in own.items() if not isinstance(one, forms.BooleanField)
    }
    numbers = {key: one for key, one in fields.items() if is_port(key[1])}
    assert {key for key, one in numbers.items() if not isinstance(one, PortField)} == set()
    lists = {key: one for key, one in fields.items() if is_ports(key[1])}
    assert {key for key, one in lists.items() if not isinstance(one, PortsField)} == set()
    assert {form.__module__ for form, _ in numbers} == {"balancing.forms", "network.forms", "firewall.forms"}
    assert {form.__module__ for form, _ in lists} == {"balancing.forms", "firewall.forms"}


def test_no_field_of_a_file_or_a_request_is_forgotten():
    missing = set()
    for kind in {one for top in (Snapshot, *IN_REQUESTS) for one in inside(top)}:
        hints = typing.get_type_hints(kind)
        for field in dataclasses.fields(kind):
            number = hints[field.name] is int and is_port(field.name) and not field.metadata.get("port")
            listed = hints[field.name] is str and is_ports(field.name) and not field.metadata.get("ports")
            if number or listed:
                missing.add(f"{kind.__name__}.{field.name}")
    assert missing == set()


def test_in_the_form_of_a_service(client):
    named = {
        "port": "HTTPS", "more_ports": "ldap, 8000-8100", "check_port": "http-alt", "fallback_kind": "server",
        "fallback_address": "10.2.0.49", "fallback_port": "http", "servers-0-port": "",
    }  # fmt: skip
    assert client.post("/services/add/", NEW | named).status_code == 302
    made = draft.current().services[-1]
    assert (made.port, made.more_ports, made.check.port) == (443, "389,8000-8100", 8080)
    one = NEW | {"name": "one", "port": "imaps", "fallback_kind": "server", "fallback_address": "10.2.0.49"}
    one |= {"fallback_port": "imap", "servers-0-port": "imaps", "agent_kind": "text", "agent_port": "http"}
    assert client.post("/services/add/", one | {"scheduler": "wrr"}).status_code == 302
    made = draft.current().services[-1]
    assert (made.port, made.fallback.port, made.real_servers[0].port, made.agent.port) == (993, 143, 993, 80)


def test_in_the_other_forms(client):
    page = client.get("/access/")
    assert client.post("/access/", form_values(page) | {"port": "http-alt"}).status_code == 302
    assert draft.current().management.port == 8080
    client.get("/")  # which says that it is saved
    packet = {"source": "203.0.113.7", "destination": "192.168.10.80", "protocol": "tcp", "interface": "eth0"}
    by_name = client.get("/firewall/test/", packet | {"port": "http", "source_port": "ntp"})
    by_number = client.get("/firewall/test/", packet | {"port": "80", "source_port": "123"})
    assert by_name.status_code == 200 and "shop" in words(by_name)
    assert words(by_name) == words(by_number)
    wrong = client.get("/firewall/test/", packet | {"port": "htps"})
    assert PORT_NUMBER in words(wrong)


NAMED = {
    "name": "by name", "address": "192.168.10.90", "port": "https", "check": {"kind": "connect", "port": "ldap"},
    "fallback": {"kind": "server", "address": "10.2.0.49", "port": "http"},
    "real_servers": [{"address": "10.2.0.41", "port": "https"}],
}  # fmt: skip


def test_by_the_api(client, admin):
    one = robot(admin)
    made = one.post("/services", NAMED).json()
    numbers = (made["port"], made["check"]["port"], made["fallback"]["port"], made["real_servers"][0]["port"])
    assert numbers == (443, 389, 80, 443)
    place = f"/services/{made['id']}"
    assert one.patch(place, {"port": "ldaps", "agent": {"kind": "text", "port": "http"}}).json()["port"] == 636
    assert one.post(f"{place}/clone", {"name": "copy", "port": "ldap"}).json()["port"] == 389
    several = {"more_ports": "imaps,https", "real_servers": []}
    assert one.patch(place, several).json()["more_ports"] == "443,993"
    assert one.patch("/management", {"port": "http-alt"}).json()["value"]["port"] == 8080
    rule = {"id": 1, "name": "names", "protocol": "udp", "ports": "ntp,domain"}
    assert one.patch("/firewall", {"rules": [rule]}).json()["value"]["rules"][0]["ports"] == "53,123"
    packet = {"source": "10.0.0.9", "destination": "192.168.10.80", "interface": "eth0", "port": "http"}
    assert one.post("/firewall/test", packet).json() == one.post("/firewall/test", packet | {"port": 80}).json()


@pytest.mark.parametrize("port", ["htps", "", "80", "https\x00"])
def test_what_is_no_name_is_refused_by_its_field(client, admin, port):
    refused = robot(admin).patch("/services/1", {"port": port})
    problem = error(refused)["problems"][0]
    assert (refused.status_code, problem["field"], problem["path"]) == (422, "port", "services[id=1].port")
    assert problem["message"].startswith("must be a whole number or the name of a service such as https, not ")
    assert problem["message"].isprintable()


def test_in_a_file(client):
    data = to_data(draft.current())
    first = data["services"][0]
    first["port"], first["check"]["port"], first["real_servers"][0]["port"] = "ldaps", "ldap", "http"
    data["management"]["port"] = "http-alt"
    file = SimpleUploadedFile("named.json", json.dumps(data).encode())
    place = client.post("/configuration/import/", {"file": file}).headers["Location"]
    assert client.post(place, form_values(client.get(place))).headers["Location"] == "/changes/"
    made = draft.current()
    numbers = (made.services[0].port, made.services[0].check.port, made.services[0].real_servers[0].port)
    assert (*numbers, made.management.port) == (636, 389, 80, 8080)
