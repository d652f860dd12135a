"""Real servers that do nothing but take connections, each with an agent that says what it is told to.

    python agents.py '["10.2.0.81", …]'

Each line of the input is JSON: [address, what, value]
    "says", text      the agent's bytes from now on (one character each); null: it takes the question and is silent
    "up", bool        whether anybody listens at port 80
    "slow", seconds   how long port 80 takes to answer over HTTP
It says "done" after each.
"""

import contextlib
import json
import os
import socket
import sys
import threading
import time

AGENT, WEB = 3333, 80
SILENT = 20  # seconds; who asks has long gone


class Server:
    def __init__(self, address):
        self.address, self.says, self.delay, self.web = address, "100%\n", 0.0, None
        self.listen(AGENT, self.talk)
        self.up(True)

    def listen(self, port, answer):
        listener = socket.create_server((self.address, port), backlog=64)
        threading.Thread(target=self.serve, args=(listener, answer), daemon=True).start()
        return listener

    def serve(self, listener, answer):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self.one, args=(listener.accept()[0], answer), daemon=True).start()

    def one(self, end, answer):
        with contextlib.suppress(OSError), end:
            answer(end)

    def talk(self, end):
        text = self.says
        if text is None:
            time.sleep(SILENT)
        elif text.startswith("drip:"):
            for byte in text:
                end.sendall(byte.encode())
                time.sleep(1)
        elif text == "reset":
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        else:
            end.sendall(text.encode("latin-1"))

    def page(self, end):
        end.recv(4096)
        time.sleep(self.delay)
        end.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    def up(self, wanted):
        if wanted and not self.web:
            self.web = self.listen(WEB, self.page)
        elif not wanted and self.web:
            self.web.shutdown(socket.SHUT_RDWR)  # so that accept() ends
            self.web.close()
            self.web = None


def main(addresses):
    servers = {address: Server(address) for address in json.loads(addresses)}
    os.write(1, b"done\n")
    for line in sys.stdin:
        address, what, value = json.loads(line)
        if what == "up":
            servers[address].up(value)
        elif what == "slow":
            servers[address].delay = value
        else:
            servers[address].says = value
        os.write(1, b"done\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
