"""The plan for machines of many kinds: pure, so each is a few lines of facts."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from lbconfig.hardware.actions import Ethtool, Write
from lbconfig.hardware.cpu_lists import parse_mask
from lbconfig.hardware.facts import (
    IO_APIC,
    MSI_X,
    XT_PIC,
    Card,
    Coalescing,
    Cpu,
    Interrupt,
    Machine,
    Queues,
    Ring,
)
from lbconfig.hardware.plan.whole import due, plan
from lbconfig.model.tuning import CardChoice, Power, Tuning

USUAL = Tuning()


def line(number, *devices, cpus=(0, 1, 2, 3), kind=MSI_X, managed=False):
    return Interrupt(number, kind, devices, (), tuple(cpus), managed)


def card(name="eth0", queues=4, most=8, first=24, cpus=4, **more):
    """With combined queues, an interrupt each, and nothing spread by software."""
    lines = tuple(range(first, first + queues))
    fields = {
        "queues": Queues(queues, queues, most, most, combined=True, settable=most > 1),
        "rps": ((),) * queues,
        "xps": ((),) * queues if most > 1 else (),
        "interrupts": lines,
    }
    return Card(name, "igb", **(fields | more))


def lines_of(one: Card, **more):
    return tuple(line(number, f"{one.name}-TxRx-{place}", **more) for place, number in enumerate(one.interrupts))


def machine(cpus=4, cards=(), lines=None, **more):
    processors = tuple(Cpu(number, 0, number) for number in range(cpus)) if isinstance(cpus, int) else cpus
    found = tuple(found for one in cards for found in lines_of(one)) if lines is None else tuple(lines)
    return Machine(processors, 4096, found, tuple(cards), **more)


def writes(actions):
    return {action.do.path: action.do.value for action in actions if isinstance(action.do, Write)}


def commands(actions):
    return [action.do.arguments for action in actions if isinstance(action.do, Ethtool)]


def homes(actions):
    found = writes(actions).items()
    return {int(path.split("/")[3]): int(value) for path, value in found if path.startswith("/proc/irq/")}


def test_a_card_gets_a_queue_for_each_core_before_anything_else():
    actions = plan(machine(4, [card(queues=1)]), USUAL)
    assert commands(actions)[0] == ("-L", "eth0", "combined", "4")
    first = due(actions)
    assert [action.what for action in first] == ["4 queues"] and first[0].undo == Ethtool(
        ("-L", "eth0", "combined", "1")
    )


def test_never_more_queues_than_cpus():
    assert commands(plan(machine(2, [card(queues=8)]), USUAL))[0] == ("-L", "eth0", "combined", "2")
    assert commands(plan(machine(1, [card(queues=8)]), USUAL))[0] == ("-L", "eth0", "combined", "1")


def test_hyper_threads_get_no_queue_of_their_own():
    cpus = tuple(Cpu(number, 0, number % 4) for number in range(8))
    actions = plan(machine(cpus, [card(queues=4, cpus=8)]), USUAL)
    assert commands(actions)[0] == ("-L", "eth0", "combined", "4") and actions[0].done
    assert sorted(homes(actions).values()) == [0, 1, 2, 3]
    # Each thread sends by the queue of its core.
    assert [parse_mask(writes(actions)[f"/sys/class/net/eth0/queues/tx-{n}/xps_cpus"]) for n in range(4)] == [
        (0, 4), (1, 5), (2, 6), (3, 7),
    ]  # fmt: skip


def test_a_queue_stays_on_its_cpu_and_what_is_right_is_done():
    one = card()
    there = machine(4, [one], [line(24 + n, f"eth0-TxRx-{n}", cpus=(n,)) for n in range(4)])
    assert homes(plan(there, USUAL)) == {24: 0, 25: 1, 26: 2, 27: 3}
    assert all(action.done for action in plan(there, USUAL) if action.object.startswith("interrupt"))
    assert not any(action.done for action in plan(machine(4, [one]), USUAL) if action.object.startswith("interrupt"))


def test_receiving_and_sending_interrupts_of_a_queue_are_together():
    virtio = card("eth0", queues=2, most=2, interrupts=(30, 31, 32, 33))
    names = ("virtio0-input.0", "virtio0-output.0", "virtio0-input.1", "virtio0-output.1")
    found = machine(2, [virtio], [line(30 + n, name, cpus=(0, 1)) for n, name in enumerate(names)])
    assert homes(plan(found, USUAL)) == {30: 0, 31: 0, 32: 1, 33: 1}


def test_vectors_that_are_counted_from_one():
    tg3 = card(queues=2, most=4, interrupts=(40, 41))
    found = machine(2, [tg3], [line(40, "eth0-txrx-1", cpus=(0, 1)), line(41, "eth0-txrx-2", cpus=(0, 1))])
    assert homes(plan(found, USUAL)) == {40: 0, 41: 1}


def test_a_card_with_one_queue_is_spread_by_software_over_all_cores():
    realtek = card("eth0", queues=1, most=1)
    actions = plan(machine(4, [realtek]), USUAL)
    assert commands(actions) == []
    assert writes(actions) == {
        "/proc/irq/24/smp_affinity_list": "0",
        "/sys/class/net/eth0/queues/rx-0/rps_cpus": "f",
    }


def test_two_single_queue_cards_do_not_meet_on_one_cpu():
    cards = [card("eth0", queues=1, most=1, first=24), card("eth1", queues=1, most=1, first=25)]
    assert homes(plan(machine(2, cards), USUAL)) == {24: 0, 25: 1}


def test_a_card_with_a_queue_for_each_core_is_in_order_whatever_was_before():
    cards = [card("eth0", queues=1, most=1, first=20), card("eth1", queues=2, most=2, first=24)]
    cards.append(card("eth2", queues=1, most=1, first=30))
    assert homes(plan(machine(2, cards), USUAL)) == {20: 0, 24: 0, 25: 1, 30: 1}


def test_fewer_queues_than_cores_share_them_out():
    actions = plan(machine(8, [card(queues=2, most=2)]), USUAL)
    masks = [parse_mask(writes(actions)[f"/sys/class/net/eth0/queues/rx-{n}/rps_cpus"]) for n in range(2)]
    assert sorted(masks[0] + masks[1]) == list(range(8)) and 0 in masks[0] and 1 in masks[1]


def test_as_many_queues_as_cores_are_not_spread_again():
    spread = card(rps=((0, 1, 2, 3),) * 4)
    actions = [action for action in plan(machine(4, [spread]), USUAL) if "receive queue" in action.what]
    assert {action.do.value for action in actions} == {"0"} and not any(action.done for action in actions)
    assert actions[0].undo.value == "f"
    assert all(one.done for one in plan(machine(4, [card()]), USUAL) if "receive queue" in one.what)


def test_a_single_cpu_has_nothing_to_place():
    actions = plan(machine(1, [card(queues=1, most=1)], [line(16, "ahci", "eth0", cpus=(0,), kind=IO_APIC)]), USUAL)
    assert actions == ()


def test_cards_are_served_by_their_own_numa_node():
    cpus = tuple(Cpu(number, number // 4, number % 4, number // 4) for number in range(8))
    actions = plan(machine(cpus, [card(queues=4, node=1)]), USUAL)
    assert sorted(homes(actions).values()) == [4, 5, 6, 7]
    assert commands(plan(machine(cpus, [card(queues=8, node=1)]), USUAL))[0][-1] == "4"
    assert len(set(homes(plan(machine(cpus, [card(queues=8)]), USUAL)).values())) == 8


def test_what_cannot_be_moved_is_left_alone():
    one = card(queues=2, most=2)
    lines = [
        line(24, "eth0-TxRx-0", managed=True),
        line(25, "eth0-TxRx-1", kind=XT_PIC),
        line(26, "eth0-TxRx-2", cpus=()),
        line(50, "nvme0q1", managed=True),
    ]
    assert homes(plan(machine(4, [replace(one, interrupts=(24, 25, 26))], lines), USUAL)) == {}


def test_storage_leaves_the_busiest_cpus_to_the_network():
    one = card("eth0", queues=1, most=1)
    lines = [*lines_of(one), line(40, "ahci[0000:00:1f.2]", cpus=(0,)), line(41, "xhci_hcd", cpus=(0,))]
    assert homes(plan(machine(4, [one], lines), USUAL)) == {24: 0, 40: 3}


def test_a_line_that_card_and_disk_share_is_planned_once():
    one = replace(card("eth0", queues=1, most=1), interrupts=(16,))
    two = replace(one, name="eth1")
    lines = [line(16, "ahci", "eth0", "eth1", kind=IO_APIC)]
    actions = [action for action in plan(machine(4, [one, two], lines), USUAL) if "irq" in str(action.do)]
    assert len(actions) == 1


def test_queues_each_way_are_set_each_way():
    one = card(queues=1, most=1)
    one = replace(one, queues=Queues(1, 1, 4, 2, combined=False, settable=True))
    assert commands(plan(machine(4, [one]), USUAL))[0] == ("-L", "eth0", "rx", "4", "tx", "2")


def test_rings_grow_and_never_shrink():
    small, large = Ring(256, 256, 4096, 512), Ring(2048, 4096, 4096, 4096)
    assert ("-G", "eth0", "rx", "1024", "tx", "512") in commands(plan(machine(1, [card(ring=small)]), USUAL))
    assert all(action.done for action in plan(machine(1, [card(queues=1, most=1, ring=large)]), USUAL))
    fast = card(ring=small, speed=25_000)
    assert ("-G", "eth0", "rx", "2048", "tx", "512") in commands(plan(machine(1, [fast]), USUAL))


def test_wishes_of_an_admin_for_a_card():
    wish = Tuning(cards=(CardChoice("eth0", queues=2, rx_ring=512), CardChoice("eth7", queues=3)))
    found = commands(plan(machine(4, [card(ring=Ring(256, 256, 4096, 4096))]), wish))
    assert ("-L", "eth0", "combined", "2") in found and ("-G", "eth0", "rx", "512", "tx", "1024") in found


def test_lro_goes_off_unless_it_cannot():
    on = {"large-receive-offload": True, "generic-receive-offload": True}
    action = next(one for one in plan(machine(1, [card(queues=1, most=1, offloads=on)]), USUAL))
    assert action.do.arguments == ("-K", "eth0", "lro", "off") and not action.done
    fixed = card(queues=1, most=1, offloads=on, fixed=frozenset(on))
    assert plan(machine(1, [fixed]), USUAL) == ()


def test_interrupts_follow_the_load_where_the_card_can():
    adaptive = ("-C", "eth0", "adaptive-rx", "on")
    able = card(queues=1, most=1, coalescing=Coalescing(3, 3, False, False))
    assert adaptive in commands(plan(machine(1, [able]), USUAL))
    assert adaptive not in commands(plan(machine(1, [able]), Tuning(power=Power.LATENCY)))
    assert adaptive not in commands(plan(machine(1, [card(queues=1, most=1)]), USUAL))
    idle = card(queues=1, most=1, coalescing=Coalescing(0, 0, False, False))
    assert adaptive not in commands(plan(machine(1, [idle]), USUAL))


def test_clock_and_sleep_by_the_wish():
    cpu = Cpu(0, governor="powersave", longest_wake=133, deepest_state="C6", wake_limit=0)
    limit = "/sys/devices/system/cpu/cpu0/power/pm_qos_resume_latency_us"
    clock = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
    for power, wanted in (
        (Power.BALANCED, {clock: "performance", limit: "100"}),
        (Power.LATENCY, {clock: "performance", limit: "10"}),
        (Power.BOARD, {limit: "0"}),
    ):
        assert writes(plan(machine((cpu,)), Tuning(power=power))) == wanted
    assert all(action.done for action in plan(machine((cpu,)), Tuning(power=Power.BOARD)))


def test_left_alone_means_alone():
    quiet = Tuning(spread=False, power=Power.BOARD)
    assert plan(machine(4, [card(queues=1, rps=((0, 1),))]), quiet) == ()


@given(
    st.integers(1, 12),
    st.lists(st.tuples(st.integers(1, 16), st.integers(1, 16), st.sampled_from([-1, 0, 1])), max_size=5),
    st.booleans(),
)
def test_any_machine_is_as_planned_once_the_plan_is_carried_out(cpus, kinds, threads):
    """Everything placed is a CPU of this machine, every CPU has a queue to send by, and what is told to be undone
    is what was there."""
    processors = tuple(Cpu(n, 0, n // 2 if threads else n, n % 2) for n in range(cpus))
    cards = [
        card(f"eth{n}", queues=min(queues, most), most=most, first=24 + 16 * n, node=node)
        for n, (queues, most, node) in enumerate(kinds)
    ]
    found = machine(processors, cards)
    actions = plan(found, USUAL)
    assert set(homes(actions).values()) <= set(range(cpus))
    for one in cards:
        masks = [
            parse_mask(value)
            for path, value in writes(actions).items()
            if path.startswith(f"/sys/class/net/{one.name}/queues/tx-")
        ]
        if masks:
            assert sorted(cpu for mask in masks for cpu in mask) == list(range(cpus))
    counts = [int(words[-1]) for words in commands(actions) if words[0] == "-L"]
    assert all(1 <= count <= cpus for count in counts)
    assert all(action.undo is not None and action.reason and action.source for action in actions)
    assert plan(found, USUAL) == actions
