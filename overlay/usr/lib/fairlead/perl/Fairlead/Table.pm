package Fairlead::Table;

# The IPVS table as ldirectord knows it. ldirectord runs ipvsadm twice before every change, to read the whole table,
# and once for the change: with 50 servers its start takes most of a minute. While it runs nobody else writes the
# table, so it is read once here, and kept up to date from ldirectord's own commands. These wait until `flush`,
# which gives all of them to one ipvsadm.

use strict;
use warnings;

use POSIX ();

use Fairlead::Weights ();

use constant FUNCTIONS => qw(ld_read_ipvsadm system_wrapper add_real_server _remove_service ld_start ld_log);

my $table;      # as ld_read_ipvsadm describes it; undef: not read yet, or not to be trusted any more
my @waiting;    # commands for ipvsadm, without its name
my $tunnels;    # options of tunnels that are not IP in IP, by service and server; undef: not read yet
our $failures = 0;    # how often the table was not as we thought
our $starting = 1;    # until the first check begins
my ($read, $run, $add_real_server, $remove);    # ldirectord's own functions

sub install {
	no warnings 'redefine';
	($read, $run, $add_real_server) = (\&main::ld_read_ipvsadm, \&main::system_wrapper, \&main::add_real_server);
	$remove = \&main::_remove_service;
	*main::ld_read_ipvsadm = \&known;
	*main::_remove_service = \&remove;
	*main::system_wrapper = \&command;
	*main::add_real_server = sub {
		# The list in which ldirectord looks for servers with the same identity, from its first entry on, for each
		# one that it reads. Our identities are unique (lbconfig/render/ldirectord.py), so it stays empty.
		local @main::REAL;
		return $add_real_server->(@_);
	};
}

