"""Choices about the hardware: what may be chosen, and how its changes are told."""

import dataclasses

import pytest
from lbconfig_samples import SAMPLE
from tests import texts

from lbconfig.diff.services import summary
from lbconfig.hardware.settings import TABLE_SIZE
from lbconfig.migrate import read
from lbconfig.model.snapshot import CardChoice, Power, SettingChoice, Snapshot, Tuning, from_json, to_json
from lbconfig.render import render
from lbconfig.validate.services import validate


def wished(tuning: Tuning) -> Snapshot:
    return dataclasses.replace(SAMPLE, tuning=tuning)


BACKLOG = SettingChoice("net/core/somaxconn", "512")


@pytest.mark.parametrize(
    ("tuning", "path", "words"),
    [
        (Tuning((SettingChoice("net/core/somaxconn", "1"),)), "tuning.settings[0].value", "128 to 65535"),
        (Tuning((BACKLOG, SettingChoice("kernel/panic", "0"))), "tuning.settings[1].key", "no setting"),
        (Tuning((BACKLOG, BACKLOG)), "tuning.settings[1].key", "chosen twice"),
        (Tuning(cards=(CardChoice("eth0; reboot"),)), "tuning.cards[0].name", "letters, digits"),
        (Tuning(cards=(CardChoice("eth0"), CardChoice("eth0"))), "tuning.cards[1].name", "there twice"),
        (Tuning(cards=(CardChoice("eth0", queues=-1),)), "tuning.cards[0].queues", texts.within(0, 256, -1)),
        (
            Tuning(cards=(CardChoice("eth0", rx_ring=10**30),)),
            "tuning.cards[0].rx_ring",
            texts.within(0, 65536, 10**30),
        ),
        (
            Tuning(cards=(CardChoice("eth0", tx_ring=65_537),)),
            "tuning.cards[0].tx_ring",
            texts.within(0, 65536, 65_537),
        ),
    ],
)
def test_what_makes_no_sense_is_told_by_field(tuning, path, words):
    [problem] = validate(wished(tuning))
    assert problem.path == path and words in problem.message


def test_a_wish_that_is_fine():
    tuning = Tuning((BACKLOG,), (CardChoice("eth0", 2, 512, 0),), spread=False, power=Power.LATENCY)
    assert validate(wished(tuning)) == []
    assert from_json(to_json(wished(tuning))) == wished(tuning)


@pytest.mark.parametrize("value", ['"fast"', "7", "null", "[]"])
def test_a_power_that_is_none_is_refused(value):
    text = to_json(SAMPLE).replace('"power": "balanced"', f'"power": {value}')
    with pytest.raises(ValueError, match=r"tuning\.power: must be one of balanced, latency, board"):
        from_json(text)


def test_a_configuration_from_before_wishes_nothing():
    assert read('{"schema": 2}').tuning == Tuning()


def test_its_file_is_there_only_where_something_is_wished():
    assert "tuning.conf" not in render(SAMPLE)
    text = render(wished(Tuning((BACKLOG,), (CardChoice("eth0", 2),))))["tuning.conf"]
    assert "net/core/somaxconn = 512\n" in text and "eth0 queues = 2 " in text


def changes(old: Tuning, new: Tuning):
    return [(one.kind, one.object, *one.sentences, one.impact) for one in summary(wished(old), wished(new))]


def test_changes_in_plain_words():
    other = Tuning((BACKLOG,), (CardChoice("eth0", 2),), power=Power.LATENCY)
    assert changes(Tuning(), other) == [
        ("added", "kernel setting net/core/somaxconn", "512 instead of the box's own value.", None),
        (
            "changed", "network card eth0", "Queues: 2 instead of the box's choice.",
            "The card stops for a moment, and traffic over it waits.",
        ),
        ("changed", "hardware", "Clock and sleep of the CPUs: ready within 10 µs.", None),
    ]  # fmt: skip
    assert changes(other, Tuning())[0][2] == "Back to the box's own value, from 512."
    assert changes(other, other) == []


def test_what_waits_for_the_next_start_says_so():
    [change] = changes(Tuning(), Tuning((SettingChoice(TABLE_SIZE, "20"),)))
    assert change[-1] == "It takes effect when the box restarts."
    [change] = changes(Tuning(), Tuning(spread=False))
    assert change[2:] == (
        "Queues and interrupts of the network cards are left as the kernel has them.",
        "What has been spread so far stays until the box restarts.",
    )
