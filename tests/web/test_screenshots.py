"""Every page, on a desktop, on a phone and in dark mode: build/screenshots/ is what a person looks through.

What is asserted is little: the page is there, nothing is wider than the window, nothing complains.
"""

from dataclasses import replace

import lbconfig_certificates as pems
import stored
from tests import texts
from tests.fake import appliance
from tests.texts import on_screen, within
from tests.web.browsing import LOOKS, follow

from draft import store as draft
from draft.merge import changed_to
from draft.models import Service
from lbconfig.model.snapshot import (
    FACTORY,
    Bond,
    BondMode,
    Bridge,
    Interface,
    Network,
    PolicyRoute,
    Scheduler,
    StaticRoute,
    Vlan,
)


def test_log_in_and_password(open_page, admin, look, shoot):
    page = open_page(**LOOKS[look])
    page.goto("/")
    shoot(page, "login", look)
    page.fill("[name=username]", "admin")
    page.fill("[name=password]", "wrong")
    follow(page, texts.LOG_IN_BUTTON)
    page.get_by_text("is wrong").wait_for()
    shoot(page, "login-wrong", look)
    page = open_page(admin, **LOOKS[look])
    page.goto("/password/")
    shoot(page, "password", look)


def test_set_up(open_page, transactional_db, look, shoot):
    appliance.reset(instant=True, snapshot=FACTORY, confirmed=None)
    page = open_page(**LOOKS[look])
    page.goto("/")
    shoot(page, "set-up", look)
    appliance.box.setup_done = True
    page.goto("/set-up/")
    shoot(page, "set-up-closed", look)


def test_first_steps(open_page, admin, look, shoot):
    appliance.reset(instant=True, snapshot=FACTORY, confirmed=None, setup_done=True)
    page = open_page(admin, **LOOKS[look])
    for name, url in (("overview-empty", "/"), ("service-add", "/services/add/"), ("history-empty", "/history/")):
        page.goto(url)
        shoot(page, name, look)


def test_pages_of_a_box_at_work(open_page, admin, look, shoot):
    page = open_page(admin, **LOOKS[look])
    for name, url in (
        ("overview", "/"),
        ("service", "/services/1/"),
        ("service-delete", "/services/1/delete/"),
        ("service-preset", "/services/add/?preset=web-tls"),
        ("server", "/servers/10.2.0.11/"),
        ("network", "/network/"),
        ("routes", "/network/routes/"),
        ("names", "/network/names/"),
        ("access", "/access/"),
        ("certificate", "/access/certificate/"),
        ("review-nothing", "/changes/"),
        ("history", "/history/"),
        ("revision", "/history/2/"),
        ("system", "/system/"),
    ):
        page.goto(url)
        shoot(page, name, look)


def test_weights_that_follow_the_load(open_page, admin, look, shoot):
    page = open_page(admin, **LOOKS[look])
    page.goto("/services/1/")
    page.get_by_text("More: weights that follow the load").click()
    page.get_by_label("an agent on each server").check()
    page.fill("[name=least_healthy_servers]", "9")
    page.get_by_label("serve nobody").check()
    follow(page, texts.SAVE_BUTTON)
    page.get_by_text("Must be 0 to").wait_for()
    shoot(page, "service-by-load", look)


def test_a_certificate_of_ones_own(open_page, admin, look, shoot):
    page = open_page(admin, **LOOKS[look])
    page.goto("/access/certificate/")
    page.fill("[name=certificate]", pems.OTHER)
    page.fill("[name=key]", pems.LB_KEY)
    follow(page, texts.SAVE_BUTTON)
    page.get_by_text("The private key does not belong to the certificate.").wait_for()
    shoot(page, "certificate-wrong", look)
    page.fill("[name=key]", pems.OTHER_KEY)
    follow(page, texts.SAVE_BUTTON)
    page.get_by_text("Saved to the draft: the certificate for").wait_for()
    shoot(page, "certificate-draft", look)
    page.goto("/access/")
    shoot(page, "access-certificate", look)
    page.goto("/changes/")
    shoot(page, "review-certificate", look)
    page.click(texts.APPLY_BUTTON)
    page.get_by_text(texts.KEEP_IT).wait_for()
    shoot(page, "confirm-certificate", look)


