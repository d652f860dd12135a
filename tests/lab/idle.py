"""Connections that rest: spoken over once, and again only when somebody asks. Runs in the guest that plays the world.

    idle.py hold FILE KINDS             KINDS is JSON: [[name, "tcp" or "udp", host, port, count], …]. Each SIGUSR1
                                        speaks over all of them and writes into FILE how many of each kind were answered
                                        by the server that they had
    idle.py serve NAME PORT ADDRESS …   answers datagrams at these addresses with the name

A server that listens on all addresses answers a datagram from its own one; what reaches it past the director has to
come back from the virtual address.
"""

import contextlib
import json
import os
import selectors
import signal
import socket
import sys
import time

PATIENCE = 20.0  # seconds for an answer
AGAIN = 1.0  # seconds after which a datagram is sent again, as its client would
FIRST_PORT = 20_000  # of the client
FREEBIND = 15  # linux/in.h
HOW = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}


class Connection:
    def __init__(self, kind, how, host, port, own_port):
        self.kind, self.why = kind, ""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.socket = socket.socket(family, HOW[how])
        self.datagrams = how == "udp"
        self.socket.settimeout(PATIENCE)
        self.socket.bind(("", own_port))
        self.socket.connect((host, port))
        self.ask()
        self.server = self.answer()

    def ask(self):
        with contextlib.suppress(OSError):
            self.socket.send(b"?\n")

    def answer(self):
        """The name of the server; empty where the connection has ended."""
        try:
            return self.socket.recv(1000).decode().partition(" ")[0]
        except OSError as error:
            self.why = str(error)
            return ""

    def forget_answers(self):
        """Those to a question that was sent twice."""
        self.socket.setblocking(False)
        with contextlib.suppress(OSError):
            while self.socket.recv(1000):
                pass
        self.socket.settimeout(PATIENCE)


def talk(held):
    """Over all at once: how many of each kind were answered by the server that they had."""
    kept = dict.fromkeys((one.kind for one in held), 0)
    waiting = set(held)
    end = time.monotonic() + PATIENCE
    with selectors.DefaultSelector() as selector:
        for one in held:
            if one.datagrams:
                one.forget_answers()
            one.ask()
            selector.register(one.socket, selectors.EVENT_READ, one)
        asked = time.monotonic()
        while waiting and time.monotonic() < end:
            for key, _ in selector.select(AGAIN):
                one = key.data
                said = one.answer()
                kept[one.kind] += said == one.server
                if said != one.server:
                    complain(one, f"answered by {said or 'nobody'}: {one.why or 'the end'}")
                selector.unregister(one.socket)
                waiting.remove(one)
            if time.monotonic() >= asked + AGAIN:
                for one in waiting:
                    if one.datagrams:
                        one.ask()
                asked = time.monotonic()
    for one in waiting:
        complain(one, "no answer")
    return kept


def complain(one, what):
    print(time.strftime("%T"), one.kind, one.socket.getsockname()[1], f"had {one.server},", what, flush=True)


def hold(file, kinds):
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    wanted = [(kind, how, host, port) for kind, how, host, port, count in json.loads(kinds) for _ in range(count)]
    # Two services with NAT and one port of one server: a client that uses a port of its own twice is one to the server.
    held = [Connection(*one, FIRST_PORT + number) for number, one in enumerate(wanted)]
    while True:
        with open(f"{file}.new", "w") as output:
            json.dump(talk(held), output)
        os.replace(f"{file}.new", file)
        signal.sigwait({signal.SIGUSR1})


def serve(name, port, *addresses):
    with selectors.DefaultSelector() as selector:
        for address in addresses:
            own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            own.setsockopt(socket.SOL_IP, FREEBIND, 1)  # the server gets the address later
            own.bind((address, int(port)))
            selector.register(own, selectors.EVENT_READ, own)
        while True:
            for key, _ in selector.select():
                with contextlib.suppress(OSError):
                    data, sender = key.data.recvfrom(1000)
                    key.data.sendto(f"{name} ".encode() + data, sender)


if __name__ == "__main__":
    {"hold": hold, "serve": serve}[sys.argv[1]](*sys.argv[2:])
