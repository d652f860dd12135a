"""Servers for the tests of checks, which say what a test makes them say, and the check that asks them."""

import json
import re
import socket
import struct
import subprocess
import threading
from pathlib import Path

PERL = Path(__file__).parents[3] / "overlay/usr/lib/fairlead/perl"
LDIRECTORD = """
use strict; use warnings; use JSON::PP; use Fairlead::Talks;
our ($SERVICE_UP, $SERVICE_DOWN, $CONFIG) = (0, 1, '/dev/stdin');
my ($v, $r) = @{decode_json($ENV{WHAT})};
my @verdict;
sub service_set { @verdict = @_[2, 4] }
sub ld_checkport { return $_[1]{port} }
Fairlead::Talks::install();
Fairlead::Words::read_all();
my $code = Fairlead::Talks::check($v, $r);
print JSON::PP->new->ascii->encode([$code, @verdict, $Fairlead::Wire::sent, $Fairlead::Wire::received]);
"""


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
    done = subprocess.run(
        ["perl", "-I", PERL, "-e", LDIRECTORD],
        env={"WHAT": json.dumps([v, r])} | ({"SSL_CERT_FILE": str(ca)} if ca else {}),
        input=f"    # check vs1 {words}\n" if words else "",
        capture_output=True,
        text=True,
        check=True,
        timeout=90,
    )
    assert not done.stderr, done.stderr
    code, state, message, sent, received = json.loads(done.stdout)
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
