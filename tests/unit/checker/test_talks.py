"""The checks that speak a protocol, against servers that speak it well, badly, or not at all."""

import base64
import re
import socket
import ssl
import time
import warnings

import pytest
from talking_servers import ANY, Server, check, hidden, ldirectord, said

# --- protocols of lines ----------------------------------------------------------------------------------

GOOD = {
    "smtp": (
        b"220-mx\r\n220 mx ESMTP\r\n",
        said(rb"EHLO fairlead"),
        b"250-mx\r\n250-SIZE\r\n250 OK\r\n",
        said(b"QUIT"),
    ),
    "submission": (b"220 mx ESMTP\r\n", said(rb"EHLO fairlead"), b"250 OK\r\n", said(b"QUIT")),
    "pop": (b"+OK ready\r\n", said(b"QUIT")),
    "imap": (b"* OK [CAPABILITY IMAP4rev1] ready\r\n", said(b"a2 LOGOUT")),
    "ftp": (b"220-Welcome\r\n to the pleasure dome\r\n220 now\r\n", said(b"QUIT")),
    "nntp": (b"200 news\r\n", said(b"QUIT")),
}
BAD = {
    "smtp": (b"554 no service here\r\n", "554 no service here"),
    "submission": (b"421 too busy\r\n", "421 too busy"),
    "pop": (b"-ERR locked\r\n", "-ERR locked"),
    "imap": (b"* BYE overloaded\r\n", "* BYE overloaded"),
    "ftp": (b"421 too many users\r\n", "421 too many users"),
    "nntp": (b"502 go away\r\n", "502 go away"),
}
GUEST = {"login": "anonymous", "passwd": "ldirectord@lb"}


@pytest.mark.parametrize("service", GOOD)
def test_a_good_server(service):
    with Server(*GOOD[service]) as port:
        good, message, sent, received = check(service, port, **(GUEST if service == "ftp" else {}))
    assert good, message
    assert sent and received.startswith(GOOD[service][0].decode().split("\r\n")[0])


@pytest.mark.parametrize("service", BAD)
def test_a_server_that_has_something_else_to_say(service):
    answer, words = BAD[service]
    with Server(answer) as port:
        good, message, _, _ = check(service, port)
    assert not good
    assert message == f"the server said: {words}"


@pytest.mark.parametrize("service", [*GOOD, "ldap", "mysql", "pgsql", "simpletcp"])
def test_a_server_that_says_nothing(service):
    with Server(ANY, ANY, ANY) as port:
        good, message, _, _ = check(service, port, timeout=0.3)
    assert not good
    assert message == "no answer within 0.3 s"


@pytest.mark.parametrize("service", [*GOOD, "ldap", "mysql", "pgsql", "simpletcp", "pops", "imaps", "ldaps"])
def test_nobody_is_there(service):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert check(service, port)[:2] == (False, "Connection refused")


@pytest.mark.parametrize("service", GOOD)
def test_a_server_that_hangs_up(service):
    with Server() as port:
        good, message, _, _ = check(service, port)
    assert not good
    assert message == "the server hung up"


def test_a_line_without_an_end():
    with Server(b"x" * 100_000) as port:
        assert check("pop", port, timeout=20)[:2] == (False, "the server sends a line without an end")


def test_by_ipv6():
    with Server(*GOOD["smtp"], family=socket.AF_INET6) as port:
        assert check("smtp", port, host="[::1]")[0]


LOG_IN = {
    "pop": (b"+OK\r\n", said(b"USER kim"), b"+OK\r\n", said(b"PASS secret"), b"+OK\r\n", said(b"QUIT")),
    "imap": (b"* OK\r\n", said(rb'a1 LOGIN "kim" "secret"'), b"* CAPABILITY\r\na1 OK\r\n", said(b"a2 LOGOUT")),
    "ftp": (b"220 x\r\n", said(b"USER kim"), b"331 password\r\n", said(b"PASS secret"), b"230 in\r\n", said(b"QUIT")),
}


