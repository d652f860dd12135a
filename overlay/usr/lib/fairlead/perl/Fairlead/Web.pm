package Fairlead::Web;

# The check of a web page, over HTTP and over HTTPS. No library for it: what it takes for an answer is what the verdict
# rests on. Only the server itself is judged, by its status and by a whole answer; where it sends its visitors is
# their business, so nothing is followed.
#
# A check may have several requests: they are sent one after the other, each over a connection of its own, and all must
# be good before the time of the check is over.
#
# lbconfig/render/ldirectord.py writes what ldirectord has no words for into other ones: "METHOD STATUSES" is the
# database; the secret is there where the certificate must be good, and is the authorities' certificates.
#
# Sources: HTTP RFC 9110, 9112; its log-in RFC 7617.

use strict;
use warnings;

use Fairlead::Wire qw($received LONGEST anew dial secure put hear shown some line expected matches matching
	versions);
use Fairlead::Words ();

use constant PAGE => 4 << 20;    # bytes of a page; the longest ones that people have as a front page are half of it

sub web {
	my ($v, $r) = @_;
	my @more = more($r);
	my $said = conversation($v, $r, $r->{request}, expected($r), matching($r), @more > 0);
	for my $request (@more) {
		anew();
		$said = conversation($v, $r, @$request, 'contains', 1);
	}
	return $said;
}

# [path, expected text] of each request but the first.
sub more {
	my ($r) = @_;
	return map { [split / /, $_, 2] } split /\n/, Fairlead::Words::of($r)->{requests} // '';
}

# One request and its answer. Where there are several, what fails is told with the path.
sub conversation {
	my ($v, $r, $path, $wanted, $matching, $several) = @_;
	my $status = eval { answer($v, $r, $path, $wanted, $matching) };
	return $status if defined $status;
	die $several ? "$path: $@" : $@;
}

sub answer {
	my ($v, $r, $path, $wanted, $matching) = @_;
	my ($method, $statuses) = split ' ', $v->{database} || 'GET 200-299';
	my $socket = dial($v, $r);
	$socket = encrypt($socket, $v, $r) if $v->{service} eq 'https';
	ask($socket, $method, $path, $v, $r);
	my ($status, $headers);
	do { ($status, $headers) = head($socket) } while $status =~ /^1/;
	unless (counts($status, $statuses)) {
		die $status . ($status =~ /^3/ && exists $headers->{location} ? ", to $headers->{location}" : '') . "\n";
	}
	my $found = page($socket, $method, $status, $headers, $wanted, $matching);
	return $status if $found xor $matching =~ /^lacks/;
	die $found ? "the answer contains what it must not contain\n" : "the answer does not contain what is expected\n";
}

