package EveryFile;

# Loaded into ldirectord it makes `ldirectord FILE status` of every line of standard input, which names a FILE, without
# starting Perl for each: a child goes on into the program, whose own file stays as it comes. What the child says goes
# to FILE.said; its exit code is answered on standard output.

use strict;
use warnings;

# INIT: the program is compiled then, and has not begun. PERL5OPT names this module last, so the others are in place.
INIT {
	while (defined(my $file = <STDIN>)) {
		chomp $file;
		my $child = fork() // die "no process for $file: $!\n";
		if (!$child) {
			open(STDIN, '<', $file) or die "$file: $!\n";
			open(STDOUT, '>', "$file.said") or die "$file.said: $!\n";
			open(STDERR, '>&', \*STDOUT) or die "$file.said: $!\n";
			@ARGV = ($file, 'status');
			return;
		}
		waitpid($child, 0);
		my ($code, $signal) = ($? >> 8, $? & 127);
		print $signal ? 128 + $signal : $code, "\n";
	}
	exit 0;
}

1;
