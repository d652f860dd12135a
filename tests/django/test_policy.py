"""How connections are treated: one page for the whole box."""

import dataclasses

import pytest
from forms_on_page import form_values, words
from tests.texts import on_screen, within

from draft import store as draft
from draft.merge import changed_to
from lbconfig.model.snapshot import FloodDefence, Policy
from web.fields import CHOOSE, FILL_IN, WHOLE_NUMBER


def save(client, **changes):
    values = form_values(client.get("/connections/")) | changes
    return client.post("/connections/", {name: value for name, value in values.items() if value is not None})


def test_saving_without_a_change_changes_nothing(client):
    before = draft.current()
    assert save(client).status_code == 302
    assert draft.current() == before
    assert before.policy == Policy()


def test_it_is_saved_and_reviewed(client):
    assert save(client, udp_timeout="30", adopt="on", release_persistent=None).status_code == 302
    assert draft.current().policy == Policy(udp_timeout=30, adopt=True, release_persistent=False)
    review = words(client.get("/changes/"))
    assert "A silent UDP exchange is forgotten after: 30 s instead of 300 s." in review
    assert "Take TCP connections that began elsewhere: yes." in review
    assert "Persistent clients leave a server that drains or is down: no." in review
    assert "This applies to all services" in review


def test_when_the_table_gives_way_is_chosen_and_reviewed(client):
    assert save(client, flood_defence="always").status_code == 302
    assert draft.current().policy == Policy(flood_defence=FloodDefence.ALWAYS)
    review = words(client.get("/changes/"))
    assert "turn some new ones away: half-open ones all the time instead of when memory runs short." in review


@pytest.mark.parametrize("value", ["", "sometimes", "ALWAYS", "1; reboot", "always\n", "9" * 400])
def test_what_is_no_choice_is_refused(client, value):
    before = draft.current()
    answer = save(client, flood_defence=value)
    assert answer.status_code == 422
    assert any(sentence in words(answer) for sentence in CHOOSE.values())
    assert draft.current() == before


@pytest.mark.parametrize("name", ["tcp_timeout", "fin_timeout", "udp_timeout"])
@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("", FILL_IN),
        ("soon", WHOLE_NUMBER),
        ("1.5", WHOLE_NUMBER),
        ("0", on_screen(within(1, 2678400, 0))),
        ("-1", on_screen(within(1, 2678400, -1))),
        ("2678401", on_screen(within(1, 2678400, 2678401))),
        ("9" * 400, "less than or equal to"),
    ],
)
def test_a_wrong_time_is_named_and_nothing_is_saved(client, name, value, sentence):
    before = draft.current()
    answer = save(client, **{name: value})
    assert answer.status_code == 422
    assert sentence in words(answer)
    assert draft.current() == before


def test_two_admins(client, alice):
    mine, hers = form_values(client.get("/connections/")), form_values(alice.get("/connections/"))
    alice.post("/connections/", hers | {"adopt": "on"})
    answer = client.post("/connections/", mine | {"udp_timeout": "30"})
    assert answer.status_code == 409
    assert f"{changed_to('alice')} on" in words(answer)
    assert client.post("/connections/", form_values(answer)).status_code == 302
    assert draft.current().policy == dataclasses.replace(Policy(), adopt=True, udp_timeout=30)
