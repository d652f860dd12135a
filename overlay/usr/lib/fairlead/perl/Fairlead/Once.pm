package Fairlead::Once;

# Try a health check: PERL5OPT=-MFairlead::Once ldirectord FILE start
# asks each real server of the first service in FILE once, by the very functions that watch it later, prints one line
# of JSON for each and ends. The IPVS table is not touched, not even read.

use strict;
use warnings;

use JSON::PP ();
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

use Fairlead::Checks ();
use Fairlead::Talks ();
use Fairlead::Wire ();

use constant FUNCTIONS => qw(ld_start _check_real service_set ld_debug ld_exit);
use constant SHOWN => 4000;    # characters of what was sent and of what came back

my ($sent, $received) = ('', '');

INIT {
	my @missing = grep { !main->can($_) } FUNCTIONS, Fairlead::Checks::FUNCTIONS, Fairlead::Talks::FUNCTIONS;
	die "this ldirectord has no @missing\n" if @missing;
	no warnings 'redefine';
	Fairlead::Checks::install();
	Fairlead::Talks::install();
	*main::ld_start = \&ask_all;
}

sub ask_all {
	my $v = $main::VIRTUAL[0];
	listen_to_http();
	for my $r (@{$v->{real}}) {
		print JSON::PP->new->ascii->canonical->encode(ask($v, $r)), "\n";
	}
	main::ld_exit(0, '');
}

sub ask {
	my ($v, $r) = @_;
	my ($state, $message, @said) = ('', '');
	($sent, $received) = ('', '');
	($Fairlead::Wire::sent, $Fairlead::Wire::received) = ('', '');
	no warnings 'redefine';
	local *main::service_set = sub { ($state, $message) = (@_[2, 4]) };
	local *main::ld_debug = sub { push @said, $_[1] };
	my $began = clock_gettime(CLOCK_MONOTONIC);
	eval { main::_check_real($v, $r); 1 } or ($state, $message) = ('down', $@);
	my $seconds = clock_gettime(CLOCK_MONOTONIC) - $began;
	# Where the check gives no reason, its own notes have one: "Deactivated service 10.2.0.11:80: Socket Connect Failed".
	($message) = map { /^Deactivated service \S+: (.+)/s } @said if ($message // '-') eq '-';
	return {
		server => $r->{server} =~ s/[\[\]]//gr,
		port => 0 + $r->{port},
		state => $state eq 'up' ? 'up' : 'down',
		seconds => 0 + sprintf('%.3f', $seconds),
		message => text($message),
		sent => text($sent . $Fairlead::Wire::sent),
		received => text($received . $Fairlead::Wire::received),
	};
}

# What LWP sends and gets, redirects included.
sub listen_to_http {
	return unless LWP::UserAgent->can('simple_request');
	my $simple_request = \&LWP::UserAgent::simple_request;
	no warnings 'redefine';
	*LWP::UserAgent::simple_request = sub {
		my ($agent, $request, @more) = @_;
		my $response = $simple_request->($agent, $request, @more);
		# The address is in the request's URL until LWP makes a request line of it.
		$sent .= $request->method . ' ' . $request->uri . "\n" . $request->headers->as_string;
		$received .= $response->status_line . "\n" . $response->headers->as_string . "\n" . $response->content;
		return $response;
	};
}

sub text {
	my $bytes = substr($_[0] // '', 0, SHOWN);
	$bytes =~ s/ at \S+ line \d+\.$//;
	$bytes =~ s/[^\x20-\x7e\n]/./g;
	return $bytes =~ s/^\s+|\s+$//gr;
}

1;
