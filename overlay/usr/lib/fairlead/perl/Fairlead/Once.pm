package Fairlead::Once;

# Try a health check: PERL5OPT=-MFairlead::Once ldirectord FILE start
# asks each real server of the first service in FILE once, and then its fallback server if that is checked, by the very
# functions that watch them later, prints one line of JSON for each and ends. The IPVS table is not touched, not even
# read.

use strict;
use warnings;

use JSON::PP ();
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

use Fairlead::Confined ();
use Fairlead::Fallback ();
use Fairlead::Programs ();
use Fairlead::Talks ();
use Fairlead::Wire ();
use Fairlead::Words ();

use constant FUNCTIONS => qw(ld_start _check_real service_set ld_exit);
use constant SHOWN => 4000;    # characters of what was sent and of what came back

INIT {
	my @missing = grep { !main->can($_) } FUNCTIONS, Fairlead::Talks::FUNCTIONS;
	die "this ldirectord has no @missing\n" if @missing;
	no warnings 'redefine';
	Fairlead::Talks::install();
	*main::ld_start = \&ask_all;
}

sub ask_all {
	Fairlead::Words::read_all();
	Fairlead::Confined::join_group();
	Fairlead::Programs::begin('others');
	Fairlead::Confined::confine();
	my $v = $main::VIRTUAL[0];
	print_line(ask($v, $_), JSON::PP::false()) for @{$v->{real}};
	my $fallback = Fairlead::Fallback::of($v);
	print_line(ask(@$fallback{qw(v r)}), JSON::PP::true()) if $fallback;
	main::ld_exit(0, '');
}

sub print_line {
	my ($said, $fallback) = @_;
	print JSON::PP->new->ascii->canonical->encode({ %$said, fallback => $fallback }), "\n";
	return;
}

sub ask {
	my ($v, $r) = @_;
	my ($state, $message) = ('', '');
	($Fairlead::Wire::sent, $Fairlead::Wire::received) = ('', '');
	no warnings 'redefine';
	local *main::service_set = sub { ($state, $message) = (@_[2, 4]) };
	my $began = clock_gettime(CLOCK_MONOTONIC);
	eval { main::_check_real($v, $r); 1 } or ($state, $message) = ('down', $@);
	my $seconds = clock_gettime(CLOCK_MONOTONIC) - $began;
	return {
		server => $r->{server} =~ s/[\[\]]//gr,
		port => 0 + $r->{port},
		state => $state eq 'up' ? 'up' : 'down',
		seconds => 0 + sprintf('%.3f', $seconds),
		message => text($message),
		sent => text($Fairlead::Wire::sent),
		received => text($Fairlead::Wire::received),
	};
}

sub text {
	my $bytes = substr($_[0] // '', 0, SHOWN);
	$bytes =~ s/ at \S+ line \d+\.$//;
	$bytes =~ s/[^\x20-\x7e\n]/./g;
	return $bytes =~ s/^\s+|\s+$//gr;
}

1;
