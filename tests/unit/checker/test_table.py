"""What the checker believes the IPVS table to be, against the commands that ldirectord gives."""

import json
import subprocess
from pathlib import Path

import pytest

PERL = Path(__file__).parents[3] / "overlay/usr/lib/fairlead/perl"
SERVICE = "192.0.2.1:80"
# ldirectord as the module sees it: reads the table (once), runs commands, adds servers.
LDIRECTORD = """
use strict; use warnings; use JSON::PP; use Fairlead::Table;
our ($IPVSADM, $CONFIG, @REAL) = ($ENV{IPVSADM}, $ENV{CONFIG});
my $start = decode_json($ENV{TABLE});
sub ld_read_ipvsadm { print "read\\n"; return $start }
sub system_wrapper { print "run @_\\n"; return 3 }
sub add_real_server { }
sub _remove_service { print "removed $_[1]\n" }
sub get_virtual_option { $ENV{SERVICE} }
sub ld_log { print "log @_\\n" }
Fairlead::Table::install();
$Fairlead::Table::starting = $ENV{STARTING};
ld_read_ipvsadm();
for my $line (@{decode_json($ENV{LINES})}) { print "answer ", system_wrapper($line), "\\n" }
for my $one (@{decode_json($ENV{REMOVED})}) {
    my ($server, $tag, $quiescent) = @$one;
    _remove_service({ proto => '-t', quiescent => $quiescent }, $server, '-m', $tag);
}
Fairlead::Table::flush();
print "table ", JSON::PP->new->canonical->encode(ld_read_ipvsadm()), "\\n";
"""


@pytest.fixture
def ipvsadm(tmp_path):
    """A program that notes what it is given on standard input."""
    program = tmp_path / "ipvsadm"
    program.write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/given\ncat >> {tmp_path}/given\n. {tmp_path}/says\n')
    program.chmod(0o755)
    (tmp_path / "says").write_text("exit 0\n")
    return program


def server(weight, upper=0, lower=0, forward="masq"):
    # ipvsadm's output is text, so ldirectord's numbers are too
    return {"forward": forward, "weight": str(weight), "u-threshold": str(upper), "l-threshold": str(lower)}


