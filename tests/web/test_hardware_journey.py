"""The hardware in a real browser, by keyboard alone: from the overview to the finding, its fix, and a setting."""

from dataclasses import replace

import pytest
from playwright.sync_api import expect
from tests import texts
from tests.fake import hardware as fake_hardware
from tests.web.browsing import LOOKS
from tests.web.keyboard import tab_to

from draft import store as draft
from lbconfig.model.snapshot import Power
from system import hardware


@pytest.fixture(autouse=True)
def faulty(box):
    """A card without RPS, one that merges, a program that meddles, and a card in a place that shares its line."""
    hardware._seen.clear()
    machine = fake_hardware.sample()
    one, other = machine.cards
    other = replace(other, rps=((),), offloads={"large-receive-offload": True})
    sharing = replace(machine.interrupts[-1], kind="IO-APIC", devices=("eth1", "ehci_hcd:usb1"))
    box.machine.machine = replace(
        machine,
        cards=(one, other),
        interrupts=(*machine.interrupts[:-1], sharing),
        processes=frozenset({"irqbalance"}),
        softnet=tuple(
            replace(each, processed=packets, dropped=0)
            for each, packets in zip(machine.softnet, (71_000_000, 9_000_000, 8_100_000, 8_400_000), strict=True)
        ),
    )
    return box


def test_from_the_overview_to_a_mended_machine(open_page, admin, look, shoot):
    page = open_page(admin, **LOOKS[look])
    page.goto("/")
    expect(page.get_by_text("The hardware could do better: 5 findings.")).to_be_visible()
    shoot(page, "hardware-line", look)
    tab_to(page, "#to-hardware")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Hardware", exact=True)).to_be_visible()
    expect(page.get_by_text("eth1 and ehci_hcd:usb1 share interrupt 33")).to_be_visible()
    shoot(page, "hardware", look)
    tab_to(page, "#mend-3")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Done: irqbalance ended;")).to_be_visible()
    expect(page.get_by_role("button", name=texts.FIX)).to_have_count(0)
    expect(page.get_by_text("eth1 and ehci_hcd:usb1 share interrupt 33")).to_be_visible()  # that takes a person
    for summary in page.locator("summary").all():
        summary.click()
    shoot(page, "hardware-mended", look)


def test_a_setting_by_keyboard(open_page, admin, look, shoot):
    page = open_page(admin, **LOOKS[look])
    page.goto("/system/hardware/")
    tab_to(page, "#to-tuning")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Hardware settings")).to_be_visible()
    shoot(page, "tuning", look)
    tab_to(page, "#id_power_0")
    page.keyboard.press("ArrowDown")
    tab_to(page, "#id_spread")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # the part that is folded away
    tab_to(page, "[id='id_eth0 queues']")
    page.keyboard.type("lots")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Give a whole number, or nothing.")).to_be_visible()
    shoot(page, "tuning-wrong", look)
    page.get_by_label("Queues", exact=True).first.fill("2")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Saved to the draft.")).to_be_visible()
    assert draft.current().tuning.power is Power.LATENCY and draft.current().tuning.card("eth0").queues == 2
