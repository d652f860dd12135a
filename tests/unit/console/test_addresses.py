"""What a person goes through who gives the box an address at its console, because the network is gone."""

import copy
import dataclasses

import pytest
from tests.texts import no_address

from applier.apply.runs import confirmed_sentence
from command.api import Unreachable
from console import addresses, changing, opening
from console.dialogue import NOTHING_DONE
from lbconfig.model.snapshot import FACTORY, to_data

LAST = "Type yes to apply it; an empty line cancels: "


class Web:
    """The API of the web process, with a draft that somebody is at work on."""

    def __init__(self, snapshot) -> None:
        self.draft = to_data(snapshot) | {"services": []}  # somebody removes all of them
        self.down = False

    def get(self, path):
        if self.down:
            raise Unreachable("The web process does not answer.")
        return copy.deepcopy(self.draft[path])

    def ask(self, method, path, data):
        self.draft[path] = data if method == "PUT" else self.draft[path] | data


@pytest.fixture
def web(fake, monkeypatch):
    web = Web(fake.box.snapshot)
    monkeypatch.setattr(addresses, "Api", lambda: web)
    return web


def begin(person):
    person.terminal.begin(addresses.set_address(), True)
    person.work()
    return person.look()


def answer(person, *lines: str) -> str:
    for line in lines:
        person.type(line)
    return person.look()


def test_a_new_address_runs_and_the_draft_learns_of_it(person, fake, web):
    shown = begin(person)
    assert "  1  eth0  up  192.168.10.2/24, 192.168.10.25/32" in shown
    assert shown.endswith("Number of the interface; an empty line cancels: ")
    assert answer(person, "1", "192.168.10.7/24") == (
        "Address with its prefix length, such as 192.0.2.10/24, or dhcp; an empty line cancels: "
        "Default gateway, or none: [192.168.10.1] "
    )
    shown = answer(person, "192.168.10.254")
    assert "192.168.10.7/24" in shown and shown.endswith(LAST)
    assert fake.box.snapshot.network.gateway == "192.168.10.1"
    shown = answer(person, "yes")
    assert confirmed_sentence(4) in shown
    assert "The draft on the web page has it as well. What else is in there still waits to be applied." in shown
    network = fake.box.snapshot.network
    assert network.interfaces[0].addresses == ("192.168.10.7/24",) and network.gateway == "192.168.10.254"
    assert network.interfaces[1] == fake.sample_snapshot().network.interfaces[1]
    assert fake.box.snapshot.services == fake.sample_snapshot().services
    assert fake.box.generations[0]["comment"] == "eth0: 192.168.10.7/24, set at the console"
    assert web.draft["services"] == [] and web.draft["network"] == to_data(fake.box.snapshot)["network"] | {
        "interfaces": web.draft["network"]["interfaces"]
    }
    assert {one["name"]: one["addresses"] for one in web.draft["network"]["interfaces"]} == {
        "eth0": ["192.168.10.7/24"],
        "eth1": ["10.2.0.1/24"],
    }


def test_the_way_to_the_web_page_is_opened(person, fake, web):
    fake.box.snapshot = dataclasses.replace(fake.sample_snapshot(), services=())
    begin(person)
    shown = answer(person, "1", "203.0.113.7/24", "none")
    assert "The web page may be opened from 127.0.0.0/8, 10.0.0.0/8" in shown
    assert shown.endswith("Allow 203.0.113.0/24 as well, yes or no? [yes] ")
    assert confirmed_sentence(4) in answer(person, "perhaps", "", "yes")
    assert fake.box.snapshot.management.allow[-1] == "203.0.113.0/24"
    assert web.draft["management"]["allow"][-1] == "203.0.113.0/24"


def only_on(fake, *names: str) -> None:
    management = dataclasses.replace(fake.box.snapshot.management, interfaces=names)
    fake.box.snapshot = dataclasses.replace(fake.box.snapshot, management=management)


@pytest.mark.parametrize(("typed", "chosen"), [(("",), ("eth0", "eth1")), (("perhaps", "no"), ("eth0",))])
@pytest.mark.parametrize("address", ["10.2.0.1/25", "dhcp"])
def test_the_interface_of_the_address_is_opened_for_the_web_page(person, fake, web, address, typed, chosen):
    only_on(fake, "eth0")
    fake.box.snapshot = dataclasses.replace(fake.box.snapshot, services=())
    web.draft = to_data(fake.box.snapshot)
    begin(person)
    gateway = () if address == "dhcp" else ("",)
    shown = answer(person, "2", address, *gateway)
    assert "The web page answers on eth0 only.\nLet it answer on eth1 as well, yes or no? [yes] " in shown
    assert confirmed_sentence(4) in answer(person, *typed, "yes")
    assert fake.box.snapshot.management.interfaces == tuple(web.draft["management"]["interfaces"]) == chosen


def opened(person) -> str:
    person.terminal.begin(opening.open_all_interfaces(), True)
    person.work()
    return person.look()


