package Fairlead::Databases;

# Checks of databases: one that greets, or that lets the admin's account in, or whose answer to his query has a row.
# See Fairlead::Talks.
#
# Sources: MySQL: "Connection Phase" and "Text Protocol" of its internals manual; PostgreSQL: chapter
# "Frontend/Backend Protocol"; SCRAM RFC 5802 and 7677.

use strict;
use warnings;

use Fairlead::Wire qw($received LONGEST dial secure put take in_time request);

use constant {
	MOST_ROUNDS => 100_000,    # of SCRAM; servers ask for 4,096
	KEPT => 1000,              # keys that a worker remembers, because each costs so many rounds
};
# What a client of MySQL says that it can do.
use constant { LONG_PASSWORD => 1, WITH_DATABASE => 8, PROTOCOL_41 => 0x200, TLS => 0x800, SECURE => 0x8000, WAYS => 0x80000 };

my $turn = 0;    # number of the packet that came last
my %salted;      # of SCRAM: a password, its salt and its rounds -> the key

# A server that greets takes connections; one that is full or that has blocked us says so instead of the greeting.
# It blocks who hangs up after the greeting too often (max_connect_errors), so it gets an answer. That it refuses the
# name is no fault of its own, unless the admin has given one; an account of that name without a password and without
# rights spares its log.
sub mysql {
	my ($v, $r) = @_;
	return mysql_account($v, $r) if $v->{login} ne '';
	my $socket = dial($v, $r);
	my $packet = mysql_packet($socket);
	die "an answer that is not MySQL\n" unless unpack('C', $packet) == 10;
	my ($version) = unpack 'Z*', substr $packet, 1;
	$received = "MySQL $version\n";
	# HandshakeResponse41: long passwords, protocol 4.1, its way of passwords, the way has a name; UTF-8.
	my $way = 'mysql_native_password';
	put_mysql($socket, 1, pack('VVCx23', 0x88201, LONGEST, 33) . "fairlead\0" . "\0" . "$way\0", "log in as fairlead\n");
	my $number = 1;
	while (1) {
		$number += 2;
		my $kind = unpack 'C', mysql_packet($socket, qr/^08/);    # the connection itself
		return if $kind == 0xff;
		last if $kind == 0;
		put_mysql($socket, $number, '', "no password\n");    # it wants another way, or more of it
	}
	put_mysql($socket, 0, "\x01", "quit\n");
	return;
}

