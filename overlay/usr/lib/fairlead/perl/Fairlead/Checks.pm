package Fairlead::Checks;

# Where ldirectord's own check cannot do what we need.

use strict;
use warnings;

use Net::Ping ();

use constant FUNCTIONS => qw(check_ping service_set);

my $ping;    # ldirectord's own function: by IPv4 only

sub install {
	no warnings 'redefine';
	$ping = \&main::check_ping;
	*main::check_ping = \&check_ping;
}

sub check_ping {
	my ($v, $r) = @_;
	my ($address) = $r->{server} =~ /^\[(.*)\]$/ or return $ping->($v, $r);
	my $socket = Net::Ping->new('icmpv6', 1, 64);
	for (1 .. $v->{checkcount}) {
		if ($socket->ping($address, $v->{checktimeout})) {
			main::service_set($v, $r, 'up', { do_log => 1 });
			return $main::SERVICE_UP;
		}
	}
	main::service_set($v, $r, 'down');
	return $main::SERVICE_DOWN;
}

1;