@pytest.mark.parametrize("service", LOG_IN)
def test_a_login_whose_password_is_not_shown(service):
    with Server(*LOG_IN[service]) as port:
        good, message, sent, _ = check(service, port, login="kim", passwd="secret")
    assert good, message
    assert "***" in sent and "secret" not in sent


def test_names_and_passwords_come_as_their_bytes():
    with Server(b"+OK\r\n", said(b'USER k"im#'), b"+OK\r\n", said("PASS gr\u00fcn".encode()), b"+OK\r\n") as port:
        good, message, _, _ = check("pop", port, login=hidden('k"im#'), passwd=hidden("gr\u00fcn"))
    assert good, message
    with Server(re.compile(b"PING\n"), b"PONG\n") as port:
        assert check("simpletcp", port, request=hidden("PING\\n"))[0]


def test_a_login_that_is_refused():
    with Server(b"* OK\r\n", said(rb'a1 LOGIN "k\\"im" "se\\\\cret"'), b"a1 NO wrong\r\n") as port:
        good, message, _, _ = check("imap", port, login='k"im', passwd="se\\cret")
    assert (good, message) == (False, "the server said: a1 NO wrong")


HEAD = re.compile(rb"\r\n\r\n")


def page(body=b"fine", status="200 OK"):
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


