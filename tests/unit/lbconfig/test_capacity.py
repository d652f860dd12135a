"""The limit of a box from what was counted, and how near it is to that."""

import itertools

import pytest

from lbconfig.capacity import figures as capacity
from lbconfig.capacity.figures import BOX, SENDER, Cpus, CpuTimes, Known, Limit, Rates, Sample, Totals

QUIET, FULL = Cpus(0.2, 0.3, 0.1), Cpus(0.8, 0.99, 0.7)

# ip_vs_stats_show of Linux 6.12: totals, an empty line, and the kernel's own rates
STATS = """   Total Incoming Outgoing         Incoming         Outgoing
   Conns  Packets  Packets            Bytes            Bytes
      1F      100       80             4000            20000

 Conns/s   Pkts/s   Pkts/s          Bytes/s          Bytes/s
       1        2        3                4                5
"""


# --- reading ---


def test_totals_are_hex_and_of_both_ways():
    assert capacity.read_totals(STATS) == Totals(0x1F, 0x180, 0x24000)


@pytest.mark.parametrize("text", ["", "no such thing\n", "1 2 3 4\n", "x y z u v\n"])
def test_counters_that_say_nothing_are_an_error(text):
    with pytest.raises(ValueError, match="counters of IPVS"):
        capacity.read_totals(text)


def test_cpu_times_leave_out_the_sum_and_count_waiting_as_idle():
    text = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 10 1 5 70 4 2 8 0 0 0\ncpu3 1 0 0 9 0 0 0 0 0 0\nintr 12\n"
    assert capacity.read_cpus(text) == (CpuTimes(100, 26, 8), CpuTimes(10, 1, 0))


def test_dropped_packets_of_all_cpus_are_added():
    assert capacity.read_dropped("0000ffff 0000000a 00000001\n00000001 00000010 00000000\n") == 26


@pytest.mark.parametrize(
    ("uevent", "said"),
    [
        ("DRIVER=igb\nPCI_CLASS=20000\nPCI_SLOT_NAME=0000:03:00.0\n", "igb 0000:03:00.0"),
        ("DRIVER=virtio_net\nMODALIAS=virtio:d00000001v00001AF4\n", "virtio_net"),
        ("", ""),
    ],
)
def test_driver_and_place_of_a_card(uevent, said):
    assert capacity.read_driver(uevent) == said


def test_processor_by_its_name_alone():
    assert capacity.read_processor("processor\t: 0\nmodel name\t: A  CPU @ 2 GHz\nmodel name\t: other\n") == (
        "A CPU @ 2 GHz"
    )
    assert capacity.read_processor("") == ""


def test_rates_of_counters_that_went_back_are_nothing():
    assert capacity.rates(Totals(10, 10, 10), Totals(30, 5, 110), 2.0) == Rates(10, 0, 50)


def test_use_of_cpus():
    before = (CpuTimes(100, 50, 10), CpuTimes(100, 50, 0))
    after = (CpuTimes(200, 150, 60), CpuTimes(200, 70, 10))
    assert capacity.use(before, after) == Cpus(0.6, 1.0, 0.3)
    assert capacity.use(before, before) == Cpus(0, 0, 0)  # no tick went by


# --- watching ---


def sample(packets: float, cpus: Cpus = QUIET, dropped: int = 0) -> Sample:
    return Sample(1.0, Rates(packets / 10, packets, packets * 100), cpus, dropped)


def test_the_highest_rate_that_lasted_without_a_drop():
    samples = [sample(one) for one in (10, 100, 100, 100, 100, 100, 900, 10, 10, 10)]
    samples[6] = sample(900, dropped=3)
    found = capacity.sustained(samples)
    assert (found.rates, found.held) == (Rates(10, 100, 10_000), BOX)


def test_clients_that_asked_for_no_more_show_no_limit_of_the_box():
    assert capacity.sustained([sample(100)] * 8).held == SENDER
    assert capacity.sustained([sample(100, FULL)] * 8).held == BOX


def test_a_drop_at_a_lower_rate_shows_no_limit():
    samples = [sample(10, dropped=1), *[sample(100)] * 6]
    assert capacity.sustained(samples).held == SENDER


@pytest.mark.parametrize(
    "samples", [[], [sample(100)] * 4, [sample(0)] * 9, [sample(100, dropped=1)] * 9], ids=["none", "few", "0", "drops"]
)
def test_what_shows_no_rate(samples):
    assert capacity.sustained(samples) is None


def test_seconds_of_unequal_length_count_by_their_length():
    samples = [Sample(seconds, Rates(0, rate, 0), QUIET, 0) for seconds, rate in ((4, 100), (1, 200))]
    assert capacity.sustained(samples, window=2).rates.packets == 120


# --- what is known ---


def limit(packets: float, held: str = BOX) -> Limit:
    return Limit(Rates(packets / 10, packets, packets * 50), QUIET, held)


def test_the_newest_limit_of_the_box_holds():
    assert capacity.known([limit(500), limit(900)])["packets"] == Known(500, BOX)


def test_what_was_seen_since_raises_it_and_a_quiet_hour_does_not_lower_it():
    assert capacity.known([limit(100, SENDER), limit(500), limit(900)])["packets"] == Known(500, BOX)
    assert capacity.known([limit(600, SENDER), limit(500)])["packets"] == Known(600, SENDER)


def test_each_figure_is_the_highest_that_was_seen():
    quick, wide = Limit(Rates(80, 400, 4_000), QUIET, SENDER), Limit(Rates(0, 20, 30_000), QUIET, BOX)
    assert capacity.known([quick, wide]) == {
        "connections": Known(80, SENDER),
        "packets": Known(400, SENDER),
        "bytes": Known(30_000, BOX),
    }
    assert capacity.known([]) == {}


def test_the_share_is_that_of_the_figure_nearest_to_its_limit():
    limits = {"connections": Known(100, BOX), "packets": Known(1000, BOX), "bytes": Known(10_000, BOX)}
    assert capacity.share(Rates(10, 500, 2_000), limits) == ("packets", 0.5)
    assert capacity.share(Rates(0, 0, 0), limits) == ("connections", 0.0)
    assert capacity.share(Rates(10, 500, 2_000), {}) is None


def test_every_order_of_samples_gives_a_rate_that_was_really_seen():
    for order in itertools.permutations((10.0, 20.0, 30.0, 40.0, 50.0)):
        assert capacity.sustained([sample(one) for one in order]).rates.packets == pytest.approx(30)
