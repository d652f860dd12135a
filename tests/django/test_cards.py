"""Network cards that a configuration names and this box does not have: what pages and the API say, and offer."""

import dataclasses

import pytest
from api_robot import error, robot
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone
from forms_on_page import form_values, words
from tests import texts

from changes.models import Revision
from draft import store as draft
from lbconfig.model.firewall import Firewall, Rule
from lbconfig.model.snapshot import Interface, to_json


@pytest.fixture
def box(box):
    box.cards = ("eth0", "eth1", "enp3s0", "enp4s0")
    return box


def naming(*cards):
    """The sample with more cards, the first of them in a firewall rule as well."""
    now = draft.current()
    more = (Interface(name, addresses=(f"10.{n}.0.1/24",)) for n, name in enumerate(cards, 20))
    network = dataclasses.replace(now.network, interfaces=(*now.network.interfaces, *more))
    return dataclasses.replace(now, network=network, firewall=Firewall((Rule(1, "first", interface=cards[0]),)))


def cards_of(snapshot):
    return [one.name for one in snapshot.network.interfaces], snapshot.firewall.rules[0].interface


def test_the_review_offers_another_card_for_all_places(client, box):
    draft.replace(naming("eth7"), "admin")
    page = client.get("/changes/")
    text = words(page)
    assert "eth7 (10.20.0.1/24) is not in this box." in text
    assert "leave it missing enp3s0 (52:54:00:00:00:03, 1000 Mbit/s) enp4s0 (" in text
    assert texts.NOT_YET in text
    answer = client.post("/changes/cards/", form_values(page) | {"card-eth7": "enp4s0"}, follow=True)
    assert "The draft has enp4s0 instead of eth7 now." in words(answer)
    assert cards_of(draft.current()) == (["eth0", "eth1", "enp4s0"], "enp4s0")
    assert "not in this box" not in words(answer) and 'action="/changes/apply/"' in answer.content.decode()


def test_one_card_is_not_taken_twice_and_no_other_one_at_all(client, box):
    wish = naming("eth7", "eth8")
    draft.replace(wish, "admin")
    answer = client.post("/changes/cards/", {"card-eth7": "enp3s0", "card-eth8": "enp3s0"})
    assert answer.status_code == 422
    assert "enp3s0 replaces eth7 already. Choose another one." in words(answer)
    assert "are not applied" not in words(answer)  # it is the review, where nobody need be sent to it
    assert client.post("/changes/cards/", {"card-eth7": "eth1"}).status_code == 422
    assert client.post("/changes/cards/", {"card-eth9": "enp3s0"}).status_code == 422
    assert draft.same(draft.current(), wish)


def test_without_a_free_card_the_review_says_so(client, box):
    box.cards = ("eth0", "eth1")
    draft.replace(naming("eth7"), "admin")
    assert "This configuration uses every card of this box." in words(client.get("/changes/"))


def test_a_card_that_got_lost_is_offered_another_one_and_stops_nothing(client, box):
    box.cards = ("eth0", "enp3s0")
    client.post("/services/1/", form_values(client.get("/services/1/")) | {"scheduler": "lc"})
    page = client.get("/changes/")
    assert "eth1 (10.2.0.1/24) is not in this box." in words(page)
    assert 'action="/changes/apply/"' in page.content.decode()


@pytest.fixture(params=["import", "history"])
def place(request, client, box):
    """A configuration with eth7 before the draft becomes it: the address of the page."""
    wish = naming("eth7")
    if request.param == "import":
        file = SimpleUploadedFile("other.json", to_json(wish).encode())
        return client.post("/configuration/import/", {"file": file}).headers["Location"]
    Revision.objects.create(number=9, created=timezone.now(), outcome="confirmed", snapshot=to_json(wish))
    return "/history/9/restore/"


def test_another_card_is_chosen_before_the_draft_is_replaced(client, place):
    page = client.get(place)
    assert "eth7 (10.20.0.1/24) is not in this box." in words(page)
    before = draft.current()
    chosen = client.post(place, form_values(page) | {"card-eth7": "enp3s0", "preview": "yes"})
    assert "Allow everything by enp3s0 to this box." in words(chosen)
    assert draft.current() == before
    sent = form_values(chosen)
    assert sent["card-eth7"] == "enp3s0"
    assert client.post(place, sent).headers["Location"] == "/changes/"
    assert cards_of(draft.current()) == (["eth0", "eth1", "enp3s0"], "enp3s0")


def test_a_card_that_is_chosen_is_taken_though_nobody_asked_to_see_it_first(client, place):
    """The one button that everybody finds sends the choice along."""
    page = client.get(place)
    assert 'name="card-eth7" form="replace"' in page.content.decode()
    assert client.post(place, form_values(page) | {"card-eth7": "enp3s0"}).headers["Location"] == "/changes/"
    assert cards_of(draft.current()) == (["eth0", "eth1", "enp3s0"], "enp3s0")


def test_a_choice_that_is_no_longer_there_is_not_forgotten_in_silence(client, box):
    file = SimpleUploadedFile("other.json", to_json(naming("eth7")).encode())
    place = client.post("/configuration/import/", {"file": file}).headers["Location"]
    sent = form_values(client.get(place)) | {"card-eth7": "enp3s0"}
    before = draft.current()
    box.cards = ("eth0", "eth1", "eth7")
    answer = client.post(place, sent)
    assert answer.status_code == 422
    assert "There is nothing to choose for eth7 any more. Look at it again." in words(answer)
    assert draft.current() == before


def test_the_api_names_the_cards_and_takes_others(client, admin, box):
    one = robot(admin)
    draft.replace(naming("eth7"), "admin")
    found = one.get("/draft/review").json()
    assert found["problems"][0]["path"] == "network.interfaces[eth7].name"
    assert found["missing_cards"] == [{"name": "eth7", "sentence": "eth7 (10.20.0.1/24) is not in this box."}]
    assert [card["name"] for card in found["free_cards"]] == ["enp3s0", "enp4s0"]
    refused = one.post("/draft/cards", {"cards": [{"name": "eth7", "take": "eth1"}]})
    assert refused.status_code == 422
    assert error(refused)["problems"] == [
        {
            "object": "card 'eth7'",
            "field": "take",
            "message": "must be one of enp3s0, enp4s0, not 'eth1'",
            "path": "cards[0].take",
        }
    ]
    assert one.post("/draft/cards", {"cards": [{"name": "eth7", "take": "enp3s0"}]}).status_code == 200
    assert cards_of(draft.current()) == (["eth0", "eth1", "enp3s0"], "enp3s0")
    assert one.get("/draft/review").json()["problems"] == []
