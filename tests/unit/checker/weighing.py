"""Fairlead::Weights and Fairlead::Table without ldirectord, by a clock that whoever uses them moves."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from talking_servers import PERL

# ldirectord as the modules see it. Each line of the input is what happens next, and ends with a turn of Rounds' loop.
LDIRECTORD = """
package Watched; use Tie::Hash; our @ISA = 'Tie::StdHash'; our $looks = 0;
sub FETCH { $looks++; return $_[0]->SUPER::FETCH($_[1]) }
package main;
use strict; use warnings; use JSON::PP; use Fairlead::Table; use Fairlead::Weights;
our ($IPVSADM, $CONFIG, $SCHEDULER) = @ENV{qw(IPVSADM CONFIG SCHEDULER)};
$| = 1;
my ($clock, %down) = (1000);
my %alike = (forward => 'masq', weight => 100, 'u-threshold' => 0, 'l-threshold' => 0);
my $real = { map { ("10.0.0.$_:80" => { %alike }) } 1 .. 3 };
sub ld_read_ipvsadm { return { '192.0.2.1:80 tcp' => { scheduler => $SCHEDULER, real => $real } } }
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
my $v = { proto => '-t', scheduler => $SCHEDULER };
my %records;
for my $server (map { "10.0.0.$_" } 1 .. 3) {
    my $r = { server => $server, port => 80, forw => '-m', weight => 100 };
    my $record = $records{$server} = Fairlead::Weights::watch($v, $r);
    my %known = %$record;
    tie %$record, 'Watched';
    %$record = %known;
}
while (my $step = <STDIN>) {
    my ($server, $said, $seconds) = @{decode_json($step)};
    if ($said eq 'down') {
        $down{$server} = 1;
        system_wrapper("$IPVSADM -e -t 192.0.2.1:80 -r $server:80 -m -w 0");
        Fairlead::Weights::refresh($records{$server}{key});
    }
    elsif ($said eq 'back') { $records{$server}{fell} = 1; Fairlead::Weights::comes_back($records{$server}) }
    elsif ($said ne '') { Fairlead::Weights::answered($records{$server}, $said) }
    $Watched::looks = 0;
    Fairlead::Weights::step(Fairlead::Table::is_waiting());
    Fairlead::Table::flush();
    my $soon = Fairlead::Weights::soon();
    print encode_json([$soon, $Watched::looks]), "\\n";
    $clock += $seconds;
}
"""
ONE, TWO, THREE = (f"10.0.0.{number}" for number in (1, 2, 3))


class Checks:
    """The modules in a process of their own, and what they wrote by ipvsadm.

    `looks`: how often the last turn of the loop, after what happened, looked at what is known of a server.
    """

    looks = 0

    def __init__(self, folder: Path, scheduler: str, slow: int) -> None:
        program, config, self._given = folder / "ipvsadm", folder / "ldirectord.cf", folder / "given"
        program.write_text(f'#!/bin/sh\necho "$*" >>{self._given}\ncat >>{self._given}\n')
        program.chmod(0o755)
        words = f"id=1 agent=text port=3333 interval=5 floor=10 slow={slow} least=0 then=tell again=0"
        config.write_text(f"    # balance -t 192.0.2.1:80 {words}\n")
        self._given.write_text("")
        self._process = subprocess.Popen(
            ["perl", "-I", PERL, "-e", LDIRECTORD],
            env=os.environ | {"IPVSADM": str(program), "CONFIG": str(config), "SCHEDULER": scheduler},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def step(self, server: str = "", said: str = "", seconds: float = 0.0) -> float | None:
        """In how many seconds the loop looks again; None: not before something else happens."""
        self._process.stdin.write(json.dumps([server, said, seconds]) + "\n")
        self._process.stdin.flush()
        soon, self.looks = json.loads(self._process.stdout.readline())
        return soon

    def writes(self) -> list[dict[str, int]]:
        """{server: weight} of each run of ipvsadm."""
        runs = self._given.read_text().split("-R\n")[1:]
        return [dict(_weight(line) for line in one.splitlines()) for one in runs]

    def weights(self) -> dict[str, int]:
        """Those of the servers of which any was written."""
        return {server: weight for write in self.writes() for server, weight in write.items()}

    def end(self) -> None:
        _, complaints = self._process.communicate(timeout=60)
        assert (self._process.returncode, complaints) == (0, "")


def _weight(line: str) -> tuple[str, int]:
    words = line.split()
    return words[words.index("-r") + 1].removesuffix(":80"), int(words[words.index("-w") + 1])
