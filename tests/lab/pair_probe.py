"""Datagrams through the directors and back, one each 5 ms, and for how long none came; a process of its own.

    python3 -m tests.lab.pair_probe CLIENT SERVER VIP PORT ADDRESS

The client and the server are network namespaces; the server has the address. A line on the input begins a new count
and prints the one before it as JSON: how many were sent and lost, and the longest silence in milliseconds.
"""

import contextlib
import itertools
import json
import os
import select
import socket
import sys
import time

EACH = 0.005  # seconds
LATE = 0.5  # seconds that an answer may take


def there(name):
    """A socket for datagrams in this namespace."""
    with open(f"/run/netns/{name}") as place:
        os.setns(place.fileno(), os.CLONE_NEWNET)  # type: ignore[attr-defined] # Python 3.12, which the guest has
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


class Probe:
    def __init__(self, client, server, vip, port, address):
        self.server = there(server)
        self.server.bind((address, int(port)))
        self.client = there(client)
        self.client.connect((vip, int(port)))
        self.sent: dict[int, float] = {}  # those of this count: number -> when
        self.number = 0
        self.answered: set[int] = set()
        self.answers: list[float] = []

    def run(self):
        due = time.monotonic()
        poll = select.poll()
        for one in (self.client, self.server, sys.stdin):
            poll.register(one, select.POLLIN)
        while True:
            if time.monotonic() >= due:
                due = max(due + EACH, time.monotonic())
                self.send()
            for handle, _ in poll.poll(max(0.0, due - time.monotonic()) * 1000):
                if handle == sys.stdin.fileno():
                    if not sys.stdin.readline():
                        return
                    print(json.dumps(self.count()), flush=True)
                else:
                    self.pass_on(handle)

    def send(self):
        self.number += 1
        self.sent[self.number] = time.monotonic()
        with contextlib.suppress(OSError):  # it is lost
            self.client.send(str(self.number).encode())

    def pass_on(self, handle):
        with contextlib.suppress(OSError):  # that of an earlier datagram
            if handle == self.server.fileno():
                self.server.sendto(*self.server.recvfrom(100))
                return
            self.answered.add(int(self.client.recv(100)))
            self.answers.append(time.monotonic())

    def count(self):
        """Those whose answer may still come belong to the next count."""
        now = time.monotonic()
        over = [number for number, when in self.sent.items() if when <= now - LATE]
        silence = max((later - earlier for earlier, later in itertools.pairwise([*self.answers, now])), default=0.0)
        found = {
            "sent": len(over),
            "lost": sum(number not in self.answered for number in over),
            "silence": round(1000 * silence),
        }
        for number in over:
            del self.sent[number]
        self.answered &= self.sent.keys()
        self.answers = self.answers[-1:]
        return found


if __name__ == "__main__":
    Probe(*sys.argv[1:]).run()
