package Fairlead::Weights;

# Which part of its weight a real server gets, and how many servers a service keeps.
#
# The admin gives each server a weight. Its agent, or the time that its answers take, says how much of it the server
# gets; one that came back after it was down gets more from step to step. Health goes first: an agent never brings a
# server back. ldirectord knows nothing of all this: it writes the whole weight, and Fairlead::Table asks `of` what to
# write instead.
#
# lbconfig/render/ldirectord.py says which services, in comments:
#     # balance -t 192.0.2.1:80 id=7 agent=text port=3333 interval=5 floor=10 slow=60 least=2 then=keep again=3
#
# Shares change all the time, and each write of the table is a program that is started. So what changes is collected for
# a moment and written together, or with whatever is written before, as when a server leaves or comes back. That waits
# for nothing, and neither does what an agent says in words ("drain").
#
# What is known is kept in a file for who shows it, and for the next ldirectord: each apply starts one.

use strict;
use warnings;
no warnings 'once';    # ldirectord's variables

use List::Util qw(max min sum0);
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

use Fairlead::Table ();
use Fairlead::Web ();
use Fairlead::Wire qw(begin dial put line some LONGEST);

use constant FILE => '/run/fairlead/weights';
use constant {
	FLOOR => 10,       # per cent: less is never written (lbconfig/wanted/table.py relies on it)
	QUICKEST => 25,    # per cent that the slowest server gets at least, by the time of its answers
	SMOOTH => 0.2,     # what the newest of these times, or of an agent's figures, counts in their average
	SETTLED => 1,      # point: an average as near as this to the newest figure is that figure
	CHANGES => 5,      # points: a smaller change is not written
	TURNS => 10,       # points: where servers take turns, shares are multiples of it
	GONE => 3,         # questions without an answer after which an agent counts as gone
	PATIENCE => 2,     # seconds for its answer
	STEPS => 20,       # of a slow start
	COLLECT => 1,      # seconds in which changes of shares are collected
	OFTEN => 2,        # seconds between two writes of the file
};

my $settings;     # by Table's key of the service
my %servers;      # "KEY SERVER" -> { v, r, set, share, heard, said, silent, seconds, back, fell, reason, written, kept }
my %by_service;   # key -> the same, in the order of ldirectord's file
my %aside;        # key -> servers that must be well before the service comes back
my %slowly;       # those in their slow start, by themselves: the loop turns for each answer of any server
my (%changed, $write_at);    # services (keys) whose weights are to be written, and by when
my ($to_tell, $told_at, $remembered) = (0, 0, 0);
my $looked_at = 0;    # at those in their slow start

sub now { return clock_gettime(CLOCK_MONOTONIC) }

sub key_of {
	my ($v) = @_;
	return Fairlead::Table::service_of("$v->{proto} " . main::get_virtual_option($v));
}

# The whole file, once: before it becomes another one.
sub read_all {
	return if $settings;
	$settings = {};
	open my $file, '<', $main::CONFIG // '' or return;
	while (<$file>) {
		# A name of a service is a comment as well, at the beginning of a line.
		my ($service, $words) = /^    # balance (-[tuf] \S+(?: -6)?) (\S.*\S)\s*$/ or next;
		$settings->{Fairlead::Table::service_of($service)} = { map { split /=/, $_, 2 } split ' ', $words };
	}
	return;
}

# Of a service: { id, agent, port, … }, undef where its weights are the admin's alone.
sub settings {
	my ($key) = @_;
	read_all();
	remember() if %$settings && !$remembered++;
	return $settings->{$key};
}

# What the ldirectord before this one knew.
sub remember {
	open my $file, '<', FILE or return;
	my %keys = map { $settings->{$_}{id} => $_ } keys %$settings;
	while (<$file>) {
		my ($id, $server, undef, $share, $said, $back, $state) = split;
		next unless defined $state && defined $keys{$id} && $share =~ /^(?:-|\d+(?:\.\d+)?)$/;
		my $known = $servers{"$keys{$id} $server"} = { share => 100, said => $said eq '-' ? '' : $said, silent => 0 };
		@$known{qw(share heard)} = ($share, 1) if $share ne '-';
		$known->{back} = $back if $back ne '-';
	}
	return;
}

# A server is checked from now on. Its record; undef where nothing of this is asked for.
sub watch {
	my ($v, $r) = @_;
	my $key = key_of($v);
	my $set = settings($key) or return undef;
	my $record = $servers{"$key $r->{server}:$r->{port}"} //= { share => 100, said => '', silent => 0 };
	@$record{qw(v r set key)} = ($v, $r, $set, $key);
	@$record{qw(share heard said)} = (100, 0, '') if $set->{agent} eq 'off';
	delete $record->{back} unless $set->{slow};
	$slowly{$record} = $record if defined $record->{back};
	$record->{written} = int(100 * Fairlead::Table::weight_of($key, "$r->{server}:$r->{port}") / ($r->{weight} || 1) + 0.5);
	push @{$by_service{$key}}, $record;
	$to_tell = 1;
	return $record;
}

