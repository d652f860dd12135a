package Fairlead::Spawner;

# Loads Perl, its libraries and ldirectord once, and forks: PERL5OPT='-Mfairlead -MFairlead::Spawner' ldirectord FILE
# A start of ldirectord takes four seconds on a slow processor, nearly all of it to load Perl. Here the program is
# compiled, never runs, and waits for orders on a socket beside FILE. For each order a child goes on into the program
# as it comes. The applier has a new file read while the old checks still run, changes the IPVS table, and then the
# child that has read it goes on. Who is killed is started again, from FILE.
#
# One line in, one line out, on a connection each (applier/parts/director.py is the other end):
#   read PATH   a child reads this file and waits for its turn    -> "good" or "bad TEXT"
#   start       check by FILE; the waiting child, if it has read the same text -> "run" or "bad TEXT"
#   stop        end the checks, with all that they have started   -> "down"
#   state       -> "STATE PID SECONDS": down; again: down, to be started again; starting; watching; or checked once a
#                  check has come to its end

use strict;
use warnings;

use Errno qw(EINTR);
use IO::Handle ();
use IO::Select ();
use POSIX ();
use Socket qw(AF_UNIX SOCK_STREAM SOMAXCONN pack_sockaddr_un);
use Time::HiRes qw(clock_gettime sleep CLOCK_MONOTONIC);

use Fairlead::Table ();
use Fairlead::Weights ();
use Fairlead::Words ();

use constant {
	PRCTL => 157,            # its number on x86-64, and of PR_SET_PDEATHSIG
	PDEATHSIG => 1,
	ENDS => 5,               # seconds that a killed process group may take to be gone
	AGAIN => 1,              # seconds before checks that ended by themselves are started again
	HEARD => 1000,           # characters of what a child said that are passed on
	ASKS => 5,               # seconds in which whoever connects must have said what he wants
};

my ($file, $wanted_mark, $listener, $ended_from, $ended_to);
my ($current, $next);      # children: { pid, text, since, state, tell, notes, output, said, client }
my $wanted = 0;            # whether checks should run
my $due;                   # when they are to be started again
my $since = now();         # of the last end
my %asking;                # connections that have said nothing yet: fileno -> { handle, since }
my ($tell, $order);        # in a child: its pipes to and from the parent

sub now { return clock_gettime(CLOCK_MONOTONIC) }

# Nobody outlives its parent, neither a check nor an ipvsadm that writes the table.
sub end_with_parent {
	my ($parent) = @_;
	syscall(PRCTL, PDEATHSIG, 9, 0, 0, 0);
	POSIX::_exit(1) if getppid() != $parent;
	return;
}

# In a worker of a child: it has nothing to say to this process.
sub leave {
	my ($parent) = @_;
	close $_ for grep { $_ } $tell, $order;
	end_with_parent($parent);    # after its user has changed, which makes the kernel forget it
	return;
}

# INIT: the program is compiled then, and has not begun. PERL5OPT names this module last, so the others are in place.
INIT {
	die "this ldirectord has no ld_start\n" unless main->can('ld_start');
	my $start = \&main::ld_start;
	no warnings 'redefine';
	*main::ld_start = sub { wait_for_turn(); $start->(@_) };
	attend();    # only a child returns, into the program
}

# --- a child ------------------------------------------------------------------------------------------

# Replaces ld_start's beginning: the file is read, the table is not touched yet.
sub wait_for_turn {
	Fairlead::Table::tunnels();    # of the file as it is now
	Fairlead::Words::read_all();
	Fairlead::Weights::read_all();
	note('good');
	my $word = readline $order;
	POSIX::_exit(0) unless defined $word && $word eq "go\n";
	open(STDOUT, '>&', \*Fairlead::Spawner::LOG) && open(STDERR, '>&STDOUT') or POSIX::_exit(1);
	$0 = "ldirectord: checks $file";
	return;
}

# What a child has come to: Fairlead::Rounds says when it begins to check, and when the first check has ended.
sub note {
	my ($state) = @_;
	syswrite $tell, "$state\n" if $tell;
	return;
}