def test_a_network_of_every_kind(open_page, admin, look, shoot):
    network = Network(
        "sample",
        "192.168.10.1",
        (
            Interface("bond0", addresses=("192.168.10.2/24",), bond=Bond(("eth0", "eth2"), BondMode.LACP)),
            Interface("eth0"),
            Interface("eth1"),
            Interface("eth2"),
            Interface("eth1.20", addresses=("10.2.0.1/24",), mtu=1400, vlan=Vlan("eth1", 20)),
            Interface("br0", dhcp=True, bridge=Bridge(("eth3",), True)),
        ),
        routes=(StaticRoute("10.9.0.0/16", "10.2.0.254"),),
        policies=(PolicyRoute("192.168.10.80", "192.168.10.9"),),
        dns=("192.168.10.53",),
    )
    appliance.reset(instant=True, snapshot=replace(appliance.sample_snapshot(), network=network), setup_done=True)
    page = open_page(admin, **LOOKS[look])
    page.goto("/changes/discard/")
    follow(page, "button:text('Discard')")
    page.goto("/network/")
    shoot(page, "network-every-kind", look)
    page.click("button:text('Add a VLAN')")
    page.fill("[data-new] [name$=tag]", "5000")
    page.locator("[data-new] summary").click()
    follow(page, texts.SAVE_BUTTON)
    page.get_by_text(on_screen(within(1, 4094, 5000))).first.wait_for()
    shoot(page, "network-vlan-wrong", look)
    page.goto("/network/routes/")
    page.click("button:text('Add a route')")
    shoot(page, "routes-add", look)


def test_every_option_of_a_service(open_page, admin, look, shoot):
    page = open_page(admin, **LOOKS[look])
    page.goto("/services/add/?like=3")
    page.fill("[name=name]", "names inside")
    page.fill("[name=port]", "5353")
    page.get_by_text("More: clients that come back").click()
    page.fill("[name=persistence]", "300")
    page.get_by_text("More ways to choose").click()
    page.check("[name=scheduler][value=mh]")
    page.check("[name=hash_next]")
    page.select_option("[name=servers-0-state]", "quiesced")
    page.locator(".limits summary").first.click()
    page.fill("[name=servers-0-upper]", "1000")
    shoot(page, "service-options", look)
    page.uncheck("[name=enabled]")
    page.get_by_text("More: several ports").click()
    page.fill("[name=note]", "kept for the move in May")
    follow(page, texts.SAVE_BUTTON)
    shoot(page, "overview-disabled", look)
    page.goto("/changes/")
    shoot(page, "review-options", look)


def test_changes_until_they_run(open_page, admin, look, shoot):
    page = open_page(admin, **LOOKS[look])
    page.goto("/services/2/")
    page.fill("[name=name]", "mail in")
    page.check("[name=scheduler][value=wrr]")
    page.click("text=Add a real server")
    page.fill("[name=servers-2-address]", "10.2.0.23")
    page.fill("[name=servers-2-port]", "70000")
    follow(page, texts.SAVE_BUTTON)
    shoot(page, "service-wrong", look)
    page.fill("[name=servers-2-port]", "25")
    follow(page, texts.SAVE_BUTTON)
    page.get_by_text("2 changes are not applied").or_(page.get_by_text("change is not applied")).first.wait_for()
    shoot(page, "overview-waiting", look)
    page.goto("/changes/discard/")
    shoot(page, "discard", look)
    page.goto("/changes/")
    page.locator("details").first.evaluate("one => one.open = true")
    page.fill("[name=comment]", "third mail server")
    shoot(page, "review", look)
    appliance.box.instant = False
    page.click(texts.APPLY_BUTTON)
    page.get_by_text(texts.APPLYING).wait_for()
    page.wait_for_timeout(1500)
    shoot(page, "apply-running", look)
    appliance.box.finish()
    page.get_by_text(texts.APPLIED).wait_for()
    shoot(page, "apply-done", look)


