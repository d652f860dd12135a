"""Virtual services that somebody else has changed or deleted meanwhile, in another window or at another desk."""

import stored
from forms_on_page import form_values, words
from services_on_page import values_of
from tests import texts

from draft import store as draft
from draft.merge import changed_to
from draft.models import Service


def test_two_admins_change_different_fields(client, alice):
    mine, hers = values_of(client), values_of(alice)
    alice.post("/services/1/", hers | {"scheduler": "lc", "servers-1-weight": "9"})
    answer = client.post("/services/1/", mine | {"name": "shop window"})
    assert answer.status_code == 409
    assert f"{changed_to('alice')} least connections (lc) at" in words(answer)
    assert "alice changed weight to “9” at" in words(answer)
    assert Service.objects.get(pk=1).wish.name == "shop"
    again = form_values(answer)
    assert (again["name"], again["scheduler"], again["servers-1-weight"]) == ("shop window", "lc", "9")
    assert client.post("/services/1/", again).status_code == 302
    service = draft.current().services[0]
    assert (service.name, service.scheduler, service.real_servers[1].weight) == ("shop window", "lc", 9)


def test_two_admins_change_the_same_field(client, alice):
    mine, hers = values_of(client), values_of(alice)
    alice.post("/services/1/", hers | {"name": "hers"})
    answer = client.post("/services/1/", mine | {"name": "mine"})
    assert f"{changed_to('alice')} “hers” at" in words(answer)
    assert "you entered something else" in words(answer)
    assert client.post("/services/1/", form_values(answer)).status_code == 302
    assert Service.objects.get(pk=1).wish.name == "mine"


def test_two_admins_and_the_rows(client, alice):
    mine, hers = values_of(client), values_of(alice)
    added = {
        "servers-TOTAL_FORMS": "4",
        "servers-3-address": "10.2.0.18",
        "servers-3-port": "80",
        "servers-3-weight": "1",
    }
    alice.post("/services/1/", hers | added | {"servers-0-remove": "on"})
    answer = client.post("/services/1/", mine | {"servers-1-weight": "3"})
    assert "alice added this server at" in words(answer)
    assert "alice removed this server at" in words(answer)
    values = form_values(answer)
    assert [values[f"servers-{row}-address"] for row in range(4)] == [
        "10.2.0.11",
        "10.2.0.12",
        "10.2.0.13",
        "10.2.0.18",
    ]
    assert client.post("/services/1/", values).status_code == 302
    assert len(draft.current().services[0].real_servers) == 4


def test_the_other_window_of_the_same_admin(client):
    old = values_of(client)
    client.post("/services/1/", old | {"name": "first"})
    answer = client.post("/services/1/", old | {"name": "second"})
    assert f"{changed_to('You')} “first” in another window" in words(answer)


def test_saving_what_another_admin_has_removed(client, alice):
    mine = values_of(client)
    version = form_values(alice.get("/services/1/delete/"))
    assert alice.post("/services/1/delete/", version).status_code == 302
    answer = client.post("/services/1/", mine | {"name": "still wanted"})
    assert answer.status_code == 409
    assert "alice removed this virtual service at" in words(answer)
    assert stored.named("still wanted") is None
    assert client.post("/services/1/", form_values(answer)).status_code == 302
    assert len(stored.named("still wanted").wish.real_servers) == 3


def test_delete_asks_and_asks_again_after_another_one_edited(client, alice):
    question = client.get("/services/1/delete/")
    assert "Delete shop?" in words(question)
    alice.post("/services/1/", values_of(alice) | {"name": "shop two"})
    answer = client.post("/services/1/delete/", form_values(question))
    assert answer.status_code == 409
    assert "alice changed this virtual service at" in words(answer)
    assert Service.objects.filter(pk=1).exists()
    assert client.post("/services/1/delete/", form_values(answer)).status_code == 302
    assert not Service.objects.filter(pk=1).exists()
    assert texts.REMOVAL_WAITS in words(client.get("/"))
