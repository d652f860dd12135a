package Fairlead::Wire;

# How the checks that speak a protocol talk to a server. What fails dies with a sentence; the time limit is the caller's.

use strict;
use warnings;
no warnings 'once';    # $SSL_ERROR

use Exporter qw(import);
use IO::Socket::IP ();
use Socket qw(AI_NUMERICHOST SOCK_STREAM);

our @EXPORT_OK = qw($sent $received LONGEST dial put line take want reply datagram request expected);

use constant LONGEST => 65536;    # bytes of an answer that are looked at

our ($sent, $received) = ('', '');    # in the last conversation; without passwords

sub dial {
	my ($v, $r, $type) = @_;
	my $socket = IO::Socket::IP->new(
		PeerHost => $r->{server} =~ s/[\[\]]//gr,
		PeerPort => main::ld_checkport($v, $r),
		Type => $type // SOCK_STREAM,
		GetAddrInfoFlags => AI_NUMERICHOST,
	) or die "$!\n";
	if ($v->{service} =~ /^(?:pops|imaps|ldaps)$/) {
		require IO::Socket::SSL;
		IO::Socket::SSL->start_SSL($socket, SSL_verify_mode => 0) or die "TLS: $IO::Socket::SSL::SSL_ERROR\n";
	}
	return $socket;
}

# Bytes, and what of them is shown.
sub put {
	my ($socket, $bytes, $shown) = @_;
	$sent .= $shown // $bytes;
	defined $socket->syswrite($bytes) or die "$!\n";
	return;
}

sub line {
	my ($socket) = @_;
	my $line = '';
	while ($line !~ /\n\z/) {
		my $count = $socket->sysread($line, 1, length $line);
		die 'the server hung up' . ($line eq '' ? '' : " after '$line'") . "\n" unless $count;
		die "the server sends a line without an end\n" if length $line > LONGEST;
	}
	$received .= $line;
	return $line =~ s/\r?\n\z//r;
}

sub take {
	my ($socket, $length) = @_;
	die "the server announces $length bytes\n" if $length > LONGEST;
	my $bytes = '';
	while (length $bytes < $length) {
		$socket->sysread($bytes, $length - length $bytes, length $bytes) or die "the server hung up\n";
	}
	$received .= $bytes;
	return $bytes;
}

# The next line must look like this.
sub want {
	my ($socket, $pattern) = @_;
	my $line = line($socket);
	die "the server said: $line\n" unless $line =~ $pattern;
	return $line;
}

# An answer of one or several lines that begin with the same number: "250-…", "250 …".
sub reply {
	my ($socket, $pattern) = @_;
	my $line;
	do { $line = line($socket) } while $line =~ /^\d{3}-/ || $line =~ /^ /;
	die "the server said: $line\n" unless $line =~ $pattern;
	return $line;
}

# What is asked for, without the slash that ldirectord puts before it.
sub request { return substr $_[0]{request} // '/', 1 }

# The text that is expected, out of ldirectord's pattern (lbconfig/render/ldirectord.py).
sub expected {
	my $text = $_[0]{receive} =~ s/^\(\?:vs\d+\)\{0\}//r;
	return $text =~ s/\\x([0-9a-f]{2})/chr hex $1/ger;
}

sub datagram {
	my ($socket) = @_;
	defined $socket->recv(my $bytes, LONGEST) or die "$!\n";
	$received .= $bytes;
	return $bytes;
}

1;
