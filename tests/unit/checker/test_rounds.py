"""Checks side by side (Fairlead::Rounds), with checks that a test makes up; nobody is asked."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import time

import pytest
from talking_servers import PERL

# What Rounds needs of ldirectord; _check_real is the test's. It ends after so many lines of its log.
LDIRECTORD = """
use strict; use warnings;
our ($SERVICE_UP, $SERVICE_DOWN, $CHECKINTERVAL, $CONFIG, @VIRTUAL) = (0, 1, $ENV{INTERVAL}, $ENV{CONFIG});
setpgrp;
my %out;
use Fairlead::Rounds;
$Fairlead::Table::starting = 0;
my $lines = $ENV{LATER} ? -1_000_000 : 0;
sub ld_log {
    print "$_[0]\\n";
    if ($ENV{LATER} && $_[0] =~ /^All /) { $lines = 0 }
    elsif (++$lines == $ENV{LINES}) { end_all() }
}
sub end_all { $SIG{TERM} = 'IGNORE'; kill 'TERM', -$$; CORE::exit(0) }
sub check_signal { }
sub get_virtual_option { "192.0.2.$_[0]{name}:53" }
sub get_virtual_id_str { "tcp:$_[0]{name}" }
sub _status_check { !$out{$_[0]{name}} }
sub _service_up { ld_log('in'); $out{$_[0]{name}} = 0 }
sub _service_down { ld_log('out'); $out{$_[0]{name}} = 1 unless $ENV{STAYS} eq $_[0]{name} }
sub service_set { die "the worker's own one is called" }
Fairlead::Rounds::install();
for my $number (1 .. $ENV{SERVERS}) {
    push @VIRTUAL, { name => $number, checktype => 'negotiate', protocol => 'tcp', proto => '-t', service => 'dns',
        checktimeout => $ENV{TIMEOUT}, negotiatetimeout => $ENV{TIMEOUT},
        real => [{ server => "192.0.2.$number", port => 53, num_connects => 0, receive => "(?:vs$number){0}" }] };
    $out{$number} = $ENV{OUT};
}
"""


def log(
    check,
    lines,
    servers=1,
    words=None,
    interval=1,
    timeout=20,
    stays=False,
    events="/dev/null",
    out=False,
    later=False,
    meanwhile=lambda process: None,
):
    """What the log says while this check (the body of a Perl function) is made.

    `words`: a file with more of it; `stays`: server 1 never leaves; `later`: `lines` after each was checked once;
    `meanwhile`: is called with the process that keeps the table.
    """
    text = f"{LDIRECTORD}\nsub _check_real {{ my ($v, $r) = @_; {check} }}\n$| = 1;\nFairlead::Rounds::watch();"
    process = subprocess.Popen(
        ["perl", "-I", PERL, "-e", text],
        env=os.environ
        | {"LINES": str(lines), "SERVERS": str(servers), "INTERVAL": str(interval), "CONFIG": str(words or "/dev/null")}
        | {"FAIRLEAD_EVENTS": str(events), "OUT": "1" if out else ""}
        | {"STAYS": "1" if stays else "", "TIMEOUT": str(timeout), "LATER": "1" if later else ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            meanwhile(process)
            said, complaints = process.communicate(timeout=90)
        finally:
            process.kill()
    assert complaints in ("", "Out of memory!\n"), complaints
    return said.splitlines()


def failures(lines):
    return [line.split("failed: ")[1] for line in lines if "failed: " in line]


def test_no_two_workers_choose_the_same_numbers():
    """Ids of DNS, SIP and RADIUS; the process that starts the workers may have chosen some already."""
    check = "BEGIN { rand } select undef, undef, undef, 0.2; main::service_set($v, $r, 'down', {}, int rand 2**32);"
    numbers = [line.split()[0] for line in failures(log(check, 4, servers=2))]
    assert len(set(numbers)) == 2


def test_a_check_that_takes_too_much_memory_ends_alone():
    eats = (
        "$r->{server} =~ /1$/ and my $all = 'x' x (64 << 20); main::service_set($v, $r, 'down', {}, 'the other one');"
    )
    said = sorted(failures(log(eats, 4, servers=2)))
    assert said == ["the check ended its process (tcp:1)", "the other one (tcp:2)"]


FAILS_ONCE = "main::service_set($v, $r, our $asked++ ? 'up' : 'down', {}, 'said');"  # it has one worker
GOOD = "main::service_set($v, $r, 'up', {}, 'said');"
BAD = "main::service_set($v, $r, 'down', {}, 'said');"


@pytest.fixture
def words(tmp_path):
    """words(text) -> a file that says this of the first service."""

    def write(text):
        path = tmp_path / "ldirectord.cf"
        path.write_text(f"virtual=192.0.2.100:53\n    # check vs1 {text}\n")
        return path

    return write


def test_a_server_that_failed_comes_back_after_as_many_good_checks_as_asked_for(words):
    said = log(FAILS_ONCE, 6, words=words("successes=3"))
    assert said[1] == "out"
    assert said[3:] == [
        "192.0.2.1:53 is well again; good checks until it is back: 2 (tcp:1)",
        "192.0.2.1:53 is well again; good checks until it is back: 1 (tcp:1)",
        "in",
    ]


def test_a_server_that_has_not_failed_is_up_with_its_first_good_check(words):
    """Or each start of the checks would leave the box without servers for that long."""
    assert log(GOOD, 1, words=words("successes=100")) == ["in"]


def test_a_server_that_failed_and_is_still_in_is_asked_again_sooner(words):
    said = log(BAD, 4, words=words("retry=1"), interval=3600, stays=True)
    assert said.count("out") == 2


def test_no_check_is_ended_because_who_keeps_the_table_was_stalled():
    def stall(process):
        assert process.stdout.readline() == "asked\n"
        process.send_signal(signal.SIGSTOP)
        time.sleep(5)
        process.send_signal(signal.SIGCONT)

    # By the time that server 2 has answered, the check of server 1 has taken longer than the 4 s that it may.
    check = f'print "asked\\n"; select undef, undef, undef, $v->{{name}} == 1 ? 5.5 : 1; {GOOD}'
    said = log(check, 2, servers=2, timeout=3, meanwhile=stall)
    assert [line for line in said if line != "asked"] == ["in", "in"]


# By server 1 a little longer than an interval.
SLOW_ONE = f"""print "asked $v->{{name}}\\n"; select undef, undef, undef, 1.1 if $v->{{name}} == 1; {GOOD}"""


def test_a_check_that_took_long_begins_again_at_once_though_others_that_began_later_are_over():
    """It would wait until these are due, for another interval, and a silent server would leave later than promised."""
    said = log(SLOW_ONE, 10, servers=2)
    assert said.count("asked 2") < 1.6 * said.count("asked 1")  # twice as often where it waits


# Each but server 1 has failed and left, and is silent from then on. The number of connects is what a check knows of the
# one before.
SILENT_ONCE_DEAD = f"sleep 600 if $r->{{server}} !~ /\\.1$/ && $r->{{num_connects}}++; {BAD}"


def test_a_server_that_begins_to_fail_is_asked_again_however_many_dead_ones_are_silent():
    """It would wait until all of them have been asked, each time, and leave so much later than promised."""
    said = log(SILENT_ONCE_DEAD, 4, servers=60, interval=0.1, timeout=600, stays=True, later=True)
    assert said[-4:] == ["out"] * 4


@pytest.fixture
def applier(tmp_path):
    """Where events go, as the applier has it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as door:
        door.bind(str(tmp_path / "events"))
        door.settimeout(20)
        yield door