def test_the_web_page_answers_on_all_interfaces_again(person, fake, web, monkeypatch):
    monkeypatch.setattr(opening, "Api", lambda: web)
    assert opened(person) == "The web page answers on all interfaces already.\n"
    only_on(fake, "eth1")
    web.draft["management"]["interfaces"] = ["eth1"]
    shown = opened(person)
    assert shown.startswith("The web page answers on eth1 only.\n") and shown.endswith(LAST)
    assert "The web page answers on all interfaces instead of eth1." in shown
    shown = answer(person, "yes")
    assert confirmed_sentence(4) in shown and "The draft on the web page has it as well" in shown
    assert fake.box.snapshot.management.interfaces == () and web.draft["management"]["interfaces"] == []
    only_on(fake, "eth1")
    monkeypatch.setattr(web, "ask", lambda *words: (_ for _ in ()).throw(Unreachable("It does not answer.")))
    opened(person)
    assert "Untick the interfaces under Access, too" in answer(person, "yes")
    fake.box.reachable = False
    assert "cannot be reached" in opened(person)


def test_dhcp_and_ipv6_beside_each_other(person, fake, web):
    fake.box.snapshot = FACTORY
    begin(person)
    assert confirmed_sentence(4) in answer(person, "1", "2001:db8:1::7/64", "2001:db8:1::1", "yes", "yes")
    only = fake.box.snapshot.network.interfaces[0]
    assert (only.dhcp, only.addresses, fake.box.snapshot.network.gateway6) == (
        True, ("2001:db8:1::7/64",), "2001:db8:1::1",
    )  # fmt: skip
    begin(person)
    assert confirmed_sentence(5) in answer(person, "1", "10.0.0.7/24", "", "yes")
    only = fake.box.snapshot.network.interfaces[0]
    assert (only.dhcp, set(only.addresses)) == (False, {"10.0.0.7/24", "2001:db8:1::7/64"})
    begin(person)
    assert confirmed_sentence(6) in answer(person, "1", "dhcp", "yes")
    only = fake.box.snapshot.network.interfaces[0]
    assert (only.dhcp, only.addresses) == (True, ("2001:db8:1::7/64",))


@pytest.mark.parametrize(
    "typed",
    ["192.168.10.7", "192.168.10.0/24", "127.0.0.1/8", "x", "$(reboot)", "1.2.3.4/99", "\N{SNOWMAN}", "9" * 500],
)
def test_what_is_no_address_is_asked_again(person, fake, web, typed):
    begin(person)
    shown = answer(person, "1", typed)
    assert "It must" in shown and shown.endswith("or dhcp; an empty line cancels: ")
    assert f"It {no_address('192.168.10.256')}" in answer(person, "192.168.10.7/24", "192.168.10.256")
    assert answer(person, "").endswith(LAST)  # the gateway that there is


@pytest.mark.parametrize("last", ["", "no", "y"])
def test_nothing_changes_before_a_yes(person, fake, web, last):
    before, draft = fake.box.snapshot, copy.deepcopy(web.draft)
    begin(person)
    assert answer(person, "1", "192.168.10.7/24", "", last).endswith(NOTHING_DONE)
    assert fake.box.snapshot == before and web.draft == draft


def test_what_does_not_fit_the_rest_is_told_by_object_and_field(person, fake, web):
    before = fake.box.snapshot
    begin(person)
    shown = answer(person, "2", "10.2.0.11/24", "")
    assert "This does not fit the rest" in shown
    assert "real server 10.2.0.11:80 of virtual service 'shop', address:" in shown
    assert person.terminal.dialogue is None and fake.box.snapshot == before


def test_without_the_web_process_it_is_told_what_is_left_to_do(person, fake, web):
    web.down = True
    begin(person)
    shown = answer(person, "1", "192.168.10.7/24", "", "yes")
    assert "does not know this address yet" in shown and "before you apply the draft" in shown
    assert fake.box.snapshot.network.interfaces[0].addresses == ("192.168.10.7/24",)


def test_an_apply_that_fails_is_put_back_and_the_draft_is_not_told(person, fake, web):
    draft = copy.deepcopy(web.draft)
    steps = [step["name"] for step in fake.box.generations[0]["steps"]]
    fake.box.failing_step = steps[2]
    begin(person)
    assert "put back" in answer(person, "1", "192.168.10.7/24", "", "yes")
    assert web.draft == draft


def test_an_applier_that_starts_anew_knows_nothing_of_the_change(person, fake, web, monkeypatch):
    status = fake.Fake.status
    monkeypatch.setattr(fake.Fake, "status", lambda self: status(self) | {"apply": None})
    draft = copy.deepcopy(web.draft)
    begin(person)
    assert "The applier restarted" in answer(person, "1", "192.168.10.7/24", "", "yes")
    assert person.terminal.dialogue is None and web.draft == draft


def test_without_an_applier(person, fake, web):
    fake.box.reachable = False
    assert "cannot be reached" in begin(person)
    assert person.terminal.dialogue is None


def test_an_apply_is_counted_while_the_other_terminal_goes_on(people, fake, web, monkeypatch):
    monkeypatch.setattr("tests.fake.run.STEP_SECONDS", 0.05)
    monkeypatch.setattr(changing, "POLL", 0.01)
    fake.box.instant = False
    one, other = people(2)
    begin(one)
    for line in ("1", "192.168.10.7/24", ""):
        one.type(line)
    one.terminal.answer("yes")
    assert one.terminal.working  # between two looks at the apply the loop serves the others
    assert "eth0  up" in begin(other)
    one.work()
    assert "Applying … " in one.look()