def test_trouble(open_page, admin, look, shoot):
    page = open_page(admin, **LOOKS[look])
    appliance.box.fault("data-full", "The data partition is full: changes cannot be applied until there is room.")
    page.goto("/")
    shoot(page, "overview-fault", look)
    appliance.box.faults.clear()
    stored.change(1, name="shop two")
    appliance.box.failing_step = appliance.ALONE[5]
    page.goto("/changes/")
    page.click(texts.APPLY_BUTTON)
    page.get_by_text(texts.UNDONE).wait_for()
    shoot(page, "apply-undone", look)
    appliance.box.reachable = False
    page.goto("/")
    shoot(page, "overview-applier-down", look)
    page.goto("/system/")
    shoot(page, "system-applier-down", look)


def test_two_admins(open_page, admin, look, shoot):
    page = open_page(admin, **LOOKS[look])
    page.goto("/services/1/")
    page.fill("[name=name]", "shop new")
    service = Service.objects.get(pk=1)
    wanted = replace(service.wish, scheduler=Scheduler.LC, name="shop old")
    draft.write_service(wanted, service, "alice")
    follow(page, texts.SAVE_BUTTON)
    page.get_by_text(changed_to("alice")).first.wait_for()
    shoot(page, "service-two-admins", look)


def test_fault_page(open_page, admin, settings, look, shoot):
    settings.FAULT_FILE.parent.mkdir(parents=True, exist_ok=True)
    settings.FAULT_FILE.write_text("fairlead.sqlite3: database disk image is malformed\n")
    try:
        page = open_page(admin, **LOOKS[look])
        page.goto("/")
        shoot(page, "fault", look)
    finally:
        settings.FAULT_FILE.unlink()


def test_what_servers_need(open_page, admin, look, shoot):
    page = open_page(admin, **LOOKS[look])
    page.goto("/services/2/")
    page.check("[name=forwarding][value=direct]")
    page.locator(".limits summary").last.click()
    page.select_option("[name=servers-1-forwarding]", "nat")
    shoot(page, "service-forwarding", look)
    follow(page, texts.SAVE_BUTTON)
    page.goto("/services/2/servers/")
    shoot(page, "service-servers", look)
    page.goto("/services/2/")
    page.get_by_text(texts.OTHER_TUNNELS, exact=True).click()
    page.check("[name=forwarding][value=gue]")
    shoot(page, "service-tunnels", look)
    follow(page, texts.SAVE_BUTTON)
    page.goto("/services/2/servers/?system=netplan")
    shoot(page, "service-servers-not-there", look)


def test_what_a_check_finds(open_page, admin, look, shoot):
    page = open_page(admin, **LOOKS[look])
    appliance.box.down.add(("10.2.0.12", 80))
    page.goto("/services/1/")
    page.click(f"text={texts.TRY_IT}")
    page.locator(".trial details").first.wait_for()
    page.locator(".trial details").last.evaluate("one => one.open = true")
    shoot(page, "check-tried", look)
    page.goto("/services/1/doctor/")
    shoot(page, "doctor", look)
    appliance.box.down.clear()
    page.click("text=Look again")
    page.get_by_text("Nothing was found").wait_for()
    shoot(page, "doctor-nothing", look)


