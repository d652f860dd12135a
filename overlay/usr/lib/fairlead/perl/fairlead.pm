package fairlead;

# Loaded into ldirectord (PERL5OPT), whose file stays as it comes. It replaces a few of its functions, so that
#   - the IPVS table is read once and written in batches (Fairlead::Table), not read before every change,
#   - checks run side by side, each service at its own interval (Fairlead::Rounds), not one after the other,
#   - servers are asked and judged in one way, without a Perl library for each protocol (Fairlead::Talks),
#   - a fallback server may be checked itself (Fairlead::Fallback).

use strict;
use warnings;

# Modules that the script asks for and nobody uses here: those of functions that are replaced, of mails, of its manual
# page.
my @unused;

BEGIN {
	my @files = qw(IO/Socket/INET6.pm LWP/Debug.pm LWP/UserAgent.pm Net/HTTP.pm Net/Ping.pm Net/SMTP.pm Pod/Usage.pm URI.pm);
	@unused = grep { !$INC{$_} } @files;
	@INC{@unused} = (__FILE__) x @unused;
}

use Fairlead::Fallback;
use Fairlead::Rounds;
use Fairlead::Table;
use Fairlead::Talks;

# Its log goes to a pipe: without this it would arrive in blocks of 8 KB, minutes late, and the last
# block not at all.
$| = 1;

# It reads ipvsadm's table and warns of each line that has no flags: that would push everything else out of the log.
$SIG{__WARN__} = sub {
	my ($text) = @_;
	print STDERR $text unless $text =~ /^Use of uninitialized value in split at \S+ldirectord /;
};

# INIT: the script is compiled then, so its functions are there, and none has run yet.
INIT {
	my @replaced = map { $_->FUNCTIONS } qw(Fairlead::Table Fairlead::Rounds Fairlead::Talks Fairlead::Fallback);
	if (my @missing = grep { !main->can($_) } @replaced) {
		print STDERR "fairlead: this ldirectord has no @missing; it checks one server after the other\n";
		delete @INC{@unused};
		for my $file (@unused) {
			require $file;
		}
	}
	else {
		Fairlead::Table::install();
		Fairlead::Rounds::install();
		Fairlead::Talks::install();
		Fairlead::Fallback::install();
	}
}

1;
