"""Help: the guide in the box, and the way from each page to its place there."""

import re
from dataclasses import replace
from html import unescape
from urllib.parse import urljoin

import pytest
from board.common import guide as rendering
from django.test import Client
from django.urls import get_resolver, resolve, reverse
from forms_on_page import form_values
from tests.fake import appliance, drift
from tests.fake import pair as fake_pair

from guide import book
from guide.places import PLACES
from web import faults

# What a browser is shown only in answer to a form, or is sent on from; the rest of PLACES is opened here.
IN_BETWEEN = {
    "apply", "hardware-tune", "history-keep", "import-review", "keep", "pair-draft", "progress", "restore-review",
    "restored", "review-cards", "revision-comment", "token-make", "update-restarting", "update-review",
}  # fmt: skip
ARGUMENTS = {"pk": 1, "number": 2, "address": "10.2.0.11", "slot": "B", "apply_id": "a-1", "name": "plan"}
QUERIES = {"compare": "?old=1&new=2"}
FRAME = '<nav aria-label="Pages">'
LINK = re.compile(r'<a\b[^>]* href="(/[^"#]*|\?[^"#]*)')
HELP = re.compile(r'<a class="help"[^>]* href="([^"]*)"')


def pages() -> dict[str, str]:
    """Name -> address, of all that is opened by a browser and needs nothing but what the sample box has."""
    found = {}
    for pattern in get_resolver().url_patterns:
        name = pattern.name
        given = {key: ARGUMENTS.get(key) for key in pattern.pattern.converters}
        if name not in IN_BETWEEN | {"api-v1", "logout"} and None not in given.values():
            found[name] = reverse(name, kwargs=given) + QUERIES.get(name, "")
    return found


def test_every_page_with_the_navigation_leads_to_its_place_in_the_guide(client):
    client.post("/firewall/add/", form_values(client.get("/firewall/add/")) | {"name": "ping", "protocol": "ping"})
    places = {}
    for name, url in pages().items():
        text = client.get(url, follow=name in PLACES).content.decode()
        if FRAME in text:
            assert f'href="{reverse("help")}"' in text, name
            found = HELP.search(text)
            places[name] = found and found[1]
    assert {name for name in places if places[name] is None} == {"help", "help-page"}
    assert places.keys() | IN_BETWEEN >= PLACES.keys(), "opened here, or named above"
    assert places["service-edit"] == "/help/first-service/"
    assert places["names"] == "/help/network/#names-and-time"


def linked(client: Client, first: str, names: frozenset[str] = frozenset()) -> frozenset[str]:
    """`names`, and those of the pages that links lead to from this address on; one page of each name is opened."""
    left, found = [first], set(names)
    while left:
        url = left.pop()
        answer = client.get(url)
        text = "" if answer.streaming else answer.content.decode()
        for href in LINK.findall(text) if FRAME in text else ():
            to = urljoin(url, unescape(href))
            name = resolve(to.partition("?")[0]).url_name
            if name not in found:
                found.add(name)
                left.append(to)
    return frozenset(found)


def test_every_page_is_reached_by_links(client, box):
    """By the keyboard, too: nobody has to know an address. Search is a form on every page."""
    client.post("/firewall/add/", form_values(client.get("/firewall/add/")) | {"name": "ping", "protocol": "ping"})
    box.drift.found = drift.sample()
    found = linked(client, "/")
    box.pair = fake_pair.sample()
    found = linked(client, "/system/pair/", found)
    appliance.Fake().pair_hold(4, "admin")
    box.pair.peer = replace(box.pair.peer, digest="c" * 64, lineage=("c" * 64,), revision=4)
    found = linked(client, "/system/pair/", found)
    box.pair.silent = 600.0
    found = linked(client, "/system/pair/", found)
    assert sorted(PLACES.keys() - IN_BETWEEN - {"import", "search"} - found) == []


@pytest.mark.parametrize("name", PLACES)
def test_a_place_exists(name):
    assert name in {pattern.name for pattern in get_resolver().url_patterns}
    page, _, anchor = PLACES[name].partition("#")
    assert page in book.pages()
    assert not anchor or f' id="{anchor}"' in book.pages()[page].html


@pytest.mark.parametrize("name", rendering.render())
def test_a_page_is_shown_and_what_it_links_exists(client, name):
    page = book.pages()[name]
    answer = client.get(reverse("help-page", args=[name]))
    text = answer.content.decode()
    assert answer.status_code == 200
    assert page.html in text and f"<title>{page.title} ·" in text
    for href in re.findall(r'<a href="(/[^"#]*)', page.html):
        resolve(href)


def test_the_guide_begins_with_its_index(client):
    assert book.pages()[book.INDEX].html in client.get("/help/").content.decode()
    assert book.INDEX == rendering.INDEX == next(iter(book.pages()))


def test_the_renderer_knows_where_the_box_has_its_pages(settings):
    assert reverse("help") == rendering.HELP
    assert resolve(f"{rendering.HELP}plan/").url_name == "help-page"
    assert f"{settings.STATIC_URL}guide/" == rendering.PICTURES
    assert ("guide", rendering.GUIDE / "pictures") in settings.STATICFILES_DIRS


def test_a_page_that_the_guide_does_not_have(client):
    answer = client.get("/help/nothing/")
    assert answer.status_code == 404 and faults.NOT_FOUND.title in answer.content.decode()


def test_help_needs_a_log_in(stranger: Client, admin):
    assert stranger.get("/help/plan/").headers["Location"] == "/login/?next=/help/plan/"
