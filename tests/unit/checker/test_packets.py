"""The checks of directories, databases, RADIUS and DNS, against servers that answer well, badly, or not at all."""

import hashlib
import hmac
import re
import socket
import struct
import threading

import pytest
from talking_servers import ANY, Server, check, hidden

# --- directories ---------------------------------------------------------------------------------------------


def ber(kind, content):
    assert len(content) < 128
    return bytes([kind, len(content)]) + content


def ldap_answer(number, kind, code=0, text=b""):
    return ber(0x30, ber(2, bytes([number])) + ber(kind, ber(10, bytes([code])) + ber(4, b"") + ber(4, text)))


ENTRY = ber(0x30, ber(2, b"\2") + ber(0x64, ber(4, b"dc=x") + ber(0x30, b"")))


def test_ldap_bind_without_a_name():
    server = Server(ANY, ldap_answer(1, 0x61), ANY)
    with server as port:
        good, message, _, _ = check("ldap", port)
    assert good, message
    assert server.heard.startswith(bytes.fromhex("300c020101600702010304008000"))


def test_ldap_bind_that_is_refused():
    with Server(ANY, ldap_answer(1, 0x61, 49, b"invalid credentials")) as port:
        good, message, sent, _ = check("ldap", port, login="cn=a,dc=x", passwd="secret")
    assert (good, message) == (False, "bind: result 49, invalid credentials")
    assert sent == "bind as cn=a,dc=x\n"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (ENTRY + ldap_answer(2, 0x65), "Success"),
        (ldap_answer(2, 0x65), "search of dc=x: nothing was found"),
        (ldap_answer(2, 0x65, 32, b"no such object"), "search of dc=x: result 32, no such object"),
        (b"\x30\x84\x7f\xff\xff\xff", "the server announces 2147483647 bytes"),
        (b"HTTP/1.1 400\r\n", "an answer that is not LDAP"),
    ],
)
def test_ldap_search(answer, message):
    with Server(ANY, ldap_answer(1, 0x61), ANY, answer) as port:
        assert check("ldap", port, request="dc=x")[1] == message


# --- databases ------------------------------------------------------------------------------------------------


def mysql_packet(body, number=0):
    return struct.pack("<I", len(body))[:3] + bytes([number]) + body


GREETING = mysql_packet(b"\x0a8.0.36\0" + b"x" * 40)


@pytest.mark.parametrize(
    ("packet", "message"),
    [
        (mysql_packet(b"\xff\x10\x04Too many connections"), "the server said: error 1040, Too many connections"),
        (mysql_packet(b"\x09old"), "an answer that is not MySQL"),
        (b"\xff\xff\xff\0", "the server announces 16777215 bytes"),
        (b"\0\0\0\0", "an answer that is not MySQL"),
        (GREETING, "the server hung up"),
    ],
)
def test_mysql_that_does_not_take_us(packet, message):
    with Server(packet) as port:
        assert check("mysql", port)[:2] == (False, message)


LOG_IN_MYSQL = re.compile(rb"(?s)^.{3}\x01.{32}fairlead\0\0mysql_native_password\0")


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ((b"\xff\x15\x04#28000Access denied",), "Success"),
        ((b"\xfecaching_sha2_password\0" + b"x" * 20, b"\xff\x15\x04#28000Access denied"), "Success"),
        ((b"\0\0\0\2\0\0\0", None), "Success"),
        (
            (b"\xff\x1d\x04#08S01Server shutdown in progress",),
            "the server said: error 1053, Server shutdown in progress",
        ),
    ],
)
def test_mysql_gets_an_answer_to_its_greeting(answers, message):
    """A server that sees too many connections break off after it has greeted lets nobody in from that address."""
    after = [LOG_IN_MYSQL]
    for number, answer in enumerate(answers, 1):
        after += [mysql_packet(answer, 2 * number), ANY] if answer else []
    server = Server(GREETING, *after)
    with server as port:
        assert check("mysql", port)[1] == message
    assert LOG_IN_MYSQL.match(server.heard)
    if None in answers:
        assert server.heard.endswith(b"\1\0\0\0\1")  # quit


