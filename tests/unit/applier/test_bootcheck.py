"""Is what has just started good? And what happens when it is not."""

import dataclasses

import pytest
from box import ONE, running_one
from update_box import UpdateBox

from applier.disk import bootstate
from applier.update import bootcheck, least_version
from applier.update import record as update_record
from applier.update.bootcheck import judge, look, patience
from applier.update.record import Record
from applier.wire.client import ApplierDown

PAGE = (200, "<title>Fairlead</title>")


class Looked:
    """A box that balances, with slots: two boxes of other tests in one."""

    def __init__(self, folder, booted="B"):
        self.inner = running_one(folder / "box")
        self.disk = UpdateBox(folder / "slots")
        self.disk.paths.slot_file.write_text(booted)
        self.disk.host.versions = {"slot-a": "0.1.0", "slot-b": "0.2.0"}
        self.page = PAGE

    def box(self):
        host = self.inner.host
        commands = host.command

        def command(argv, stdin="", timeout=20.0):
            if argv[0] in ("mount", "umount", "reboot"):
                return self.disk.host.command(argv)
            return commands(argv, stdin, timeout)

        host.command = command
        read = host.read
        host.read = lambda path: self.disk.host.read(path) if "look" in path.parts else read(path)
        return bootcheck.Box(self.disk.paths, host, self.inner.applier.status, self.show)

    def show(self, port):
        self.asked = port
        if isinstance(self.page, Exception):
            raise self.page
        return self.page

    def judge(self, seconds=30.0):
        return judge(self.box(), seconds, self.inner.host.sleep)

    def state(self):
        return self.disk.boot_state()

    @property
    def record(self):
        return update_record.load(self.disk.paths.update_record)

    def trying(self, slot="B", **fields):
        versions = {"A": "0.1.0", "B": "0.2.0"}
        other = "A" if slot == "B" else "B"
        record = Record(slot, versions[slot], other, versions[other], "ann", "update", "trying", "")
        update_record.save(self.disk.paths.update_record, dataclasses.replace(record, **fields))
        bootstate.set_primary(slot, self.disk.paths.boot_state)

    @property
    def restarted(self):
        return self.disk.host.ran("reboot")


@pytest.fixture
def looked(tmp_path):
    return Looked(tmp_path)


def test_a_good_one_is_marked_good(looked):
    looked.trying()
    assert looked.judge() == "good"
    assert looked.state().slot("B").good and not looked.restarted
    assert looked.record.state == "good"
    assert looked.record.sentence == "Version 0.2.0 came up, passed its checks, and runs."


@pytest.mark.parametrize(
    ("own", "known", "kept", "left"),
    [
        ("", "", "", False),
        ("0.1.0", "", "0.1.0", False),
        ("0.2.0", "0.1.0", "0.2.0", True),
        ("0.1.0", "0.3.0", "0.3.0", True),
        ("\x1b[2J", "0.1.0", "0.1.0", False),
    ],
)
def test_a_release_that_is_good_raises_the_least_version(looked, own, known, kept, left):
    """It is never lowered, and an older version in the other slot does not start any more."""
    paths = looked.disk.paths
    bootstate.mark_good("A", paths.boot_state)
    paths.version_file.with_name("LEAST_VERSION").write_text(f"{own}\n")
    if known:
        paths.least_version.write_text(f"{known}\n")
    assert looked.judge() == "good"
    assert least_version.of_box(paths) == kept
    assert looked.state().can_boot("A") is not left


def test_a_release_that_is_not_good_raises_nothing(looked):
    looked.disk.paths.version_file.with_name("LEAST_VERSION").write_text("9.9.9\n")
    looked.page = (502, "")
    looked.judge()
    assert least_version.of_box(looked.disk.paths) == ""


def test_the_page_is_looked_for_at_its_port(looked):
    looked.inner.apply(dataclasses.replace(ONE, management=dataclasses.replace(ONE.management, port=8443)))
    assert looked.judge() == "good" and looked.asked == 8443


def test_a_good_one_without_an_update(looked):
    assert looked.judge() == "good"
    assert looked.state().slot("B").good and looked.record is None


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ((502, ""), "the web page answers with 502"),
        ((200, "It works!"), "something else answers"),
        (OSError(111, "Connection refused"), "the web page does not come"),
    ],
)
def test_a_bad_page_on_trial_says_why_and_restarts(looked, page, words):
    looked.trying()
    looked.page = page
    assert looked.judge() == "bad"
    assert looked.restarted and not looked.state().slot("B").good
    assert looked.record.state == "trying" and words in looked.record.reason