def test_several_ports_and_ipv6(open_page, admin, look, shoot):
    page = open_page(admin, **LOOKS[look])
    page.goto("/network/")
    page.get_by_label("Fixed addresses").first.fill("192.168.10.2/24\n2001:db8:1::2/64")
    page.fill("[name=gateway6]", "2001:db8:1::1")
    shoot(page, "network-two-gateways", look)
    follow(page, texts.SAVE_BUTTON)
    page.goto("/services/add/")
    page.fill("[name=name]", "site")
    page.fill("[name=address]", "2001:db8:1::100")
    page.fill("[name=port]", "80")
    page.check("[name=protocol][value='tcp+udp']")
    page.get_by_text("More: several ports").click()
    page.fill("[name=more_ports]", "443, 8000-8010")
    page.fill("[name=servers-0-address]", "2001:db8:1::11")
    page.press("[name=servers-0-address]", "Tab")
    page.get_by_text("6 seconds").wait_for()
    shoot(page, "service-several-ports", look)
    follow(page, texts.SAVE_BUTTON)
    page.get_by_text(texts.NOT_APPLIED).first.wait_for()
    shoot(page, "overview-several-ports", look)
    page.goto("/changes/")
    shoot(page, "review-several-ports", look)


def test_when_all_servers_are_down(open_page, admin, look, shoot):
    page = open_page(admin, **LOOKS[look])
    page.goto("/services/1/")
    page.get_by_text("More: when all of them are down").click()
    page.check("[name=fallback_kind][value=server]")
    page.fill("[name=fallback_address]", "10.2.0.11")
    follow(page, texts.SAVE_BUTTON)
    page.get_by_text("This service has a real server").wait_for()
    shoot(page, "service-fallback-wrong", look)
    page.check("[name=fallback_kind][value=page]")
    follow(page, texts.SAVE_BUTTON)
    page.get_by_text(texts.NOT_APPLIED).first.wait_for()
    page.goto("/sorry/")
    shoot(page, "sorry", look)
    page.goto("/connections/")
    shoot(page, "connections", look)
    page.goto("/changes/")
    page.click(texts.APPLY_BUTTON)
    page.get_by_text(texts.APPLIED).wait_for()
    appliance.box.down |= {(one.address, one.port) for one in appliance.box.snapshot.services[0].real_servers}
    page.goto("/")
    page.get_by_text("sorry page shown").wait_for()
    shoot(page, "overview-sorry", look)


def test_many_services(open_page, admin, look, shoot):
    """By the keyboard alone: look for one, then for those with trouble, and on to the next page."""
    running = appliance.box.snapshot
    shop, mail, _ = running.services
    services = [
        replace(
            mail,
            id=number,
            name=f"mail {number}",
            address=f"192.168.10.{number}",
            real_servers=tuple(
                replace(one, id=number * 10 + place, address=f"10.2.0.{number}")
                for place, one in enumerate(mail.real_servers[:1])
            ),
        )
        for number in range(30, 90)
    ]
    appliance.box.snapshot = replace(running, services=(shop, *services))
    page = open_page(admin, **LOOKS[look])
    page.goto("/")
    page.get_by_text("1 with trouble").wait_for()
    shoot(page, "overview-many", look)
    page.focus("[name=find]")
    page.keyboard.type("mail 77")
    page.keyboard.press("Enter")
    page.get_by_text("1 of 61 virtual services").wait_for()
    assert page.locator("article.service").count() == 1
    page.focus("[name=find]")
    for key in ("Control+a", "Delete", "Tab", "Space", "Tab", "Enter"):  # nothing to find, with trouble, Show
        page.keyboard.press(key)
    page.wait_for_url("**troubled=1**")
    assert page.locator("article.service h2").all_inner_texts() == ["shop"]
    shoot(page, "overview-trouble", look)
    page.goto("/")
    page.focus("#page-after")
    page.keyboard.press("Enter")
    page.get_by_text("Page 2 of 3").wait_for()
    first = page.locator("article.service h2").first.inner_text()
    page.wait_for_timeout(2500)  # the live part has been fetched again, and is still this page
    assert page.locator("article.service h2").first.inner_text() == first
    shoot(page, "overview-second-page", look)
