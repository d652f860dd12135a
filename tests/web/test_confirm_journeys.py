"""A change that waits to be confirmed, in a real browser: kept by itself, taken back, followed to a new address.

The pretended box has no nginx before it, so a test says how old the browser's connections are.
"""

import contextlib
import dataclasses
import socket
import threading
from urllib.parse import urlsplit

import lbconfig_certificates as pems
import pytest
from playwright.sync_api import expect
from tests import texts
from tests.fake import appliance
from tests.web.browsing import LOOKS, NEW_CONNECTION, follow
from tests.web.conftest import TIMEOUT

from applier.apply.runs import in_vain_sentence
from draft import store as draft


def change_gateway(page) -> None:
    page.goto("/network/")
    page.fill("[name=gateway]", "192.168.10.254")
    follow(page, texts.SAVE_BUTTON)
    page.goto("/changes/")


def started_long_ago() -> None:
    appliance.box.run.deadline.begun -= 30


@pytest.fixture
def forwarded(live_server):
    """forwarded(address, port): the web UI answers there as well; its URL. Without a port: at its own one.

    `held` is a socket that has this address and port already, and does not listen yet.
    """
    own = urlsplit(live_server.url)
    listeners = []

    def forward(address: str, port: int = own.port, held: socket.socket | None = None) -> str:
        listener = held or socket.create_server((address, port))
        listener.listen()
        listeners.append(listener)
        threading.Thread(target=accept, args=(listener,), daemon=True).start()
        return f"http://{address}:{port}"

    def accept(listener) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.create_connection((own.hostname, own.port))
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=pump, args=pair, daemon=True).start()

    def pump(source, sink) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    yield forward
    for listener in listeners:
        listener.close()


@pytest.fixture
def plain_page(chromium, live_server, admin, open_page):
    """A page of which nobody watches what it asks of other hosts."""
    watched = open_page(admin)
    page = watched.context.browser.new_context(base_url=live_server.url).new_page()
    page.context.add_cookies(watched.context.cookies())
    page.context.set_default_timeout(TIMEOUT)
    yield page
    page.context.close()


def test_reaching_the_box_anew_keeps_the_change(open_page, admin):
    page = open_page(admin)
    change_gateway(page)
    expect(page.get_by_text(texts.ASKS)).to_be_visible()
    page.click(texts.APPLY_BUTTON)
    expect(page.get_by_text(texts.KEEP_IT)).to_be_visible()
    left = int(page.locator("#run [data-left]").inner_text())
    expect(page.locator("#run [data-left]")).not_to_have_text(str(left))
    assert appliance.box.run.state == "waiting"
    started_long_ago()
    page.set_extra_http_headers(NEW_CONNECTION)
    expect(page.get_by_text(texts.APPLIED)).to_be_visible()
    assert appliance.box.run.state == "done" and appliance.box.confirmed == 4


def test_who_looks_first_decides_by_a_click(open_page, admin):
    page = open_page(admin, extra_http_headers=NEW_CONNECTION)
    change_gateway(page)
    page.get_by_text("More: the time to confirm").click()
    page.get_by_label("Let me look first").check()
    page.click(texts.APPLY_BUTTON)
    expect(page.get_by_role("button", name=texts.KEEP_BUTTON)).to_be_visible()
    started_long_ago()
    page.wait_for_timeout(2500)
    assert appliance.box.run.state == "waiting"
    page.get_by_role("button", name=texts.KEEP_BUTTON).click()
    expect(page.get_by_text(texts.APPLIED)).to_be_visible()


def test_without_a_confirmation_the_page_says_that_the_box_went_back(open_page, admin):
    page = open_page(admin)
    change_gateway(page)
    page.click(texts.APPLY_BUTTON)
    expect(page.get_by_text(texts.KEEP_IT)).to_be_visible()
    appliance.box.expire()
    expect(page.get_by_role("heading", name=texts.WENT_BACK)).to_be_visible()
    expect(page.get_by_text(in_vain_sentence(90))).to_be_visible()
    assert draft.current().network.gateway == "192.168.10.254"


@pytest.fixture
def arranged(monkeypatch, live_server):
    """The box has an address that the browser of a test can use, and a new one that it can be given.

    Loopback addresses are no addresses of a box, so the questions about them are answered here.
    """

    def arrange(new: str) -> None:
        port = urlsplit(live_server.url).port
        monkeypatch.setattr("changes.arrival.next_place", lambda request, frame, wished: f"{new}:{port}")

    return arrange


def test_the_page_follows_the_box_and_confirms_from_there(plain_page, forwarded, arranged):
    page = plain_page
    arranged("127.0.0.3")
    change_gateway(page)
    page.click(texts.APPLY_BUTTON)
    expect(page.get_by_text(texts.KEEP_IT)).to_be_visible()
    page.route("**/live/progress/**", lambda route: route.abort())  # the old address is gone
    expect(page.get_by_text(texts.UNREACHABLE)).to_be_visible()
    page.wait_for_timeout(3000)
    assert "/changes/progress/" in page.url  # nobody is at the new one yet: it stays
    there = forwarded("127.0.0.3")
    page.wait_for_url(f"{there}/confirm/**")
    expect(page.get_by_role("heading", name=texts.KEPT)).to_be_visible()
    assert appliance.box.run.state == "done"
    page.get_by_role("link", name=texts.LOG_IN_HERE).click()
    page.wait_for_url(f"{there}/login/")