def test_a_slot_that_was_good_before_never_restarts_the_box(looked):
    bootstate.mark_good("B", looked.disk.paths.boot_state)
    looked.page = (502, "")
    assert looked.judge() == "doubtful"
    assert not looked.restarted


def test_a_slot_with_nothing_to_go_back_to_never_restarts_the_box(looked):
    looked.page = (502, "")
    looked.disk.host.versions["slot-a"] = ""
    assert looked.judge() == "doubtful"
    assert not looked.restarted


def test_one_that_takes_its_time_is_waited_for(looked):
    looked.trying()
    pages = iter([OSError(111, "Connection refused"), (502, ""), PAGE])
    looked.show = lambda port: one if not isinstance(one := next(pages), Exception) else (500, "")
    assert looked.judge() == "good"


def test_an_applier_that_does_not_answer(looked):
    box = dataclasses.replace(looked.box(), status=lambda: (_ for _ in ()).throw(ApplierDown("No such file.")))
    assert look(box) == "the service that applies configurations does not answer (No such file)"


def test_a_configuration_that_is_still_being_loaded(looked):
    looked.inner.applier.beginning.record.state = "running"
    assert "not loaded in time" in look(looked.box())


def test_a_fault_counts_unless_it_was_there_before_or_lies_elsewhere(looked):
    box = looked.box()
    assert look(box) == ""
    looked.inner.applier.faults.set("start", "An address could not be set.")
    assert look(box) == "An address could not be set"
    assert look(box, known=("start",)) == ""
    looked.inner.applier.faults.set("start", None)
    looked.inner.applier.faults.set("update-failed", "Version 0.2.0 did not come up.")
    looked.inner.applier.faults.set("not-in-pair", "The key of this box is in no pair.")
    assert look(box) == ""


@pytest.mark.parametrize("code", sorted(bootcheck.OF_THE_PAIR))
def test_a_box_that_serves_alone_is_not_restarted_because_the_other_one_is_away(looked, code):
    looked.trying()
    looked.inner.applier.faults.set(code, "lb2 has been away since 12:00 UTC; it follows when it is back.")
    assert looked.judge() == "good" and not looked.restarted


def test_the_kernel_s_table_is_asked_itself(looked):
    looked.inner.host.table.popitem()
    assert "table of virtual services is not that of revision 1" in look(looked.box())


def test_forwarding_that_is_off(looked):
    looked.inner.host.settings["net/ipv4/ip_forward"] = "0"
    assert look(looked.box()) == "the kernel's setting net/ipv4/ip_forward is 0 and not 1"


def test_another_generation_than_the_confirmed_one(looked):
    looked.inner.applier.confirmed = 7
    assert "revision 1 and not 7" in look(looked.box())


def test_the_box_comes_back_and_says_so(tmp_path):
    back = Looked(tmp_path, booted="A")
    back.trying("B", reason="the web page answers with 502")
    assert back.judge() == "good"
    said = "Version 0.2.0 did not come up: the web page answers with 502. The box went back to version 0.1.0."
    assert back.record.fault == said
    assert not back.state().can_boot("B") and bootstate.choose(back.state()) == "A"
    assert back.judge() == "good" and back.record.fault == said  # at the next start as well


def test_one_that_was_good_before_is_not_condemned(tmp_path):
    back = Looked(tmp_path, booted="A")
    bootstate.mark_good("B", back.disk.paths.boot_state)
    back.trying("B", kind="return")
    back.judge()
    assert back.state().slot("B").good and bootstate.choose(back.state()) == "A"
    assert "did not come up" in back.record.fault


@pytest.mark.parametrize(("tries", "words"), [(3, "before it could say why"), (0, "chosen at the console")])
def test_one_that_never_said_a_word(tmp_path, tries, words):
    back = Looked(tmp_path, booted="A")
    back.trying("B")
    state = back.state().changed("B", tries=tries)
    back.disk.paths.boot_state.write_bytes(bytes(bootstate.PLACE) + bootstate.render(state))
    back.judge()
    assert words in back.record.sentence


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        ("root=PARTUUID=1 quiet", 180.0),
        ("fairlead.patience=40 quiet", 40.0),
        ("quiet fairlead.patience=40", 40.0),
        ("xfairlead.patience=40", 180.0),
        ("fairlead.patience=", 180.0),
        ("fairlead.patience=99999", 180.0),
    ],
)
def test_how_long_it_waits(line, seconds):
    assert patience(line) == seconds
