package Fairlead::Wire;

# How the checks talk to a server. What fails dies with a sentence. Nothing here blocks: whatever is awaited is awaited
# until the one deadline of the check, by a clock and not by an alarm, which a library may catch; and the bytes of all
# answers over a connection are counted, so a server can neither hold a check up nor fill its memory.

use strict;
use warnings;
no warnings 'once';    # $SSL_ERROR

use Errno qw(EAGAIN EALREADY ECONNRESET EINPROGRESS EINTR EWOULDBLOCK);
use Exporter qw(import);
use IO::Socket::IP ();
use List::Util qw(min);
use Socket qw(AI_NUMERICHOST SOCK_STREAM);
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

use Fairlead::Stall qw(PART TIMES stalled);
use Fairlead::Words ();

our @EXPORT_OK = qw(
	$sent $received LONGEST begin anew dial secure put hear shown some line take want reply await datagram request expected
	matching matches in_time versions
);

use constant LONGEST => 65536;    # bytes of the answers of one check
use constant {
	PIECE => 16384,    # of them that are read at once
	LINE => 16384,     # of a line
};

our ($sent, $received) = ('', '');    # in the last conversation; without passwords
our $most = LONGEST;                  # bytes that the server may send in all
my ($seconds, $deadline) = (0, 0);
my ($looked, $stalls) = (0, 0);       # the last look at the clock; stalls in this conversation
my ($taken, $buffer) = (0, '');       # bytes that have come; those of them that nobody has taken yet

# A new conversation, which must be over in so many seconds.
sub begin {
	($seconds) = @_;
	($sent, $received, $taken, $buffer, $stalls) = ('', '', 0, '', 0);
	$looked = clock_gettime(CLOCK_MONOTONIC);
	$deadline = $looked + $seconds;
	return;
}

# Another connection of the same conversation: its time goes on, and the bytes of the last one are done with.
sub anew {
	($taken, $buffer) = (0, '');
	return;
}

sub dial {
	my ($v, $r, $type) = @_;
	my $socket = IO::Socket::IP->new(
		PeerHost => $r->{server} =~ s/[\[\]]//gr,
		PeerPort => main::ld_checkport($v, $r),
		Type => $type // SOCK_STREAM,
		GetAddrInfoFlags => AI_NUMERICHOST,
		Blocking => 0,
	) or die "$!\n";
	until ($socket->connect) {
		die "$!\n" unless grep { $! == $_ } EINPROGRESS, EALREADY, EWOULDBLOCK;
		await($socket, 'to write');
	}
	return secure($socket, versions($r)) if $v->{service} =~ /^(?:pops|imaps|ldaps)$/;
	return $socket;
}

# Of TLS, as options for `secure`: servers that are too old for 1.2 are too old for OpenSSL's own level of safety.
sub versions {
	my ($r) = @_;
	return Fairlead::Words::of($r)->{old_tls} ? (SSL_cipher_list => 'DEFAULT:@SECLEVEL=0') : ();
}

# TLS on this connection; without options any certificate will do.
sub secure {
	my ($socket, %options) = @_;
	require IO::Socket::SSL;
	IO::Socket::SSL->start_SSL($socket, SSL_verify_mode => 0, %options, SSL_startHandshake => 0)
		or die "TLS: $IO::Socket::SSL::SSL_ERROR\n";
	$socket->blocking(0);
	until ($socket->connect_SSL) {
		die "$!\n" if $! == ECONNRESET;    # of which the library says only that it failed
		die "TLS: $IO::Socket::SSL::SSL_ERROR\n" unless wants($socket);
	}
	return $socket;
}

# Wait until it makes sense to try again, where that is all that is wrong.
sub wants {
	my ($socket, $direction) = @_;
	if ($socket->isa('IO::Socket::SSL')) {
		my $error = $IO::Socket::SSL::SSL_ERROR // 0;
		$direction = $error == IO::Socket::SSL::SSL_WANT_READ() ? '' : 'to write';
		return 0 unless $error == IO::Socket::SSL::SSL_WANT_READ() || $error == IO::Socket::SSL::SSL_WANT_WRITE();
	}
	elsif (!grep { $! == $_ } EAGAIN, EWOULDBLOCK, EINTR) {
		return 0;
	}
	await($socket, $direction);
	return 1;
}

