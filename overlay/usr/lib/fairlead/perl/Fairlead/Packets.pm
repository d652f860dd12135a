package Fairlead::Packets;

# Checks of servers that do not speak in lines: directories, RADIUS, DNS, and the ping. Databases are in
# Fairlead::Databases. See Fairlead::Talks.
#
# Sources: LDAP RFC 4511, RADIUS RFC 2865 and 5997, DNS RFC 1035, ping RFC 792 and 4443.

use strict;
use warnings;

use Digest::MD5 qw(md5);
use IO::Socket ();
use Socket qw(
	AF_INET AF_INET6 IPPROTO_ICMP IPPROTO_ICMPV6 SOCK_DGRAM SOCK_STREAM inet_ntop inet_pton pack_sockaddr_in
	pack_sockaddr_in6
);

use Fairlead::Wire qw($received LONGEST dial put take await datagram request expected);

use constant DNS_RESULTS => ['', 'malformed question', 'server failure', 'no such name', 'not implemented', 'refused'];

# --- directories ---

sub ldap {
	my ($v, $r) = @_;
	my $socket = dial($v, $r);
	put($socket, ber(0x30, ber(0x02, "\1"),
		ber(0x60, ber(0x02, "\3"), ber(0x04, $v->{login}), ber(0x80, $v->{passwd}))),
		'bind ' . ($v->{login} eq '' ? 'without a name' : "as $v->{login}") . "\n");
	my ($code, $text) = ldap_result($socket, 0x61);
	die "bind: result $code" . ($text eq '' ? '' : ", $text") . "\n" if $code;
	my $base = request($r);
	if ($base ne '') {
		put($socket, ber(0x30, ber(0x02, "\2"),
			ber(0x63, ber(0x04, $base), ber(0x0a, "\0"), ber(0x0a, "\0"), ber(0x02, "\1"), ber(0x02, "\0"),
				ber(0x01, "\0"), ber(0x87, 'objectClass'), ber(0x30, ber(0x04, '1.1')))), "search $base\n");
		my $found = 0;
		while (1) {
			my ($kind, $body) = ldap_message($socket);
			last if $kind == 0x65 && do { ($code, $text) = ldap_code($body); 1 };
			$found++ if $kind == 0x64;
		}
		die "search of $base: result $code" . ($text eq '' ? '' : ", $text") . "\n" if $code;
		die "search of $base: nothing was found\n" unless $found;
	}
	put($socket, ber(0x30, ber(0x02, "\3"), ber(0x42)), "unbind\n");
	return;
}

# An element of BER: kind, length, content.
sub ber {
	my ($kind, @parts) = @_;
	my $content = join '', @parts;
	my $length = length $content;
	return pack('CC', $kind, $length) . $content if $length < 128;
	return pack('CCn', $kind, 0x82, $length) . $content;
}

# The kind and content of the first element, and the rest.
sub unber {
	my ($bytes) = @_;
	my ($kind, $length) = unpack 'CC', $bytes;
	my $start = 2;
	if (defined $length && $length > 127) {
		my $octets = $length & 0x7f;
		die "an answer that is not LDAP\n" if $octets > 4;
		$length = hex unpack 'H*', substr $bytes, 2, $octets;
		$start += $octets;
	}
	die "an answer that is not LDAP\n" if !defined $length || length $bytes < $start + $length;
	return ($kind, substr($bytes, $start, $length), substr $bytes, $start + $length);
}

# Kind and content of the operation in the next message.
sub ldap_message {
	my ($socket) = @_;
	my $seen = length $received;
	my $head = take($socket, 2);
	my ($kind, $length) = unpack 'CC', $head;
	die "an answer that is not LDAP\n" unless $kind == 0x30;
	if ($length > 127) {
		my $octets = $length & 0x7f;
		die "an answer that is not LDAP\n" if $octets > 4;
		$length = hex unpack 'H*', take($socket, $octets);
	}
	my $message = take($socket, $length);
	substr($received, $seen) = "an answer of $length bytes\n";
	my (undef, undef, $operation) = unber($message);
	my ($operation_kind, $body) = unber($operation);
	return ($operation_kind, $body);
}

sub ldap_code {
	my ($body) = @_;
	my (undef, $code, $rest) = unber($body);
	(undef, undef, $rest) = unber($rest);
	my (undef, $text) = unber($rest);
	return (unpack('C', $code), $text);
}

sub ldap_result {
	my ($socket, $wanted) = @_;
	my ($kind, $body) = ldap_message($socket);
	die "an answer to another question\n" unless $kind == $wanted;
	return ldap_code($body);
}

# --- names and passwords ---

sub radius {
	my ($v, $r) = @_;
	my $socket = dial($v, $r, SOCK_DGRAM);
	my $random = join '', map { chr int rand 256 } 1 .. 16;
	my ($code, $attributes) = (12, '');    # Status-Server
	if ($v->{login} ne '') {
		$code = 1;    # Access-Request
		my $hidden = '';
		my $padded = $v->{passwd} . "\0" x (-length($v->{passwd}) % 16 || (length $v->{passwd} ? 0 : 16));
		for my $part (unpack '(a16)*', $padded) {
			$hidden .= $part ^ md5($v->{secret} . ($hidden eq '' ? $random : substr $hidden, -16));
		}
		$attributes = pack('CC', 1, 2 + length $v->{login}) . $v->{login} . pack('CC', 2, 2 + length $hidden) . $hidden;
	}
	$attributes .= pack('CC', 32, 10) . 'fairlead' . pack('CC', 80, 18) . "\0" x 16;
	my $packet = pack('CCna16', $code, 1, 20 + length $attributes, $random) . $attributes;
	substr($packet, -16) = hmac_md5($packet, $v->{secret});
	put($socket, $packet, $code == 1 ? "Access-Request for $v->{login}\n" : "Status-Server\n");
	my $answer = datagram($socket);
	my ($answer_code, $id, $length) = unpack 'CCn', $answer;
	$received = "an answer with code $answer_code\n";
	die "an answer that is not RADIUS\n" unless length $answer >= 20 && $length <= length $answer && $id == 1;
	my $signed = md5(substr($answer, 0, 4) . $random . substr($answer, 20, $length - 20) . $v->{secret});
	die "an answer that was made with another secret\n" unless $signed eq substr $answer, 4, 16;
	die "the server refuses $v->{login}\n" if $answer_code == 3;
	die "an answer with code $answer_code\n" unless $answer_code == 2 || $code == 12 && $answer_code == 5;
	return;
}

