package Fairlead::Rounds;

# Checks side by side. ldirectord asks one server after the other, so each one that is silent delays all others by
# its timeout. Here the same checks run in worker processes; what they find comes back to the one process that keeps
# the states and writes the table.
#
# A check begins an interval after the last one of that server began, or when that one ended if it took longer. So a
# server that dies has left, at the worst, after: interval + (failures - 1) x max(retry, timeout) + timeout, where
# `retry` is the interval unless the service has another one for a server that has failed and is still in.
#
# A server that has failed comes back after as many good checks in a row as its service asks for. One that has not
# failed since the checks began comes with its first good one: else every start would wait for all of them.
#
# A server that failed its last check waits for a worker in a queue of its own, which may use some of the workers
# only: however many fail, the others are asked in time. One that has left already waits in a third queue, which may
# use fewer: however many are dead, one that begins to fail is asked again in time, and leaves. New workers come when
# those there are wait for answers. While they compute, more of them would slow each other down until good servers seem
# not to answer in time.
#
# Agents decide on no server's health. They get workers that no check is waiting for; where there are none for long, a
# small share of the workers' time.

use strict;
use warnings;

use IO::Handle ();
use IO::Select ();
use List::Util qw(max min);
use POSIX ();
use Socket qw(AF_UNIX MSG_DONTWAIT SOCK_DGRAM pack_sockaddr_un);
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

use Fairlead::Confined ();
use Fairlead::Fallback ();
use Fairlead::Programs ();
use Fairlead::Stall qw(PART TIMES stalled);
use Fairlead::Table ();
use Fairlead::Weights ();
use Fairlead::Words ();

use constant FUNCTIONS => qw(
	ld_main _ld_main_check_all service_set check_signal _check_real _service_up _service_down _status_check ld_log
	get_virtual_id_str
);
use constant GROUP => '/sys/fs/cgroup/services/checks';
use constant {
	FEWEST => 2,              # workers that are kept when there is little to do
	MOST => 32,
	WORKER => 10 * 1024,      # KiB: what a worker may come to own of its memory
	RESERVED => 0.25,         # of the workers: for each of the three queues of checks; as many at most ask agents
	PATIENT => 3,             # intervals that an agent waits for a worker before it is asked while checks wait,
	SHARE => 0.05,            # which takes so much of the workers' time; those that are silent get as much once more
	MOMENT => 0.05,           # seconds after which workers that were computing are looked at again
	WORN => 1000,             # checks after which a worker is replaced: Perl gives no memory back
	IDLE => 30,               # seconds without work after which a worker ends
	GRACE => 1,               # seconds beyond its timeout after which a check that goes on is ended, and has failed
	LATE => 60,               # seconds between two complaints of a kind
	UNTOLD => 1000,           # events that wait for the applier; older ones are forgotten
	SILENT => 1,              # seconds after which a first check without an answer is not waited for
};

# A server that is checked: { v, r: ldirectord's own; number; interval, retry, wait, limit: seconds, `wait` of the next
# check; began, failing; successes, missing: good checks that it takes to come back, and that are still missing;
# weighed }. Its agent is asked in the same way, as an entry of its own. A fallback server that is checked is one of them,
# with a record of its own (Fairlead::Fallback).
my @checks;
my %rest;            # seconds to wait -> checks, the next one first
# Those whose time has come. `good`: the last check was good, or there was none; `suspects`: it failed, and clients may
# still be sent there; `dead`: nobody is sent there any more; `agents`, and of these the `silent`.
my %queues = map { $_ => [] } qw(good suspects dead agents silent);
my %spent = (agents => 0, silent => 0);    # until when they have had their share
my %workers;         # pid -> { pid, to, from, check, from_queue, since, stalls, done }
my ($all, $first_left, $started, %complained) = (0, 0, 0);    # servers that are checked, for the first time
my $looked = 0;      # the last look at the clock of who waits for the workers
my $to_say = 1;      # that the first round is over
my ($most, $most_known) = (FEWEST, 0);
my $processors = 1;
my ($told, @untold);     # the socket to the applier, and what it has not taken yet
my $spawned = 0;     # whether Fairlead::Spawner wants to know how far we are

