package Fairlead::Talks;

# The checks that speak a protocol, in place of ldirectord's own ones. Those need a Perl library for each protocol,
# some cannot do IPv6, and most do not say what went wrong. A conversation here is a few lines; it dies with a sentence
# where the server is not up. HTTP, connect and ping stay with ldirectord; its HTTPS tells the server no name (SNI) and
# looks at no certificate.
#
# lbconfig/render/ldirectord.py writes names, passwords and questions as "hex:…", so that no character of theirs means
# anything to ldirectord.
#
# Sources: SMTP RFC 5321, POP3 RFC 1939, IMAP RFC 9051, FTP RFC 959, NNTP RFC 3977, SIP RFC 3261.

use strict;
use warnings;
no warnings 'once';    # ldirectord's variables

use Socket qw(SOCK_DGRAM SOCK_STREAM);

use Fairlead::Packets ();
use Fairlead::Wire qw($sent $received LONGEST dial put line want reply datagram request);

my %TALKS = (
	smtp => \&smtp, submission => \&smtp, pop => \&pop, pops => \&pop, imap => \&imap, imaps => \&imap, ftp => \&ftp,
	nntp => \&nntp, sip => \&sip, simpletcp => \&simpletcp, https => \&https,
	ldap => \&Fairlead::Packets::ldap, ldaps => \&Fairlead::Packets::ldap, mysql => \&Fairlead::Packets::mysql,
	pgsql => \&Fairlead::Packets::pgsql, radius => \&Fairlead::Packets::radius, dns => \&Fairlead::Packets::dns,
);

use constant FUNCTIONS => (
	qw(service_set ld_checkport check_smtp check_pop check_imap check_imaps check_ftp check_nntp check_sip check_simpletcp),
	qw(check_ldap check_mysql check_pgsql check_radius check_dns check_http),
);

sub install {
	no strict 'refs';
	no warnings 'redefine';
	my $http = \&main::check_http;
	*{"main::$_"} = \&check for grep { /^check_/ } FUNCTIONS;
	*main::check_http = sub { ($_[0]{service} eq 'https' ? \&check : $http)->(@_) };
}

sub check {
	my ($v, $r) = @_;
	($sent, $received) = ('', '');
	my $good = eval {
		local $SIG{__DIE__} = 'DEFAULT';
		local $SIG{ALRM} = sub { die "no answer within $v->{negotiatetimeout} s\n" };
		local $SIG{PIPE} = 'IGNORE';
		alarm $v->{negotiatetimeout};
		$TALKS{$v->{service}}->(plain($v), plain($r));
		1;
	};
	my $error = $@;
	alarm 0;
	chomp $error;
	main::service_set($v, $r, $good ? 'up' : 'down', { do_log => 1 }, $good ? 'Success' : $error);
	return $good ? $main::SERVICE_UP : $main::SERVICE_DOWN;
}

sub plain {
	my %fields = %{$_[0]};
	s{^(/?)hex:([0-9a-f]*)$}{$1 . pack 'H*', $2}e for grep { defined } @fields{qw(login passwd secret database request)};
	return \%fields;
}

# --- the web ---

sub https {
	my ($v, $r) = @_;
	my $name = $v->{virtualhost} // '';
	my $verify = $v->{login} eq 'verify';
	require LWP::UserAgent;
	my $agent = LWP::UserAgent->new(
		ssl_opts => {
			verify_hostname => $verify,
			SSL_verify_mode => $verify ? 1 : 0,
			$name eq '' ? () : (SSL_hostname => $name, SSL_verifycn_name => $name),
			$verify && $v->{passwd} ne '' ? authorities($v->{passwd}) : (),
		}
	);
	my $request = HTTP::Request->new($v->{httpmethod} || 'GET', $r->{url}, [Host => $name eq '' ? $r->{server} : $name]);
	my $response = $agent->request($request);
	die $response->status_line . "\n" unless $response->is_success;
	die "the answer does not contain what is expected\n" unless $response->content =~ /$r->{receive}/;
	return;
}

# In place of the public ones.
sub authorities {
	my ($pem) = @_;
	require IO::Socket::SSL::Utils;
	my @found = $pem =~ /(-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----)/gs;
	return (SSL_ca => [map { IO::Socket::SSL::Utils::PEM_string2cert("$_\n") } @found], SSL_ca_file => undef);
}

# --- mail, news, files ---