NONCE = bytes(range(65, 85))
TLS_TOO = 0x800


def greets(way, can=0):
    head = b"\x0a8.4.0\0" + b"\0" * 4 + NONCE[:8] + b"\0" + struct.pack("<HBHHB", 0xFFFF & can, 33, 2, 8, 21)
    return mysql_packet(head + b"\0" * 10 + NONCE[8:] + b"\0" + way + b"\0")


def rows(*rows):
    end = b"\xfe\0\0\2\0"
    return b"".join(mysql_packet(one, turn) for turn, one in enumerate([b"\1", b"\3defx", end, *rows, end], 1))


MYSQL_OK = b"\0\0\0\2\0\0\0"
KNOWN = {"login": "kim", "passwd": hidden("s\xf6cret"), "database": hidden("shop")}
WORD = "s\xf6cret".encode()


def sha2(nonce):
    """What a client says that knows the password."""
    once = hashlib.sha256(WORD).digest()
    other = hashlib.sha256(hashlib.sha256(once).digest() + nonce).digest()
    return bytes(a ^ b for a, b in zip(once, other, strict=True))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (rows(b"\1x", b"\xfb"), "Success"),
        (rows(), "the query finds no row"),
        (rows(b"\1x")[:-9], "the server hung up"),
        (mysql_packet(b"\xff\x7a\x04#42S02no such table", 1), "the server said: error 1146, no such table"),
    ],
)
def test_mysql_lets_in_who_knows_the_password_and_answers(answer, message):
    server = Server(
        greets(b"caching_sha2_password"), ANY, mysql_packet(b"\x01\x03", 2) + mysql_packet(MYSQL_OK, 3),
        re.compile(rb"\x03select 1"), answer,
    )  # fmt: skip
    with server as port:
        assert check("mysql", port, request="select 1", **KNOWN)[1] == message
    assert b"kim\0\x20" + sha2(NONCE) + b"shop\0caching_sha2_password\0" in server.heard


def test_mysql_asks_for_another_way():
    server = Server(
        greets(b"ed25519"), ANY, mysql_packet(b"\xfecaching_sha2_password\0" + NONCE[::-1] + b"\0", 2),
        ANY, mysql_packet(MYSQL_OK, 4), ANY,
    )  # fmt: skip
    with server as port:
        assert check("mysql", port, **KNOWN)[0]
    assert mysql_packet(sha2(NONCE[::-1]), 3) in server.heard
    with Server(greets(b""), ANY, mysql_packet(b"\xfedialog\0", 2)) as port:
        assert "a log-in by dialog, which this box does not know" in check("mysql", port, **KNOWN)[1]


@pytest.mark.parametrize("can", [0, TLS_TOO])
def test_mysql_is_told_the_password_itself_over_tls_only(tls, can):
    """caching_sha2_password, of an account that the server has not seen since it started."""
    heard = []

    def serve():
        with listener.accept()[0] as end:
            end.sendall(greets(b"caching_sha2_password", can))
            heard.append(end.recv(4096))
            end.sendall(mysql_packet(b"\x01\x04", 2))
            heard.append(end.recv(4096))
        with listener.accept()[0] as end:
            end.sendall(greets(b"caching_sha2_password", can))
            heard.append(end.recv(36))
            if not can:
                return
            with tls.wrap_socket(end, server_side=True) as safe:
                heard.append(safe.recv(4096))
                safe.sendall(mysql_packet(b"\x01\x04", 3))
                heard.append(safe.recv(4096))
                safe.sendall(mysql_packet(MYSQL_OK, 5))
                safe.recv(4096)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(20)
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        good, message, sent, _ = check("mysql", listener.getsockname()[1], **KNOWN)
        thread.join(20)
    assert (good, message) == ((True, "Success") if can else (False, NO_TLS))
    plain, safe = heard[:3], heard[3:]
    assert not any(WORD in one for one in plain) and "cret" not in sent
    assert safe[1:] == ([mysql_packet(WORD + b"\0", 4)] if can else [])


NO_TLS = "the server asks for the password itself, and has no TLS"