def run(ipvsadm, lines, starting=False, config="", removed=(), **servers):
    """The servers in the table after these commands; what the program was given; all that was printed."""
    table = {
        f"{SERVICE} tcp": {"scheduler": "wlc", "real": {f"10.0.0.{name[1:]}:80": at for name, at in servers.items()}}
    }
    file = ipvsadm.with_name("ldirectord.cf")
    file.write_text(config)
    done = subprocess.run(
        ["perl", "-I", PERL, "-e", LDIRECTORD],
        env={
            "IPVSADM": str(ipvsadm),
            "CONFIG": str(file),
            "STARTING": str(int(starting)),
            "TABLE": json.dumps(table),
            "SERVICE": SERVICE,
            "REMOVED": json.dumps(removed),
            "LINES": json.dumps([f"{ipvsadm} {one}" for one in lines]),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert not done.stderr
    after = json.loads(done.stdout.rsplit("table ", 1)[1])[f"{SERVICE} tcp"]["real"]
    given = ipvsadm.with_name("given")
    return (
        {name: {key: str(value) for key, value in one.items()} for name, one in after.items()},
        given.read_text().splitlines() if given.exists() else [],
        done.stdout,
    )


@pytest.mark.parametrize(("upper", "lower"), [(0, 0), (100, 80)])
def test_a_server_keeps_its_thresholds_and_gets_the_weight_that_was_said(ipvsadm, upper, lower):
    after, given, _ = run(
        ipvsadm,
        [f"-e -t {SERVICE} -r 10.0.0.1:80 -m -w 7", f"-e -t {SERVICE} -r 10.0.0.2:80 -g -w 0"],
        s1=server(0, upper, lower),
        s2=server(5, upper, lower),
    )
    assert after == {"10.0.0.1:80": server(7, upper, lower), "10.0.0.2:80": server(0, upper, lower, "gate")}
    assert given == [
        "-R",
        f"-e -t {SERVICE} -r 10.0.0.1:80 -m -w 7 -x {upper} -y {lower}",
        f"-e -t {SERVICE} -r 10.0.0.2:80 -g -w 0 -x {upper} -y {lower}",
    ]


def test_a_service_that_is_there_keeps_its_flags_and_servers_come_and_go(ipvsadm):
    after, given, _ = run(
        ipvsadm,
        [f"-E -t {SERVICE} -s rr", f"-a -t {SERVICE} -r 10.0.0.3:80 -i -w 2", f"-d -t {SERVICE} -r 10.0.0.1:80"],
        s1=server(1),
    )
    assert after == {"10.0.0.3:80": server(2, forward="ipip")}
    assert [line.split()[0] for line in given] == ["-R", "-a", "-d"]


def test_a_tunnel_gets_its_options_however_often_its_server_leaves(ipvsadm):
    config = (
        f"virtual={SERVICE}\n    real=10.0.0.1:80 ipip 1\n"
        f"    # tunnel -t {SERVICE} -r 10.0.0.1:80 --tun-type gue --tun-port 6080 --tun-nocsum\n"
        "    # tunnel -f 7 -6 -r [2001:db8::1]:0 --tun-type gre --tun-nocsum\n"
        "    # tunnel -f 7 -r 10.0.0.1:0 --tun-type gre --tun-csum\n"
    )
    lines = [
        f"-d -t {SERVICE} -r 10.0.0.1:80",
        f"-a -t {SERVICE} -r 10.0.0.1:80 -i -w 2",
        f"-e -t {SERVICE} -r 10.0.0.1:80 -i -w 0",
        f"-a -t {SERVICE} -r 10.0.0.2:80 -i -w 2",
        "-a -f 7 -r [2001:db8::1]:0 -6 -i -w 1",
        "-a -f 7 -r 10.0.0.1:0 -i -w 1",
        f"-e -t {SERVICE} -r 10.0.0.1:80 -m -w 1",
    ]
    _, given, _ = run(ipvsadm, lines, config=config, s1=server(1, forward="ipip"))
    assert [line.removesuffix(" -x 0 -y 0") for line in given[1:]] == [
        f"-d -t {SERVICE} -r 10.0.0.1:80",
        f"-a -t {SERVICE} -r 10.0.0.1:80 -i --tun-type gue --tun-port 6080 --tun-nocsum -w 2",
        f"-e -t {SERVICE} -r 10.0.0.1:80 -i --tun-type gue --tun-port 6080 --tun-nocsum -w 0",
        f"-a -t {SERVICE} -r 10.0.0.2:80 -i -w 2",
        "-a -f 7 -r [2001:db8::1]:0 -6 -i --tun-type gre --tun-nocsum -w 1",
        "-a -f 7 -r 10.0.0.1:0 -i --tun-type gre --tun-csum -w 1",
        f"-e -t {SERVICE} -r 10.0.0.1:80 -m -w 1",
    ]


@pytest.mark.parametrize(("starting", "left"), [(True, {"10.0.0.1:80"}), (False, set())])
def test_a_start_removes_no_server_that_may_be_draining(ipvsadm, starting, left):
    lines = [f"-d -t {SERVICE} -r 10.0.0.{number}:80" for number in (1, 2)]
    after, _, _ = run(ipvsadm, lines, starting, s1=server(0), s2=server(1))
    assert set(after) == left


def test_what_the_kernel_refuses_is_logged_and_the_table_read_anew(ipvsadm):
    ipvsadm.with_name("says").write_text("echo No such process >&2; exit 1\n")
    _, _, printed = run(ipvsadm, [f"-e -t {SERVICE} -r 10.0.0.1:80 -m -w 0"], s1=server(1))
    assert "log ipvsadm: No such process\n" in printed
    assert printed.count("read\n") == 2


def test_no_shell_reads_a_command(ipvsadm, tmp_path):
    _, given, _ = run(ipvsadm, [f"-e $(touch {tmp_path}/made); touch {tmp_path}/made"], s1=server(1))
    assert given[0] == "-R"
    assert not (tmp_path / "made").exists()


def test_what_is_not_in_the_table_takes_no_other_server_of_its_machine_away(ipvsadm):
    """ldirectord would look for the same address with the port of the service."""
    there, gone = "10.0.0.1:80", "10.0.0.1:81"
    removed = [(one, *how) for one in (there, gone) for how in (("fallback", None), ("real", "no"), ("real", None))]
    _, _, printed = run(ipvsadm, [], removed=removed, s1=server(1))
    # Of a service whose servers stay with weight 0, ldirectord adds the one that is missing.
    assert [line for line in printed.splitlines() if line.startswith("removed")] == [
        *[f"removed {there}"] * 3, f"removed {gone}",
    ]  # fmt: skip