sub smtp {
	my ($v, $r) = @_;
	my $socket = dial($v, $r);
	reply($socket, qr/^220 /);
	put($socket, "EHLO fairlead\r\n");
	reply($socket, qr/^250 /);
	put($socket, "QUIT\r\n");
	return;
}

sub pop {
	my ($v, $r) = @_;
	my $socket = dial($v, $r);
	want($socket, qr/^\+OK/);
	if ($v->{login} ne '') {
		put($socket, "USER $v->{login}\r\n");
		want($socket, qr/^\+OK/);
		put($socket, "PASS $v->{passwd}\r\n", "PASS ***\r\n");
		want($socket, qr/^\+OK/);
	}
	put($socket, "QUIT\r\n");
	return;
}

sub imap {
	my ($v, $r) = @_;
	my $socket = dial($v, $r);
	want($socket, qr/^\* (?:OK|PREAUTH)\b/);
	if ($v->{login} ne '') {
		my ($login, $password) = map { '"' . s/([\\"])/\\$1/gr . '"' } @$v{qw(login passwd)};
		put($socket, "a1 LOGIN $login $password\r\n", "a1 LOGIN $login ***\r\n");
		my $line;
		do { $line = line($socket) } while $line =~ /^\*/;
		die "the server said: $line\n" unless $line =~ /^a1 OK\b/;
	}
	put($socket, "a2 LOGOUT\r\n");
	return;
}

sub ftp {
	my ($v, $r) = @_;
	my $socket = dial($v, $r);
	reply($socket, qr/^220 /);
	# ldirectord fills in these where no name is given; whether a server takes guests says nothing of its health.
	unless ($v->{login} eq 'anonymous' && $v->{passwd} =~ /^ldirectord\@/) {
		put($socket, "USER $v->{login}\r\n");
		if (reply($socket, qr/^(?:230|331) /) =~ /^331/) {
			put($socket, "PASS $v->{passwd}\r\n", "PASS ***\r\n");
			reply($socket, qr/^230 /);
		}
	}
	put($socket, "QUIT\r\n");
	return;
}

sub nntp {
	my ($v, $r) = @_;
	my $socket = dial($v, $r);
	want($socket, qr/^20[01] /);
	put($socket, "QUIT\r\n");
	return;
}

# --- telephones ---

# An answer that is no error of the server itself: one that wants a password, or knows nobody of that name, is up.
sub sip {
	my ($v, $r) = @_;
	my $udp = $v->{protocol} ne 'tcp';
	my $socket = dial($v, $r, $udp ? SOCK_DGRAM : SOCK_STREAM);
	my ($host, $port) = ($socket->sockhost, $socket->sockport);
	$host = "[$host]" if $host =~ /:/;
	my $id = sprintf '%08x%08x', rand 2**32, rand 2**32;
	put($socket, join "\r\n",
		"OPTIONS sip:fairlead\@$r->{server} SIP/2.0",
		'Via: SIP/2.0/' . ($udp ? 'UDP' : 'TCP') . " $host:$port;branch=z9hG4bK$id;rport",
		'Max-Forwards: 70',
		"To: <sip:fairlead\@$r->{server}>",
		"From: <sip:fairlead\@$host>;tag=$id",
		"Call-ID: $id\@$host",
		'CSeq: 1 OPTIONS',
		"Contact: <sip:fairlead\@$host:$port>",
		'Content-Length: 0', '', '');
	my $status;
	do {
		$status = $udp ? (datagram($socket) =~ /^([^\r\n]*)/)[0] : line($socket);
	} while $status !~ m{^SIP/2\.0 } && !$udp || $status =~ m{^SIP/2\.0 1};
	die "the server said: $status\n" unless $status =~ m{^SIP/2\.0 [2-4]};
	# Who hangs up on an answer leaves an error in the server's log.
	1 until $udp || line($socket) eq '';
	return;
}

# --- any protocol of lines ---

sub simpletcp {
	my ($v, $r) = @_;
	my $socket = dial($v, $r);
	my $request = request($r) =~ s/\\n/\n/gr;
	put($socket, $request) if $request ne '';
	my $answer = '';
	until (length $answer && $answer =~ /$r->{receive}/) {
		my $count = $socket->sysread($answer, 4096, length $answer);
		$received = $answer;
		die "the server hung up, and had not said what is expected\n" unless $count;
		die "the server says too much\n" if length $answer > LONGEST;
	}
	return;
}

1;