# Once all servers are there: a service of which none is up begins as one that has too few.
sub begin_watching {
	for my $key (keys %by_service) {
		my ($first, @others) = @{$by_service{$key}};
		next unless $first->{set}{then} eq 'aside' && $first->{set}{least} > 1;
		$aside{$key} = $first->{set}{least} unless grep { up($_) } $first, @others;
	}
	refresh($_) for keys %by_service;
	return;
}

sub up {
	my ($record) = @_;
	return main::_status_check(@$record{qw(v r)});
}

# --- weights ---

# What is to be written for a server that is up. `present`: what the table has, while ldirectord starts.
sub of {
	my ($key, $server, $weight, $present) = @_;
	settings($key) or return $weight;
	return $present if $present;
	my $record = $servers{"$key $server"};
	return $weight unless $record && $record->{set};
	my $share = share($record);
	$to_tell = 1 if ($record->{written} // -1) != $share;
	$record->{written} = $share;
	return $share && max(1, int($weight * $share / 100 + 0.5));
}

# Per cent of its weight. Weighted round robin gives the heaviest server its whole lead in one go and takes turns after
# that: with weights 100 and 57 it gets 43 clients in a row, with 100 and 60 four.
sub share {
	my ($record) = @_;
	my ($set, $written) = @$record{qw(set written)};
	return 0 if $record->{said} && grep { up($_) && !$_->{said} } @{$by_service{$record->{key}} // []};
	my $share = $set->{agent} eq 'response' ? by_time($record) : $record->{share};
	if (defined $record->{back}) {
		my $part = (now() - $record->{back}) / $set->{slow};
		if ($part >= 1) { delete $record->{back}; delete $slowly{$record} }
		else { $share = $share * int($part * STEPS + 0.001) / STEPS }
	}
	$share = max($set->{floor}, FLOOR, $share);
	my $turns = $record->{v}{scheduler} eq 'wrr' ? TURNS : 1;
	return $written if $written && $share < 100 && abs($share - $written) < CHANGES;
	return max($set->{floor}, FLOOR, $turns * int($share / $turns + 0.5));
}

# The quickest gets all of its weight.
sub by_time {
	my ($record) = @_;
	my @times = map { $_->{seconds} // () } grep { up($_) } @{$by_service{$record->{key}}};
	return 100 unless @times && $record->{seconds};
	return max(QUICKEST, 100 * min(@times) / $record->{seconds});
}

# Those of this service whose weight is not what it should be.
sub differing {
	my ($key) = @_;
	return grep { $_->{r}{weight} && up($_) && ($_->{written} // 100) != share($_) } @{$by_service{$key}};
}

# Have that written within a moment, where there is any.
sub refresh_soon {
	my ($key) = @_;
	return unless differing($key);
	$changed{$key} = 1;
	$write_at //= now() + COLLECT;
	return;
}

# Write what has become another one, and tell what became of the servers.
sub refresh {
	my ($key) = @_;
	delete $changed{$key};
	$to_tell = 1;
	for my $record (differing($key)) {
		my ($v, $r) = @$record{qw(v r)};
		# The weight in it is the whole one: Fairlead::Table asks `of`.
		main::system_wrapper("$main::IPVSADM -e $v->{proto} " . main::get_virtual_option($v)
			. " -r $r->{server}:$r->{port} $r->{forw} -w $r->{weight}");
	}
	return;
}

# A server that was down is about to get clients again.
sub comes_back {
	my ($record) = @_;
	return unless delete $record->{fell};
	if ($record->{set}{slow}) {
		$record->{back} = now();
		$slowly{$record} = $record;
	}
	delete $record->{seconds};
	return;
}

sub took {
	my ($record, $seconds) = @_;
	return unless $record->{set}{agent} eq 'response';
	my $before = $record->{seconds};
	$record->{seconds} = defined $before ? $before + SMOOTH * ($seconds - $before) : $seconds;
	refresh_soon($record->{key});
	return;
}

# Seconds until there is something to do.
sub soon {
	my @waits;
	push @waits, max(0, $looked_at + COLLECT - now()) if %slowly;
	push @waits, OFTEN if $to_tell;
	push @waits, max(0, $write_at - now()) if defined $write_at;
	return min(@waits);
}

# Whatever the time alone changes. `writes`: whether the table is about to be written in any case.
sub step {
	my ($writes) = @_;
	if (%slowly && now() >= $looked_at + COLLECT) {
		$looked_at = now();
		my %services = map { $_->{key} => 1 } values %slowly;
		for my $key (grep { differing($_) } keys %services) {
			$changed{$key} = 1;
			$write_at = $looked_at;
		}
	}
	if (defined $write_at && ($writes || now() >= $write_at)) {
		refresh($_) for keys %changed;
		undef $write_at;
	}
	write_down() if $to_tell && now() >= $told_at + OFTEN;
	return;
}

# --- agents ---

# In a worker: what the agent of this server says, as `meaning` has it. Dies with a sentence.
sub ask {
	my ($record) = @_;
	my ($set, $r) = @$record{qw(set r)};
	begin(PATIENCE);
	my $socket = dial({ %{$record->{v}}, service => 'agent', checkport => $set->{port} }, { %$r, checkport => $set->{port} });
	if ($set->{agent} eq 'http') {
		put($socket, "GET /load HTTP/1.0\r\nHost: $r->{server}\r\nUser-Agent: fairlead\r\nConnection: close\r\n\r\n");
		my ($status) = Fairlead::Web::head($socket);
		die "$status\n" unless $status =~ /^200/;
	}
	my $text = '';
	while ($text !~ /\n/ && length $text < 256 && (my $bytes = some($socket, 256)) ne '') { $text .= $bytes }
	my ($line) = $text =~ /^([^\r\n]*)/;
	return meaning($set->{agent}, $line);
}

# "SHARE WORD": per cent, and "drain", "maint", "down" … or "-". The text of an agent has the grammar of HAProxy's
# agent-check and of Loadbalancer.org's feedback agent ("75%"); the page is that of Kemp's: 0 idle to 100 busy, 101 down,
# 102 switched off by its admin.
sub meaning {
	my ($kind, $line) = @_;
	my ($share, $said) = (100, '-');
	if ($kind eq 'http') {
		my ($load) = $line =~ /^\s*(\d{1,3})\s*$/;
		die "the agent says nothing that is known: " . Fairlead::Wire::shown($line) . "\n" unless defined $load && $load <= 102;
		return $load == 101 ? '100 down' : $load == 102 ? '100 maint' : 100 - $load . ' -';
	}
	my ($words) = split /#/, $line, 2;    # what comes after it is for people
	my @words = split /[\s,]+/, lc($words // '');
	for my $word (@words) {
		if ($word =~ /^(?:weight:)?(\d{1,3})%$/ && $1 <= 100 || $word =~ /^weight:(\d{1,3})$/ && $1 <= 100) { $share = $1 }
		elsif ($word =~ /^(drain|maint|down|stopped|fail(?:ed)?)$/) { $said = $1 }
		elsif ($word !~ /^(?:up|ready|maxconn:\d+)$/) { @words = (); last }
	}
	die "the agent says nothing that is known: " . Fairlead::Wire::shown($line) . "\n" unless @words;
	return "$share $said";
}

# What the newest figure of an agent makes of its server's share: an average with what it said before. Every server that
# gets less load says so some seconds later, when the others have had too much; each figure by itself would send the
# clients from one to the other and back. What is said of a server without clients, by word or as it is down, tells
# nothing of them, so the next figure counts alone.
sub averaged {
	my ($record, $figure, $word) = @_;
	return $figure if $word || $record->{said} || !$record->{heard} || !up($record);
	my $average = $record->{share} + SMOOTH * ($figure - $record->{share});
	return abs($figure - $average) < SETTLED ? $figure : $average;
}

# What came of a question: undef where nothing did, for this reason.
sub answered {
	my ($record, $answer, $reason) = @_;
	my ($r, $before, $share, $heard) = @$record{qw(r said share heard)};
	if (defined $answer && $answer =~ /^(\d+) (\S+)$/) {
		my $said = $2 eq '-' ? '' : $2;
		main::ld_log("The agent of $r->{server} says $said: no new connections for it.") if $said && $said ne $before;
		@$record{qw(share heard said silent complained)} = (averaged($record, $1, $said), 1, $said, 0, 0);
	}
	else {
		main::ld_log("The agent of $r->{server}:$record->{set}{port} is not heard: $reason") unless $record->{complained}++;
		return if ++$record->{silent} < GONE;
		@$record{qw(share heard said)} = (100, 0, '');
	}
	$to_tell = 1 if $record->{share} != $share || !$record->{heard} != !$heard;
	my $write = $record->{said} eq $before ? \&refresh_soon : \&refresh;
	$write->($record->{key});
	return;
}

# --- the fewest servers ---

# Whether what a check found is not to be followed now, for the number of servers that are left.
sub holds {
	my ($record, $state) = @_;
	my $set = $record->{set};
	return 0 unless $set->{least} && $set->{then} ne 'tell';
	return $set->{then} eq 'keep' ? keeps($record, $state) : stands_aside($record, $state);
}

# The last ones stay, though they fail.
sub keeps {
	my ($record, $state) = @_;
	my ($v, $r) = @$record{qw(v r)};
	if ($state eq 'up') {
		$to_tell = 1 if delete $record->{kept};
		return 0;
	}
	return 0 if !up($record) || !$record->{kept} && $r->{failcount} + 1 < $v->{failurecount};
	return 0 if well($record) >= $record->{set}{least};
	main::ld_log("$r->{server}:$r->{port} fails and stays: no others are left (" . main::get_virtual_id_str($v) . ')')
		unless $record->{kept};
	$record->{kept} = $to_tell = 1;
	return 1;
}

# How many others are up and do not fail.
sub well {
	my ($record) = @_;
	return scalar grep { $_ != $record && up($_) && !$_->{kept} } @{$by_service{$record->{key}}};
}

# Those that were kept for want of others, and can go now.
sub to_release {
	my ($record) = @_;
	my @free = grep { $_->{kept} && well($_) >= $_->{set}{least} } @{$by_service{$record->{key}}};
	delete @$_{qw(kept)} for @free;
	return @free;
}

# With too few the service is as if all were down. True where the answer of this check changes nothing by itself.
sub stands_aside {
	my ($record, $state) = @_;
	my $key = $record->{key};
	return 0 unless $aside{$key};
	my $well = $state eq 'up';
	$to_tell = 1 if $well xor $record->{well};
	$record->{well} = $well;
	return 1;
}

# What is to be done because of what was found ("up" or "down"), why, and with which servers.
sub turn {
	my ($record) = @_;
	my ($key, $set) = @$record{qw(key set)};
	return unless $set->{then} eq 'aside' && $set->{least};
	my @all = @{$by_service{$key}};
	my $name = main::get_virtual_id_str($record->{v});
	if ($aside{$key}) {
		my @well = grep { $_->{well} } @all;
		return if @well < $aside{$key};
		main::ld_log('Of ' . @all . ' servers ' . @well . " are well: they serve again ($name)");
		delete $aside{$key};
		$to_tell = 1;
		return ('up', counted(\@well, \@all), @well);
	}
	my @up = grep { up($_) } @all;
	return if !@up || @up >= $set->{least};
	main::ld_log('Of ' . @all . ' servers ' . @up . " are up, and the least is $set->{least}: none serves ($name)");
	$aside{$key} = max($set->{again}, $set->{least});
	$_->{well} = up($_) for @all;
	$to_tell = 1;
	return ('down', counted(\@up, \@all) . ", at least $set->{least} must be", @up);
}

sub counted {
	my ($some, $all) = @_;
	return @$some . ' of ' . @$all . ' servers are well';
}

# Of the others of a service that serves again, as far as they have been checked: [server, state, reason, seconds].
sub meanwhile {
	my ($record) = @_;
	return map { [$_->{r}, up($_) ? ('up', 'the service serves again') : ('down', $_->{reason}), 0] }
		grep { $_ != $record && (up($_) || defined $_->{reason}) } @{$by_service{$record->{key}}};
}

# Of each service that may stand aside: [one of its servers, "aside" or "up", why].
sub standing {
	my @found;
	for my $key (keys %by_service) {
		my ($first, @others) = @{$by_service{$key}};
		my ($set, @up) = ($first->{set}, grep { $_->{well} || up($_) } $first, @others);
		next unless $set->{then} eq 'aside' && $set->{least};
		my $why = counted(\@up, $by_service{$key});
		push @found, [$first->{r}, $aside{$key} ? ('aside', "$why, at least $aside{$key} must be") : ('up', $why)];
	}
	return @found;
}

# --- who shows it ---

# "ID SERVER WRITTEN SHARE WORD BACK STATE"; SERVER "*": of the service; SHARE "-": its agent was not heard.
sub write_down {
	($to_tell, $told_at) = (0, now());
	my @lines = map { "$settings->{$_}{id} * 0 0 - - aside\n" } keys %aside;
	for my $record (map { @$_ } values %by_service) {
		my $r = $record->{r};
		my $state = $record->{kept} ? 'kept' : up($record) ? 'up' : $aside{$record->{key}} && $record->{well} ? 'well' : 'down';
		push @lines, join(' ', $record->{set}{id}, "$r->{server}:$r->{port}", $record->{written} // 100,
			$record->{heard} ? 0 + sprintf('%.1f', $record->{share}) : '-',
			$record->{said} || '-', $record->{back} // '-', $state) . "\n";
	}
	my $temporary = FILE . '.new';
	if (open my $file, '>', $temporary) {
		rename $temporary, FILE if print {$file} @lines and close $file;
	}
	return;
}

1;