@pytest.mark.parametrize("stays", [False, True])
def test_who_leaves_and_comes_back_is_told_with_what_the_check_said(applier, stays):
    """In JSON, whatever a server says; that a check failed is told only where it made a difference."""
    said = """my $n = our $asked++;
        main::service_set($v, $r, $n == 1 ? 'down' : 'up', {}, $n == 1 ? 'said "\\503\\"' : '200 OK')"""
    log(said, 7, events=applier.getsockname(), stays=stays)
    applier.setblocking(False)
    told = []
    with contextlib.suppress(BlockingIOError):
        while True:
            told.append(json.loads(applier.recv(4096)))
    place = {"service": 1, "server": "192.0.2.1", "port": 53}
    assert [one | {"seconds": 0} for one in told] == ([] if stays else [
        {**place, "state": "down", "failures": 0, "seconds": 0, "reason": 'said "\\503\\"'},
        {**place, "state": "up", "failures": 0, "seconds": 0, "reason": "200 OK"},
    ])  # fmt: skip


def test_why_a_server_is_down_that_was_so_before_the_checks_began(applier):
    log(BAD, 4, events=applier.getsockname(), out=True)
    assert json.loads(applier.recv(4096))["reason"] == "said"


ORDER = """
use strict; use warnings;
use Fairlead::Rounds;
for my $line (split /\\n/, $ENV{CASES}) {
    my ($most, @words) = split ' ', $line;
    my %case = (waiting => {}, on => {}, owed => {});
    for (@words) { my ($what, $queue, $number) = /^(\\w+):(\\w+)=(\\d+)$/; $case{$what}{$queue} = $number }
    $case{on}{$_} //= 0 for qw(good suspects dead agents silent);
    print Fairlead::Rounds::next_queue($most, @case{qw(waiting on owed)}) // '-', "\\n";
}
"""
ALL_WAIT = "waiting:good=9 waiting:suspects=9 waiting:dead=9 waiting:agents=9 waiting:silent=9"
# How many workers there may be, what waits, what they are at, which agents are owed one -> whose turn it is.
TURNS = {
    # Checks first, and agents before those that are silent.
    "32 waiting:good=1 waiting:agents=9 waiting:silent=9": "good",
    "32 waiting:suspects=1 waiting:agents=9": "suspects",
    "32 waiting:dead=1 waiting:agents=9": "dead",
    "32 waiting:agents=1 waiting:silent=9": "agents",
    "32 waiting:silent=1": "silent",
    # Dead servers that may not be asked now keep no agent waiting that answers.
    "32 waiting:dead=9 waiting:agents=1 waiting:silent=9 on:dead=16": "agents",
    # A quarter of the workers at most, and never those that are kept for checks.
    "32 waiting:agents=9 on:agents=8": "-",
    "32 waiting:silent=9 on:silent=8": "-",
    "32 waiting:silent=9 on:silent=4 on:dead=12": "-",
    "32 waiting:agents=9 on:suspects=8 on:dead=12 on:agents=4": "-",
    f"32 {ALL_WAIT} on:suspects=8 on:dead=12 on:agents=4": "good",
    f"32 {ALL_WAIT} on:suspects=8 on:dead=12 on:silent=4": "good",
    "2 waiting:agents=9 on:dead=1": "-",
    "2 waiting:agents=9 on:good=1": "agents",
    "2 waiting:good=1 on:agents=1": "good",
    # One that has waited for long comes first, but no second one beside it.
    f"32 {ALL_WAIT} owed:agents=1 owed:silent=1": "agents",
    f"32 {ALL_WAIT} owed:agents=1 owed:silent=1 on:agents=1": "silent",
    f"32 {ALL_WAIT} owed:agents=1 owed:silent=1 on:agents=1 on:silent=1": "suspects",
    # It answers at once, so it may have the worker that is kept; one that is silent may not.
    f"2 {ALL_WAIT} owed:agents=1 on:dead=1": "agents",
    f"2 {ALL_WAIT} owed:silent=1 on:dead=1": "good",
}


