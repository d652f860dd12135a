"""Checks side by side (Fairlead::Rounds), with checks that a test makes up; nobody is asked."""

import os
import subprocess

from talking_servers import PERL

# What Rounds needs of ldirectord; _check_real is the test's. It ends after so many lines of its log.
LDIRECTORD = """
use strict; use warnings;
our ($SERVICE_UP, $SERVICE_DOWN, $CHECKINTERVAL, @VIRTUAL) = (0, 1, 1);
use Fairlead::Rounds;
$Fairlead::Table::starting = 0;
my $lines = 0;
sub ld_log { print "$_[0]\\n"; CORE::exit(0) if ++$lines == $ENV{LINES} }
sub check_signal { }
sub get_virtual_id_str { "tcp:$_[0]{name}" }
sub _status_check { 1 }
sub _service_up { }
sub _service_down { }
sub service_set { die "the worker's own one is called" }
Fairlead::Rounds::install();
for my $number (1 .. $ENV{SERVERS}) {
    push @VIRTUAL, { name => $number, checktype => 'negotiate', protocol => 'tcp', service => 'dns',
        checktimeout => 1, negotiatetimeout => 1, checkinterval => 1,
        real => [{ server => "192.0.2.$number", port => 53, num_connects => 0 }] };
}
"""


def log(check, lines, servers=1):
    """What the log says while this check (the body of a Perl function) is made."""
    text = f"{LDIRECTORD}\nsub _check_real {{ my ($v, $r) = @_; {check} }}\n$| = 1;\nFairlead::Rounds::watch();"
    done = subprocess.run(
        ["perl", "-I", PERL, "-e", text],
        env=os.environ | {"LINES": str(lines), "SERVERS": str(servers)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.stderr in ("", "Out of memory!\n"), done.stderr
    return done.stdout.splitlines()


def test_no_two_workers_choose_the_same_numbers():
    """Ids of DNS, SIP and RADIUS; the process that starts the workers may have chosen some already."""
    check = "BEGIN { rand } select undef, undef, undef, 0.2; main::service_set($v, $r, 'down', {}, int rand 2**32);"
    numbers = [line.split("failed: ")[1].split()[0] for line in log(check, 2, servers=2)]
    assert len(set(numbers)) == 2


def test_a_check_that_takes_too_much_memory_ends_alone():
    eats = (
        "$r->{server} =~ /1$/ and my $all = 'x' x (64 << 20); main::service_set($v, $r, 'down', {}, 'the other one');"
    )
    said = sorted(line.split("failed: ")[1] for line in log(eats, 2, servers=2))
    assert said == ["the check ended its process (tcp:1)", "the other one (tcp:2)"]
