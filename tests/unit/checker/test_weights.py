"""When the weights that agents ask for are written (Fairlead::Weights), by a clock that the test moves."""

import json
import os
import subprocess

import pytest
from talking_servers import PERL

# ldirectord as the modules see it. STEPS are what happens, one after the other; each ends with a turn of Rounds' loop.
LDIRECTORD = """
use strict; use warnings; use JSON::PP; use Fairlead::Table; use Fairlead::Weights;
our ($IPVSADM, $CONFIG) = @ENV{qw(IPVSADM CONFIG)};
my ($clock, %down) = (1000);
my %alike = (forward => 'masq', weight => 100, 'u-threshold' => 0, 'l-threshold' => 0);
my $real = { map { ("10.0.0.$_:80" => { %alike }) } 1 .. 3 };
sub ld_read_ipvsadm { return { '192.0.2.1:80 tcp' => { scheduler => 'wlc', real => $real } } }
sub system_wrapper { die "@_" }
sub add_real_server { }
sub _remove_service { }
sub ld_log { }
sub get_virtual_option { '192.0.2.1:80' }
sub _status_check { !$down{$_[1]{server}} }
{
    no warnings 'redefine';
    *Fairlead::Weights::now = sub { $clock };
    *Fairlead::Weights::remember = *Fairlead::Weights::write_down = sub { };
}
Fairlead::Table::install();
ld_read_ipvsadm();
$Fairlead::Table::starting = 0;
my $v = { proto => '-t', scheduler => 'wlc' };
my %records;
for my $server (map { "10.0.0.$_" } 1 .. 3) {
    my $r = { server => $server, port => 80, forw => '-m', weight => 100 };
    $records{$server} = Fairlead::Weights::watch($v, $r);
}
for my $step (@{decode_json($ENV{STEPS})}) {
    my ($server, $said, $seconds) = @$step;
    if ($said eq 'down') {
        $down{$server} = 1;
        system_wrapper("$IPVSADM -e -t 192.0.2.1:80 -r $server:80 -m -w 0");
        Fairlead::Weights::refresh($records{$server}{key});
    }
    elsif ($said ne '') { Fairlead::Weights::answered($records{$server}, $said) }
    Fairlead::Weights::step(Fairlead::Table::is_waiting());
    Fairlead::Table::flush();
    print Fairlead::Weights::soon() // '-', "\\n";
    $clock += $seconds;
}
"""
ONE, TWO, THREE = (f"10.0.0.{number}" for number in (1, 2, 3))


@pytest.fixture
def written(tmp_path):
    """written((server, what it says, seconds until the next step), …) -> {server: weight} of each run of ipvsadm."""
    program, config = tmp_path / "ipvsadm", tmp_path / "ldirectord.cf"
    program.write_text(f'#!/bin/sh\necho "$*" >>{tmp_path}/given\ncat >>{tmp_path}/given\n')
    program.chmod(0o755)
    words = "id=1 agent=text port=3333 interval=5 floor=10 slow=0 least=0 then=tell again=0"
    config.write_text(f"    # balance -t 192.0.2.1:80 {words}\n")

    def run(*steps):
        (tmp_path / "given").write_text("")
        done = subprocess.run(
            ["perl", "-I", PERL, "-e", LDIRECTORD],
            env=os.environ | {"IPVSADM": str(program), "CONFIG": str(config), "STEPS": json.dumps(steps)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0 and done.stderr == "", done.stderr
        run.soon = done.stdout.split()
        runs = (tmp_path / "given").read_text().split("-R\n")[1:]
        return [dict(_weight(line) for line in one.splitlines()) for one in runs]

    return run


def _weight(line: str) -> tuple[str, int]:
    words = line.split()
    return words[words.index("-r") + 1].removesuffix(":80"), int(words[words.index("-w") + 1])


def test_what_agents_say_within_a_second_is_one_write(written):
    several = [(ONE, "60 -", 0.3), (TWO, "30 -", 0.3), (ONE, "50 -", 0.3)]
    assert written(*several) == []
    assert written(*several, (THREE, "100 -", 0.2), (THREE, "100 -", 0)) == [{ONE: 50, TWO: 30}]
    assert 0 < float(written.soon[0]) <= 1, "and the loop looks again by then"


def test_answers_without_an_end_are_a_write_a_second(written):
    answers = [((ONE, TWO, THREE)[n % 3], f"{20 + n % 60} -", 0.1) for n in range(100)]
    assert 5 <= len(written(*answers)) <= 11


@pytest.mark.parametrize("word", ["drain", "maint", "down"])
def test_words_wait_for_nothing_and_take_along_what_waits(written, word):
    assert written((ONE, "60 -", 0.1), (TWO, f"100 {word}", 0.1)) == [{ONE: 60, TWO: 0}]
    there_and_back = written((TWO, f"100 {word}", 0.1), (TWO, "100 -", 0.1))
    assert there_and_back == [{TWO: 0}, {TWO: 100}]


def test_a_server_that_leaves_waits_for_nothing_and_takes_along_what_waits(written):
    assert written((ONE, "60 -", 0.1), (TWO, "down", 0.1), (THREE, "70 -", 2), (THREE, "70 -", 0)) == [
        {ONE: 60, TWO: 0},
        {THREE: 70},
    ]


def test_what_is_as_before_when_the_second_is_over_is_not_written(written):
    assert written((ONE, "60 -", 0.5), (ONE, "100 -", 2), (ONE, "100 -", 0)) == []
