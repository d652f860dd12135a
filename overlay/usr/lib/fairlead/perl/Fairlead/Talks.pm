package Fairlead::Talks;

# All checks, instead of ldirectord's own ones, and the one function that judges what came of them. Those of ldirectord
# need a Perl library for each protocol, some cannot do IPv6, most do not say what went wrong, and its HTTP calls a
# server up whose answer never ends. A conversation here is a few lines; it dies with a sentence where the server is not
# up.
#
# lbconfig/render/ldirectord.py writes names, passwords and questions as "hex:…", so that no character of theirs means
# anything to ldirectord.
#
# Sources: SMTP RFC 5321, POP3 RFC 1939, IMAP RFC 9051, FTP RFC 959, NNTP RFC 3977, SIP RFC 3261.

use strict;
use warnings;
no warnings 'once';    # ldirectord's variables

use Socket qw(SOCK_DGRAM SOCK_STREAM);

use Fairlead::Databases ();
use Fairlead::Packets ();
use Fairlead::Programs ();
use Fairlead::Web ();
use Fairlead::Wire qw($received begin dial put some line want reply datagram request expected matching
	matches);
use Fairlead::Words ();

my %TALKS = (
	smtp => \&smtp, submission => \&smtp, pop => \&pop, pops => \&pop, imap => \&imap, imaps => \&imap, ftp => \&ftp,
	nntp => \&nntp, sip => \&sip, simpletcp => \&simpletcp, http => \&Fairlead::Web::web, https => \&Fairlead::Web::web,
	ldap => \&Fairlead::Packets::ldap, ldaps => \&Fairlead::Packets::ldap, mysql => \&Fairlead::Databases::mysql,
	pgsql => \&Fairlead::Databases::pgsql, radius => \&Fairlead::Packets::radius, dns => \&Fairlead::Packets::dns,
);

use constant FUNCTIONS => (
	qw(service_set ld_checkport check_smtp check_pop check_imap check_imaps check_ftp check_nntp check_sip check_simpletcp),
	qw(check_ldap check_mysql check_pgsql check_radius check_dns check_http check_connect check_ping),
);

sub install {
	no strict 'refs';
	no warnings 'redefine';
	*{"main::$_"} = \&check for grep { /^check_/ } FUNCTIONS;
	*main::check_connect = \&connect_to;
	# ldirectord makes a ping of each connect check of a UDP service.
	*main::check_ping = sub { $_[0]{checktype} eq 'ping' ? judge(@_, \&Fairlead::Packets::ping) : connect_to(@_) };
}

sub check {
	my ($v, $r) = @_;
	# ldirectord's own word for it, `checkcommand`, is a file that root would run.
	my $talk = Fairlead::Words::of($r)->{program} ? \&Fairlead::Programs::talk : $TALKS{$v->{service}};
	return judge(plain($v), plain($r), $talk);
}

sub connect_to { return judge(@_, sub { dial(@_); return }) }

# Up is who went through this conversation to its end, in time.
sub judge {
	my ($v, $r, $talk) = @_;
	my $said;
	begin($v->{negotiatetimeout});
	my $good = eval {
		local $SIG{__DIE__} = 'DEFAULT';
		local $SIG{PIPE} = 'IGNORE';
		$said = $talk->($v, $r);
		1;
	};
	my $error = $@;
	chomp $error;
	main::service_set($v, $r, $good ? 'up' : 'down', { do_log => 1 }, $good ? $said // 'Success' : $error);
	return $good ? $main::SERVICE_UP : $main::SERVICE_DOWN;
}

sub plain {
	my %fields = %{$_[0]};
	s{^(/?)hex:([0-9a-f]*)$}{$1 . pack 'H*', $2}e for grep { defined } @fields{qw(login passwd secret database request)};
	return \%fields;
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
		my $answer = $udp ? datagram($socket) : '';
		die "an answer without an end\n" if $answer =~ m{^SIP/} && $answer !~ /\r\n\r\n/;
		$status = $udp ? ($answer =~ /^([^\r\n]*)/)[0] : line($socket);
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
	my ($answer, $wanted) = ('', expected($r));
	my $pattern = matching($r) eq 'pattern';
	until (length $answer && ($pattern ? matches($answer, $wanted) : index($answer, $wanted) >= 0)) {
		my $bytes = some($socket, Fairlead::Wire::LONGEST);
		die "the server hung up, and had not said what is expected\n" if $bytes eq '';
		$received = $answer .= $bytes;
	}
	return;
}

1;
