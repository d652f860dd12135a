package Fairlead::Stall;

# Time in which the box itself was stalled is not time that a server took. A virtual machine that its host paused for
# longer than the timeout would find all its servers dead at once, although their answers are already there. So whoever
# waits for an answer waits in short parts and looks at the clock between them. A look that comes much later than it was
# meant to is a stall, which does not count (docs/decisions/0124-a-stalled-box-blames-no-server.md).

use strict;
use warnings;

use Exporter qw(import);
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

our @EXPORT_OK = qw(PART TIMES stalled);

use constant {
	PART => 0.5,      # seconds that are waited at once
	TIMES => 10,      # stalls that one check is given back: on a box that stalls again and again it ends as well
	LATE => 0.25,     # seconds; a process that only waited for its turn is less late than that
};

# Look at the clock, which becomes `$$looked`. The seconds since the last look if it was meant to be `$meant` seconds ago
# and was longer ago than that by a stall, else 0.
sub stalled {
	my ($looked, $meant) = @_;
	my $now = clock_gettime(CLOCK_MONOTONIC);
	my $took = $now - $$looked;
	$$looked = $now;
	return $took - $meant < LATE ? 0 : $took;
}

1;