sub ask {
	my ($socket, $method, $path, $v, $r) = @_;
	my $host = ($v->{virtualhost} // '') eq '' ? $r->{server} : $v->{virtualhost};
	my @lines = (
		"$method $path HTTP/1.1", "Host: $host", 'User-Agent: fairlead', 'Accept: */*', 'Connection: close',
		$method eq 'POST' ? 'Content-Length: 0' : (),
	);
	my @shown = @lines;
	if ($v->{login} ne '') {
		require MIME::Base64;
		push @lines, 'Authorization: Basic ' . MIME::Base64::encode_base64("$v->{login}:$v->{passwd}", '');
		push @shown, 'Authorization: Basic ***';
	}
	put($socket, join("\r\n", @lines, '', ''), join("\n", @shown, ''));
	return;
}

# ("200 OK", { name => value }) of the next answer.
sub head {
	my ($socket) = @_;
	my $first = line($socket);
	my ($status) = $first =~ m{^HTTP/1\.[01] ([1-9]\d\d(?: .*)?)$} or die 'the answer is no HTTP: ' . shown($first) . "\n";
	my %headers;
	while ((my $line = line($socket)) ne '') {
		my ($name, $value) = $line =~ /^([^\s:]+):\s*(.*?)\s*$/ or next;
		$name = lc $name;
		$headers{$name} = exists $headers{$name} ? "$headers{$name}, $value" : $value;
	}
	return ($status, \%headers);
}

# Whether a status is among "200-299,401".
sub counts {
	my ($status, $statuses) = @_;
	my $code = substr $status, 0, 3;
	for my $range (split /,/, $statuses) {
		my ($first, $last) = split /-/, $range;
		return 1 if $code >= $first && $code <= ($last // $first);
	}
	return 0;
}

# Read the page to its end. Whether the text is in it; what has been looked at is not kept, unless a pattern may span it.
sub page {
	my ($socket, $method, $status, $headers, $wanted, $matching) = @_;
	my ($found, $window) = ($wanted eq '' && $matching !~ /^lacks/, '');
	my $look = sub {
		my ($bytes) = @_;
		hear($bytes);
		return if $found;
		$window .= $bytes;
		return if $matching =~ /pattern$/;
		$found = index($window, $wanted) >= 0;
		$window = substr $window, -length $wanted if length $window > length $wanted;
	};
	local $Fairlead::Wire::most = PAGE;
	if ($method eq 'HEAD' || $status =~ /^(?:204|304)/) { }
	elsif (($headers->{'transfer-encoding'} // '') =~ /\bchunked$/i) { chunks($socket, $look) }
	elsif (defined(my $length = $headers->{'content-length'})) {
		die 'the length of the answer is no number: ' . shown($length) . "\n" unless $length =~ /^(\d{1,15})(?:, \1)*$/;
		pass($socket, $1, $look);
	}
	else {
		while ((my $bytes = some($socket, LONGEST)) ne '') { $look->($bytes) }
	}
	$found ||= matches($window, $wanted) if $matching =~ /pattern$/;
	return $found;
}

sub chunks {
	my ($socket, $look) = @_;
	while (1) {
		my $heard = $received;
		my $size = line($socket);
		$received = $heard;
		die 'the answer has a piece without a length: ' . shown($size) . "\n" unless $size =~ /^([0-9a-f]{1,8})\s*(?:;.*)?$/i;
		last if hex $1 == 0;
		pass($socket, hex $1, $look);
		my $end = some($socket, 1);
		$end .= some($socket, 1) if $end eq "\r";
		die "the answer ends in the middle\n" unless $end =~ /\n\z/;
	}
	1 until line($socket) eq '';
	return;
}

# So many bytes of the page.
sub pass {
	my ($socket, $length, $look) = @_;
	die "the server announces a page of $length bytes\n" if $length > PAGE;
	while ($length) {
		my $bytes = some($socket, $length);
		die "the answer ends in the middle\n" if $bytes eq '';
		$length -= length $bytes;
		$look->($bytes);
	}
	return;
}

sub encrypt {
	my ($socket, $v, $r) = @_;
	my $name = ($v->{virtualhost} // '') =~ s/:\d+$//r;
	my %options = (versions($r), $name eq '' ? () : (SSL_hostname => $name));
	if ($v->{secret} ne '') {
		my ($verify, $authorities) = split /\n/, $v->{secret}, 2;
		%options = (
			%options,
			SSL_verify_mode => 1,
			SSL_verifycn_scheme => 'http',
			SSL_verifycn_name => $name eq '' ? $r->{server} =~ s/[\[\]]//gr : $name,
			($authorities // '') eq '' ? () : authorities($authorities),
		);
	}
	return secure($socket, %options);
}

# Instead of the public ones.
sub authorities {
	my ($pem) = @_;
	require IO::Socket::SSL::Utils;
	my @found = $pem =~ /(-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----)/gs;
	return (SSL_ca => [map { IO::Socket::SSL::Utils::PEM_string2cert("$_\n") } @found], SSL_ca_file => undef);
}

1;