# RFC 2104.
sub hmac_md5 {
	my ($text, $key) = @_;
	$key = md5($key) if length $key > 64;
	$key .= "\0" x (64 - length $key);
	return md5(($key ^ ("\x5c" x 64)) . md5(($key ^ ("\x36" x 64)) . $text));
}

# --- any machine ---

# By sockets that the kernel has for it (net.ipv4.ping_group_range): it gives them an id of their own and only the
# answers to it, and who has one can send nothing else. One question a second: a packet may be lost.
sub ping {
	my ($v, $r) = @_;
	my $six = $r->{server} =~ /:/;
	my $socket = IO::Socket->new;
	$socket->socket($six ? (AF_INET6, SOCK_DGRAM, IPPROTO_ICMPV6) : (AF_INET, SOCK_DGRAM, IPPROTO_ICMP))
		or die "no socket for a ping: $!\n";
	$socket->blocking(0);
	my $address = inet_pton($six ? AF_INET6 : AF_INET, $r->{server} =~ s/[\[\]]//gr);
	$socket->connect($six ? pack_sockaddr_in6(0, $address) : pack_sockaddr_in(0, $address)) or die "$!\n";
	for my $number (1 .. $v->{negotiatetimeout}) {
		put($socket, pack('CCnnn', $six ? 128 : 8, 0, 0, 0, $number), "echo request $number\n");
		next unless await($socket, '', 1);
		datagram($socket);
		$received = "echo reply\n";
		return;
	}
	die "no answer within $v->{negotiatetimeout} s\n";
}

# The addresses of a name; without a name any answer counts, also "refused".
sub dns {
	my ($v, $r) = @_;
	my $tcp = $v->{protocol} eq 'tcp';
	my $socket = dial($v, $r, $tcp ? SOCK_STREAM : SOCK_DGRAM);
	my $name = request($r) =~ s/\.$//r;
	my $wanted = expected($r);
	my $six = $wanted =~ /:/;
	my $type = $name eq '' ? 2 : $six ? 28 : 1;    # NS, AAAA, A
	my $id = int rand 65536;
	my $question = join('', map { pack 'C/a', $_ } split /\./, $name) . "\0" . pack 'nn', $type, 1;
	my $query = pack('n6', $id, 0x0100, 1, 0, 0, 0) . $question;
	put($socket, ($tcp ? pack 'n', length $query : '') . $query, 'asked for ' . ($name eq '' ? '.' : $name) . "\n");
	my $answer = $tcp ? take($socket, unpack 'n', take($socket, 2)) : datagram($socket);
	die "an answer that is not DNS\n" if length $answer < 12;
	my ($answer_id, $flags, $questions, $answers) = unpack 'n4', $answer;
	die "an answer to another question\n" unless $answer_id == $id && $flags & 0x8000;
	# Who refuses may leave the question out.
	die "an answer that is not whole\n" if $questions && substr($answer, 12, length $question) ne $question;
	my @found = addresses($answer, $questions, $answers);
	$received = 'result ' . ($flags & 15) . join('', map { ", $_" } @found) . "\n";
	return if $name eq '';
	my $result = $flags & 15;
	die 'the server said: ' . (DNS_RESULTS->[$result] // "result $result") . "\n" if $result;
	die "$name has no address there\n" unless @found;
	return if $wanted eq '';
	my $packed = inet_pton($six ? AF_INET6 : AF_INET, $wanted) // die "'$wanted' is expected, which is no address\n";
	die "$name is @found there\n" unless grep { $_ eq inet_ntop($six ? AF_INET6 : AF_INET, $packed) } @found;
	return;
}

sub addresses {
	my ($answer, $questions, $answers) = @_;
	my ($place, @found) = (12);
	my $skip_name = sub {
		while (1) {
			my $length = unpack 'C', substr $answer, $place, 1;
			die "an answer that is not DNS\n" unless defined $length;
			if ($length >= 0xc0) { $place += 2; return }
			$place += 1 + $length;
			return if $length == 0;
		}
	};
	for (1 .. $questions) { $skip_name->(); $place += 4 }
	for (1 .. $answers) {
		$skip_name->();
		die "an answer that is not DNS\n" if length $answer < $place + 10;
		my ($type, undef, undef, $length) = unpack 'nnNn', substr $answer, $place, 10;
		die "an answer that is not whole\n" if length $answer < $place + 10 + $length;
		my $data = substr $answer, $place + 10, $length;
		push @found, inet_ntop(AF_INET, $data) if $type == 1 && length $data == 4;
		push @found, inet_ntop(AF_INET6, $data) if $type == 28 && length $data == 16;
		$place += 10 + $length;
	}
	return @found;
}

1;