# Until there is something to read, or room to write. False where that takes longer than so many seconds.
sub await {
	my ($socket, $to_write, $patience) = @_;
	while (1) {
		my $left = in_time();
		my $part = min(PART, $left, $patience // ());
		vec(my $bits = '', fileno $socket, 1) = 1;
		my ($read, $write) = $to_write ? (undef, $bits) : ($bits, undef);
		my $ready = select $read, $write, undef, $part;
		die "$!\n" if $ready < 0 && $! != EINTR;
		look($part);
		return 1 if $ready > 0;
		next if !defined $patience || $ready < 0;
		$patience -= $part;
		return 0 if $patience <= 0;
	}
}

# At the clock, after so many seconds of waiting.
sub look {
	my ($waited) = @_;
	my $more = stalled(\$looked, $waited);
	$deadline += $more if $more && $stalls++ < TIMES;
	return;
}

# Seconds that are left.
sub in_time {
	look(0);
	my $left = $deadline - $looked;
	die "no answer within $seconds s\n" if $left <= 0;
	return $left;
}

# Bytes, and what of them is shown.
sub put {
	my ($socket, $bytes, $shown) = @_;
	$sent .= $shown // $bytes;
	while (length $bytes) {
		in_time();
		my $count = $socket->syswrite($bytes);
		if (defined $count) { substr $bytes, 0, $count, '' }
		elsif (!wants($socket, 'to write')) { die trouble($socket) }
	}
	return;
}

sub trouble {
	my ($socket) = @_;
	return ($socket->isa('IO::Socket::SSL') && $! == 0 ? "TLS: $IO::Socket::SSL::SSL_ERROR" : "$!") . "\n";
}

# More bytes into the buffer. False at the end.
sub fill {
	my ($socket) = @_;
	while (1) {
		in_time();
		my $count = $socket->sysread($buffer, PIECE, length $buffer);
		if (defined $count) {
			$taken += $count;
			die "the server sends more than $most bytes\n" if $taken > $most;
			return $count;
		}
		die trouble($socket) unless wants($socket);
	}
}

# What is shown of the answers, for as long as they are not too long for it.
sub hear {
	my ($bytes) = @_;
	$received .= substr $bytes, 0, LONGEST - length $received if length $received < LONGEST;
	return;
}

# What comes next, at most so many bytes. Empty at the end.
sub some {
	my ($socket, $length) = @_;
	fill($socket) if $buffer eq '';
	return substr $buffer, 0, $length, '';
}

sub line {
	my ($socket) = @_;
	my $end;
	while (($end = index $buffer, "\n") < 0) {
		die "the server sends a line without an end\n" if length $buffer > LINE;
		next if fill($socket);
		die 'the server hung up' . ($buffer eq '' ? '' : ' after ' . shown($buffer)) . "\n";
	}
	my $line = substr $buffer, 0, $end + 1, '';
	hear($line);
	return $line =~ s/\r?\n\z//r;
}

# The beginning of what a server said, for a sentence.
sub shown {
	my ($bytes) = @_;
	$bytes = substr($bytes, 0, 60) . (length $bytes > 60 ? '...' : '');
	return "'" . $bytes =~ s/\s+/ /gr . "'";
}

sub take {
	my ($socket, $length) = @_;
	die "the server announces $length bytes\n" if $length > LONGEST;
	while (length $buffer < $length) {
		fill($socket) or die "the server hung up\n";
	}
	my $bytes = substr $buffer, 0, $length, '';
	hear($bytes);
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

# How it is looked for: contains, pattern, lacks, lacks-pattern.
sub matching { return Fairlead::Words::of($_[0])->{matching} // 'contains' }

# Of bytes. A pattern that takes too long ends with its process (Fairlead::Rounds); code in it is refused by Perl.
sub matches {
	my ($bytes, $pattern) = @_;
	my $found = eval { no warnings; $bytes =~ /$pattern/m ? 1 : 0 };
	die "the pattern cannot be read\n" unless defined $found;
	return $found;
}

sub datagram {
	my ($socket) = @_;
	my $bytes;
	until (defined $socket->recv($bytes, LONGEST)) {
		die "$!\n" unless wants($socket);
	}
	$taken += length $bytes;
	die "the server sends more than $most bytes\n" if $taken > $most;
	hear($bytes);
	return $bytes;
}

1;
