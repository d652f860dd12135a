package Fairlead::Words;

# What a check needs to know and ldirectord has no word for. lbconfig/render/ldirectord.py writes it into comments of
# its file, which root alone can read:
#     # check vs3 successes=2 retry=1
# The name is the one that each service has in its pattern ("receive").

use strict;
use warnings;
no warnings 'once';    # ldirectord's variables

my $known;    # name of a service -> { word => value }; undef: not read yet

# The whole file, once: before it becomes another one, and before the rights to read it are given up.
sub read_all {
	return if $known;
	local $_;    # whoever asks may be in a loop
	$known = {};
	open my $file, '<', $main::CONFIG // '' or return;
	while (<$file>) {
		# A name of a service is a comment as well, at the beginning of a line.
		my ($name, $words) = /^    # check (vs\d+) (.*\S)\s*$/ or next;
		$known->{$name} = { map { split /=/, $_, 2 } split ' ', $words };
		s{^hex:([0-9a-f]*)$}{pack 'H*', $1}e for values %{$known->{$name}};
	}
	return;
}

# Of the service that this real server belongs to.
sub of {
	my ($r) = @_;
	my ($name) = ($r->{receive} // '') =~ /^\(\?:(vs\d+)\)/ or return {};
	return $known->{$name} // {};
}

1;
