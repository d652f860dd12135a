"""Bodies that come straight from the client: how many at once, how slowly, and what becomes of the rest."""

import io
import socket
import threading

import pytest
from django.http import UnreadablePostError
from django.test import RequestFactory

from web import bodies


def coming(length: int, connection=None, body=None):
    stream = connection.makefile("rb", buffering=0) if connection else io.BytesIO(body or b"x" * length)
    extra = {"wsgi.input": stream, "gunicorn.socket": connection, "CONTENT_LENGTH": str(length)}
    return RequestFactory().post("/", **extra)


def test_a_whole_body():
    request = coming(50_000)
    with bodies.coming_in(request):
        assert len(request.read(40_000)) == 40_000
        assert len(request.read()) == 10_000
        assert request.read() == b""


def test_of_long_bodies_only_some_come_in_at_once():
    long, short = coming(bodies.SHORT + 1), coming(bodies.SHORT)
    with bodies.coming_in(long), bodies.coming_in(coming(bodies.SHORT + 1)):
        with pytest.raises(bodies.Crowded, match="2 files"), bodies.coming_in(long):
            pass
        with bodies.coming_in(short):
            assert short.read(10)
    with bodies.coming_in(long):
        assert long.read(10)


def test_a_body_that_comes_too_slowly_is_cut_off(monkeypatch):
    monkeypatch.setattr(bodies, "PATIENCE", 0.3)
    near, far = socket.socketpair()
    request, over = coming(1000, near), threading.Event()

    def trickle():
        """A byte each time long before anybody lost his patience, as a stranger does."""
        while not over.wait(0.02):
            far.send(b"x")

    thread = threading.Thread(target=trickle)
    with near, far, bodies.coming_in(request):
        thread.start()
        try:
            with pytest.raises(UnreadablePostError, match="ended early"):
                request.read()
            near.send(b"an answer")
            assert far.recv(100) == b"an answer"
        finally:
            over.set()
            thread.join()


def test_a_body_that_comes_as_fast_as_it_must_is_not(monkeypatch):
    monkeypatch.setattr(bodies, "PATIENCE", 0.3)
    near, far = socket.socketpair()
    length = 5 * bodies.LEAST
    request, over = coming(length, near), threading.Event()

    def send():
        for _ in range(10):
            over.wait(0.05)
            far.send(b"x" * (length // 10))

    thread = threading.Thread(target=send)
    with near, far, bodies.coming_in(request):
        thread.start()
        assert len(request.read()) == length
        thread.join()


def test_a_client_that_goes_away_leaves_no_half(monkeypatch):
    request = coming(1000, body=b"x" * 999)
    with bodies.coming_in(request), pytest.raises(UnreadablePostError):
        request.read()
