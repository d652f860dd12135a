package Fairlead::Confined;

# What a process may do that talks to servers, whose answers may be anything: it is a user without a right or a file of
# its own, it starts no other process, it may grow by so much and no more, and when memory is short it goes first.
# Only the process that it works for writes the table.

use strict;
use warnings;

use POSIX ();

use constant {
	USER => 989,               # fairlead-check; its group may send pings (overlay/etc/sysctl.d/fairlead.conf)
	GROWTH => 32 << 20,        # bytes of memory beyond what it begins with
	PAGE => 4096,
	FIRST_TO_GO => 1000,       # of oom_score_adj
	PROCS => '/sys/fs/cgroup/services/checks/cgroup.procs',
};
# Their numbers on x86-64.
use constant { SETRLIMIT => 160, PRCTL => 157, NO_NEW_PRIVS => 38 };
use constant { FSIZE => 1, DATA => 2, CORE => 4, NPROC => 6 };

# Into the memory group of the checks, where the box has one. Who is started by ldirectord's service is in it.
sub join_group {
	open my $file, '>', PROCS or return;
	syswrite $file, '0';
	return;
}

# There is no way back. Dies where it cannot be done.
sub confine {
	if (open my $file, '>', '/proc/self/oom_score_adj') { syswrite $file, FIRST_TO_GO }
	limit(DATA, data() + GROWTH);
	limit($_, 0) for FSIZE, CORE, NPROC;
	if ($> == 0) {
		$) = USER . ' ' . USER;
		POSIX::setgid(USER) && POSIX::setuid(USER) or die "user " . USER . ": $!\n";
	}
	syscall(PRCTL, NO_NEW_PRIVS, 1, 0, 0, 0) == 0 or die "no new privileges: $!\n";
	die "the rights of root are still there\n" if $> == 0 || $< == 0 || POSIX::setuid(0);
	return;
}

sub limit {
	my ($which, $most) = @_;
	my $both = pack 'QQ', $most, $most;
	syscall(SETRLIMIT, $which, $both) == 0 or die "limit $which: $!\n";
	return;
}

# Bytes that RLIMIT_DATA counts; proc_pid_statm(5).
sub data {
	open my $file, '<', '/proc/self/statm' or die "/proc/self/statm: $!\n";
	return (split ' ', <$file>)[5] * PAGE;
}

1;
