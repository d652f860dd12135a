"""The box comes up for the first time."""

import re

import pytest
from board.machines.director import START, VIP, Director
from board.machines.machine import CommandFailed
from board.machines.wait import until
from board.machines.world import SERVERS
from tests.lab.fixtures import thorough

from lbconfig.model.snapshot import SORRY_PORT

pytestmark = pytest.mark.timeout(900)


def test_the_root_is_read_only_and_only_the_data_partition_is_a_disk_to_write_to(director):
    if director.succeed("stat -f -c %T /").strip() == "squashfs":
        director.execute("mount -o remount,rw /")  # squashfs says yes to this and stays as it is
    else:
        director.fail("mount -o remount,rw /")
    for folder in ("/", "/etc/", "/usr/"):
        assert "Read-only file system" in director.fail(f"touch {folder}x")
    mounts = [line.split() for line in director.read("/proc/mounts").splitlines()]
    writable = {(kind, where) for _, where, kind, options, *_ in mounts if "rw" in options.split(",")}
    memory = {"tmpfs", "devtmpfs", "proc", "sysfs", "devpts", "cgroup2"}
    assert {where for kind, where in writable if kind not in memory} == {"/data", "/disk"}


def test_network_cards_are_named_by_their_place(director):
    """Whatever order the drivers find them in: two are swapped, and named again as at a boot."""
    places = [director.read(f"/sys/class/net/eth{number}/address").strip()[-2:] for number in range(3)]
    assert places == ["00", "01", "02"]
    director.succeed(
        "for card in eth1 eth2; do ip link set $card down; done; ip link set eth1 name other;"
        "ip link set eth2 name eth1; ip link set other name eth2; /etc/init.d/S02modules start"
    )
    assert places == [director.read(f"/sys/class/net/eth{number}/address").strip()[-2:] for number in range(3)]


def test_only_the_web_server_listens_with_tls_and_the_sorry_page(director):
    """Nobody comes to the sorry page past a service: see test_fallback."""
    sockets = director.succeed("ss -Hlntup").splitlines()
    listening = {(line.split()[0], line.split()[4], line.partition('(("')[2].partition('"')[0]) for line in sockets}
    ports = (443, SORRY_PORT)
    assert listening == {("tcp", f"{anywhere}:{port}", "nginx") for anywhere in ("0.0.0.0", "[::]") for port in ports}


def test_no_process_of_the_web_ui_runs_as_root(director):
    processes = director.succeed("ps -o pid,ppid,user,args | grep -E 'gunicorn|nginx' | grep -v -E 'grep|runsv|logger'")
    assert len(processes.splitlines()) >= 6, processes
    [sorry] = [line.split()[0] for line in processes.splitlines() if "sorry.conf" in line]
    for line in processes.splitlines():
        number, parent = line.split()[:2]
        status = director.read(f"/proc/{number}/status")
        fields = dict(one.split(":\t", 1) for one in status.splitlines() if ":\t" in one)
        assert set(fields["Uid"].split()) <= ({"988"} if sorry in (number, parent) else {"990", "991"}), line
        assert fields["NoNewPrivs"] == "1", line
        capabilities = int(fields["CapPrm"], 16) | int(fields["CapBnd"], 16)
        listens = "nginx" in line and sorry not in (number, parent)
        assert capabilities == (0x400 if listens else 0), line  # 0x400: to listen on port 443
    for path in ("/run/fairlead/tls/key.pem", "/run/fairlead/web/console-token", "/run/fairlead/bodies"):
        look = ["setpriv", "--reuid", "988", "--regid", "988", "--clear-groups", "test", "-r", path]
        assert director.execute(look).exit == 1, path  # strangers reach the sorry page: it has nothing to read


def test_the_console_shows_the_address_and_the_set_up_code_and_offers_no_shell(lab, director):
    screen = lab.first_console.rpartition("Fairlead 0")[2]
    assert f"Set-up code    {director.setup_code()}" in screen
    assert "https://10.0.2.15" in screen
    assert "FAULT" not in screen
    assert "error" not in lab.first_console.lower()  # of a boot script
    director.type("1\n")
    director.wait_for_console("There is no virtual service.")
    director.wait_for_console("Hardware: ")  # what is typed before that is forgotten
    director.type("/bin/sh\n")
    director.pick("New set-up code (forgotten password)")
    director.answer("Type yes to go on", "no")
    director.wait_for_console("Nothing was done.")
    assert "login:" not in director.console


