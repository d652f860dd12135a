"""The checks of directories, databases, RADIUS and DNS, against servers that answer well, badly, or not at all."""

import hashlib
import hmac
import re
import socket
import struct

import pytest
from talking_servers import ANY, Server, check

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
        (b"HTTP/1.1 400\r\n", "an answer that is no LDAP"),
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
        (mysql_packet(b"\x09old"), "an answer that is no MySQL"),
        (b"\xff\xff\xff\0", "the server announces 16777215 bytes"),
        (b"\0\0\0\0", "an answer that is no MySQL"),
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
        (pgsql_message(b"H"), NAMED, "an answer that is no PostgreSQL"),
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
        ("www.example.org", "", lambda _: b"short", "an answer that is no DNS"),
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