sub install {
	$spawned = $INC{'Fairlead/Spawner.pm'};
	no warnings 'redefine';
	*main::ld_main = \&watch;
	*main::_ld_main_check_all = sub { };    # ld_start's own first round: `watch` begins with one
	*main::service_set = \&settle;
}

sub now { return clock_gettime(CLOCK_MONOTONIC) }

# Replaces service_set, which looks through all servers for those of the same identity. Ours have one each.
sub settle {
	my ($v, $r, $state, $flags) = @_;
	if ($state =~ /up/i) {
		main::_service_up($v, $r, $flags->{force});
	}
	else {
		main::_service_down($v, $r, $flags->{force});
	}
}

# Replaces ld_main: until a signal ends the process.
sub watch {
	$SIG{CHLD} = 'DEFAULT';    # ldirectord's own handler would reap the workers
	Fairlead::Table::flush();
	$Fairlead::Table::starting = 0;
	$processors = processors();
	warm_up();
	gather();
	$looked = now();
	Fairlead::Spawner::note('watching') if $spawned;
	while (1) {
		main::check_signal();
		wake();
		my $soon = hand_out();
		listen_for($soon);
		end_overdue();
		Fairlead::Programs::look_after();
		Fairlead::Weights::step(Fairlead::Table::is_waiting());
		Fairlead::Table::flush();
		pass_on();
		say_so() if $to_say && first_round_is_over();
	}
}

# Whether every server was checked once, or all that are being asked are silent.
sub first_round_is_over {
	my $now = now();
	return !$first_left || !grep { !$_->{seen} && defined $_->{began} && $now < $_->{began} + SILENT } @checks;
}

# By the command that the environment names (/etc/sv/ldirectord/run).
sub say_so {
	$to_say = 0;
	my $command = $ENV{FAIRLEAD_AFTER_FIRST_ROUND} // return;
	system $command and main::ld_log("$command: exit code $?");
	return;
}

sub processors {
	open my $file, '<', '/proc/stat' or return 1;
	return scalar(grep { /^cpu\d/ } <$file>) || 1;
}

