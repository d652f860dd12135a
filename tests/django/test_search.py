"""Search: every page and every setting is found, services and servers too, and each leads to its place."""

import re
from dataclasses import replace

import pytest
from django import forms
from django.urls import get_resolver, reverse
from forms_on_page import words
from test_guide import FRAME, pages

from draft import store as draft
from draft.models import Service
from lbconfig.model.network import Interface
from lbconfig.model.snapshot import RealServer, VirtualService
from search import settings
from search.entries import Entry, best, question

# Shown to whoever is not logged in, or by machines alone: one does not come to them by a search.
UNLISTED_FORMS = {
    "LogInForm", "CodeForm", "SetUpForm", "OperationForm", "SourceForm", "OutlookForm", "RoutesForm", "CardsForm",
    "ChoiceForm",  # only while both boxes of a pair are being updated
    "HoldForm",  # only in a pair is there something to hold
    "PairForm",  # only where two boxes know each other
    "CardsOfNewBoxForm",  # the same of a box that is replaced
    "ApplyForm",  # CommentForm with what the browser sends back unseen
}  # fmt: skip
# They need an object, or lead on from another page.
UNLISTED_PAGES = {"search", "compare", "import", "sorry-preview", "schema"}


def found(client, asked: str, live: bool = True) -> list[tuple[str, str]]:
    """The addresses and titles that are found, in their order."""
    headers = {"HTTP_HX_REQUEST": "true"} if live else {}
    text = client.get("/search/", {"q": asked}, **headers).content.decode()
    return re.findall(r'<li><a href="([^"]+)"><strong>(.*?)</strong>', text)


def subclasses(kind: type) -> set[type]:
    return {one for child in kind.__subclasses__() for one in {child, *subclasses(child)}}


def test_every_page_of_the_navigation_is_found_by_its_title(client):
    for name, url in pages().items():
        answer = client.get(url)
        simple = not next(one for one in get_resolver().url_patterns if one.name == name).pattern.converters
        if answer.status_code == 200 and simple and FRAME in answer.content.decode() and name not in UNLISTED_PAGES:
            title = settings.PLACES[name].title
            assert url in [place for place, _ in found(client, title)], name


def test_every_form_is_listed():
    ours = {one for one in subclasses(forms.BaseForm) if not one.__module__.startswith("django")}
    listed = {shown.form for shown in settings.FORMS}
    assert {one.__name__ for one in ours - listed} == UNLISTED_FORMS


@pytest.mark.parametrize("shown", settings.FORMS, ids=lambda shown: shown.form.__name__)
def test_every_field_is_found_by_its_label_and_leads_to_its_place(client, shown):
    """Where the page shows it always: at an anchor that the page has."""
    made = list(shown.entries())
    assert made, "a form without fields that are seen"
    for entry in made:
        assert entry in best(settings.entries(), f"{entry.title} {entry.where}", 8), entry.title
    pages = {url: client.get(url).content.decode() for url in {entry.url.partition("#")[0] for entry in made}}
    for entry in made:
        url, _, anchor = entry.url.partition("#")
        assert not anchor or f'id="{anchor}"' in pages[url], entry


@pytest.mark.parametrize("name", settings.OTHER_WORDS)
def test_other_words_are_of_fields_that_exist(name):
    form, _, field = name.partition(".")
    assert field in next(shown.form for shown in settings.FORMS if shown.form.__name__ == form).base_fields


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("VIP", "Virtual address (VIP)"),
        ("dsr", "Forwarding method"),
        ("sticky", "Persistence timeout (seconds)"),
        ("failover", "Sorry page"),
        ("certificate", "Certificate"),
        ("reboot", "Updates"),
        ("backup", "Backup file"),
        ("mtu", "MTU"),
        ("vlan id", "VLAN ID"),
        ("somaxconn", "net.core.somaxconn"),
        ("go back to an earlier state", "Go back to an earlier state"),  # a section of the guide
    ],
)
def test_words_that_admins_have_for_it(client, asked, expected):
    assert expected in [title for _, title in found(client, asked)]


@pytest.fixture
def named(client):
    """A service and a server with names in a script that SQLite has no capital letters for."""
    servers = (RealServer(70, "10.2.0.77", 8080, name="Äpfel"),)
    service = VirtualService(
        70, "Büro Ölpreis", "192.168.10.99", 8443, note="for Émile", real_servers=servers, tags=("Vertrieb",)
    )
    return draft.write_service(service, Service(), "admin")


@pytest.mark.parametrize(
    "asked", ["büro", "ölpreis", "192.168.10.99", "8443", "192.168.10.99:8443", "émile", "vertrieb"]
)
def test_a_service_is_found_by_name_address_port_note_and_tag(client, named, asked):
    assert found(client, asked)[0] == (f"/services/{named.pk}/", "Büro Ölpreis")


@pytest.mark.parametrize("asked", ["äpfel", "10.2.0.77", "10.2.0.77:8080"])
def test_a_server_is_found_by_name_and_address(client, named, asked):
    assert found(client, asked)[0] == ("/servers/10.2.0.77/", "Äpfel")


def test_a_setting_of_services_leads_to_a_service_and_offers_others(client):
    page = client.get("/search/", {"q": "persistence timeout"}, HTTP_HX_REQUEST="true").content.decode()
    assert "/services/1/#at-id_persistence" in page and "/services/add/#at-id_persistence" in page
    assert FRAME not in page


def test_as_a_page_and_straight_to_the_only_place(client, named):
    page = client.get("/search/", {"q": "timeout"}).content.decode()
    assert FRAME in page and 'value="timeout"' in page and "/connections/#at-id_tcp_timeout" in page
    assert client.get("/search/", {"q": "büro"}).headers["Location"] == f"/services/{named.pk}/"


def test_nothing_found_says_what_to_try(client):
    assert "Nothing found for “zzz <b>”. Try a single word" in words(client.get("/search/", {"q": "zzz <b>"}))
    assert "Finds pages, settings" in words(client.get("/search/"))


def test_it_takes_a_few_queries_however_much_is_configured(client, django_assert_max_num_queries):
    with django_assert_max_num_queries(16):  # those of the session among them
        assert found(client, "persistence")


def test_only_for_who_is_logged_in(client):
    client.logout()
    assert client.get("/search/", {"q": "shop"}).status_code == 302


def test_what_is_looked_for_is_short_and_in_one_line():
    assert question("  a \n b ") == "a b"
    assert len(question("x" * 1000)) == 100
    assert best([Entry("a", "/", "")], "", 9) == []


def test_a_header_field_is_on_every_page(client):
    assert f'action="{reverse("search")}"' in client.get("/network/").content.decode()


def test_no_setting_keeps_the_names_of_interfaces_of_one_moment(client):
    """Its entries are made once, and the draft goes on."""
    now = draft.current()
    interfaces = (*now.network.interfaces, Interface("zz9", addresses=("10.99.0.1/24",)))
    draft.replace(replace(now, network=replace(now.network, interfaces=interfaces)), "")
    kept = [entry for shown in settings.FORMS for entry in shown.entries()]
    assert kept and not [entry for entry in kept if "zz9" in repr(entry)]
