"""Each kind of check against a real server: one that is well, one that is not what was asked for, one that hangs, and
none at all."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest

from lbconfig.model.snapshot import CheckKind, HealthCheck, Matching, Protocol

PASSWORD = 'wö"r\\d #1'  # of kim, wherever she has an account
SECRET = 's3cr"et, wöl #1'
KIM = {"login": "kim", "password": PASSWORD}
LEE = KIM | {"login": "lee"}
DN = {"login": "cn=kim,dc=example,dc=org", "password": PASSWORD}
WWW = {"host": "www.example.org"}
STAFF = "ou=staff,dc=example,dc=org"
PATIENCE = 20  # seconds for an answer that comes
NONE_LEFT = 1  # second for one that does not


class Place(NamedTuple):
    server: str
    port: int
    protocol: Protocol = Protocol.TCP


PLACES = {
    CheckKind.CONNECT: Place("nginx", 80),
    CheckKind.HTTP: Place("nginx", 80),
    CheckKind.HTTPS: Place("nginx", 443),
    CheckKind.PING: Place("nginx", 80),
    CheckKind.SMTP: Place("opensmtpd", 25),
    CheckKind.SUBMISSION: Place("opensmtpd", 587),
    CheckKind.IMAP: Place("dovecot", 143),
    CheckKind.IMAPS: Place("dovecot", 993),
    CheckKind.POP: Place("dovecot", 110),
    CheckKind.POPS: Place("dovecot", 995),
    CheckKind.FTP: Place("vsftpd", 21),
    CheckKind.NNTP: Place("leafnode", 119),
    CheckKind.DNS: Place("nsd", 53, Protocol.UDP),
    CheckKind.LDAP: Place("slapd", 389),
    CheckKind.LDAPS: Place("slapd", 636),
    CheckKind.MYSQL: Place("mariadb", 3306),
    CheckKind.PGSQL: Place("postgresql", 5432),
    CheckKind.RADIUS: Place("freeradius", 1812, Protocol.UDP),
    CheckKind.SIP: Place("kamailio", 5060, Protocol.UDP),
    CheckKind.SIMPLETCP: Place("redis", 6379),
}
# What a check cannot do without, and what it says then is enough.
NEEDS = {CheckKind.RADIUS: {"secret": SECRET}, CheckKind.SIMPLETCP: {"ask": "PING\\n", "expect": "+PONG"}}
PLAIN = [(kind, NEEDS.get(kind, {})) for kind in PLACES]
GOOD = [
    (CheckKind.HTTP, {**WWW, "expect": "the shop is öpen #1"}),
    (CheckKind.HTTPS, {**WWW, "expect": "shop (is|was) ", "matching": Matching.PATTERN}),
    (CheckKind.SIMPLETCP, {"ask": "PING\\n", "expect": "^[+]PO?NG\\s", "matching": Matching.PATTERN}),
    *((kind, KIM) for kind in (CheckKind.IMAP, CheckKind.IMAPS, CheckKind.POP, CheckKind.POPS, CheckKind.FTP)),
    (CheckKind.DNS, {"ask": "www.example.org"}),
    (CheckKind.DNS, {"ask": "shop.example.org", "expect": "192.0.2.8"}),
    (CheckKind.DNS, {"ask": "www.example.org", "expect": "2001:db8::7"}),
    (CheckKind.LDAP, {"ask": "dc=example,dc=org"}),
    (CheckKind.LDAP, {**DN, "ask": STAFF}),
    (CheckKind.LDAPS, {**DN, "ask": STAFF}),
    (CheckKind.PGSQL, {"login": "kim", "database": "shop"}),
    (CheckKind.PGSQL, {"login": "lee", "database": "shop"}),
    (CheckKind.PGSQL, {**LEE, "database": "shop", "ask": "select 'öl #1'"}),
    (CheckKind.PGSQL, {**LEE, "login": "max", "ask": "select 1"}),
    (CheckKind.PGSQL, LEE),
    (CheckKind.MYSQL, KIM),
    (CheckKind.MYSQL, {**KIM, "database": "shop", "ask": "select name from articles where name = 'öl'"}),
    (CheckKind.RADIUS, {**KIM, "secret": SECRET}),
]
BAD = [
    (CheckKind.HTTP, {"path": "/busy"}, "503 Service Temporarily Unavailable"),
    (CheckKind.HTTP, {**WWW, "expect": "the shop is öpen #2"}, "the answer does not contain what is expected"),
    (CheckKind.HTTP, {"expect": "the shop is öpen #1"}, "the answer does not contain what is expected"),
    (
        CheckKind.HTTP,
        {**WWW, "expect": "the shop is", "matching": Matching.LACKS},
        "the answer contains what it must not",
    ),
    (CheckKind.HTTPS, {"path": "/busy"}, "503 Service Temporarily Unavailable"),
    (CheckKind.HTTPS, {**WWW, "expect": "closed"}, "the answer does not contain what is expected"),
    (CheckKind.IMAP, {**KIM, "password": "x"}, "the server said: a1 NO [AUTHENTICATIONFAILED] Authentication failed."),
    (CheckKind.IMAPS, {**KIM, "password": "x"}, "the server said: a1 NO [AUTHENTICATIONFAILED] Authentication failed."),
    (CheckKind.POP, {**KIM, "password": "x"}, "the server said: -ERR [AUTH] Authentication failed."),
    (CheckKind.POPS, {**KIM, "password": "x"}, "the server said: -ERR [AUTH] Authentication failed."),
    (CheckKind.FTP, {**KIM, "password": "x"}, "the server said: 530 Login incorrect."),
    (CheckKind.DNS, {"ask": "none.example.org"}, "the server said: no such name"),
    (CheckKind.DNS, {"ask": "www.example.com"}, "the server said: refused"),
    (CheckKind.DNS, {"ask": "mute.example.org"}, "mute.example.org has no address there"),
    (CheckKind.DNS, {"ask": "ns.example.org", "expect": "192.0.2.7"}, "ns.example.org is 192.0.2.53 there"),
    (CheckKind.LDAP, {**DN, "password": "x"}, "bind: result 49"),
    (CheckKind.LDAP, {"ask": STAFF}, f"search of {STAFF}: result 32"),
    (CheckKind.LDAPS, {**DN, "ask": "ou=none"}, "search of ou=none: result 32"),
    (CheckKind.PGSQL, {"login": "kim", "database": "none"}, 'the server said: database "none" does not exist'),
    (CheckKind.PGSQL, {"login": "kim", "database": "books"}, "the server said: pg_hba.conf rejects connection"),
    (CheckKind.PGSQL, {**LEE, "password": "x"}, 'the server said: password authentication failed for user "lee"'),
    (CheckKind.PGSQL, {**LEE, "ask": "select 1 where false"}, "the query finds no row"),
    (CheckKind.PGSQL, {**LEE, "ask": "select * from nothing"}, 'the server said: relation "nothing" does not exist'),
    (CheckKind.PGSQL, {"login": "kim", "ask": "rollback"}, "the query finds no row"),
    (CheckKind.MYSQL, {**KIM, "password": "x"}, "the server said: error 1045, Access denied for user 'kim'"),
    (CheckKind.MYSQL, {**KIM, "database": "books"}, "the server said: error 1044, Access denied for user 'kim'"),
    (
        CheckKind.MYSQL,
        {**KIM, "database": "shop", "ask": "select * from articles where false"},
        "the query finds no row",
    ),
    (CheckKind.MYSQL, {**KIM, "ask": "do 1"}, "the query finds no row"),
    (
        CheckKind.MYSQL,
        {**KIM, "ask": "select * from shop.nothing"},
        "the server said: error 1146, Table 'shop.nothing'",
    ),
    (CheckKind.RADIUS, {**KIM, "secret": SECRET, "password": "x"}, "the server refuses kim"),
    (CheckKind.RADIUS, {"secret": "x", "timeout": NONE_LEFT}, "no answer within 1 s"),
    (CheckKind.SIMPLETCP, {"ask": "PING\\n", "expect": "PENG", "timeout": NONE_LEFT}, "no answer within 1 s"),
]
ASK_THE_KERNEL = {CheckKind.CONNECT, CheckKind.PING}  # a server that hangs looks well to them


def ask(lab, kind, six=False, protocol=None, port=0, timeout=PATIENCE, **fields):
    place = PLACES[kind]
    check = HealthCheck(kind, timeout=timeout, **fields)
    return lab.ask(place.server, port or place.port, check, protocol or place.protocol, six)


def test_no_kind_is_forgotten():
    """The admin's own programs have a file of their own (test_programs.py)."""
    assert set(PLACES) == set(CheckKind) - {CheckKind.OFF, CheckKind.PROGRAM}