def test_the_page_follows_the_box_to_its_new_port(plain_page, forwarded, live_server):
    """At the same address, where the browser is still logged in."""
    page, own, held = plain_page, urlsplit(live_server.url), held_port()
    new = held.getsockname()[1]
    running = appliance.box.snapshot
    appliance.box.snapshot = dataclasses.replace(
        running, management=dataclasses.replace(running.management, port=own.port)
    )
    page.goto("/access/")
    page.fill("[name=port]", str(new))
    follow(page, texts.SAVE_BUTTON)
    page.goto("/changes/")
    expect(page.get_by_text(f"The web page moves to port {new}.")).to_be_visible()
    expect(page.get_by_text(f"http://{own.hostname}:{new}/")).to_be_visible()
    page.click(texts.APPLY_BUTTON)
    expect(page.get_by_text(texts.KEEP_IT)).to_be_visible()
    page.route("**/live/progress/**", lambda route: route.abort())  # the old port is shut
    page.wait_for_timeout(7000)
    assert "/changes/progress/" in page.url  # nobody is at the new one yet: it stays
    there = forwarded(own.hostname, new, held)
    page.wait_for_url(f"{there}/confirm/**")
    expect(page.get_by_role("heading", name=texts.KEPT)).to_be_visible()
    assert appliance.box.run.state == "done" and appliance.box.snapshot.management.port == new
    page.get_by_role("link", name="Go on").click()
    page.wait_for_url(f"{there}/")
    expect(page.get_by_role("button", name=texts.LOG_OUT)).to_be_visible()


def test_the_page_opens_itself_anew_for_another_certificate(plain_page):
    """What the page asks behind itself fails where the browser does not trust the certificate."""
    page = plain_page
    page.goto("/access/certificate/")
    page.fill("[name=certificate]", pems.OTHER)
    page.fill("[name=key]", pems.LB_KEY)
    follow(page, texts.SAVE_BUTTON)
    expect(page.get_by_text("The private key does not belong to the certificate.")).to_be_visible()
    page.fill("[name=key]", pems.OTHER_KEY)
    follow(page, texts.SAVE_BUTTON)
    expect(page.get_by_text("Saved to the draft: the certificate for *.example.net")).to_be_visible()
    page.goto("/changes/")
    expect(page.get_by_text(texts.MAY_WARN)).to_be_visible()
    page.click(texts.APPLY_BUTTON)
    expect(page.get_by_text(texts.KEEP_IT)).to_be_visible()
    page.route("**/live/progress/**", lambda route: route.abort())
    page.route("**/logo.svg", lambda route: route.abort())  # by which it checks whether the box is there
    expect(page.get_by_text(texts.SHOWS_OTHER)).to_be_visible()
    page.unroute("**/logo.svg")
    page.wait_for_url("**/confirm/**")
    expect(page.get_by_role("heading", name=texts.KEPT)).to_be_visible()
    assert appliance.box.run.state == "done" and appliance.box.snapshot.management.certificate == pems.OTHER


def held_port() -> socket.socket:
    """A socket with a port that a box may use: those that the kernel gives away are none.

    Nothing listens there yet, so whoever connects is refused, and nobody else can take the port meanwhile.
    """
    for port in range(8100, 9000):
        held = socket.socket()
        try:
            held.bind(("localhost", port))
        except OSError:
            held.close()
        else:
            return held
    raise AssertionError("no port is free")


def test_a_wrong_address_keeps_the_page_where_it_is_until_the_box_is_back(plain_page, arranged):
    page = plain_page
    arranged("127.0.0.9")  # there nobody listens
    change_gateway(page)
    page.click(texts.APPLY_BUTTON)
    expect(page.get_by_text(texts.KEEP_IT)).to_be_visible()
    page.route("**/live/progress/**", lambda route: route.abort())
    expect(page.get_by_text(texts.UNREACHABLE)).to_be_visible()
    page.wait_for_timeout(4000)
    assert "/changes/progress/" in page.url
    appliance.box.expire()
    page.unroute("**/live/progress/**")
    expect(page.get_by_role("heading", name=texts.WENT_BACK)).to_be_visible()
    expect(page.get_by_text(texts.UNREACHABLE)).to_be_hidden()


def test_screenshots(open_page, admin, look, shoot):
    page = open_page(admin, **LOOKS[look])
    page.goto("/services/1/")
    page.check("[name=scheduler][value=lc]")
    follow(page, texts.SAVE_BUTTON)
    page.goto("/services/2/delete/")
    follow(page, "main button")
    change_gateway(page)
    page.get_by_text("By service").click()
    shoot(page, "review-impact", look)
    page.get_by_text("More: the time to confirm").click()
    shoot(page, "review-confirm", look)
    page.click(texts.APPLY_BUTTON)
    page.get_by_text(texts.KEEP_IT).wait_for()
    shoot(page, "apply-waiting", look)
    secret = appliance.box.change.secret
    page.goto("/")
    shoot(page, "overview-waits", look)
    page.goto(f"/confirm/{secret}/?decide=1")
    shoot(page, "arrived", look)
    page.click(f"button:text('{texts.KEEP_BUTTON}')")
    page.get_by_text(texts.KEPT).wait_for()
    shoot(page, "arrived-kept", look)
    change_gateway_back(page)
    page.click(texts.APPLY_BUTTON)
    page.get_by_text(texts.KEEP_IT).wait_for()
    appliance.box.expire()
    page.get_by_text(texts.WENT_BACK).wait_for()
    shoot(page, "apply-went-back", look)
    page.goto("/history/")
    shoot(page, "history-not-confirmed", look)


def change_gateway_back(page) -> None:
    page.goto("/network/")
    page.fill("[name=gateway]", "192.168.10.1")
    follow(page, texts.SAVE_BUTTON)
    page.goto("/changes/")
