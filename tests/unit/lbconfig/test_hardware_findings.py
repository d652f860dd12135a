"""The doctor of the hardware: exactly the faults of each recorded machine, and none of a healthy one."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded_machines import FOLDER, names, recorded, texts

from lbconfig.hardware import facts
from lbconfig.hardware.actions import Ethtool, Write
from lbconfig.hardware.findings.every import CHECKS, findings
from lbconfig.hardware.findings.finding import COSTS, LOOK, Finding
from lbconfig.hardware.plan.whole import due, plan
from lbconfig.hardware.reading.machine import read
from lbconfig.hardware.settings import wanted
from lbconfig.model.tuning import Tuning

BOX = "the box"
# By recording: what is found there, as code and object.
EXPECTED = {
    "healthy-server-ixgbe": set(),
    "healthy-appliance-igb": set(),
    "appliance-all-in-one-queue": {("one-cpu", "CPU 0")},
    "pc-2001-scsi-shared": {("xt-pic", BOX), ("shared-interrupt", "interrupt 10")},
    "pc-r8169-one-queue": {("one-queue", "eth0")},
    "pc-saves-power": {("governor", BOX), ("deep-sleep", BOX)},
    "server-backlog-and-squeezes": {("backlog-drops", BOX), ("squeezed", BOX)},
    "server-bad-cable": {("link-lost", "eth0"), ("bad-frames", "eth0")},
    "server-lro-and-rings": {("lro", "eth0"), ("ring-small", "eth0"), ("overrun", "eth1")},
    "server-queues-over": {("queues-over", "eth0")},
    "two-sockets-remote": {("meddler", "irqbalance"), ("remote-queue", "eth0"), ("remote-card", "eth0")},
    "vmware-e1000": {("one-queue", "eth0"), ("emulated-card", "eth0"), ("slow-clock", BOX)},
    # Of QEMU
    "healthy-kvm-one-cpu": set(),
    "healthy-kvm-queues": set(),
    "healthy-kvm-spread": set(),
    "healthy-numa": set(),
    "xt-pic": {("xt-pic", BOX), ("emulated-card", "eth0")},
    "no-msi": {("no-msi", "eth0")},
    "shared-with-usb": {
        ("shared-interrupt", "interrupt 11"),
        ("emulated-card", "eth0"),
        ("slow-link", "eth0"),
    },
    "shared-cards": {("shared-interrupt", "interrupt 11"), ("emulated-card", "eth0"), ("emulated-card", "eth1")},
    "emulated-e1000e": {("emulated-card", "eth0")},
    "emulated-rtl8139": {("emulated-card", "eth0"), ("one-queue", "eth0"), ("slow-link", "eth0")},
    "one-queue": {("one-queue", "eth0")},
    "queues-unused": {("queues-unused", "eth0")},
    "queues-together": {("queues-together", "eth0")},
    "lro-vmxnet3": {("lro", "eth0")},
    "numa-remote-queue": {("remote-queue", "eth0")},
    "numa-cards-apart": {("remote-card", "eth1"), ("remote-queue", "eth1")},
    "irqbalance": {("meddler", "irqbalance")},
    "half-duplex": {("half-duplex", "eth0")},
    "slow-link": {("slow-link", "eth0")},
    "slow-clock": {("slow-clock", BOX)},
    "no-driver": {("no-driver", "0000:00:02.0 (1022:2000)")},
    "debug-options": {("debug-option", "slub_debug=FZP")},
}


def found(machine) -> set[tuple[str, str]]:
    return {(one.code, one.object) for one in findings(machine)}


def test_every_recording_is_judged():
    assert names() == EXPECTED.keys()
    assert len([name for name in EXPECTED if EXPECTED[name]]) >= 12
    assert len([name for name in EXPECTED if not EXPECTED[name]]) >= 3


@pytest.mark.parametrize("name", EXPECTED)
def test_exactly_the_faults_of_the_machine_are_found(name):
    assert found(recorded(name)) == EXPECTED[name]


def test_each_kind_of_finding_has_a_machine_that_shows_it():
    text = "".join(path.read_text() for path in (FOLDER.parents[2] / "webui/lbconfig/hardware/findings").glob("*.py"))
    codes = set(re.findall(r'Finding\(\s*"([a-z-]+)"', text))
    assert len(codes) > 20
    assert codes == {code for expected in EXPECTED.values() for code, _ in expected}


@pytest.mark.parametrize("name", [name for name in EXPECTED if EXPECTED[name]])
def test_a_finding_says_what_it_costs_where_that_is_known_from_and_what_mends_it(name):
    for one in findings(recorded(name)):
        assert one.severity in (COSTS, LOOK)
        for text in (one.what, one.cost, one.source, one.mend):
            assert len(text) > 10
        assert one.what.endswith(".") and one.cost.endswith(".") and one.mend.endswith((".", ".)"))


# --- what somebody can act on ---


@pytest.mark.parametrize("name", [name for name in EXPECTED if EXPECTED[name]])
def test_somebody_can_act_on_what_is_found_on_the_recorded_machines(name):
    assert all(one.actionable for one in findings(recorded(name)))


@pytest.mark.parametrize(
    ("hypervisor", "command_line", "offered", "actionable"),
    [
        ("kvm", "quiet", ("hpet", "acpi_pm"), False),  # QEMU without KVM
        ("kvm", "clocksource=acpi_pm", ("hpet", "acpi_pm"), True),  # a word that somebody can take off
        ("kvm", "quiet", ("kvm-clock", "hpet"), True),
        ("vmware", "quiet", ("acpi_pm",), True),
        ("", "quiet", ("hpet", "acpi_pm"), True),  # its firmware
    ],
)
def test_a_slow_clock_of_an_emulated_machine_is_nobodys_to_change(hypervisor, command_line, offered, actionable):
    machine = replace(
        recorded("healthy-kvm-one-cpu"),
        hypervisor=hypervisor,
        command_line=command_line,
        clocksource=offered[-1],
        clocksources=offered,
    )
    (one,) = findings(machine)
    assert (one.code, one.actionable, one.button) == ("slow-clock", actionable, False)


# --- what has a button ---


@pytest.mark.parametrize("name", [name for name in EXPECTED if EXPECTED[name]])
def test_what_has_a_button_is_gone_after_the_plan_was_carried_out(name):
    files, commands = texts(name)
    before = findings(read(files, commands))
    for _ in range(3):  # what reshapes a card first, then the rest
        machine = read(files, commands)
        for row in wanted(machine):
            files[row.tunable.path] = row.value
        for action in due(plan(machine, Tuning())):
            carry_out(action.do, files, commands)
    # Programs are ended by the applier itself.
    files = {path: text for path, text in files.items() if not path.endswith("/comm")}
    after = findings(read(files, commands))
    assert not [one for one in after if one.button]
    # What counts from the start goes on to say so, without a button; a ring may have been the reason of it.
    kept = {(one.code, one.object) for one in before if not one.button}
    counted = {"backlog-drops", "squeezed", "overrun", "ring-small"}
    assert {(one.code, one.object) for one in after if one.code not in counted} <= kept


def carry_out(do: Write | Ethtool, files: dict[str, str], commands: dict[str, str]) -> None:
    if isinstance(do, Write):
        files[do.path] = do.value
        return
    option, name, *words = do.arguments
    pairs = dict(zip(words[::2], words[1::2], strict=True))
    if option == "-K":
        key = f"ethtool -k {name}"
        commands[key] = commands[key].replace("large-receive-offload: on", "large-receive-offload: off")
        return
    for word, value in pairs.items():
        key = f"ethtool {option.lower()} {name}"
        said = {"rx": "RX", "tx": "TX", "combined": "Combined", "adaptive-rx": "Adaptive RX"}[word]
        start = commands[key].find("Current")
        text = re.sub(rf"^{said}:(\s*)\S+", rf"{said}:\g<1>{value}", commands[key][max(start, 0) :], flags=re.MULTILINE)
        commands[key] = commands[key][: max(start, 0)] + text
    if option == "-L":
        queues = int(next(iter(pairs.values())))
        for path in [path for path in files if re.match(rf"/sys/class/net/{name}/queues/.x-(\d+)/", path)]:
            if int(re.search(r"x-(\d+)/", path)[1]) >= queues:
                del files[path]


# --- what is no fault ---


def healthy(**changes) -> facts.Machine:
    return replace(recorded("healthy-server-ixgbe"), **changes)


def with_card(**changes) -> facts.Machine:
    machine = healthy()
    return replace(machine, cards=(replace(machine.cards[0], **changes), *machine.cards[1:]))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        # A port without a cable: whatever it was left at.
        ({"link": False, "speed": 10, "duplex": "half"}, set()),
        ({"speed": 1000}, set()),
        ({"speed": 999}, {("slow-link", "eth0")}),
        ({"speed": 0, "duplex": ""}, set()),
        ({"duplex": "half", "speed": 100}, {("half-duplex", "eth0")}),
        ({"link_lost": 9}, set()),
        ({"link_lost": 10}, {("link-lost", "eth0")}),
        # One spoiled frame in a million, and nine of a hundred: chance.
        ({"counters": {"rx_packets": 10**9, "rx_crc_errors": 9000}}, set()),
        ({"counters": {"rx_packets": 91, "rx_crc_errors": 9}}, set()),
        ({"counters": {"rx_packets": 999_980, "rx_crc_errors": 20}}, {("bad-frames", "eth0")}),
        # One loss in a hundred thousand, and 99 in one moment.
        ({"counters": {"rx_packets": 10**9, "rx_missed_errors": 9000}}, set()),
        ({"counters": {"rx_packets": 500, "rx_missed_errors": 99}}, set()),
        ({"counters": {"rx_packets": 10**6, "rx_missed_errors": 1000}}, {("ring-small", "eth0")}),
        # Packets that nobody wanted are no loss.
        ({"counters": {"rx_packets": 10**6, "rx_dropped": 10**6}}, set()),
    ],
)
def test_the_border_between_chance_and_fault(changes, expected):
    assert found(with_card(**changes)) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"command_line": "quiet slub_debug=- kmemleak=off"}, {("debug-option", "slub_debug=-")}),
        ({"command_line": "quiet kmemleak=off page_owner=n"}, set()),
        ({"command_line": "ftrace=function quiet"}, {("debug-option", "ftrace=function")}),
        ({"clocksource": "kvm-clock"}, set()),
        ({"clocksource": "hpet"}, {("slow-clock", BOX)}),
        ({"hypervisor": "kvm"}, set()),
        ({"processes": frozenset({"irqbalance", "tuned"})}, {("meddler", "irqbalance"), ("meddler", "tuned")}),
        ({"driverless": ("0000:05:00.0 (8086:1563)",)}, {("no-driver", "0000:05:00.0 (8086:1563)")}),
    ],
)
def test_the_machine_as_a_whole(changes, expected):
    assert found(healthy(**changes)) == expected


def test_a_card_that_is_passed_through_is_not_taken_for_an_emulated_one():
    machine = recorded("healthy-appliance-igb")
    assert found(replace(machine, hypervisor="kvm")) == set()


def test_who_wants_the_box_to_wake_late_is_told_and_who_has_set_a_limit_is_not():
    machine = recorded("pc-saves-power")
    deep = {("deep-sleep", BOX)}
    at_work = replace(machine, cpus=tuple(replace(cpu, governor="performance") for cpu in machine.cpus))
    assert found(at_work) == deep
    limited = replace(at_work, cpus=tuple(replace(cpu, wake_limit=100) for cpu in at_work.cpus))
    assert found(limited) == set()
    nowhere_to_write = replace(at_work, cpus=tuple(replace(cpu, wake_limit=None) for cpu in at_work.cpus))
    (one,) = findings(nowhere_to_write)
    assert not one.button and "firmware" in one.mend


def test_what_costs_comes_first():
    machine = healthy(command_line="slub_debug", processes=frozenset({"irqbalance"}), clocksource="hpet")
    assert [one.severity for one in findings(machine)] == [COSTS, COSTS, LOOK]


# --- any machine at all ---

SMALL = st.integers(-1, 9)
COUNT = st.integers(0, 2**64)
WORD = st.sampled_from(["", "eth0", "eth0-rx-0", "eth1-TxRx-1", "ahci", "virtio0-input.0", "a, b", "ä\n", "=", "on"])
CPUS = st.lists(
    st.builds(
        facts.Cpu, SMALL, SMALL, SMALL, SMALL, WORD | st.just("powersave"), WORD, COUNT, WORD,
        wake_limit=st.none() | SMALL,
    ),
    max_size=5,
).map(tuple)  # fmt: skip
NUMBERS = st.lists(SMALL, max_size=5).map(tuple)
INTERRUPTS = st.lists(
    st.builds(
        facts.Interrupt, SMALL, st.sampled_from([facts.XT_PIC, facts.IO_APIC, facts.MSI, facts.MSI_X, facts.OTHER]),
        st.lists(WORD, max_size=3).map(tuple), st.lists(COUNT, max_size=6).map(tuple), NUMBERS, st.booleans(),
    ),
    max_size=6,
).map(tuple)  # fmt: skip
CARDS = st.lists(
    st.builds(
        facts.Card,
        name=WORD,
        driver=WORD | st.just("e1000"),
        bus=WORD,
        node=SMALL,
        link=st.booleans(),
        speed=COUNT,
        duplex=st.sampled_from(["", "half", "full"]),
        queues=st.builds(facts.Queues, SMALL, SMALL, SMALL, SMALL, st.booleans(), st.booleans()),
        ring=st.builds(facts.Ring, COUNT, COUNT, COUNT, COUNT),
        offloads=st.dictionaries(st.just("large-receive-offload"), st.booleans()),
        fixed=st.sampled_from([frozenset(), frozenset({"large-receive-offload"})]),
        interrupts=NUMBERS,
        rps=st.lists(NUMBERS, max_size=3).map(tuple),
        counters=st.dictionaries(st.sampled_from(["rx_packets", "rx_crc_errors", "rx_missed_errors"]), COUNT),
        link_lost=COUNT,
    ),
    max_size=4,
).map(tuple)
MACHINES = st.builds(
    facts.Machine,
    cpus=CPUS,
    memory=COUNT,
    interrupts=INTERRUPTS,
    cards=CARDS,
    softnet=st.lists(st.builds(facts.Softnet, SMALL, COUNT, COUNT, COUNT, COUNT, COUNT), max_size=5).map(tuple),
    hypervisor=st.sampled_from(["", "kvm", "vmware", "else"]),
    clocksource=st.sampled_from(["", "tsc", "hpet", "acpi_pm"]),
    command_line=st.lists(WORD | st.sampled_from(["noapic", "slub_debug=FZ", "x" * 500]), max_size=4).map(" ".join),
    processes=st.sampled_from([frozenset(), frozenset({"irqbalance"})]),
    settings=st.dictionaries(st.sampled_from(["net/core/netdev_budget", "net/core/netdev_max_backlog"]), WORD),
    distances=st.lists(NUMBERS, max_size=3).map(tuple),
    driverless=st.lists(WORD, max_size=2).map(tuple),
)


@given(MACHINES)
@settings(max_examples=300, deadline=None)
def test_no_machine_is_too_odd(machine):
    for one in findings(machine):
        assert isinstance(one, Finding) and one.code and one.what and one.mend


def test_every_check_is_asked():
    assert len(CHECKS) == len(set(CHECKS)) > 15
