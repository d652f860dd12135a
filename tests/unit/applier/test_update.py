"""From a bundle to the other slot, and to the restart into it."""

import threading

import pytest
from update_box import IMAGE, SLOT, UpdateBox, bundle_bytes, manifest

from applier.disk import bootstate
from applier.host.host import Output
from applier.kept.generations import Generations
from applier.kept.turn import OVERDUE
from applier.update import record as update_record
from applier.update import verbs as update
from applier.update import write as update_write
from applier.wire.errors import ApplierRefused
from lbconfig.model.snapshot import FACTORY

OLD = b"old!" * (SLOT // 4)


@pytest.fixture
def box(tmp_path):
    return UpdateBox(tmp_path)


def refused(ask, *words) -> ApplierRefused:
    with pytest.raises(ApplierRefused) as caught:
        ask(*words)
    return caught.value


def slot(box, name):
    return next(one for one in box.updates.slots()["slots"] if one["name"] == name)


def test_a_good_bundle_is_installed_and_waits_for_the_restart(box):
    source = box.upload()
    review = box.updates.update_check(source)
    assert (review["version"], review["slot"], review["replaces"], review["notes"]) == ("0.2.0", "B", "", [])
    assert box.device("slot-b").read_bytes() == OLD
    (box.paths.slots / "B").mkdir()
    (box.paths.slots / "B" / "old").write_text("the configuration of what was there")
    box.host.versions["slot-b"] = "0.2.0"

    job = box.install(source)
    assert (job["state"], job["percent"]) == ("done", 100), job
    assert box.device("slot-b").read_bytes()[: len(IMAGE)] == IMAGE
    assert not (box.paths.slots / "B").exists()  # it takes the running one along when it starts
    assert box.device("slot-a").read_bytes() == OLD
    state = box.boot_state()
    assert bootstate.choose(state) == "A" and state.can_boot("B") and state.on_trial("B")
    b = slot(box, "B")
    assert (b["version"], b["user"], b["can_start"], b["good"], b["next"]) == ("0.2.0", "ann", True, False, False)
    assert box.updates.slots()["outcome"]["state"] == "installed"
    assert not box.busy and not list(box.paths.taken.iterdir())

    box.updates.boot_slot("B", "ann")
    box.wait("restart")
    assert box.host.ran("reboot")
    assert bootstate.choose(box.boot_state()) == "B"
    record = box.updates.record
    assert (record.state, record.kind, record.known_faults) == ("trying", "update", ("health-checks",))
    assert box.busy  # nothing may be changed any more


def test_the_percentage_of_an_install_only_grows_and_is_100_at_the_end_alone(box, monkeypatch):
    told = []

    class Told(update.Install):
        def __setattr__(self, name, value):
            super().__setattr__(name, value)
            if name == "percent":
                told.append(value)

    monkeypatch.setattr(update, "Install", Told)
    monkeypatch.setattr(update_write, "FLUSH", update_write.BLOCK)  # this image is a small one
    assert box.install(box.upload())["state"] == "done"
    assert told == sorted(told) and (told[0], told[-1]) == (0, 100)
    for begin, end in ((update.CHECK, update.WRITE), (update.WRITE, update.READ_BACK), (update.READ_BACK, update.END)):
        assert any(begin < percent < end for percent in told), told


@pytest.mark.parametrize(
    ("info", "data", "code"),
    [
        (
            Output(1, "", "signature verification failed: Verify error: self-signed certificate"),
            None,
            "bundle-signature",
        ),
        (Output(0, manifest(RAUC_MF_COMPATIBLE="toaster"), ""), None, "wrong-product"),
        (Output(0, manifest(RAUC_IMAGE_SIZE_0=str(SLOT + 1)), ""), None, "bundle-too-large"),
        (None, bundle_bytes()[:-100], "bundle-incomplete"),
        (None, b"x" * 5000, "not-a-bundle"),
    ],
)
def test_what_is_refused_touches_nothing(box, info, data, code):
    before = box.paths.boot_state.read_bytes()
    box.host.info = info or box.host.info
    for ask in (box.updates.update_check, lambda source: box.updates.update_install(source, "ann")):
        assert refused(ask, box.upload(data or b"")).code == code
        assert not list(box.paths.taken.iterdir())
    assert box.device("slot-b").read_bytes() == OLD
    assert box.paths.boot_state.read_bytes() == before
    assert not box.busy and not box.host.ran("rauc", "--conf=/etc/rauc/system.conf", "mount")


def test_nothing_older_than_the_least_version(box):
    box.paths.least_version.write_text("0.3.0\n")
    before = box.paths.boot_state.read_bytes()
    for ask in (box.updates.update_check, lambda source: box.updates.update_install(source, "ann")):
        found = refused(ask, box.upload())
        assert found.code == "version-too-old" and "nothing before 0.3.0 is safe" in found.message
        assert not list(box.paths.taken.iterdir())
    box.host.versions["slot-b"] = "0.2.9"
    assert refused(box.updates.boot_slot, "B", "ann").code == "version-too-old"
    assert box.paths.boot_state.read_bytes() == before and not box.busy
    box.host.info = Output(0, manifest(RAUC_MF_VERSION="0.3.0"), "")
    assert box.updates.update_check(box.upload())["version"] == "0.3.0"


def test_damage_that_only_the_whole_bundle_shows_is_found_before_anything_is_written(box):
    before = box.paths.boot_state.read_bytes()
    box.host.image = IMAGE[:-1] + b"X"
    job = box.install()
    assert job["state"] == "failed" and "damaged" in job["message"] and "Nothing was written" in job["message"]
    assert box.device("slot-b").read_bytes() == OLD
    assert box.paths.boot_state.read_bytes() == before
    assert not box.busy


def test_a_slot_that_is_being_written_is_not_looked_into(box, monkeypatch):
    """Mounted it could not be written, and half written it has no version."""
    box.host.versions["slot-b"] = "9.9.9"
    seen = []
    monkeypatch.setattr("applier.update.write.write", lambda *_: seen.append(slot(box, "B")["version"]))
    monkeypatch.setattr("applier.update.write.reads_back", lambda *_: True)
    assert slot(box, "B")["version"] == "9.9.9"
    box.install()
    assert seen == [""] and slot(box, "B")["version"] == "9.9.9"


def test_a_failure_in_the_middle_leaves_a_slot_that_is_never_started(box, monkeypatch):
    def fail(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("applier.update.write.write", fail)
    job = box.install()
    assert job["state"] == "failed" and "Input/output error" in job["message"] and "runs as before" in job["message"]
    assert not box.boot_state().can_boot("B") and bootstate.choose(box.boot_state()) == "A"
    assert box.device("slot-b").read_bytes()[:4096] == bytes(4096)
    assert not box.busy


def test_a_disk_that_lies(box, monkeypatch):
    monkeypatch.setattr("applier.update.write.reads_back", lambda *_: False)
    job = box.install()
    assert job["state"] == "failed" and "replace it soon" in job["message"]
    assert box.device("slot-b").read_bytes()[:4096] == bytes(4096)
    assert not box.boot_state().can_boot("B")


def test_rauc_that_does_not_mount(box):
    box.host.fail = ("rauc", "--conf=/etc/rauc/system.conf", "mount")
    job = box.install()
    assert job["state"] == "failed" and "runs as before" in job["message"]
    assert box.device("slot-b").read_bytes() == OLD


@pytest.mark.parametrize("error", [ZeroDivisionError("a mistake"), SystemExit("a mistake")])
def test_a_mistake_of_ours_ends_the_job_too(box, monkeypatch, error):
    def broken(*_):
        raise error

    monkeypatch.setattr("applier.update.write.verify", broken)
    job = box.install()
    assert job["state"] == "failed" and "The applier has failed" in job["message"]
    assert not box.busy


def test_one_at_a_time(box):
    box.host.hold = threading.Event()
    job = box.updates.update_install(box.upload(), "ann")["job"]
    assert box.updates.installing
    for ask in (
        lambda: box.updates.update_install(box.upload(number=2), "bob"),
        lambda: box.updates.update_check(box.upload(number=2)),
        box.updates.update_sources,
        box.updates.update_forget,
        lambda: box.updates.reboot("bob"),
    ):
        assert refused(ask).code == "busy"
    box.host.hold.set()
    box.wait(job)
    assert box.updates.slots()["job"]["state"] == "done"


def test_not_while_changes_are_applied(box):
    box.host.versions["slot-b"] = "0.2.0"
    for ask in (
        lambda: box.updates.update_install(box.upload(), "ann"),
        lambda: box.updates.boot_slot("B", "ann"),
        lambda: box.updates.reboot("ann"),
    ):
        with box.turn.take("the changes of ann are being applied"):
            assert refused(ask).code == "busy"
    assert not box.host.ran("reboot") and box.device("slot-b").read_bytes() == OLD
    assert bootstate.choose(box.boot_state()) == "A"


def test_a_box_whose_change_hangs_can_be_restarted(box):
    now = [5000.0]
    box.host.versions["slot-b"] = "0.2.0"
    box.turn._clock = lambda: now[0]
    with box.turn.take("the changes of ann are being applied"):
        now[0] += OVERDUE + 1
        assert "restart the box where it hangs" in refused(lambda: box.updates.boot_slot("B", "bob")).message
        box.updates.reboot("bob")
        box.wait("restart")
        assert box.host.ran("reboot") and box.busy, "whoever has the turn still has it"


@pytest.mark.parametrize(
    ("version", "words"),
    [("0.1.0", "runs already"), ("0.0.9", "older version"), ("0.1.0-rc1", "older version"), ("0.1.1", "")],
)
def test_the_same_and_older_versions_come_with_a_note(box, version, words):
    box.host.info = Output(0, manifest(RAUC_MF_VERSION=version), "")
    notes = box.updates.update_check(box.upload())["notes"]
    assert (words in notes[0]) if words else notes == []


def test_back_to_the_other_version(box):
    box.host.versions["slot-b"] = "0.0.9"
    box.updates.boot_slot("B", "ann")
    box.wait("restart")
    record = box.updates.record
    assert (record.kind, record.state, record.version, record.from_version) == ("return", "trying", "0.0.9", "0.1.0")
    assert bootstate.choose(box.boot_state()) == "B"


@pytest.mark.parametrize("good", [True, False])
def test_only_a_slot_that_was_good_keeps_its_own_configuration(box, good):
    box.host.versions["slot-b"] = "0.2.0"
    (box.paths.slots / "B/applier").mkdir(parents=True)
    if good:
        bootstate.mark_good("B", box.paths.boot_state)
    box.updates.boot_slot("B", "ann")
    box.wait("restart")
    assert (box.paths.slots / "B").exists() == good


def test_slots_that_cannot_be_started(box):
    assert refused(box.updates.boot_slot, "A", "ann").code == "slot-runs"
    assert refused(box.updates.boot_slot, "B", "ann").code == "slot-empty"
    assert not box.busy and not box.host.ran("reboot")


def test_a_box_that_does_not_restart_can_be_used_again(box):
    box.host.fail = ("reboot",)
    box.updates.reboot("ann")
    box.wait("restart")
    assert not box.busy


def test_nor_does_a_mistake_of_ours_keep_it_from_being_used(box, monkeypatch):
    monkeypatch.setattr("applier.update.verbs.run", lambda *_: 1 / 0)
    box.updates.reboot("ann")
    box.wait("restart")
    assert not box.busy


def test_a_developer_s_image_has_no_slots(box):
    box.paths.boot_state.unlink()
    state = box.updates.slots()
    assert (state["present"], state["slots"], state["limit"]) == (False, [], 0)
    for ask in (
        lambda: box.updates.update_check(box.upload()),
        lambda: box.updates.update_install(box.upload(), "ann"),
        lambda: box.updates.boot_slot("B", "ann"),
    ):
        assert refused(ask).code == "no-slots"


def test_a_damaged_boot_state_is_said(box):
    box.paths.boot_state.write_bytes(bytes(4096))
    assert "damaged" in refused(box.updates.slots).message


def test_the_admin_has_read_of_the_failure(box):
    failed = update_record.Record("B", "0.2.0", "A", "0.1.0", "ann", "update", "trying", "").now("failed", "it is odd")
    update_record.save(box.paths.update_record, failed)
    assert box.updates.record.fault
    box.updates.update_seen()
    assert box.updates.record.fault is None
    assert box.updates.slots()["outcome"]["seen"]


def test_an_upload_that_nobody_wants_any_more_makes_room(box):
    source = box.upload()
    box.updates.update_check(source)
    assert list(box.paths.taken.iterdir())
    box.updates.update_forget()
    assert not list(box.paths.taken.iterdir())
    assert refused(box.updates.update_install, source, "ann").code == "unknown-upload" and not box.busy


def test_what_a_killed_applier_left_is_tidied_up(box):
    box.updates._spool.take(box.upload().partition(":")[2])
    (box.paths.slots / ".B.gone/web").mkdir(parents=True)
    box.updates.start()
    assert not list(box.paths.taken.iterdir())
    assert not (box.paths.slots / ".B.gone").exists()


@pytest.mark.parametrize("text", ["", "not json", "[]", '{"B": 7}'])
def test_notes_on_slots_that_cannot_be_read_are_left_out(box, text):
    box.host.versions["slot-b"] = "0.2.0"
    box.paths.slot_notes.write_text(text)
    assert slot(box, "B")["installed"] == ""


def test_a_slot_tells_which_configuration_it_returns_with(box):
    box.host.versions["slot-b"] = "0.2.0"
    bootstate.set_state("B", "good", box.paths.boot_state)
    assert slot(box, "B")["configuration"] is None
    (box.paths.slots / "B").mkdir()
    assert slot(box, "B")["configuration"]["number"] == 0  # it ran, and nothing was ever confirmed
    kept = Generations(box.paths.slots / "B/applier")
    kept.make_folder()
    kept.confirm(kept.create(FACTORY, "ann", "before the sale"))
    found = slot(box, "B")["configuration"]
    assert (found["number"], found["comment"]) == (1, "before the sale") and found["created"].endswith("Z")


def test_what_is_on_trial_takes_along_the_configuration_of_now(box):
    (box.paths.slots / "B").mkdir()
    box.host.versions["slot-b"] = "0.2.0"
    assert box.boot_state().on_trial("B")
    assert slot(box, "B")["configuration"] is None


def test_a_slot_that_cannot_be_unmounted_still_tells_its_version(tmp_path):
    box = UpdateBox(tmp_path)
    box.host.versions["slot-b"] = "0.0.9"
    box.host.fail = ("umount",)
    slots = {slot["name"]: slot for slot in box.updates.slots()["slots"]}
    assert slots["B"]["version"] == "0.0.9"