# Returns in the child only, which is to go on into the program.
sub spawn {
	my ($path) = @_;
	my $text = content($path) // return (undef, "$path: $!");
	pipe(my $notes, my $to_parent) && pipe(my $from_parent, my $to_child) && pipe(my $output, my $said)
		or return (undef, "no pipe: $!");
	my $parent = $$;
	my $pid = fork;
	return (undef, "no process: $!") if !defined $pid;
	if (!$pid) {
		POSIX::setpgid(0, 0);
		end_with_parent($parent);
		$SIG{$_} = 'DEFAULT' for qw(CHLD TERM);
		srand;
		open(STDIN, '<', '/dev/null');
		open(STDOUT, '>&', $said) && open(STDERR, '>&', $said) or POSIX::_exit(1);
		close $_ for $notes, $to_child, $output, $said, $listener, $ended_from, $ended_to,
			(map { $_->{handle} } values %asking), (map { handles($_) } grep { $_ } $current, $next);
		($tell, $order) = ($to_parent, $from_parent);
		$0 = "ldirectord: reads $path";
		@ARGV = ($path, 'start');
		return ('child');
	}
	close $_ for $to_parent, $from_parent, $said;
	$to_child->autoflush(1);
	return {
		pid => $pid, text => $text, since => now(), state => 'reading', said => '', heard => '',
		tell => $to_child, notes => $notes, output => $output,
	};
}

sub handles {
	my ($child) = @_;
	return grep { $_ } @$child{qw(tell notes output client)};
}

# --- the parent ---------------------------------------------------------------------------------------

sub attend {
	($file) = @ARGV or die "a file is needed\n";
	($wanted_mark = $file) =~ s/\.cf$/.wanted/;
	open(LOG, '>&', \*STDOUT) or die "log: $!\n";
	LOG->autoflush(1);
	$listener = listen_at($file =~ s/\.cf$/.socket/r);
	pipe($ended_from, $ended_to) or die "no pipe: $!\n";
	$_->blocking(0) for $ended_from, $ended_to;
	$SIG{CHLD} = sub { syswrite $ended_to, 'x' };
	$SIG{TERM} = sub { end_group($current); end_group($next); POSIX::_exit(0) };
	$SIG{PIPE} = 'IGNORE';
	$0 = "ldirectord: waits for orders about $file";
	if (-e $wanted_mark) {    # it was killed while checks ran, which have ended with it
		$wanted = 1;
		$due = now();
	}
	while (1) {
		return if look_on();
	}
}

# One turn of the loop. True in a child.
sub look_on {
	my $select = IO::Select->new($listener, $ended_from, map { $_->{handle} } values %asking);
	for my $child (grep { $_ } $current, $next) {
		$select->add(grep { $_ } @$child{qw(notes output)});
	}
	my $wait = defined $due ? $due - now() : 60;
	for my $handle ($select->can_read($wait > 0 ? $wait : 0)) {
		my $number = fileno $handle;
		if (!defined $number) { next }    # closed meanwhile
		elsif ($handle == $listener) { admit() }
		elsif ($handle == $ended_from) { sysread $handle, my $bytes, 4096 }
		elsif ($asking{$number}) { return 1 if obey($number) }
		else { hear($handle) }
	}
	for my $number (grep { $asking{$_}{since} + ASKS < now() } keys %asking) {
		close delete($asking{$number})->{handle};
	}
	while ((my $pid = waitpid(-1, POSIX::WNOHANG())) > 0) {
		gone($pid, $?);
	}
	if (defined $due && $due <= now()) {
		$due = undef;
		my $on_its_way = $current || ($next && $next->{begin});
		return 1 if $wanted && !$on_its_way && start();
	}
	return 0;
}

sub listen_at {
	my ($path) = @_;
	unlink $path;
	socket(my $socket, AF_UNIX, SOCK_STREAM, 0) or die "socket: $!\n";
	my $mask = umask 0177;
	bind($socket, pack_sockaddr_un($path)) or die "$path: $!\n";
	umask $mask;
	listen($socket, SOMAXCONN) or die "$path: $!\n";
	return $socket;
}

sub admit {
	accept(my $handle, $listener) or return;
	$asking{fileno $handle} = { handle => $handle, since => now() };
	return;
}

# True in a child.
sub obey {
	my ($number) = @_;
	my $handle = delete($asking{$number})->{handle};
	my $got = sysread $handle, my $line, 4096;
	return 0 unless $got && $line =~ s/\n\z//;
	my ($verb, $path) = split / /, $line, 2;
	if ($verb eq 'state') { answer($handle, state()) }
	elsif ($verb eq 'stop') { stop(); answer($handle, 'down') }
	elsif ($verb eq 'start') { return start($handle) }
	elsif ($verb eq 'read') { return prepare($path, $handle) }
	else { answer($handle, 'bad unknown order') }
	return 0;
}

