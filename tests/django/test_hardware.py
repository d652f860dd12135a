"""The page of the hardware, the settings of the draft, and both by the API."""

from dataclasses import replace

import pytest
from api_robot import error, robot
from forms_on_page import form_values, words
from tests import texts
from tests.fake import hardware as fake_hardware
from tests.texts import within

from draft import store as draft
from lbconfig.hardware.facts import Queues
from lbconfig.model.snapshot import CardChoice, Power, SettingChoice, Tuning
from system import hardware

URL, TUNE, SETTINGS = "/system/hardware/", "/system/hardware/tune/", "/system/hardware/settings/"


@pytest.fixture(autouse=True)
def forgetful():
    """What the overview was told a moment ago is no matter of the next test."""
    hardware._seen.clear()


@pytest.fixture
def faulty(box):
    """The RPS of a card with one queue is gone, packets are merged, and a program meddles."""
    machine = fake_hardware.sample()
    one, other = machine.cards
    other = replace(other, rps=((),), offloads={"large-receive-offload": True})
    box.machine.machine = replace(machine, cards=(one, other), processes=frozenset({"irqbalance"}))
    return box


def test_a_healthy_machine_and_who_does_its_work(client, box):
    text = words(client.get(URL))
    assert texts.HEALTHY in text and texts.FIX not in text
    assert "CPU 0 25 % eth0 queue 0 eth1 eth1, helps" in text and "CPU 3 25 % eth0 queue 3" in text
    assert "Supermicro X11SCL-F" in text
    assert "eth0 igb at 0000:03:00.0 : 1000 Mbit/s, 4 of 4 queues" in text
    assert "net/core/somaxconn 4096" in text and "Clients that wait for the sorry page" in text


def test_findings_come_first_with_their_cost_and_source(client, faulty):
    text = words(client.get(URL))
    assert text.index("irqbalance runs.") < text.index("Who does the work")
    assert "eth1 (r8169) has one queue for 4 cores" in text
    assert "7,200 replies/s on one CPU, 10,000 on two, 13,019 on four" in text
    assert "O'Rourke and Keefe" in text
    assert client.get(URL).content.decode().count('class="mend"') >= 3


def test_the_button_mends_and_says_what_it_did(client, faulty):
    text = words(client.post(TUNE, follow=True))
    assert faulty.machine.tuned == [("", "admin")]
    assert "Done: irqbalance ended; " in text and "eth1: what receive queue 0 takes in is worked on by CPUs 0-3" in text
    assert texts.HEALTHY in text
    again = words(client.post(TUNE, follow=True))
    assert "Done:" not in again


def test_what_is_refused_is_said(client, faulty):
    refused = "ethtool -G eth0 rx 1024 tx 1024"
    faulty.machine.refused[refused] = "Operation not permitted"
    text = words(client.post(TUNE, follow=True))
    assert "Refused by the kernel or the card: eth0: room for 1024" in text and "Operation not permitted" in text


def test_nothing_to_do_is_said(client, box):
    client.post(TUNE)
    assert "There was nothing to do" in words(client.post(TUNE, follow=True))


def test_while_something_is_changed_nothing_is_mended(client, faulty):
    faulty.update.job = {"state": "running"}
    assert "Nothing was fixed. Right now an update is being installed" in words(client.post(TUNE, follow=True))
    assert not faulty.machine.tuned


def test_a_get_mends_nothing_and_strangers_see_nothing(client, faulty):
    assert client.get(TUNE).status_code == 405
    client.logout()
    for url in (URL, SETTINGS, "/live/hardware/"):
        assert client.get(url).status_code == 302
    assert client.post(TUNE).status_code == 302 and not faulty.machine.tuned


def test_the_overview_has_a_line_when_there_are_findings(client, faulty):
    assert 'hx-get="/live/hardware/"' in client.get("/").content.decode()
    line = client.get("/live/hardware/")
    assert "The hardware could do better:" in words(line) and f'href="{URL}"' in line.content.decode()
    client.post(TUNE)
    assert words(client.get("/live/hardware/")) == ""


def test_what_nobody_can_act_on_is_told_on_the_page_of_the_hardware_alone(client, faulty):
    healthy = fake_hardware.sample()
    faulty.machine.machine = replace(healthy, hypervisor="kvm", clocksource="hpet", clocksources=("hpet", "acpi_pm"))
    assert "QEMU emulates this processor" in words(client.get(URL))
    assert words(client.get("/live/hardware/")) == ""


def test_the_overview_does_not_ask_every_card_each_time(client, faulty):
    first = words(client.get("/live/hardware/"))
    faulty.machine.machine = fake_hardware.sample()
    assert words(client.get("/live/hardware/")) == first
    client.get(URL)  # a look anew
    assert words(client.get("/live/hardware/")) == ""


def test_without_the_applier_the_pages_say_so(client, box):
    box.reachable = False
    assert "cannot be reached" in words(client.get(URL))
    assert words(client.get("/live/hardware/")) == ""
    page = client.get(SETTINGS)
    assert page.status_code == 200 and "settings of the kernel" in words(page)
    assert "Nothing was fixed." in words(client.post(TUNE, follow=True))