@pytest.mark.parametrize(("kind", "fields"), [*PLAIN, *GOOD])
def test_a_good_server(lab, kind, fields):
    found = ask(lab, kind, **fields)
    assert found["state"] == "up", found


@pytest.mark.parametrize(("kind", "fields"), PLAIN)
def test_a_good_server_by_ipv6(lab, kind, fields):
    found = ask(lab, kind, six=True, **fields)
    if kind is CheckKind.MYSQL:  # it has no account for anybody from there, and says so instead of its greeting
        assert found["message"].endswith(
            "error 1130, Host 'box6.fairlead.internal' is not allowed to connect to this MariaDB server"
        )
    assert found["state"] == ("down" if kind is CheckKind.MYSQL else "up"), found


@pytest.mark.parametrize(("kind", "fields", "message"), BAD)
def test_a_server_that_is_not_what_was_asked_for(lab, kind, fields, message):
    found = ask(lab, kind, **fields)
    assert found["state"] == "down", found
    assert found["message"].startswith(message.replace("ö", ".."))


@pytest.mark.parametrize("protocol", [Protocol.UDP, Protocol.TCP])
@pytest.mark.parametrize("six", [False, True])
def test_a_telephone_exchange_that_has_no_time(lab, protocol, six):
    assert ask(lab, CheckKind.SIP, six, protocol)["state"] == "up"
    found = ask(lab, CheckKind.SIP, six, protocol, port=5070)
    assert (found["state"], found["message"]) == ("down", "the server said: SIP/2.0 503 Service Unavailable")


