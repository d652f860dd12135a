package Fairlead::Fallback;

# A fallback server that is checked itself. ldirectord puts it into the table as soon as no real server is up, and asks
# it nothing: clients of one that is down hang. Here it is checked at all times, as a real server is, so that its failure
# is told before it is needed, and while it is down ldirectord's own functions put nothing in.
#
# It begins as real servers do: up where the table has it, else down until its first good check.
#
# lbconfig/render/ldirectord.py says how it is checked, in the comment that Fairlead::Words reads:
#     # check vs3 fallback=same fallback_port=80

use strict;
use warnings;
no warnings 'once';    # ldirectord's variables

use Fairlead::Words ();

use constant FUNCTIONS => qw(fallback_on fallback_off);

my %records;    # by the service, as ldirectord has it
my ($put_in, $take_out);    # ldirectord's own functions

sub install {
	no warnings 'redefine';
	($put_in, $take_out) = (\&main::fallback_on, \&main::fallback_off);
	*main::fallback_on = sub {
		my ($v) = @_;
		my $record = of($v);
		return $put_in->(@_) if !$record || is_up($record);
		return;
	};
}

# { service; v, r: as ldirectord would have them, were it a real server; up }. undef where it is not checked.
sub of {
	my ($v) = @_;
	Fairlead::Words::read_all();
	my ($first, $fallback) = (($v->{real} // [])->[0], $v->{fallback});
	return undef unless $first && $fallback;
	my $words = Fairlead::Words::of($first);
	my $how = $words->{fallback} // return undef;
	my $connects = $how eq 'connect';
	return $records{$v} //= {
		service => $v,
		v => { %$v, checkport => $words->{fallback_port}, $connects ? (checktype => 'connect', service => 'none') : () },
		r => {
			%$fallback,
			failcount => 0,
			num_connects => $connects ? -1 : $first->{num_connects},    # as ldirectord has it where there is no other check
			map { $_ => $first->{$_} } qw(request receive),
		},
	};
}

# ld_start asks first, before it changes the table.
sub is_up {
	my ($record) = @_;
	my ($v, $r) = @$record{qw(service r)};
	return $record->{up} //= Fairlead::Table::has(Fairlead::Weights::key_of($v), "$r->{server}:$r->{port}");
}

# What a check of it found: the same as ldirectord does with a real server.
sub settle {
	my ($record, $state, $force) = @_;
	my ($v, $r) = @$record{qw(service r)};
	if ($state eq 'up') {
		$r->{failcount} = 0;
		return if is_up($record) && !$force;
		$record->{up} = 1;
		$put_in->($v, $force ? 1 : ()) unless defined $v->{real_status};
	}
	else {
		return if is_up($record) ? ++$r->{failcount} < $v->{failurecount} : !$force;
		$record->{up} = 0;
		$take_out->($v, $force ? 1 : ());
	}
	return;
}

1;