def test_postgresql_must_know_the_password_too():
    """SCRAM: who only pretends to be the server cannot prove that it knows it; and no rounds without an end."""
    first = pgsql_message(b"R", struct.pack(">I", 10) + b"SCRAM-SHA-256\0\0")

    def continues(rounds):
        def say(heard):
            nonce = re.search(rb"r=([0-9a-f]+)", heard)[1]
            return pgsql_message(b"R", struct.pack(">I", 11) + b"r=" + nonce + b"xyz,s=c2FsdA==,i=%d" % rounds)

        return say

    proof = pgsql_message(b"R", struct.pack(">I", 12) + b"v=" + b"A" * 43 + b"=")
    named = {"login": "kim", "passwd": hidden("x")}
    with Server(ANY, first, ANY, continues(4096), ANY, proof) as port:
        assert check("pgsql", port, **named)[:2] == (False, "the server does not know the password")
    with Server(ANY, first, ANY, continues(10**8), ANY) as port:
        assert check("pgsql", port, **named)[:2] == (False, "the server asks for 100000000 rounds of SCRAM")


def pgsql_error(**fields):
    body = b"".join(f"{key}{text}\0".encode() for key, text in fields.items()) + b"\0"
    return b"E" + struct.pack(">I", 4 + len(body)) + body


def pgsql_message(kind, body=b""):
    return kind + struct.pack(">I", 4 + len(body)) + body


LET_IN = pgsql_message(b"R", struct.pack(">I", 0))
NO_DATABASE = pgsql_error(S="FATAL", C="3D000", M='database "shop" does not exist')
NO_ENTRY = pgsql_error(S="FATAL", C="28000", M="no pg_hba.conf entry")
NAMED = {"login": "kim", "database": "shop"}


@pytest.mark.parametrize(
    ("answer", "named", "message"),
    [
        (pgsql_message(b"R", struct.pack(">I", 10) + b"SCRAM-SHA-256\0\0"), NAMED, "Success"),
        (
            LET_IN + pgsql_message(b"S", b"a\0b\0") + pgsql_message(b"K", b"12345678") + pgsql_message(b"Z", b"I"),
            NAMED,
            "Success",
        ),
        (LET_IN + NO_DATABASE, NAMED, 'the server said: database "shop" does not exist'),
        (NO_ENTRY, NAMED, "the server said: no pg_hba.conf entry"),
        (NO_ENTRY, {}, "Success"),
        (LET_IN + NO_DATABASE, {}, "Success"),
        (
            pgsql_error(S="FATAL", C="57P03", M="the database system is starting up"),
            {},
            "the server said: the database system is starting up",
        ),
        (pgsql_message(b"H"), NAMED, "an answer that is not PostgreSQL"),
    ],
)
def test_pgsql(answer, named, message):
    """What nobody has named cannot be wrong."""
    server = Server(ANY, answer)
    with server as port:
        assert check("pgsql", port, **named)[1] == message
    user, database = named.get("login", "fairlead"), named.get("database", "postgres")
    words = f"user\0{user}\0database\0{database}\0\0".encode()
    assert server.heard == struct.pack(">II", 8 + len(words), 196608) + words


# --- names and passwords ---------------------------------------------------------------------------------------


def radius_answer(code, secret=b"s3cret", password=b"pass word of more than sixteen"):
    def answer(request):
        kind, number, length, random = struct.unpack(">BBH16s", request[:20])
        assert length == len(request)
        attributes, rest = {}, request[20:]
        while rest:
            attributes[rest[0]] = rest[2 : rest[1]]
            rest = rest[rest[1] :]
        unsigned = request[:-16] + b"\0" * 16
        assert hmac.new(secret, unsigned, "md5").digest() == attributes[80]
        if kind == 1:
            assert attributes[1] == b"kim"
            hidden, shown, before = attributes[2], b"", random
            for start in range(0, len(hidden), 16):
                part = hidden[start : start + 16]
                shown += bytes(a ^ b for a, b in zip(part, hashlib.md5(secret + before).digest(), strict=True))
                before = part
            assert shown.rstrip(b"\0") == password
        head = struct.pack(">BBH", code, number, 20)
        return head + hashlib.md5(head + random + secret).digest()

    return answer