# What TLS needs is loaded once, and not by each worker with its first server waiting.
sub warm_up {
	return unless grep { ($_->{service} // '') =~ /^(?:https|imaps|ldaps|pops)$/ } @main::VIRTUAL;
	require IO::Socket::SSL;
	return;
}

sub gather {
	Fairlead::Words::read_all();
	Fairlead::Programs::begin();
	for my $v (@main::VIRTUAL) {
		next if $v->{checktype} eq 'off';
		my $fallback = Fairlead::Fallback::of($v);
		for my $place ((map { [$v, $_] } @{$v->{real} // []}), $fallback ? [@$fallback{qw(v r)}] : ()) {
			my ($v, $r) = @$place;
			my $stands_in = $fallback && $r == $fallback->{r};
			$r->{failcount} = 0;    # ld_start counts servers that it does not know yet as failed
			my $words = Fairlead::Words::of($r);
			my $interval = $v->{checkinterval} || $main::CHECKINTERVAL;
			push @checks, {
				v => $v,
				r => $r,
				number => scalar @checks,
				interval => $interval,
				retry => $words->{retry} || $interval,
				wait => $interval,
				successes => $words->{successes} || 1,
				missing => 0,
				limit => $v->{negotiatetimeout} + GRACE,
				failing => 0,
				trusts => 0,
				seen => 0,
				weighed => $stands_in ? undef : Fairlead::Weights::watch($v, $r),
				fallback => $stands_in ? $fallback : undef,
			};
		}
	}
	$first_left = my $servers = @checks;
	for my $check (grep { $_->{weighed} && $_->{weighed}{set}{agent} =~ /^(?:text|http)$/ } @checks) {
		push @checks, {
			%$check{qw(v r)},
			number => scalar @checks,
			interval => $check->{weighed}{set}{interval},
			wait => $check->{weighed}{set}{interval},
			limit => Fairlead::Weights::PATIENCE + GRACE,
			failing => 0,
			seen => 1,
			agent => $check->{weighed},
		};
	}
	Fairlead::Weights::begin_watching();
	# First those that have clients.
	my @first = sort { !!is_up($b) <=> !!is_up($a) } @checks[0 .. $servers - 1];
	push @{$queues{good}}, @first;
	push @{$queues{agents}}, @checks[$servers .. $#checks];
	($all, $started) = ($servers, now());
}

# Whether clients may be sent to the server of this check.
sub is_up {
	my ($check) = @_;
	return $check->{fallback} ? Fairlead::Fallback::is_up($check->{fallback}) : main::_status_check(@$check{qw(v r)});
}

# Whose time has come? All checks of one wait begin in the order in which they began the last time.
sub wake {
	my $now = now();
	for my $wait (keys %rest) {
		my $resting = $rest{$wait};
		while (@$resting && $resting->[0]{began} + $wait <= $now) {
			my $check = shift @$resting;
			push @{$queues{queue_of($check)}}, $check;
		}
	}
}

# In the order in which they began, which is not the one in which they end: a check that ran into its timeout may be due
# at once, and others that are over began long after it.
sub rest {
	my ($check) = @_;
	my $resting = $rest{$check->{wait}} //= [];
	my $place = @$resting;
	$place-- while $place && $resting->[$place - 1]{began} > $check->{began};
	splice @$resting, $place, 0, $check;
	return;
}

sub queue_of {
	my ($check) = @_;
	return $check->{failing} ? 'silent' : 'agents' if $check->{agent};
	return 'good' unless $check->{failing};
	return is_up($check) ? 'suspects' : 'dead';
}

# Give workers what is due. Seconds until there may be something to do again, if nobody answers before.
sub hand_out {
	my $most = most();
	my %on = map { $_ => 0 } keys %queues;    # how many workers are at those of each queue
	$on{$_->{from_queue}}++ for grep { $_->{check} } values %workers;
	my %owed = map { $_ => is_owed($_) } keys %spent;
	while (my $queue = next_queue($most, { map { $_ => scalar @{$queues{$_}} } keys %queues }, \%on, \%owed)) {
		my $worker = idle() // (keys %workers < $most && !computing() ? hire() : undef) or last;
		$on{$queue}++;
		$worker->{from_queue} = $queue;
		ask($worker, shift @{$queues{$queue}});
	}
	complain($_, 'Checks', 'servers') for qw(suspects good);
	complain('agents', 'Questions to agents', 'agents');
	return until_something();
}

# Whether an agent of this queue has waited so long that checks wait for it now.
sub is_owed {
	my ($queue) = @_;
	my ($now, $first) = (now(), $queues{$queue}[0] // return 0);
	return $now >= $spent{$queue} && $now >= ($first->{began} // $started) + (1 + PATIENT) * $first->{wait};
}

# Whose turn it is: the name of a queue. Known by these names: how many wait in each, how many workers are at those of
# each, and which of the agents' are owed one.
sub next_queue {
	my ($most, $waiting, $on, $owed) = @_;
	my $kept = int($most * RESERVED) || 1;
	my $dead = $on->{dead} + $on->{silent};    # each holds its worker for a whole timeout
	my %may = (good => 1);
	$may{suspects} = $dead + $on->{suspects} + $on->{agents} < max($kept, $most - $kept);
	$may{dead} = $may{suspects} && $dead < max($kept, $most - 2 * $kept);
	$may{agents} = $may{suspects} && $on->{agents} < $kept;
	$may{silent} = $may{dead} && $on->{silent} < $kept;
	# One that answers does so at once: it may have any worker.
	my @first = grep { $owed->{$_} && !$on->{$_} && ($_ eq 'agents' || $may{$_}) } qw(agents silent);
	# Then those for which some are kept.
	push @first, grep { $may{$_} && $on->{$_} < $kept } qw(suspects dead);
	my ($next) = grep { $waiting->{$_} } @first, grep { $may{$_} } qw(good suspects dead agents silent);
	return $next;
}

sub until_something {
	my ($now, @waits) = (now(), IDLE);
	push @waits, MOMENT if grep { @$_ } values %queues;
	push @waits, SILENT if $to_say;
	push @waits, Fairlead::Weights::soon() // ();
	push @waits, map { $_->[0]{began} + $_->[0]{wait} - $now } grep { @$_ } values %rest;
	push @waits, map { $_->{since} + $_->{check}{limit} - $now } grep { $_->{check} } values %workers;
	my $soon = min(@waits);
	return $soon > 0 ? $soon : 0;
}

# Whether there are as many workers that could use a processor as there are processors; proc_pid_stat(5).
sub computing {
	my $running = 0;
	for my $worker (grep { $_->{check} } values %workers) {
		open my $file, '<', "/proc/$worker->{pid}/stat" or next;
		$running++ if <$file> =~ /\) R /;
	}
	return $running >= $processors;
}

# The one that worked last: so those that are too many stay idle, and go.
sub idle {
	my $latest;
	for my $worker (grep { !$_->{check} } values %workers) {
		$latest = $worker if !$latest || $worker->{since} > $latest->{since};
	}
	return $latest;
}

sub ask {
	my ($worker, $check) = @_;
	$check->{began} = now();
	@$worker{qw(check since stalls)} = ($check, $check->{began}, 0);
	my $line = "$check->{number} $check->{r}{num_connects}\n";
	if (syswrite($worker->{to}, $line) != length $line) {    # it has died: end_overdue will see it
		$worker->{since} = -$check->{limit};
	}
}

sub listen_for {
	my ($seconds) = @_;
	my %by_handle = map { fileno($_->{from}) => $_ } values %workers;
	my @busy = grep { $_->{check} } values %workers;
	$seconds = min($seconds, PART) if @busy;
	my $select = IO::Select->new(map { $_->{from} } values %workers);
	my @ready = %workers ? $select->can_read($seconds) : do { select undef, undef, undef, $seconds; () };
	if (my $lost = stalled(\$looked, $seconds)) { wait_longer($_, $lost) for @busy }
	for my $handle (@ready) {
		my $worker = $by_handle{fileno $handle};
		my $line = readline $handle;
		if (!defined $line) {
			verdict(dismiss($worker), 'down', 'the check ended its process');
		}
		elsif ($line =~ /^(up|down) (-?\d+) (\d+) (.*)$/) {
			my $check = delete $worker->{check};
			$worker->{since} = now();
			$check->{r}{num_connects} = $2;
			verdict($check, $1, $4, $3 / 1000);
			dismiss($worker) if ++$worker->{done} >= WORN;
		}
	}
	return;
}

# For the check of this worker, after a stall of so many seconds; it may have begun since the look before the stall.
sub wait_longer {
	my ($worker, $seconds) = @_;
	$worker->{since} = min($worker->{since} + $seconds, now()) if $worker->{stalls}++ < TIMES;
	return;
}

# What a check found, after so many seconds.
sub verdict {
	my ($check, $state, $message, $seconds) = @_;
	return unless $check;
	if ($check->{agent}) {
		my $took = now() - $check->{began};
		$spent{queue_of($check)} = $check->{began} + $took / SHARE / (keys %workers || 1);
		$check->{failing} = $state eq 'down';
		rest($check);
		return Fairlead::Weights::answered($check->{agent}, $state eq 'up' ? $message : undef, $message);
	}
	my ($v, $r) = @$check{qw(v r)};
	Fairlead::Spawner::note('checked') if $spawned && $first_left == $all;
	if ($state eq 'down' && !$check->{failing}) {
		main::ld_log("The check of $r->{server}:$r->{port} failed: $message (" . main::get_virtual_id_str($v) . ')');
	}
	my ($was, $first) = (is_up($check), !$check->{seen});
	$check->{failing} = $state eq 'down';
	# The table may not be what ldirectord believes: where a command for it failed, the next good check says it anew.
	my $force = $check->{trusts} < $Fairlead::Table::failures && ($state eq 'up' || !$was);
	$check->{trusts} = $Fairlead::Table::failures;
	if (!counts($check, $state)) { }
	elsif ($check->{fallback}) { Fairlead::Fallback::settle($check->{fallback}, $state, $force) }
	elsif ($check->{weighed}) { weigh($check, $state, $message, $force, $seconds) }
	else { settle($v, $r, $state, $force ? { force => 1 } : {}) }
	my $is = is_up($check);
	# These checks may be new and the server dead for long: then the applier may not know why.
	# Where more than this check decides on a server, what it said may be no reason.
	# The table says nothing of a fallback server that nobody needs: that it is up is told, too.
	event($r, $state, $message, now() - $check->{began})
		if (!$is) == ($state eq 'down') && (!$was != !$is || $first && (!$is || $check->{fallback}));
	$check->{wait} = $state eq 'down' && $is ? $check->{retry} : $check->{interval};
	rest($check);
	if ($first_left && !$check->{seen}++ && --$first_left == 0) {
		main::ld_log(sprintf 'All %d servers were checked once, %.1f s after the first check began.', $all,
			now() - $started);
		# The ones before may have stood aside, or not: the applier knows by now.
		event_of_all(@$_) for Fairlead::Weights::standing();
	}
	return;
}

# The same as `settle`, where more than this check decides on a server and its weight.
sub weigh {
	my ($check, $state, $message, $force, $seconds) = @_;
	my ($v, $r, $record) = @$check{qw(v r weighed)};
	my ($was, $kept) = (main::_status_check($v, $r), $record->{kept});
	@$record{qw(fell reason)} = (1, $message) if $state eq 'down';
	if (!Fairlead::Weights::holds($record, $state)) {
		Fairlead::Weights::comes_back($record) if $state eq 'up' && !$was;
		settle($v, $r, $state, $force ? { force => 1 } : {});
	}
	event($r, 'kept', $message, now() - $check->{began}) if $record->{kept} && !$kept;
	# The checks before these may have kept it.
	event($r, 'up', $message, now() - $check->{began})
		if $state eq 'up' && $was && ($kept || !$check->{seen} && $record->{set}{then} eq 'keep');
	for my $free (Fairlead::Weights::to_release($record)) {
		settle(@$free{qw(v r)}, 'down', { force => 1 });
		event($free->{r}, 'down', $free->{reason}, 0);
	}
	my ($turn, $why, @turned) = Fairlead::Weights::turn($record);
	settle(@$_{qw(v r)}, $turn, $turn eq 'down' ? { force => 1 } : {}) for @turned;
	if ($turn) {
		event_of_all($r, $turn eq 'up' ? 'up' : 'aside', $why);
		# What became of the others meanwhile.
		event(@$_) for $turn eq 'up' ? Fairlead::Weights::meanwhile($record) : ();
	}
	Fairlead::Weights::took($record, $seconds) if $state eq 'up' && defined $seconds;
	Fairlead::Weights::refresh($record->{key}) if !!$was != !!main::_status_check($v, $r);
	return;
}

# That a server left, is kept or came back, for the applier (applier/kept/events.py).
sub event {
	my ($r, $state, $message, $seconds) = @_;
	my $failures = $state eq 'up' ? 0 : $r->{failcount} // 0;
	return to_applier($r, $r->{server} =~ s/[\[\]]//gr, $r->{port}, $state, $failures, $seconds, $message);
}

# That the service of this server stands aside, or serves again.
sub event_of_all {
	my ($r, $state, $why) = @_;
	return to_applier($r, '', 0, $state, 0, 0, $why);
}

# No library for it: there is nothing to escape but these two, because a message has printable characters only (`work`).
sub to_applier {
	my ($r, $server, $port, $state, $failures, $seconds, $message) = @_;
	my ($service) = ($r->{receive} // '') =~ /^\(\?:vs(\d+)\)/ or return;
	push @untold, sprintf '{"service":%d,"server":"%s","port":%d,"state":"%s","failures":%d,"seconds":%.3f,"reason":"%s"}',
		$service, $server, $port, $state, $failures, $seconds, $message =~ s/(["\\])/\\$1/gr;
	shift @untold if @untold > UNTOLD;
	return;
}

# What the applier can take now; it may be busy, or be started anew.
sub pass_on {
	return unless @untold;
	$told or socket($told, AF_UNIX, SOCK_DGRAM, 0) or return;
	my $place = pack_sockaddr_un($ENV{FAIRLEAD_EVENTS} // '/run/fairlead/events');
	shift @untold while @untold && defined send $told, $untold[0], MSG_DONTWAIT, $place;
	return;
}

# Whether the server may come back already, where this check was good.
sub counts {
	my ($check, $state) = @_;
	if ($state eq 'down') {
		$check->{missing} = $check->{successes};
		return 1;
	}
	$check->{missing}-- if $check->{missing};
	return 1 if !$check->{missing} || is_up($check);
	main::ld_log(sprintf '%s:%s is well again; good checks until it is back: %d (%s)', @{$check->{r}}{qw(server port)},
		$check->{missing}, main::get_virtual_id_str($check->{v}));
	return 0;
}

# Checks that do not come to an end have failed; workers without work are sent home.
sub end_overdue {
	my $now = now();
	for my $worker (my @all = values %workers) {
		if ($worker->{check}) {
			next if $now < $worker->{since} + $worker->{check}{limit};
			verdict(dismiss($worker), 'down', 'no verdict within ' . ($worker->{check}{limit} - GRACE) . ' s');
		}
		elsif (keys %workers > FEWEST && $now >= $worker->{since} + IDLE) {
			dismiss($worker);
		}
	}
	return;
}

# End a worker; the check that it was at.
sub dismiss {
	my ($worker) = @_;
	delete $workers{$worker->{pid}};
	close $worker->{to};
	close $worker->{from};
	kill 'KILL', $worker->{pid};
	waitpid $worker->{pid}, 0;
	return $worker->{check};
}

# How many workers there may be: half of the memory that is free, at the most.
sub most {
	my $now = now();
	return $most if $now < $most_known + 1;
	$most_known = $now;
	my ($free) = content('/proc/meminfo') =~ /^MemAvailable:\s+(\d+)/m or return FEWEST;
	my $room = int(min($free, free_of_group()) / 2 / WORKER) + keys %workers;
	return $most = $room < FEWEST ? FEWEST : $room > MOST ? MOST : $room;
}

# KiB that the checks may still take of the memory that is set aside for them (/etc/init.d/S01share).
sub free_of_group {
	my ($limit) = content(GROUP . '/memory.max') =~ /^(\d+)$/ or return 'inf';
	my ($taken) = content(GROUP . '/memory.stat') =~ /^anon (\d+)$/m;
	return max(0, $limit - ($taken // 0)) / 1024;
}

# Empty where there is no such file.
sub content {
	my ($path) = @_;
	open my $file, '<', $path or return '';
	local $/;
	return readline($file) // '';
}

sub hire {
	pipe(my $task, my $to) && pipe(my $from, my $answer) or return undef;
	my $parent = $$;
	my $pid = fork;
	if (!defined $pid) {
		main::ld_log("fork: $!");
		return undef;
	}
	if (!$pid) {
		close $_ for $to, $from, map { ($_->{to}, $_->{from}) } values %workers;
		Fairlead::Programs::leave();
		Fairlead::Confined::confine();
		Fairlead::Spawner::leave($parent) if $spawned;
		work($task, $answer);
		POSIX::_exit(0);
	}
	close $task;
	close $answer;
	return $workers{$pid} = { pid => $pid, to => $to, from => $from, since => now(), done => 0 };
}

# A worker: a server's number comes in, ldirectord's own check runs, what it would have done goes out.
sub work {
	my ($task, $answer) = @_;
	$SIG{$_} = 'DEFAULT' for qw(INT QUIT TERM HUP);
	srand;    # after the fork: else all workers choose the same ids for what they ask
	my ($state, $message);
	{
		no warnings 'redefine';
		*main::service_set = sub { ($state, $message) = (@_[2, 4]) };
	}
	$answer->autoflush(1);
	while (defined(my $line = readline $task)) {
		my ($number, $connects) = split ' ', $line;
		my ($v, $r, $agent) = @{$checks[$number]}{qw(v r agent)};
		my $began = now();
		$r->{num_connects} = $connects;
		($state, $message) = ('down', 'the check said nothing');
		eval {
			if ($agent) { ($state, $message) = ('up', Fairlead::Weights::ask($agent)) }
			else { main::_check_real($v, $r) }
			1;
		} or ($state, $message) = ('down', $@);
		$message = substr($message // '-', 0, 200);
		$message =~ s/[^\x20-\x7e]+/ /g;
		my $took = int((now() - $began) * 1000);
		print $answer "$state $r->{num_connects} $took $message\n" or last;
	}
	return;
}

# Checks that begin later than they should are said, not hidden.
sub complain {
	my ($queue, $what, $whom) = @_;
	my ($now, $check) = (now(), $queues{$queue}[0] // return);
	return unless $check->{seen} && defined $check->{began};
	my $late = $now - $check->{began} - $check->{wait};
	return if $late < $check->{wait} || $now - ($complained{$what} // 0) < LATE;
	$complained{$what} = $now;
	main::ld_log(sprintf '%s begin %.0f s later than they should: %d %s wait, %d workers.', $what, $late,
		scalar @{$queues{$queue}}, $whom, scalar keys %workers);
	return;
}

1;
