"""Servers for the tests of checks, which say what a test makes them say, and the check that asks them."""

import atexit
import contextlib
import functools
import json
import os
import re
import select
import signal
import socket
import struct
import subprocess
import tempfile
import threading
from pathlib import Path

PERL = Path(__file__).parents[3] / "overlay/usr/lib/fairlead/perl"
# ldirectord is loaded once and forked for every check, as the box does it (docs/decisions/0037). Reads what to check,
# a line each; answers with what the fork said, what it complained of, and how it ended.
LDIRECTORD = """
use strict; use warnings; use JSON::PP; use POSIX (); use Fairlead::Talks;
our ($SERVICE_UP, $SERVICE_DOWN, $CONFIG) = (0, 1, '/dev/stdin');
my @verdict;
sub service_set { @verdict = @_[2, 4] }
sub ld_checkport { return $_[1]{port} }
Fairlead::Talks::install();
my $json = JSON::PP->new->ascii;
sub told {
    my ($ask) = @_;
    my ($v, $r) = @{$ask->{what}};
    Fairlead::Words::read_all();
    my $code = Fairlead::Talks::check($v, $r);
    return $json->encode([$code, @verdict, $Fairlead::Wire::sent, $Fairlead::Wire::received]);
}
$| = 1;
print "ready\\n";
while (my $line = <STDIN>) {
    my $ask = $json->decode($line);
    pipe(my $words, my $to_read) and pipe(my $said, my $says) and pipe(my $complaints, my $complains) or die $!;
    print $to_read $ask->{words};
    close $to_read;
    my $pid = fork // die $!;
    if (!$pid) {
        open STDIN, '<&', $words or POSIX::_exit(2);
        open STDERR, '>&', $complains or POSIX::_exit(2);
        close $_ for $words, $said, $complaints, $complains;
        $ENV{SSL_CERT_FILE} = $ask->{ca} if length $ask->{ca};
        my $answer = eval { told($ask) };
        print STDERR $@ if !defined $answer;
        print $says $answer // '';
        close $says;
        POSIX::_exit(defined $answer ? 0 : 1);
    }
    close $_ for $words, $says, $complains;
    local $/;
    my @found = (scalar <$said>, scalar <$complaints>);
    waitpid $pid, 0;
    print $json->encode([@found, $?]), "\\n";
}
"""


class Ldirectord:
    def __init__(self) -> None:
        self.complaints = tempfile.TemporaryFile()  # noqa: SIM115 # it is there as long as the process
        self._process = subprocess.Popen(
            ["perl", "-I", PERL, "-e", LDIRECTORD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.complaints,
            text=True,
            env={},
        )
        atexit.register(self._process.communicate)  # it ends with its standard input
        assert self._line() == "ready\n"

    def stalls(self, seconds: float) -> None:
        """Stall for so long from now on, with the check that is being made; the caller goes on at once."""
        own = self._process.pid
        processes = [own, *map(int, Path(f"/proc/{own}/task/{own}/children").read_text().split())]

        def send(signal_number: int) -> None:
            for process in processes:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal_number)

        send(signal.SIGSTOP)
        threading.Timer(seconds, send, [signal.SIGCONT]).start()

    def ask(self, **what: object) -> str:
        """What the check said, of which nobody complained."""
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        said, complaints, status = json.loads(self._line())
        assert not complaints and status == 0, (complaints, status)
        return said

    def _line(self) -> str:
        assert select.select([self._process.stdout], [], [], 90)[0], "no answer within 90 s"
        line = self._process.stdout.readline()
        self.complaints.seek(0)
        complaints = self.complaints.read()
        assert line and not complaints, complaints
        return line


ldirectord = functools.cache(Ldirectord)


def check(
    service,
    port,
    host="127.0.0.1",
    protocol="tcp",
    request="",
    receive="(?:vs1){0}",
    timeout=20,
    ca="",
    words="",
    **more,
):
    """(is it up, the reason, what was sent, what was received)."""
    v = {"service": service, "protocol": protocol, "negotiatetimeout": timeout}
    v |= {"login": "", "passwd": "", "database": "", "secret": ""} | more
    r = {"server": host, "port": port, "request": f"/{request}", "receive": receive}
    words = f"    # check vs1 {words}\n" if words else ""
    code, state, message, sent, received = json.loads(ldirectord().ask(what=[v, r], words=words, ca=str(ca)))
    assert (code == 0) == (state == "up")
    return code == 0, message, sent, received


class Server:
    """Takes one connection (or datagram) and goes through `script` with it: bytes are said, a pattern is awaited,
    a function turns what came last into what is said. `more`: the scripts of connections after that one; `resets`: a
    connection ends with a reset instead of an end."""

    def __init__(self, *script, kind=socket.SOCK_STREAM, tls=None, family=socket.AF_INET, more=(), resets=False):
        self.resets = resets
        self.script, self.kind, self.tls, self.heard, self.more = script, kind, tls, b"", more
        self.socket = socket.socket(family, kind)
        self.socket.bind(("127.0.0.1" if family == socket.AF_INET else "::1", 0))
        self.socket.settimeout(20)
        self.port = self.socket.getsockname()[1]
        if kind == socket.SOCK_STREAM:
            self.socket.listen(1)
        self.thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self.port

    def __exit__(self, *_):
        if self.more:  # nobody comes any more
            self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join(20)
        self.socket.close()

    def _serve(self):
        try:
            if self.kind == socket.SOCK_DGRAM:
                return self._datagram()
            for script in (self.script, *self.more):
                self._talk(script)
        except OSError:
            pass  # the check hung up

    def _talk(self, script):
        end, _ = self.socket.accept()
        end.settimeout(20)
        with end if self.tls is None else self.tls.wrap_socket(end, server_side=True) as end:
            last = b""
            for step in script:
                if isinstance(step, bytes):
                    end.sendall(step)
                elif isinstance(step, re.Pattern):
                    last = self._hear(end, step)
                else:
                    end.sendall(step(last))
            if self.resets:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
            # To close with bytes unread is a reset, and whether there are any is a race: the check goes first.
            end.shutdown(socket.SHUT_WR)
            while end.recv(4096):
                pass

    def _hear(self, end, pattern):
        heard = b""
        while not pattern.search(heard):
            part = end.recv(4096)
            if not part:
                break
            heard += part
        self.heard += heard
        return heard

    def _datagram(self):
        for step in self.script:
            heard, who = self.socket.recvfrom(65536)
            self.heard += heard
            self.socket.sendto(step(heard) if callable(step) else step, who)


ANY = re.compile(rb"(?s).")
LINE = re.compile(rb"\n")


def said(text):
    return re.compile(rb"^" + text + rb"\r\n")


def hidden(text):
    return f"hex:{text.encode().hex()}"