@thorough
def test_a_new_set_up_code_is_one_choice_on_the_console(director):
    old = director.setup_code()
    director.choose("New set-up code (forgotten password)")
    director.wait_for_console("The new set-up code is ")
    new = director.setup_code()
    assert new != old
    assert f"The new set-up code is {new}" in director.console


def test_nobody_can_log_in_without_the_set_up_code(director):
    for line in director.read("/etc/shadow").splitlines():
        assert line.split(":")[1].startswith("!"), line
    assert director.page()[0] == 200
    with pytest.raises(CommandFailed):
        director.succeed(["setpriv", "--reuid", "990", "--clear-groups", "cat", "/run/fairlead/setup-code"])


@thorough
def test_the_firewall_of_the_boot_lets_nobody_in(director):
    """Loaded by an init script, before the services that give addresses; the applier's rules replace it."""
    scripts = director.succeed("ls /etc/init.d").split()
    assert next(name for name in scripts if "firewall" in name) < "S60services"
    assert director.page()[0] == 200
    director.succeed("nft delete table inet fairlead && nft -f /etc/fairlead/closed.nft")
    with pytest.raises(OSError):
        director.page()
    director.succeed("nft -f /run/fairlead/nftables.conf")
    assert director.page()[0] == 200


@thorough
def test_the_certificate_is_the_box_s_own_and_survives_a_restart(director):
    before = director.own_certificate()
    assert director.succeed(["stat", "-c", "%a %u %g", "/data/tls/key.pem"]).split() == ["640", "0", "991"]
    director.kill()
    director.start()
    director.wait_until_up()
    assert director.read("/data/tls/cert.pem") == before
    assert director.page()[0] == 200


def test_services_are_balanced_first_and_what_clients_do_not_wait_for_comes_later(balanced, director, world):
    confirmed, kept = director.status()["confirmed"], "stat -c '%i %Y' /data/applier/early"
    before = director.succeed(kept)
    director.kill()
    director.start()
    until("a balanced answer", lambda: world.get(f"{VIP}:80/")[0] in SERVERS, START)
    director.wait_until_up()
    director.wait_until_healthy(*SERVERS)
    log = director.log()
    # The boot scripts bring it up, health checks come next, and then the applier, which finds nothing to bring up.
    assert f"generations/{confirmed:06} runs before the applier is loaded" in log
    assert log.index("Starting Linux Director") < log.index("applier: INFO")
    steps = set(re.findall(r"applier: INFO step ([a-z-]+):", log))
    assert steps and not steps & {"nftables", "links", "sysctl", "ldirectord-stop", "ipvs", "ldirectord-start"}, steps
    assert log.count("Starting Linux Director") == 1 and director.faults() == ""
    warned = [line for line in log.splitlines() if re.search(r" at /\S+ line \d+\.", line)]
    assert warned == [], "warnings of Perl"
    assert director.succeed(kept) == before, "it would be kept otherwise now"
    nice = director.read(f"/proc/{director.supervised('applier')}/stat").rpartition(")")[2].split()[16]
    assert nice == "0", "it was loaded with less of the processor, and goes on with less"
    began = {name: director.began(director.supervised(name)) for name in ("applier", "nginx", "web", "console")}
    began["checks"] = director.began(director.checker())
    if began["checks"] - began["applier"] > 40 * 100:  # etc/sv/later waits no longer
        pytest.skip("this machine was too busy to see it")
    assert began["checks"] < min(began["nginx"], began["web"], began["console"]), began


@thorough
def test_the_web_page_starts_without_the_applier_and_health_checks(director):
    """Nobody tells it to: it waits for a while, and no longer."""
    hold_back = "for name in nginx web; do touch $name/down; sv -w 20 stop ./$name; done"
    director.succeed(f"cd /run/service; sv -w 20 stop ./applier; {hold_back}; sv up ./later")
    until("the web page", lambda: director.page()[0] not in (502, 504), 150)
    director.fail("ls /run/service/nginx/down || ls /run/service/web/down")


def test_how_long_and_how_much(lab, director: Director, record_property, capsys):
    """Measured, not asserted but for what would be absurd."""
    total, used, *_ = (int(word) for word in director.succeed("free -m | grep Mem").split()[1:])
    with capsys.disabled():
        print(f"\nfirst boot to the web page {lab.first_boot:.1f} s; {used} of {total} MiB used")
    record_property("boot_seconds", lab.first_boot)
    record_property("used_mebibytes", used)
    assert used < 200
