"""Configurations as people have them (test_shapes.py): by the API, through the forms, in the review."""

import dataclasses

import pytest
from api_robot import robot
from forms_on_page import form_values
from test_shapes import SHAPES

from draft import store as draft
from lbconfig.model.snapshot import Interface, VirtualService, to_data

FEW = 2  # services of each that go through the form


@pytest.fixture(params=SHAPES)
def wish(request, client):
    """The sample box with these services and an interface that has a network for them."""
    now = draft.current()
    interfaces = (*now.network.interfaces, Interface("eth2", addresses=("10.0.2.15/24",)))
    network = dataclasses.replace(now.network, interfaces=interfaces)
    return dataclasses.replace(now, network=network, services=SHAPES[request.param])


def test_the_api_takes_it_and_the_review_has_nothing_against_it(client, admin, wish):
    one = robot(admin)
    answer = one.put("/draft", to_data(wish), If_Match="*")
    assert answer.status_code == 200, answer.content
    assert draft.same(draft.current(), wish)
    found = one.get("/draft/review").json()
    assert found["problems"] == []
    assert found["diff"]["ldirectord.cf"].count("\n+virtual=") == len(wish.services)


def test_the_form_says_it_as_well(client, wish):
    """Entered anew: a new service of the same values is the same one."""
    draft.replace(wish, "admin")
    for one in wish.services[:FEW]:
        values = form_values(client.get(f"/services/{one.id}/"))
        draft.replace(dataclasses.replace(wish, services=tuple(s for s in wish.services if s.id != one.id)), "admin")
        empty = form_values(client.get("/services/add/"))
        entered = values | {name: empty[name] for name in ("version", "base") if name in empty}
        entered["servers-INITIAL_FORMS"] = "0"
        answer = client.post("/services/add/", {name: v for name, v in entered.items() if not name.endswith("-id")})
        assert answer.status_code == 302, answer.context["form"].errors
        made = next(service for service in draft.current().services if service.name == one.name)
        assert without_ids(made) == without_ids(one)
        draft.replace(wish, "admin")


def without_ids(service: VirtualService) -> VirtualService:
    reals = tuple(dataclasses.replace(real, id=0) for real in service.real_servers)
    return dataclasses.replace(service, id=0, real_servers=reals)