def chunked(*pieces):
    coded = b"".join(b"%x;a=b\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + coded + b"0\r\nX-Sum: 1\r\n\r\n"


def ask_web(*script, expect="fine", timeout=20, **more):
    with Server(*script) as port:
        return check("http", port, receive="(?:vs1){0}" + expect, timeout=timeout, **more)


@pytest.mark.parametrize(
    "answer",
    [
        page(),
        page(b"x" * 100_000 + b"fine"),
        chunked(b"fine"),
        chunked(b"fi", b"ne"),
        chunked(*[b"x" * 10_000] * 10, b"it is fine"),
        b"HTTP/1.0 200 OK\nServer: old\n\nfine",
        b"HTTP/1.1 200 \r\nContent-Length: 4, 4\r\n\r\nfine",
        b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n" + page(),
    ],
    ids=range(8),
)
def test_a_whole_page(answer):
    good, message, sent, received = ask_web(HEAD, answer, request="a?b=c", virtualhost="www")
    assert (good, message[:4]) == (True, "200 ")
    assert sent.startswith("GET /a?b=c HTTP/1.1\nHost: www\n")
    assert len(received) <= 65536


WAITS = re.compile(b"(?!)")  # for what never comes


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ((page(b"dead"),), "the answer does not contain what is expected"),
        ((page(status="503 Busy"),), "503 Busy"),
        ((page(status="302 Found").replace(b"\r\n\r\n", b"\r\nLocation: http://a.org/\r\n\r\n"),),
         "302 Found, to http://a.org/"),
        ((b"SSH-2.0-OpenSSH_9.6\r\n",), "the answer is no HTTP: 'SSH-2.0-OpenSSH_9.6'"),
        ((b"+OK\r\n", WAITS), "the answer is no HTTP: '+OK'"),
        ((b"fine",), "the server hung up after 'fine'"),
        ((b"HTTP/1.1 200 OK\r\nServer: x",), "the server hung up after 'Server: x'"),
        ((b"HTTP/1.1 200 OK\r\n", WAITS), "no answer within 0.3 s"),
        ((page() + b"more",), "200 OK"),
        ((page()[:-1],), "the answer ends in the middle"),
        ((page()[:-1], WAITS), "no answer within 0.3 s"),
        ((chunked(b"fine")[:-15], WAITS), "no answer within 0.3 s"),
        ((chunked(b"fine")[:-15],), "the server hung up"),
        ((chunked(b"fine")[:-17],), "the answer ends in the middle"),
        ((b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfine\r\n",),
         "the answer has a piece without a length: 'fine'"),
        ((b"HTTP/1.1 200 OK\r\nContent-Length: -4\r\n\r\nfine",), "the length of the answer is no number: '-4'"),
        ((b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\nfine",), "the server announces a page of 9999999 bytes"),
        ((b"HTTP/1.1 200 OK\r\n\r\nfine", *[b"x" * 100_000] * 50), "the server sends more than 4194304 bytes"),
        ((b"HTTP/1.1 200 OK\r\n", *[b"X: y\r\n" * 1_000] * 20), "the server sends more than 65536 bytes"),
        ((b"HTTP/1.1 200 " + b"x" * 100_000,), "the server sends a line without an end"),
    ],
    ids=range(20),
)  # fmt: skip
def test_an_answer_that_is_not_whole_or_not_good(script, message):
    found = ask_web(HEAD, *script, timeout=0.3 if message.startswith("no answer") else 20)
    assert found[:2] == (message == "200 OK", message)


@pytest.mark.parametrize(
    ("statuses", "status", "good"),
    [
        ("200-299", "204 No Content", True),
        ("200-299,401", "401 Unauthorized", True),
        ("200", "201 Created", False),
        ("200-299,302", "302 Found", True),
        ("200-399", "400 Bad Request", False),
        ("401", "200 OK", False),
    ],
)
def test_which_statuses_count(statuses, status, good):
    found = ask_web(HEAD, page(status=status), expect="", database=hidden(f"GET {statuses}"))
    assert found[:2] == (good, status)


CONTAINED, NOT_CONTAINED = (
    "the answer contains what it must not contain",
    "the answer does not contain what is expected",
)


@pytest.mark.parametrize(
    ("matching", "expect", "message"),
    [
        ("lacks", "dead", "200 OK"),
        ("lacks", "degraded", CONTAINED),
        ("pattern", "^load [0-4][.][0-9]$", "200 OK"),
        ("pattern", "^load [0-4][.][0-9] $", NOT_CONTAINED),
        ("pattern", "state: degraded.load", NOT_CONTAINED),
        ("pattern", "(?s)state: degraded.load", "200 OK"),
        ("pattern", "state: (", "the pattern cannot be read"),
        ("pattern", "(?{ die 'run' })", "the pattern cannot be read"),
        ("lacks-pattern", "load [5-9]", "200 OK"),
        ("lacks-pattern", "load [0-4]", CONTAINED),
    ],
)
def test_how_a_text_is_looked_for(matching, expect, message):
    """In the whole page, also where it comes in pieces."""
    receive = "".join(f"\\x{byte:02x}" for byte in expect.encode())
    halves = page(b"state: degraded\nload 0.7\n").partition(b"deg")
    found = ask_web(HEAD, halves[0] + b"de", lambda _: time.sleep(0.1) or b"g" + halves[2], expect=receive,
                    words=f"matching={matching}")  # fmt: skip
    assert found[:2] == (message == "200 OK", message)


def test_a_pattern_in_what_lines_say():
    with Server(re.compile(rb"PING\n"), b"+PO", lambda _: time.sleep(0.1) or b"NG\r\n") as port:
        found = check(
            "simpletcp", port, request="PING\\n", receive=r"(?:vs1){0}\x5e\x5cSPONG", words="matching=pattern"
        )
    assert found[0], found


def test_an_answer_without_a_page():
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n"
    good, message, sent, _ = ask_web(HEAD, answer, expect="", database=hidden("HEAD 200-299"))
    assert (good, message) == (True, "200 OK")
    assert sent.startswith("HEAD / HTTP/1.1\n")


def ask_several(*pages, timeout=20, expect="fine", **more):
    """The server answers with one of these at each connection; the check asks for as many, "/health fine" after the
    first one."""
    first, *others = [(HEAD, one) for one in pages]
    requests = "\n".join(f"/health/{number} fine" for number in range(1, len(pages)))
    with Server(*first, more=others) as port:
        receive = "(?:vs1){0}" + expect
        return check("http", port, receive=receive, timeout=timeout, words=f"requests={hidden(requests)}", **more)


def test_several_requests_one_after_the_other():
    """Whatever the first server says beyond its page; the bytes of each page count by themselves."""
    good, message, sent, _ = ask_several(page(b"x" * 100_000 + b"fine") + b"more", page(), page(), virtualhost="www")
    assert (good, message) == (True, "200 OK")
    assert [line for line in sent.split("\n") if line.startswith(("GET", "Host"))] == [
        "GET / HTTP/1.1", "Host: www", "GET /health/1 HTTP/1.1", "Host: www", "GET /health/2 HTTP/1.1", "Host: www",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("pages", "message"),
    [
        ((page(status="503 Busy"), page()), "/: 503 Busy"),
        ((page(), page(status="503 Busy"), page()), "/health/1: 503 Busy"),
        ((page(), page(), page(b"dead")), f"/health/2: {NOT_CONTAINED}"),
        ((page(), b"+OK\r\n"), "/health/1: the answer is no HTTP: '+OK'"),
    ],
)
def test_the_request_that_fails_is_named(pages, message):
    assert ask_several(*pages)[:2] == (False, message)


def test_all_requests_together_have_the_time_of_the_check():
    slow = lambda _: time.sleep(0.6) or page()  # noqa: E731
    good, message, *_ = ask_several(slow, slow, timeout=1)
    assert not good and re.fullmatch("/(health/1)?: no answer within 1 s", message), message


def test_what_more_requests_expect_is_looked_for_as_it_is_however_the_first_answer_is_judged():
    text = "gr\u00fcn #1"
    with Server(HEAD, page(b"well"), more=[(HEAD, page(text.encode()))]) as port:
        words = f"matching=lacks requests={hidden(f'/b {text}')}"
        assert check("http", port, receive="(?:vs1){0}dead", words=words)[:2] == (True, "200 OK")


def test_a_form_that_is_sent_by_somebody_with_a_name():
    server = Server(HEAD, page())
    with server as port:
        who = {"login": hidden("kim"), "passwd": hidden("gr\u00fcn:1")}
        good, message, sent, _ = check("http", port, database=hidden("POST 200-299"), **who)
    assert good, message
    assert server.heard.startswith(b"POST / HTTP/1.1\r\n") and b"\r\nContent-Length: 0\r\n" in server.heard
    assert b"\r\nAuthorization: Basic " + base64.b64encode("kim:gr\u00fcn:1".encode()) + b"\r\n" in server.heard
    assert "Basic ***" in sent and "a2lt" not in sent


def test_a_page_that_comes_byte_by_byte_and_not_in_time():
    """LWP gave back the status that it had when its alarm came, and the server was up."""
    good, message, _, _ = ask_web(HEAD, page()[:-4], *[lambda _: time.sleep(0.3) or b"f"] * 9, timeout=1, expect="")
    assert (good, message) == (False, "no answer within 1 s")


def stall(seconds):
    return lambda _: ldirectord().stalls(seconds) or b""


def test_a_stalled_box_blames_no_server():
    """Like a virtual machine that its host pauses: the answer is there when it goes on."""
    assert ask_web(HEAD, stall(2), page(), timeout=1)[:2] == (True, "200 OK")


@pytest.mark.parametrize(("pauses", "then"), [(1, [WAITS]), (40, [])])
def test_a_silent_server_is_down_although_the_box_stalls(pauses, then):
    """Even one that stalls again and again: long before this server has said all that it has to say."""
    script = [lambda _: ldirectord().stalls(0.8) or time.sleep(0.9) or b"x"] * pauses
    good, message, _, _ = ask_web(HEAD, *script, *then, timeout=2, expect="")
    assert (good, message) == (False, "no answer within 2 s")


@pytest.mark.parametrize(
    ("status", "receive", "message"),
    [
        ("200 OK", "", "200 OK"),
        ("200 OK", "fine", "200 OK"),
        ("200 OK", "other", "the answer does not contain what is expected"),
        ("503 Busy", "", "503 Busy"),
    ],
)
def test_https(tls, status, receive, message):
    server = Server(HEAD, page(status=status), tls=tls)
    with server as port:
        found = check("https", port, request="alive", receive="(?:vs1){0}" + receive, virtualhost="www.example.org:443")
    assert found[1] == message
    assert server.heard.startswith(b"GET /alive HTTP/1.1\r\nHost: www.example.org:443\r\n")
    assert tls.asked[-1] == "www.example.org"


@pytest.mark.parametrize("service", ["https", "imaps"])
@pytest.mark.parametrize("old", [False, True])
def test_a_server_that_knows_old_tls_alone(tls, service, old):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tls.folder / "cert.pem", tls.folder / "key.pem")
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    with warnings.catch_warnings(action="ignore"):
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1
    with Server(*((HEAD, page()) if service == "https" else GOOD[service.removesuffix("s")]), tls=context) as port:
        good, message, _, _ = check(service, port, words="old_tls=1" if old else "")
    assert (good, message.startswith("TLS: ")) == (old, not old), message


def test_a_server_that_goes_on_with_tls_and_does_not_answer(tls):
    with Server(HEAD, page()[:-1], WAITS, tls=tls) as port:
        assert check("https", port, timeout=1)[:2] == (False, "no answer within 1 s")
    with Server(ANY, WAITS) as port:
        assert check("https", port, timeout=1)[:2] == (False, "no answer within 1 s")


@pytest.mark.parametrize(
    ("name", "trusted", "good"),
    [("www.example.org", True, True), ("mail.example.org", True, False), ("www.example.org", False, False)],
)
def test_https_with_a_certificate_that_must_be_good(tls, name, trusted, good):
    with Server(HEAD, page(), tls=tls) as port:
        ca = tls.folder / "cert.pem" if trusted else "/dev/null"
        found, message, _, _ = check("https", port, secret=hidden("verify\n"), virtualhost=name, ca=ca)
    assert found == good, message
    assert good or message.startswith("TLS: "), message


@pytest.mark.parametrize("service", ["https", "imaps"])
def test_a_server_that_resets_the_connection_while_tls_begins(service):
    with Server(ANY, resets=True) as port:
        assert check(service, port)[:2] == (False, "Connection reset by peer")


@pytest.mark.parametrize("service", ["pop", "imap"])
def test_the_same_by_tls(service, tls):
    with Server(*GOOD[service], tls=tls) as port:
        good, message, _, _ = check(f"{service}s", port)
    assert good, message
    with Server(b"no TLS here\r\n" * 20) as port:
        good, message, _, _ = check(f"{service}s", port)
    assert not good and message.startswith("TLS: ")


@pytest.mark.parametrize(("answer", "good"), [(b"PONG 1\n", True), (b"half PO", False), (b"", False)])
def test_any_protocol_of_lines(answer, good):
    with Server(re.compile(rb"^PING\nx\n"), answer) as port:
        found, _, sent, _ = check("simpletcp", port, request="PING\\nx\\n", receive="(?:vs1){0}PONG")
    assert found == good
    assert sent == "PING\nx\n"


# --- telephones --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answers", "good"),
    [
        ((b"SIP/2.0 200 OK\r\n\r\n",), True),
        ((b"SIP/2.0 100 Trying\r\n\r\n", b"SIP/2.0 404 Not Found\r\n\r\n"), True),
        ((b"SIP/2.0 503 Service Unavailable\r\n\r\n",), False),
        ((b"HTTP/1.1 200 OK\r\n\r\n",), False),
        ((b"SIP/2.0 200 OK\r\nVia: x\r\n",), False),
    ],
)
@pytest.mark.parametrize("protocol", ["udp", "tcp"])
def test_sip(answers, good, protocol):
    if protocol == "tcp":
        server = Server(re.compile(rb"\r\n\r\n"), *answers)
    else:
        server = Server(lambda _: answers[0], kind=socket.SOCK_DGRAM) if len(answers) == 1 else None
    if server is None:
        return
    with server as port:
        found, message, _, _ = check("sip", port, protocol=protocol, timeout=20 if good else 1)
    assert found == good, message
    assert server.heard.startswith(b"OPTIONS sip:fairlead@127.0.0.1 SIP/2.0\r\n")
