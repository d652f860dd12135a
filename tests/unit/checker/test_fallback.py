"""A fallback server that is checked itself (Fairlead::Fallback), between ldirectord's own functions."""

import os
import subprocess

import pytest
from talking_servers import PERL

# ldirectord's functions say what they would do; a word of STEPS is one thing that happens.
LDIRECTORD = """
use strict; use warnings;
our ($CONFIG, @VIRTUAL) = ('/dev/stdin');
use Fairlead::Fallback; use Fairlead::Table; use Fairlead::Weights;
my ($server, @said) = ('10.2.0.99', ());
our $table = { '10.0.2.100:80 tcp' => { real => { map { $_ => {} } split ' ', $ENV{TABLE} } } };
sub fallback_on { push @said, defined $_[1] ? 'in again' : 'in' unless $_[0]{real_status} && !$_[1] }
sub fallback_off { push @said, defined $_[1] ? 'out again' : 'out' }
sub get_virtual_option { '10.0.2.100:80' }
{ no warnings 'redefine'; *Fairlead::Table::known = sub { $table }; }
Fairlead::Fallback::install();
my $real = { server => '10.2.0.11', port => 80, request => '/', receive => '(?:vs1){0}',
    num_connects => 7 };
my $v = { proto => '-t', failurecount => 2, checktype => 'negotiate', service => 'http', real => [$real],
    fallback => { server => $server, port => 81 } };
for (split ' ', $ENV{STEPS}) {
    my $record = Fairlead::Fallback::of($v);
    if ($_ eq 'needed') { $v->{real_status} = undef; fallback_on($v) }
    elsif ($_ eq 'spare') { $v->{real_status} = {}; fallback_off($v) }
    elsif (/^(good|bad)(!?)$/) { Fairlead::Fallback::settle($record, $1 eq 'good' ? 'up' : 'down', $2) }
    else {
        my ($of) = /^show:(.*)/;
        my @shown = @{$record->{$of}}{qw(server port checktype service checkport num_connects)};
        push @said, join ' ', map { $_ // '-' } @shown;
    }
}
print join ', ', @said;
"""


def said(steps, table="", words="fallback=same fallback_port=8080"):
    done = subprocess.run(
        ["perl", "-I", PERL, "-e", LDIRECTORD],
        env=os.environ | {"STEPS": steps, "TABLE": table},
        input=f"    # check vs1 {words}\n",
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout


THERE = "10.2.0.99:81"


@pytest.mark.parametrize(
    ("steps", "table", "does"),
    [
        # Nobody knows yet whether it is up.
        ("needed", "", ""),
        ("needed good good", "", "in"),
        ("needed bad good", "", "in"),
        # It stands in already: the checks begin anew with each apply.
        ("needed", THERE, "in"),
        ("needed bad", THERE, "in"),
        ("needed bad bad bad", THERE, "in, out"),
        ("needed bad good bad", THERE, "in"),
        ("needed bad bad good", THERE, "in, out, in"),
        # Before it is needed.
        ("spare good needed", "", "out, in"),
        ("spare good bad needed", "", "out, in"),
        ("spare good bad bad needed", "", "out, out"),
        ("spare good bad bad needed good spare", "", "out, out, in, out"),
        # The table was not as ldirectord thought.
        ("needed good good!", "", "in, in again"),
        ("spare good good!", "", "out"),
        ("needed bad!", "", "out again"),
    ],
)
def test_when_it_stands_in(steps, table, does):
    assert said(steps, table) == does


def test_one_that_is_not_checked_stands_in_whenever_it_is_needed():
    assert said("needed spare needed", words="successes=2") == "in, out, in"


@pytest.mark.parametrize(
    ("words", "v", "connects"),
    [
        ("fallback=same fallback_port=8080", "- - negotiate http 8080 -", 7),
        ("fallback=connect fallback_port=81", "- - connect none 81 -", -1),
    ],
)
def test_what_it_is_asked(words, v, connects):
    assert said("show:v show:r", words=words) == f"{v}, 10.2.0.99 81 - - - {connects}"