# Ends the check where it is an error; after the greeting, one of these classes ("SQLSTATE") only.
sub mysql_packet {
	my ($socket, $classes) = @_;
	my $seen = length $received;
	my ($low, $high);
	($low, $high, $turn) = unpack 'vCC', take($socket, 4);
	my $packet = take($socket, $low + ($high << 16));
	substr($received, $seen) = '';
	die "an answer that is not MySQL\n" if $packet eq '';
	return $packet if unpack('C', $packet) != 0xff;
	my $code = unpack 'xv', $packet;
	my ($class, $text) = substr($packet, 3) =~ /^(?:#(.{5}))?(.*)/s;
	die "the server said: error $code, $text\n" if !$classes || ($class // '') =~ $classes;
	return $packet;
}

sub put_mysql {
	my ($socket, $number, $bytes, $shown) = @_;
	return put($socket, substr(pack('V', length $bytes), 0, 3) . pack('C', $number) . $bytes, $shown);
}

# As the admin's account, perhaps into a database, perhaps with a query.
sub mysql_account {
	my ($v, $r) = @_;
	my $socket = mysql_log_in($v, $r, 0) // mysql_log_in($v, $r, 1);
	my $query = request($r);
	mysql_rows($socket, $query) if $query ne '';
	put_mysql($socket, 0, "\x01", "quit\n");
	return;
}

# A connection on which the account is let in; undef where the server wants the password itself, and there is no TLS.
sub mysql_log_in {
	my ($v, $r, $encrypted) = @_;
	my $socket = dial($v, $r);
	my $greeting = mysql_packet($socket);
	die "an answer that is not MySQL\n" unless unpack('C', $greeting) == 10;
	my ($version, $begin, $low, $high, $more) = unpack 'xZ*x4a8xvx3va*', $greeting;
	die "an answer that is not MySQL\n" unless defined $more && length $more > 11;
	my $can = $low | $high << 16;
	my ($nonce, $way) = ($begin . substr($more, 11, 12), unpack('Z*', substr $more, 24) // '');
	$received = "MySQL $version\n";
	my $says = LONG_PASSWORD | PROTOCOL_41 | SECURE | WAYS | ($v->{database} eq '' ? 0 : WITH_DATABASE) | ($encrypted && TLS);
	my $head = pack 'VVCx23', $says, LONGEST, 33;
	if ($encrypted) {
		die "the server asks for the password itself, and has no TLS\n" unless $can & TLS;
		put_mysql($socket, $turn + 1, $head, "TLS\n");
		$turn++;
		$socket = secure($socket);
	}
	my $proof = mysql_proof($way, $v->{passwd}, $nonce);
	($way, $proof) = ('mysql_native_password', '') unless defined $proof;    # it will ask for another one
	my $database = $v->{database} eq '' ? '' : "$v->{database}\0";
	put_mysql($socket, $turn + 1, $head . "$v->{login}\0" . pack('C/a', $proof) . "$database$way\0", "log in as $v->{login}\n");
	while (1) {
		my $packet = mysql_packet($socket);
		my $kind = unpack 'C', $packet;
		return $socket if $kind == 0;
		if ($kind == 0xfe && length $packet > 1) {
			($way, $nonce) = unpack 'xZ*a*', $packet;
			if ($way eq 'mysql_clear_password') {
				return undef unless $encrypted;
				$proof = "$v->{passwd}\0";
			}
			else {
				$proof = mysql_proof($way, $v->{passwd}, substr $nonce, 0, 20)
					// die "the server asks for a log-in by $way, which this box does not know\n";
			}
			put_mysql($socket, $turn + 1, $proof, "$way\n");
		}
		elsif ($kind == 1 && $packet eq "\x01\x04") {    # of caching_sha2_password: it does not remember this account
			return undef unless $encrypted;
			put_mysql($socket, $turn + 1, "$v->{passwd}\0", "***\n");
		}
		elsif ($packet ne "\x01\x03") {
			die "an answer that is not MySQL\n";
		}
	}
}

# That one knows the password, for these ways; undef for others.
sub mysql_proof {
	my ($way, $password, $nonce) = @_;
	return undef unless $way =~ /^(?:mysql_native_password|caching_sha2_password)$/;
	return '' if $password eq '';
	require Digest::SHA;
	if ($way eq 'caching_sha2_password') {
		my $once = Digest::SHA::sha256($password);
		return $once ^ Digest::SHA::sha256(Digest::SHA::sha256($once) . $nonce);
	}
	my $once = Digest::SHA::sha1($password);
	return $once ^ Digest::SHA::sha1($nonce . Digest::SHA::sha1($once));
}

# There must be one. All of them are read: an answer without its end is none.
sub mysql_rows {
	my ($socket, $query) = @_;
	put_mysql($socket, 0, "\x03$query", "$query\n");
	my $kind = unpack 'C', mysql_packet($socket);
	die "an answer that is not MySQL\n" if $kind == 0xfb;
	my $rows = 0;
	if ($kind != 0) {    # so many columns
		1 until mysql_is_end(mysql_packet($socket));
		$rows++ until mysql_is_end(mysql_packet($socket));
	}
	return found_rows($rows);
}

sub mysql_is_end { return unpack('C', $_[0]) == 0xfe && length $_[0] < 9 }

sub found_rows {
	my ($rows) = @_;
	$received .= "rows: $rows\n";
	die "the query finds no row\n" unless $rows;
	return;
}

# Without a password and a query, being asked for a password means that it takes connections. Who is let in without one is told of a wrong database only
# then. A name that nobody has given cannot be wrong.
sub pgsql {
	my ($v, $r) = @_;
	my $socket = dial($v, $r);
	my $user = $v->{login} eq '' ? 'fairlead' : $v->{login};
	my $database = $v->{database} eq '' ? 'postgres' : $v->{database};
	my $message = pack('N', 196608) . "user\0$user\0database\0$database\0\0";
	put($socket, pack('N', 4 + length $message) . $message, "start as $user in $database\n");
	while (1) {
		my ($kind, $body) = pgsql_message($socket);
		if ($kind eq 'E') {
			my %said = pgsql_error($body);
			return if $v->{login} eq '' && $said{C} =~ /^28/ || $v->{database} eq '' && $said{C} eq '3D000';
			die "the server said: $said{M}\n";
		}
		if ($kind eq 'R' && (my $wish = unpack 'N', $body)) {
			die "an answer that is not PostgreSQL\n" if $wish == 10 && $body !~ /\0\0\z/;    # its ways, and an end
			$received .= "it asks for a password ($wish)\n";
			return if $v->{passwd} eq '' && request($r) eq '';
			pgsql_password($socket, $wish, $user, $v->{passwd}, substr $body, 4);
			next;
		}
		last if $kind eq 'Z';
		die "an answer that is not PostgreSQL\n" unless $kind =~ /^[RSKNv]$/;
	}
	$received .= "it is ready\n";
	my $query = request($r);
	pgsql_rows($socket, $query) if $query ne '';
	put($socket, pack('AN', 'X', 4), "end\n");
	return;
}

sub pgsql_message {
	my ($socket) = @_;
	my $seen = length $received;
	my $kind = take($socket, 1);
	my $length = unpack 'N', take($socket, 4);
	die "an answer that is not PostgreSQL\n" if $length < 4;
	my $body = take($socket, $length - 4);
	substr($received, $seen) = '';
	return ($kind, $body);
}

sub pgsql_error {
	my ($body) = @_;
	my %said = (S => '', C => '', M => '', map { substr($_, 0, 1) => substr $_, 1 } grep { length } split /\0/, $body);
	$received .= "$said{S} $said{C}: $said{M}\n";
	return %said;
}

sub put_pgsql {
	my ($socket, $kind, $body, $shown) = @_;
	return put($socket, $kind . pack('N', 4 + length $body) . $body, $shown);
}

# In the way that the server asks for.
sub pgsql_password {
	my ($socket, $wish, $user, $password, $rest) = @_;
	if ($wish == 3) { put_pgsql($socket, 'p', "$password\0", "password ***\n") }
	elsif ($wish == 5) {
		require Digest::MD5;
		my $inner = Digest::MD5::md5_hex($password . $user);
		put_pgsql($socket, 'p', 'md5' . Digest::MD5::md5_hex($inner . $rest) . "\0", "password *** (MD5)\n");
	}
	elsif ($wish == 10 && grep { $_ eq 'SCRAM-SHA-256' } split /\0/, $rest) { scram($socket, $password) }
	else { die "the server asks for a log-in ($wish) that this box does not know\n" }
	return;
}

sub scram {
	my ($socket, $password) = @_;
	require Digest::SHA;
	require MIME::Base64;
	my $nonce = join '', map { sprintf '%08x', rand 2**32 } 1 .. 4;
	my $mine = "n=,r=$nonce";
	put_pgsql($socket, 'p', "SCRAM-SHA-256\0" . pack('N/a', "n,,$mine"), "SCRAM-SHA-256\n");
	my $theirs = scram_answer($socket, 11);
	my ($both, $salt, $rounds) = $theirs =~ /^r=(\Q$nonce\E[^,]*),s=([^,]+),i=(\d{1,9})/
		or die "an answer that is not PostgreSQL\n";
	die "the server asks for $rounds rounds of SCRAM\n" if $rounds > MOST_ROUNDS;
	my $key = salted($password, MIME::Base64::decode_base64($salt), $rounds);
	my $client = Digest::SHA::hmac_sha256('Client Key', $key);
	my $said = "$mine,$theirs,c=biws,r=$both";
	my $proof = $client ^ Digest::SHA::hmac_sha256($said, Digest::SHA::sha256($client));
	put_pgsql($socket, 'p', "c=biws,r=$both,p=" . MIME::Base64::encode_base64($proof, ''), "password ***\n");
	my $server = Digest::SHA::hmac_sha256($said, Digest::SHA::hmac_sha256('Server Key', $key));
	my ($shown) = scram_answer($socket, 12) =~ /^v=([^,]+)/;
	die "the server does not know the password\n"
		unless defined $shown && MIME::Base64::decode_base64($shown) eq $server;
	return;
}

sub scram_answer {
	my ($socket, $wanted) = @_;
	my ($kind, $body) = pgsql_message($socket);
	if ($kind eq 'E') {
		my %said = pgsql_error($body);
		die "the server said: $said{M}\n";
	}
	die "an answer that is not PostgreSQL\n" unless $kind eq 'R' && length $body >= 4 && unpack('N', $body) == $wanted;
	return substr $body, 4;
}

# PBKDF2. A server names the same salt for an account each time.
sub salted {
	my ($password, $salt, $rounds) = @_;
	my $name = pack 'N/aN/aN', $password, $salt, $rounds;
	return $salted{$name} if $salted{$name};
	my $last = my $key = Digest::SHA::hmac_sha256($salt . pack('N', 1), $password);
	for my $round (2 .. $rounds) {
		in_time() unless $round % 1000;
		$last = Digest::SHA::hmac_sha256($last, $password);
		$key ^= $last;
	}
	%salted = () if keys %salted >= KEPT;
	return $salted{$name} = $key;
}

# There must be one.
sub pgsql_rows {
	my ($socket, $query) = @_;
	put_pgsql($socket, 'Q', "$query\0", "$query\n");
	my $rows = 0;
	while (1) {
		my ($kind, $body) = pgsql_message($socket);
		if ($kind eq 'E') {
			my %said = pgsql_error($body);
			die "the server said: $said{M}\n";
		}
		last if $kind eq 'Z';
		$rows++ if $kind eq 'D';
		die "an answer that is not PostgreSQL\n" unless $kind =~ /^[TDCINSA]$/;
	}
	return found_rows($rows);
}

1;