@pytest.mark.parametrize(
    ("code", "secret", "login", "message"),
    [
        (2, b"s3cret", "", "Success"),
        (5, b"s3cret", "", "Success"),
        (2, b"s3cret", "kim", "Success"),
        (3, b"s3cret", "kim", "the server refuses kim"),
        (11, b"s3cret", "kim", "an answer with code 11"),
    ],
)
def test_radius(code, secret, login, message):
    with Server(radius_answer(code, secret), kind=socket.SOCK_DGRAM) as port:
        more = {"login": login, "passwd": "pass word of more than sixteen"} if login else {}
        assert check("radius", port, protocol="udp", secret="s3cret", **more)[1] == message


def test_radius_with_another_secret():
    def forged(request):
        head = struct.pack(">BBH", 2, request[1], 20)
        return head + hashlib.md5(head + request[4:20] + b"wrong").digest()

    with Server(forged, kind=socket.SOCK_DGRAM) as port:
        found = check("radius", port, protocol="udp", secret="s3cret")
    assert found[:2] == (False, "an answer that was made with another secret")


def dns_answer(result, *records):
    """Records: (type, data)."""

    def answer(query):
        head = query[:2] + struct.pack(">HHHHH", 0x8180 | result, 1, len(records), 0, 0)
        body = b"".join(b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 60, len(data)) + data for kind, data in records)
        return head + query[12:] + body

    return answer


A_LONGER = (1, bytes([192, 0, 2, 77]))
A, AAAA = (1, bytes([192, 0, 2, 7])), (28, socket.inet_pton(socket.AF_INET6, "2001:db8::7"))


@pytest.mark.parametrize(
    ("request_", "receive", "answer", "message"),
    [
        ("www.example.org", "", dns_answer(0, (5, b"\xc0\x0c"), A), "Success"),
        ("www.example.org", r"192\x2e0\x2e2\x2e7", dns_answer(0, A), "Success"),
        ("www.example.org", r"2001\x3adb8\x3a0\x3a0\x3a0\x3a0\x3a0\x3a7", dns_answer(0, AAAA), "Success"),
        ("www.example.org", r"192\x2e0\x2e2\x2e77", dns_answer(0, A), "www.example.org is 192.0.2.7 there"),
        ("www.example.org", r"192\x2e0\x2e2\x2e7", dns_answer(0, A_LONGER), "www.example.org is 192.0.2.77 there"),
        ("www.example.org", r"2001\x3adb8\x3a\x3a", dns_answer(0, AAAA), "www.example.org is 2001:db8::7 there"),
        ("www.example.org", r"192\x2e0", dns_answer(0, A), "'192.0' is expected, which is no address"),
        ("www.example.org", "", dns_answer(0), "www.example.org has no address there"),
        ("www.example.org", "", dns_answer(2), "the server said: server failure"),
        ("www.example.org.", "", dns_answer(3), "the server said: no such name"),
        ("", "", dns_answer(5), "Success"),
        ("www.example.org", "", lambda _: b"short", "an answer that is not DNS"),
        ("www.example.org", "", lambda query: dns_answer(0, A)(query)[:-1], "an answer that is not whole"),
        ("", "", lambda query: dns_answer(5)(query)[:-1], "an answer that is not whole"),
        ("www.example.org", "", lambda query: query, "an answer to another question"),
    ],
)
def test_dns(request_, receive, answer, message):
    server = Server(answer, kind=socket.SOCK_DGRAM)
    with server as port:
        found = check("dns", port, protocol="udp", request=request_, receive="(?:vs1){0}" + receive)
    assert found[1] == message
    kind = 2 if not request_ else 28 if "x3a" in receive else 1
    assert server.heard.endswith(struct.pack(">HH", kind, 1))


def test_dns_by_tcp():
    def answer(query):
        body = dns_answer(0, A)(query[2:])
        return struct.pack(">H", len(body)) + body

    with Server(re.compile(rb"(?s)^.{14}.*\x00\x00\x01\x00\x01$"), answer) as port:
        assert check("dns", port, request="www.example.org")[1] == "Success"
