"""The box forgets everything; and when the power goes meanwhile, it forgets all of it or nothing."""

import pytest
from board.machines.director import VIP
from board.machines.lab import BALANCED
from board.machines.updating import Page, set_up
from board.machines.wait import until
from tests import texts
from tests.lab.fixtures import thorough
from tests.lab.keeping import factory_reset

pytestmark = [pytest.mark.timeout(1800), pytest.mark.usefixtures("balanced")]

SITE = f"{VIP}:80"
EVEN = {"rs1": 4, "rs2": 4, "rs3": 4}
MARK = "/disk/factory-reset"
USERS = (
    "import os, sqlite3; database = sqlite3.connect(os.environ['FAIRLEAD_DATA'] + '/fairlead.sqlite3'); "
    "print(database.execute('SELECT count(*) FROM auth_user').fetchone()[0])"
)


def wait_until_it_went(director) -> None:
    """Until the box that was there is going down, or gone."""
    until("the restart", lambda: "reboot: Restarting system" in director.console, 90)


def assert_as_new(director) -> None:
    status = director.status()
    assert (status["generation"], status["confirmed"], status["faults"]) == (None, None, [])
    assert status["setup_code_active"]
    assert status["snapshot"]["services"] == []
    assert director.weights() == {}
    assert texts.SET_UP in director.page()[1]
    assert director.execute(f"test -e {MARK}").exit != 0
    found = director.succeed("find /disk -name '*.sqlite3' -size +0; find /disk -path '*generations/0*'").split()
    assert [path for path in found if "generations" in path] == []
    assert director.succeed(["fairlead-web-user", "python3", "-c", USERS]).strip() == "0"


def test_by_the_web_page(director, world):
    set_up(director)
    key = director.read("/data/tls/key.pem")
    factory_reset(Page(director), BALANCED.network.hostname)
    wait_until_it_went(director)
    director.kill()
    director.start()
    director.wait_until_up()
    assert_as_new(director)
    assert director.read("/data/tls/key.pem") != key
    status, text = director.set_up("kim", "another rope")
    assert status == 200 and texts.FIRST_SERVICE in text


@thorough
def test_a_wrong_name_changes_nothing(director, world):
    said = director.fail(["fairlead-applier", "factory-reset", "somebody-else"])
    assert "not the host name of this box" in said
    assert director.execute(f"test -e {MARK}").exit != 0
    assert world.count(f"{SITE}/", 12) == EVEN


@thorough
def test_a_power_cut_before_the_mark_is_as_if_nobody_had_asked(director, world):
    director.kill()
    director.start()
    director.wait_until_started()
    director.wait_until_healthy("rs1", "rs2", "rs3")
    assert world.count(f"{SITE}/", 12) == EVEN


GONE = ["/disk/A/applier /disk/A/tls", "", "/disk/A/web", "/disk/A/applier/generations"]


@thorough
@pytest.mark.parametrize("gone", GONE)
def test_a_power_cut_after_the_mark_is_made_up_for_at_the_next_boot(director, gone):
    """With nothing deleted yet, or with some of it: as a boot leaves it that was cut short."""
    director.succeed(f"echo '{{}}' >{MARK}; sync")
    if gone:
        director.succeed(f"sv -w 20 stop /run/service/web /run/service/applier; rm -rf {gone}; sync")
    director.kill()
    director.start()
    director.wait_until_up()
    assert_as_new(director)


@thorough
def test_power_cuts_in_the_middle_of_the_deleting_boot(director):
    """Cut at several moments of the boot that forgets; in the end it has forgotten all."""
    director.succeed(f"mkdir -p /disk/A/many; cd /disk/A/many; seq 20000 | xargs touch; echo '{{}}' >{MARK}; sync")
    for _ in range(3):
        director.kill()
        director.start()
        until("the reset has begun", lambda: "forgetting configuration" in director.console, 90, 0.02)
    director.kill()
    director.start()
    director.wait_until_up()
    assert_as_new(director)
