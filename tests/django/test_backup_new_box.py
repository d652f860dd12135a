"""A backup file on a new box, and the factory reset that makes one."""

import dataclasses

import pytest
import sealed_backups
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import Client
from forms_on_page import words
from sealed_backups import send
from tests import texts
from tests.django.conftest import PASSWORD
from tests.fake import appliance

from accounts import ledger
from changes import actions
from changes.models import Revision
from draft import store as draft
from lbconfig.model.snapshot import FACTORY, Bond, Bridge, Interface, Vlan

pytestmark = pytest.mark.django_db(transaction=True)
any_database, cheap, file = sealed_backups.any_database, sealed_backups.cheap, sealed_backups.file


# --- on a new box ----------------------------------------------------------------------------------


@pytest.fixture
def new_box(file, settings):
    """The file, and a box that nobody has set up."""
    call_command("flush", interactive=False, verbosity=0)
    settings.LEDGER.unlink()
    appliance.reset(instant=True, snapshot=FACTORY, confirmed=None)
    return appliance.box


def code(client, text=appliance.SETUP_CODE):
    return client.post("/set-up/restore/code/", {"code": text})


def test_a_new_box_takes_a_backup_file_in_place_of_a_set_up(new_box, file):
    stranger = Client()
    assert texts.RESTORE_A_FILE in words(stranger.get("/set-up/"))
    assert "Enter the code" in words(stranger.get("/set-up/restore/"))
    assert code(stranger).status_code == 302
    answer = send(stranger, file, url="/set-up/restore/")
    assert answer.headers["Location"] == "/login/?next=/system/backup/restored/"
    assert new_box.setup_done
    login = {"username": "admin", "password": PASSWORD, "next": "/system/backup/restored/"}
    assert stranger.post("/login/", login).headers["Location"] == "/system/backup/restored/"
    text = words(stranger.get("/system/backup/restored/"))
    assert "as in the file" in text
    assert "Virtual service 'mail of the file'" in words(stranger.get("/changes/"))
    assert sorted(Revision.objects.values_list("number", flat=True)) == [1, 2, 3]
    assert new_box.recovery.number == 3
    assert [one.name for one in ledger.load().tokens] == ["night job"]


def test_interfaces_that_the_box_does_not_have_are_named(new_box, file):
    stranger = Client()
    code(stranger)
    send(stranger, file, url="/set-up/restore/")
    stranger.post("/login/", {"username": "admin", "password": PASSWORD})
    assert "network cards that this box does not have: eth1 ." in words(stranger.get("/system/backup/restored/"))


def test_what_the_draft_makes_by_itself_is_not_missing(new_box, file):
    """Of VLANs, bonds and bridges only the cards that they are made of."""
    stranger = Client()
    code(stranger)
    send(stranger, file, url="/set-up/restore/")
    stranger.post("/login/", {"username": "admin", "password": PASSWORD})
    made = (
        Interface("eth0"),
        Interface("eth0.5", vlan=Vlan("eth0", 5), addresses=("10.5.0.2/24",)),
        Interface("bond0", bond=Bond(("eth6", "eth7"))),
        Interface("br0", bridge=Bridge(("eth0.6",))),
        Interface("eth0.6", vlan=Vlan("eth0", 6)),
        Interface("bond0.9", vlan=Vlan("bond0", 9)),
    )
    draft.write_part("network", dataclasses.replace(draft.current().network, interfaces=made), "admin")
    said = "network cards that this box does not have: eth6, eth7 ."
    assert said in words(stranger.get("/system/backup/restored/"))


def test_the_code_comes_before_any_file(new_box, file, settings):
    stranger = Client()
    answer = send(stranger, file, url="/set-up/restore/")
    assert answer.headers["Location"] == "/set-up/restore/"
    assert "Enter the code" in words(stranger.get("/set-up/restore/"))
    assert "This is not the code on the console." in words(code(stranger, "ABCD-EFGH-JKMN"))
    assert "Enter the code" in words(stranger.get("/set-up/restore/"))
    assert not get_user_model().objects.exists()


def test_a_refused_file_leaves_a_new_box_new(new_box, file):
    stranger = Client()
    code(stranger)
    assert send(stranger, file[:-1], url="/set-up/restore/").status_code == 422
    assert send(stranger, file, "wrong wrong wrong", url="/set-up/restore/").status_code == 422
    assert not get_user_model().objects.exists() and not new_box.setup_done
    assert send(stranger, file, url="/set-up/restore/").status_code == 302


def test_a_box_that_is_set_up_takes_none_there(client, stranger, file, box):
    assert stranger.get("/set-up/restore/").headers["Location"] == "/set-up/"
    box.setup_done = False  # a code for a forgotten password does not open the way to another box's users
    assert send(stranger, file, url="/set-up/restore/").headers["Location"] == "/set-up/restore/"
    assert stranger.get("/set-up/restore/").headers["Location"] == "/set-up/"


def test_a_code_that_was_renewed_since_opens_no_more(new_box, file):
    stranger = Client()
    code(stranger)
    new_box.setup_code = "NEWC-ODEN-EWCO"
    assert send(stranger, file, url="/set-up/restore/").headers["Location"] == "/set-up/restore/"
    assert "Enter the code" in words(stranger.get("/set-up/restore/"))


# --- factory reset ---------------------------------------------------------------------------------


def test_the_reset_asks_for_the_name_and_says_what_goes(client, box):
    text = words(client.get("/system/reset/"))
    assert "Type sample to confirm" in text
    assert "The configuration of the version in the other slot is forgotten, too" in text
    answer = client.post("/system/reset/", {"hostname": "sample"})
    assert "The box forgets everything and restarts" in words(answer)
    assert box.recovery.resets == ["admin"]


@pytest.mark.parametrize("name", ["", "simple", "SAMPLE", "sample; reboot", "s" * 300, "\u202esample"])
def test_a_wrong_name_resets_nothing(client, box, name):
    assert client.post("/system/reset/", {"hostname": name}).status_code == 422
    assert box.recovery.resets == []


def test_the_name_is_that_of_what_runs_and_not_of_the_draft(client, box):
    now = draft.current()
    draft.replace(dataclasses.replace(now, network=dataclasses.replace(now.network, hostname="later")), "admin")
    assert "Type sample to confirm" in words(client.get("/system/reset/"))
    assert client.post("/system/reset/", {"hostname": "later"}).status_code == 422


def test_a_reset_that_the_applier_refuses(client, box):
    box.reachable = False
    answer = client.post("/system/reset/", {"hostname": "sample"})
    assert answer.status_code == 422 and "cannot be reached" in words(answer)


def test_the_draft_of_a_restored_box_can_name_other_interfaces(file):
    """Interfaces are compared by name, whatever else a configuration has of them."""
    snapshot = dataclasses.replace(FACTORY, network=dataclasses.replace(FACTORY.network, interfaces=(Interface("x9"),)))
    draft.replace(snapshot, "admin")
    assert [one.name for one in draft.current().network.interfaces] == ["x9"]
    assert actions.fill_if_empty()