sub answer {
	my ($handle, $line) = @_;
	return unless $handle;
	syswrite $handle, "$line\n";
	close $handle;
	return;
}

sub state {
	return ($wanted ? 'again' : 'down') . ' 0 ' . int(now() - $since) unless $current;
	return "$current->{state} $current->{pid} " . int(now() - $current->{since});
}

# True in a child.
sub prepare {
	my ($path, $client) = @_;
	$due = now() + AGAIN if $next && $next->{begin};    # checks that were about to start are not forgotten
	drop_next('another file is read now');
	($next, my $why) = spawn($path);
	return 1 if ($next // '') eq 'child';
	if (!$next) {
		answer($client, "bad $why");
		return 0;
	}
	@$next{qw(client begin)} = ($client, 0);
	return 0;
}

# True in a child.
sub start {
	my ($client) = @_;
	$wanted = 1;
	if (open my $mark, '>', $wanted_mark) { close $mark }
	else { print LOG "$wanted_mark: $!\n" }
	if ($current) {
		answer($client, 'run');
		return 0;
	}
	my $text = content($file);
	if (!$next || $next->{state} ne 'good' || !defined $text || $next->{text} ne $text) {
		return 1 if prepare($file, $client);
		$next->{begin} = 1 if $next;
		$due = now() + AGAIN if !$next;
		return 0;
	}
	go($client);
	return 0;
}

sub go {
	my ($client) = @_;
	($current, $next) = ($next, undef);
	print { $current->{tell} } "go\n";
	@$current{qw(state since)} = ('starting', now());
	answer($client, 'run');
	return;
}

sub stop {
	$wanted = 0;
	$due = undef;
	unlink $wanted_mark;
	drop_next('the checks are stopped') if $next && $next->{begin};    # it would go on by itself
	end_group($current) if $current;
	($current, $since) = (undef, now());
	return;
}

sub drop_next {
	my ($why) = @_;
	return unless $next;
	answer(delete $next->{client}, "bad $why");
	end_group($next);
	$next = undef;
	return;
}

# A child with all that it has started.
sub end_group {
	my ($child) = @_;
	return unless $child;
	kill 'KILL', -$child->{pid};
	waitpid $child->{pid}, 0;
	close $_ for handles($child);
	my $until = now() + ENDS;
	sleep 0.01 while kill(0, -$child->{pid}) && now() < $until;
	return;
}

# A child says what it has come to, or what is wrong.
sub hear {
	my ($handle) = @_;
	my ($child) = grep { $_ && (grep { $_ && $_ == $handle } @$_{qw(notes output)}) } $current, $next or return;
	my $got = sysread $handle, my $text, 4096;
	if (!$got) {
		return if !defined $got && $! == EINTR;
		my ($which) = grep { $child->{$_} && $child->{$_} == $handle } qw(notes output);
		close delete $child->{$which};
		return;
	}
	if ($child->{output} && $handle == $child->{output}) {    # which may be at its end before the notes are
		print LOG $text;
		$child->{said} = substr $child->{said} . $text, -(HEARD);
		return;
	}
	$child->{heard} .= $text;
	while ($child->{heard} =~ s/^(\w+)\n//) {
		$child->{state} = $1;
		next unless $1 eq 'good' && $next && $child == $next;
		my $client = delete $child->{client};
		if ($child->{begin}) { go($client) }
		else { answer($client, 'good') }
	}
	return;
}

# A child has ended by itself.
sub gone {
	my ($pid, $status) = @_;
	my $how = $status & 127 ? 'signal ' . ($status & 127) : 'exit code ' . ($status >> 8);
	if ($next && $next->{pid} == $pid) {
		hear($next->{output}) if $next->{output} && IO::Select->new($next->{output})->can_read(0);
		my $said = join ' ', split ' ', $next->{said};
		my $again = $next->{begin};
		drop_next($said || $how);
		$due = now() + AGAIN if $again && $wanted;
	}
	elsif ($current && $current->{pid} == $pid) {
		print LOG "The health checks ended with $how; they start again.\n";
		end_group($current);
		($current, $since, $due) = (undef, now(), $wanted ? now() + AGAIN : undef);
	}
	return;
}

sub content {
	my ($path) = @_;
	open my $handle, '<', $path or return undef;
	local $/;
	return readline($handle) // '';
}

1;