# Instead of _remove_service. Where a server is not in the table, ldirectord takes another one for it: that of the same
# address at the port of the service.
sub remove {
	my ($v, $server, $forward, $tag) = @_;
	my $leaves = $tag eq 'fallback' || ($v->{quiescent} // '') eq 'no';
	return if $leaves && !has(Fairlead::Weights::key_of($v), $server);
	return $remove->(@_);
}

# The table; ld_start gets a copy, because it crosses off what it has seen.
sub known {
	$table //= $read->();
	my $caller = (caller(1))[3] // '';
	return $table if $caller ne 'main::ld_start';
	return { map { $_ => { %{$table->{$_}}, real => { %{$table->{$_}{real}} } } } keys %$table };
}

# Replaces system(): commands of ipvsadm wait, others run.
sub command {
	my @words = @_;
	return $run->(@words) unless @words == 1 && $words[0] =~ /^\Q$main::IPVSADM\E\s+(.*\S)\s*$/;
	my $line = $1;
	push @waiting, $line if note(\$line);
	return 0;
}

# Do to our copy what the kernel will do. False for what is not to be done; a line that would lose something is
# completed.
sub note {
	my ($line) = @_;
	my ($verb, $rest) = $$line =~ /^-([AEDaed])\s+(.*)$/ or return 1;
	my $key = service_of($rest) or return 1;
	# The applier defines services, with flags that ldirectord has never heard of and that its -E would switch off.
	return 0 if $verb eq 'E' && $table->{$key};
	if ($verb eq 'A' || $verb eq 'E') {
		$table->{$key} //= { scheduler => $rest =~ /\s-s\s+(\S+)/ ? $1 : 'wlc', real => {} };
	}
	elsif ($verb eq 'D') {
		delete $table->{$key};
	}
	elsif (my ($server) = $rest =~ /\s-r\s+(\S+)/) {
		my $real = $table->{$key}{real} //= {};
		if ($verb eq 'd') {
			# ldirectord takes a server of weight 0 for a dead one when it starts. It may be one that drains, and what
			# is open to it must go on.
			return 0 if $starting && $real->{$server} && !$real->{$server}{weight};
			delete $real->{$server};
		}
		else {
			my %forward = (-m => 'masq', -g => 'gate', -i => 'ipip');
			my ($method) = $rest =~ /\s(-[mgi])(?:\s|$)/;
			# ldirectord quiesces a server without naming its thresholds, and the kernel would forget them.
			if ($real->{$server} && $rest !~ /\s-x\s/) {
				my $limits = " -x $real->{$server}{'u-threshold'} -y $real->{$server}{'l-threshold'}";
				$$line .= $limits;
				$rest .= $limits;
			}
			if (($method // '') eq '-i' && (my $options = tunnels()->{"$key $server"})) {
				$$line =~ s/\s-i(?=\s|$)/ -i $options/;
			}
			# One statement each: in a list, $1 would be for all of them what the last match found.
			my ($weight) = $rest =~ /\s-w\s+(\d+)/;
			if ($weight) {
				$weight = Fairlead::Weights::of($key, $server, $weight, $starting && weight_of($key, $server));
				$$line =~ s/\s-w\s+\d+/ -w $weight/;
			}
			my ($upper) = $rest =~ /\s-x\s+(\d+)/;
			my ($lower) = $rest =~ /\s-y\s+(\d+)/;
			$real->{$server} = {
				forward => $forward{$method // '-g'},
				weight => $weight // 1,
				'u-threshold' => $upper // 0,
				'l-threshold' => $lower // 0,
			};
		}
	}
	return 1;
}

# Whether a server is in the table.
sub has {
	my ($key, $server) = @_;
	my $service = known()->{$key} // return 0;
	return exists $service->{real}{$server} ? 1 : 0;
}

# Of a server in the table; 0 where it is not there.
sub weight_of {
	my ($key, $server) = @_;
	my $real = ($table->{$key} // {})->{real} // {};
	return ($real->{$server} // {})->{weight} // 0;
}

# The key of the table for what a line of ipvsadm begins with.
sub service_of {
	my ($line) = @_;
	my ($kind, $place) = $line =~ /^(-[tuf])\s+(\S+)/ or return;
	my %protocols = (-t => 'tcp', -u => 'udp', -f => $line =~ /\s-6(\s|$)/ ? 'fwm6' : 'fwm');
	return "$place $protocols{$kind}";
}

# ldirectord knows IP in IP only. Its file has the others in comments (lbconfig/render/ldirectord.py):
#     # tunnel -t 192.0.2.1:80 -r 10.0.0.1:80 --tun-type gre --tun-nocsum
sub tunnels {
	return $tunnels if $tunnels;
	$tunnels = {};
	if (open my $file, '<', $main::CONFIG) {
		while (<$file>) {
			my ($service, $server, $options) = /^    # tunnel (.*) -r (\S+) (--tun-.*\S)\s*$/ or next;
			$tunnels->{service_of($service) . " $server"} = $options;
		}
	}
	else {
		main::ld_log("$main::CONFIG: $!");
	}
	return $tunnels;
}

# Whether there is anything to carry out.
sub is_waiting { return @waiting > 0 }

# Carry out what waits. ipvsadm goes on after a line that the kernel refuses, so the others are done in any case;
# what it says goes to the log, and the table is read anew.
sub flush {
	return unless @waiting;
	my @lines = splice @waiting;
	my $said = '';
	if (open my $input, '+>', undef) {
		print $input map { "$_\n" } @lines;
		seek $input, 0, 0;
		pipe my $from, my $to;
		my $parent = $$;
		if (my $child = fork) {
			close $to;
			$said = do { local $/; <$from> } // '';
			waitpid $child, 0;
			$said ||= "exit code " . ($? >> 8) if $?;
		}
		elsif (defined $child) {
			Fairlead::Spawner::end_with_parent($parent) if $INC{'Fairlead/Spawner.pm'};
			open STDIN, '<&', $input;
			open STDERR, '>&', $to;
			open STDOUT, '>&', $to;
			exec $main::IPVSADM, '-R' or POSIX::_exit(127);
		}
		else {
			$said = "fork: $!";
		}
	}
	else {
		$said = "temporary file: $!";
	}
	return unless $said;
	main::ld_log("ipvsadm: $_") for split /\n/, $said;
	$table = undef;
	$failures++;
}

1;
