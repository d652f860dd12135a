"""Many clients that begin at once, each with a connection that lives on; a process of its own.

    python3 -m tests.lab.pair_crowd CLIENT ADDRESS VIP PORT RATE

So many connections a second are opened from this address of the network namespace, and something is said over each,
whatever is answered. A line on the input ends that. The next one is the moment of a death (seconds of the monotonic
clock): everyone asks once more, and what became of those that were open at that moment is printed as JSON.
"""

import contextlib
import json
import os
import resource
import selectors
import socket
import sys
import threading
import time

LAST = 1.0  # second before the newest of them
PATIENCE = 20.0  # seconds without any answer
MOST = 20_000  # open files


class Crowd:
    def __init__(self, client, address, vip, port, rate):
        with open(f"/run/netns/{client}") as place:
            os.setns(place.fileno(), os.CLONE_NEWNET)  # type: ignore[attr-defined] # Python 3.12, which the guest has
        os.nice(10)  # in life they have machines of their own, which take nothing from the boxes
        resource.setrlimit(resource.RLIMIT_NOFILE, (MOST, MOST))
        self.address, self.there, self.each = address, (vip, int(port)), 1 / float(rate)
        self.opened: list[tuple[float, socket.socket]] = []  # when something was said over it
        self.enough = threading.Event()

    def run(self):
        threading.Thread(target=self.open_all, daemon=True).start()
        sys.stdin.readline()
        self.enough.set()
        died = float(sys.stdin.readline())
        print(json.dumps(self.became([one for one in self.opened if one[0] <= died])), flush=True)

    def open_all(self):
        due = time.monotonic()
        with selectors.DefaultSelector() as waiting:
            while not self.enough.is_set():
                if time.monotonic() >= due:
                    due += self.each
                    one = self.begun()
                    waiting.register(one, selectors.EVENT_WRITE, one)
                for key, _ in waiting.select(max(0.0, due - time.monotonic())):
                    waiting.unregister(key.fileobj)
                    with contextlib.suppress(OSError):  # refused: it was never open
                        key.data.send(b"?")
                        self.opened.append((time.monotonic(), key.data))

    def begun(self):
        one = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        one.bind((self.address, 0))
        one.connect_ex(self.there)
        return one

    def became(self, some):
        """How many came in the last second and in all, and how old those were that get no answer any more."""
        newest = max(when for when, _ in some)
        good = answered([one for _, one in some])
        ages = {one: newest - when for when, one in some}
        return {
            "all": len(some),
            "last": sum(age <= LAST for age in ages.values()),
            "lost": sorted(round(age, 3) for one, age in ages.items() if one not in good),
        }


def answered(some):
    good: set[socket.socket] = set()
    with selectors.DefaultSelector() as waiting:
        for one in some:
            with contextlib.suppress(OSError):
                one.send(b"?")
            waiting.register(one, selectors.EVENT_READ, one)
        heard = time.monotonic()
        while waiting.get_map() and time.monotonic() - heard < PATIENCE:
            for key, _ in waiting.select(1.0):
                heard = time.monotonic()
                waiting.unregister(key.fileobj)
                with contextlib.suppress(OSError):
                    good |= {key.data} if key.data.recv(100) else set()
    return good


if __name__ == "__main__":
    Crowd(*sys.argv[1:]).run()