def test_a_machine_of_many_cpus_is_shown_in_part(client, box):
    machine = fake_hardware.sample()
    cpus = tuple(replace(machine.cpus[0], number=number, core=number, node=number // 32) for number in range(64))
    box.machine.machine = replace(machine, cpus=cpus)
    text = words(client.get(URL))
    assert "And 32 more CPUs." in text and "Memory node 0" in text and "CPU 0 " in text


# --- the settings in the draft ---


def saved(client, **changes):
    values = form_values(client.get(SETTINGS)) | changes
    return client.post(SETTINGS, values, follow=True)


def test_few_fields_and_the_rest_folded_away(client, box):
    page = client.get(SETTINGS).content.decode()
    assert "<details>" in page and 'placeholder="4096"' in page
    text = words(client.get(SETTINGS))
    assert "Ready within 100 µs" in text and "eth0 (igb)" in text and "4 now, 4 at most." in text
    saved(client, **{"net/core/somaxconn": "8192"})
    assert "<details open>" in client.get(SETTINGS).content.decode()


def test_settings_are_saved_to_the_draft_and_can_be_taken_back(client, box):
    wish = {"power": "latency", "eth0 queues": "2", "eth0 rx_ring": "2048", "net/ipv4/tcp_rmem": "4096 131072 8388608"}
    text = words(saved(client, **wish))
    assert "Saved to the draft." in text and "1 change" not in text[:0]
    assert draft.current().tuning == Tuning(
        settings=(SettingChoice("net/ipv4/tcp_rmem", "4096 131072 8388608"),),
        cards=(CardChoice("eth0", 2, 2048, 0),),
        power=Power.LATENCY,
    )
    saved(client, **dict.fromkeys(wish, "") | {"power": "balanced"})
    assert draft.current().tuning == Tuning()


def test_who_wants_nothing_spread(client, box):
    values = form_values(client.get(SETTINGS))
    values.pop("spread")
    client.post(SETTINGS, values)
    assert draft.current().tuning == Tuning(spread=False)


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("net/core/somaxconn", "12", "must be 128 to 65535"),
        ("net/core/somaxconn", "1; reboot", "must be a whole number"),
        ("net/core/somaxconn", "４０９６", "must be a whole number"),
        ("net/core/somaxconn", "9" * 61, "at most 60 characters"),
        ("net/ipv4/ip_local_port_range", "1024", "must be 2 whole numbers"),
        ("net/ipv4/tcp_rmem", "8192 4096 4096", "must not go down"),
        ("eth0 queues", "-1", "greater than or equal to 0"),
        ("eth0 queues", "many", "Give a whole number, or nothing."),
        ("eth0 queues", "257", within(0, 256, 257)),
        ("eth0 rx_ring", "100000", within(0, 65536, 100000)),
        ("power", "turbo", "turbo"),
    ],
)
def test_what_is_wrong_stands_beside_its_field(client, box, field, value, sentence):
    answer = saved(client, **{field: value})
    assert answer.status_code == 422
    assert sentence.lower() in words(answer).lower()
    assert draft.current().tuning == Tuning()


def test_a_card_that_is_gone_can_still_be_forgotten(client, box):
    draft.write_part("tuning", Tuning(cards=(CardChoice("eth7", 4),)), "admin")
    assert "This card is not in the machine now." in words(client.get(SETTINGS))
    saved(client, **{"eth7 queues": ""})
    assert draft.current().tuning == Tuning()


def test_two_admins_keep_what_each_has_entered(client, box):
    values = form_values(client.get(SETTINGS))
    draft.write_part("tuning", Tuning(cards=(CardChoice("eth0", 2),)), "else")
    answer = client.post(SETTINGS, values | {"net/core/somaxconn": "8192"})
    assert answer.status_code == 409
    merged = form_values(answer)
    assert merged["eth0 queues"] == "2" and merged["net/core/somaxconn"] == "8192"
    client.post(SETTINGS, merged)
    wish = draft.current().tuning
    assert wish.card("eth0").queues == 2 and wish.settings == (SettingChoice("net/core/somaxconn", "8192"),)


# --- the API ---


def test_the_api_tells_the_machine_and_mends_it(client, admin, faulty):
    api = robot(admin, "read", "apply")
    found = api.get("/hardware").json()
    assert {one["code"] for one in found["findings"]} == {"meddler", "one-queue", "lro"}
    assert found["machine"]["cpus"][0]["number"] == 0 and found["layout"][0]["work"][0]["device"] == "eth0"
    after = api.post("/hardware/tune").json()
    assert after["findings"] == []
    assert faulty.machine.tuned == [("", "admin (token robot)")]
    api.post("/hardware/tune?object=interrupt%2026")
    assert faulty.machine.tuned[-1] == ("interrupt 26", "admin (token robot)")


def test_who_may_look_may_not_mend(client, admin, faulty):
    api = robot(admin, "read")
    assert api.get("/hardware").status_code == 200
    refused = api.post("/hardware/tune")
    assert refused.status_code == 403 and error(refused)["code"] == "forbidden"
    assert robot(admin, "change").post("/hardware/tune").status_code == 403
    assert not faulty.machine.tuned


@pytest.mark.parametrize("query", ["thing=eth0", "object=eth0&object=eth1", "object=" + "x" * 61])
def test_what_is_no_object_is_refused(client, admin, faulty, query):
    answer = robot(admin, "apply").post(f"/hardware/tune?{query}")
    assert answer.status_code == 400 and error(answer)["code"] == "bad-query" and not faulty.machine.tuned


def test_an_object_that_nothing_is_planned_for_changes_nothing(client, admin, faulty):
    before = faulty.machine.machine
    assert robot(admin, "apply").post("/hardware/tune?object=%3Brm%20-rf%20%C3%A4").status_code == 200
    assert faulty.machine.machine == before


def test_more_queues_than_the_card_has_are_told(client, box):
    machine = fake_hardware.sample()
    box.machine.machine = replace(
        machine, cards=(replace(machine.cards[0], queues=Queues(1, 1, 4, 4, True, True)), machine.cards[1])
    )
    assert "eth0 uses 1 of its 4 queues" in words(client.get(URL))