def test_agents_get_workers_that_no_check_is_waiting_for():
    done = subprocess.run(
        ["perl", "-I", PERL, "-e", ORDER],
        env=os.environ | {"CASES": "\n".join(TURNS)},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stderr == ""
    assert dict(zip(TURNS, done.stdout.split(), strict=True)) == TURNS


# Twelve servers whose checks two workers cannot make in time, and the agent of the first one.
OVERLOAD = f"""BEGIN {{
    no warnings 'redefine';
    *Fairlead::Rounds::most = sub {{ 2 }};
    *Fairlead::Weights::step = sub {{ }};
    *Fairlead::Weights::ask = sub {{ '70 -' }};
    *Fairlead::Weights::answered = sub {{ ld_log('the agent said ' . $_[1]) }};
}}
select undef, undef, undef, 0.02; {GOOD}"""


@pytest.mark.parametrize(("seconds", "asked"), [(3600, False), (0.02, True)])
def test_an_agent_is_asked_while_checks_wait_only_when_it_has_waited_for_long(tmp_path, seconds, asked):
    words = tmp_path / "ldirectord.cf"
    words.write_text(
        "    # balance -t 192.0.2.1:53 id=1 agent=text port=3333"
        f" interval={seconds} floor=10 slow=0 least=0 then=tell\n"
    )
    said = log(OVERLOAD, 60, servers=12, words=words, interval=0.05)
    assert ("the agent said 70 -" in said) == asked