@pytest.mark.parametrize(("expect", "state"), [("192.0.2.7", "up"), ("192.0.2.9", "down")])
def test_names_by_tcp(lab, expect, state):
    assert ask(lab, CheckKind.DNS, protocol=Protocol.TCP, ask="www.example.org", expect=expect)["state"] == state


@pytest.mark.parametrize(("port", "state"), [(80, "up"), (81, "down")])
def test_a_service_by_udp_whose_servers_are_checked_by_tcp(lab, port, state):
    """ldirectord would ping them, and find both well."""
    check = HealthCheck(CheckKind.CONNECT, port=port, timeout=PATIENCE)
    assert lab.ask("nginx", 514, check, Protocol.UDP, False)["state"] == state


def test_many_checks_do_not_make_a_database_shut_the_box_out(lab):
    """This one takes three connections that break off before the next one from there is refused (100 as it comes)."""
    assert [ask(lab, CheckKind.MYSQL)["state"] for _ in range(6)] == ["up"] * 6


@pytest.fixture(scope="module")
def hanging(lab):
    """What is found while every server hangs."""
    with lab.frozen():
        return ask_all(lab, NONE_LEFT)


@pytest.mark.parametrize("kind", PLACES)
def test_a_server_that_hangs(hanging, kind):
    found = hanging[kind]
    if kind in ASK_THE_KERNEL:
        assert found["state"] == "up"
    else:
        assert found["state"] == "down"
        assert NONE_LEFT <= found["seconds"] < PATIENCE
        assert found["message"] == "no answer within 1 s"


@pytest.fixture(scope="module")
def ended(lab):
    """What is found while the machines are there and no server runs on them."""
    with lab.stopped():
        return ask_all(lab, PATIENCE)


@pytest.mark.parametrize("kind", PLACES)
def test_a_server_that_does_not_run(ended, kind):
    found = ended[kind]
    if kind is CheckKind.PING:
        assert found["state"] == "up"
    else:
        assert found["state"] == "down"
        assert found["seconds"] < PATIENCE
        assert "refused" in found["message"]


def ask_all(lab, timeout):
    """Side by side: most of the time is waiting."""
    with ThreadPoolExecutor(8) as pool:
        asked = {kind: pool.submit(ask, lab, kind, timeout=timeout, **NEEDS.get(kind, {})) for kind in PLACES}
        return {kind: one.result() for kind, one in asked.items()}
