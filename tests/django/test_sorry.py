"""Who answers while all real servers are down: in a service, and the text of the sorry page."""

from dataclasses import replace

import pytest
from forms_on_page import form_values, words
from tests.fake import appliance
from tests.texts import no_address, on_screen

from draft import store as draft
from draft.merge import changed_to
from lbconfig.model.snapshot import Fallback, FallbackCheck, FallbackKind, SorryPage
from web.fields import CHOOSE, FILL_IN, PORT_NUMBER


def save(client, url: str, **changes):
    return client.post(url, form_values(client.get(url)) | changes)


SERVER = {"fallback_kind": "server", "fallback_address": "10.2.0.99"}


def test_a_service_shows_the_sorry_page(client):
    assert save(client, "/services/1/", fallback_kind="page").status_code == 302
    assert draft.service(1).wish.fallback == Fallback(FallbackKind.PAGE)
    assert "clients of: shop" in words(client.get("/sorry/"))
    assert "While all real servers are down, the sorry page answers." in words(client.get("/changes/"))


def test_a_fallback_server_is_checked(client, box):
    assert save(client, "/services/1/", **SERVER, fallback_check="same").status_code == 302
    fallback = Fallback(FallbackKind.SERVER, "10.2.0.99", check=FallbackCheck.SAME)
    assert draft.current().services[0].fallback == fallback
    assert "(checked: by the health check of this service)" in words(client.get("/changes/"))
    service, *others = box.snapshot.services
    box.snapshot = replace(box.snapshot, services=(replace(service, fallback=fallback), *others))
    assert "fallback" not in words(client.get("/"))
    box.down = {("10.2.0.99", 80)}
    assert "the fallback server 10.2.0.99:80 is down: 503 Service Unavailable" in words(client.get("/"))
    box.down |= {(one.address, one.port) for one in service.real_servers}
    assert "the fallback server 10.2.0.99:80 is down, too: 503 Service Unavailable" in words(client.get("/"))
    box.down -= {("10.2.0.99", 80)}
    assert "fallback 10.2.0.99:80 serves" in words(client.get("/"))


def test_a_service_has_a_fallback_server(client):
    assert save(client, "/services/1/", **SERVER, fallback_port="8080").status_code == 302
    assert draft.current().services[0].fallback == Fallback(FallbackKind.SERVER, "10.2.0.99", 8080)
    save(client, "/services/1/", fallback_kind="none")
    assert draft.current().services[0].fallback == Fallback()


@pytest.mark.parametrize(
    ("url", "values", "sentence"),
    [
        ("/services/1/", SERVER | {"fallback_address": ""}, on_screen(no_address(""))),
        ("/services/1/", SERVER | {"fallback_address": "10.2.0.11"}, "This service has a real server"),
        ("/services/1/", SERVER | {"fallback_port": "x"}, PORT_NUMBER),
        ("/services/1/", SERVER | {"fallback_check": "often"}, CHOOSE["invalid_choice"]),
        (
            "/services/1/",
            SERVER | {"fallback_check": "connect", "protocol": "udp", "check_port": "80"},
            "UDP servers take no TCP connections",
        ),
        ("/services/1/", {"fallback_kind": "haiku"}, CHOOSE["invalid_choice"]),
        ("/services/1/", {"fallback_kind": "page", "check_kind": "off"}, "needs a health check"),
        ("/sorry/", {"title": ""}, FILL_IN),
        ("/sorry/", {"title": "a" * 101}, "at most 100 characters"),
        ("/sorry/", {"paragraphs": "a" * 501}, "Must have paragraphs of 1 to 500 characters"),
        ("/sorry/", {"paragraphs": "a\n" * 21}, "Must not have more than 20 paragraphs"),
        ("/sorry/", {"title": "\u202e"}, "printed"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_named_and_nothing_is_saved(client, url, values, sentence):
    before = draft.current()
    answer = save(client, url, **values)
    assert answer.status_code == 422
    assert sentence in words(answer)
    assert draft.current() == before


def test_the_text_of_the_sorry_page(client):
    answer = save(client, "/sorry/", title="Back at 8 <b>", paragraphs="We are moving.\r\n\r\n  \U0001f600 & co. ")
    assert answer.headers["Location"] == "/sorry/"
    assert draft.current().sorry == SorryPage("Back at 8 <b>", ("We are moving.", "\U0001f600 & co."))
    page = client.get("/sorry/preview/").content.decode()
    assert "<h1>Back at 8 &lt;b&gt;</h1>" in page and "<p>\U0001f600 &amp; co.</p>" in page
    assert save(client, "/sorry/").status_code == 302
    assert draft.current().sorry.paragraphs == ("We are moving.", "\U0001f600 & co.")


def test_two_admins_on_the_sorry_page(client, alice):
    mine, hers = form_values(client.get("/sorry/")), form_values(alice.get("/sorry/"))
    alice.post("/sorry/", hers | {"title": "Hers and mine"})
    answer = client.post("/sorry/", mine | {"paragraphs": "Mine.\nAll mine."})
    assert answer.status_code == 409
    assert f"{changed_to('alice')} Hers and mine" in words(answer)
    assert client.post("/sorry/", form_values(answer)).status_code == 302
    assert draft.current().sorry == SorryPage("Hers and mine", ("Mine.", "All mine."))


def test_the_overview_says_who_answers(client):
    save(client, "/services/1/", fallback_kind="page")
    box = appliance.box
    client.post("/changes/apply/", form_values(client.get("/changes/")))
    assert "sorry page shown" not in words(client.get("/"))
    box.down |= {(one.address, one.port) for one in box.snapshot.services[0].real_servers}
    assert "sorry page shown" in words(client.get("/"))
