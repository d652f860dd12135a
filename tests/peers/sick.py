"""Real servers that are sick, each in a way of its own, and others that are well; all of them in one process.

    python sick.py '[["10.2.1.1", 80, "http", "stall", "late"], …]' CERTIFICATES

A fault strikes early, in the first piece that a server says, or late, in its last one. Those of kind "hello" strike
while TLS begins; those of kind "https" are inside the encryption.

Each line of the input is JSON, and so is each answer:
    [address, fault]    what the server at this address does from now on; the answer is null
    "asked"             the answer is {address: how often it was asked}
"""

import asyncio
import json
import logging
import os
import random
import socket
import ssl
import struct
import sys
from pathlib import Path

MOST = 16 << 20  # bytes of an answer that has no end; who reads so much of it has failed anyway
BETWEEN = 1.0  # seconds between two bytes of a server that drips
SLOW = 0.3  # seconds until a server that is slow says the next piece
PAGE = b"the shop is open"
QUESTION = {"http": b"\r\n\r\n", "https": b"\r\n\r\n", "smtp": b"\n", "text": b"\n"}  # how it ends
CCS = b"\x14\x03\x03\x00\x01\x01"  # a record of TLS that its version 1.3 skips
CERTIFICATES = {"unknown": "self", "misnamed": "mail", "expired": "old"}


def page(status=b"200 OK", body=PAGE, length=True):
    return [None, b"HTTP/1.1 %s\r\n%s\r\n" % (status, b"Content-Length: %d\r\n" % len(body) if length else b""), body]


# What is said in turn; None: a question is awaited.
WELL = {
    "http": page(),
    "https": page(),
    "smtp": [b"220 sick.example.org ESMTP\r\n", None, b"250-sick.example.org\r\n250 HELP\r\n", None, b"221 bye\r\n"],
    "text": [None, b"hello from a server\r\n", b"+PONG 1\r\n"],
}
VALUES = {
    "http": {"early": page(b"503 Service Unavailable"), "late": page(body=b"the shop is shut")},
    "smtp": {"early": [b"554 not here\r\n"], "late": [*WELL["smtp"][:2], b"502 what?\r\n"]},
    "text": {"early": [None, b"-ERR\r\n"], "late": [None, b"hello\r\n+PING 1\r\n"]},
}
PROTOCOLS = {
    "http": {"early": WELL["smtp"], "late": [None, b"-ERR unknown command\r\n"]},
    "smtp": {"early": [b"HTTP/1.1 400 Bad Request\r\n\r\n"], "late": WELL["text"]},
    "text": {"early": WELL["smtp"], "late": [None, b"HTTP/1.1 400 Bad Request\r\n\r\n"]},
}
VALUES["https"], PROTOCOLS["https"] = VALUES["http"], PROTOCOLS["http"]


def conversation(kind, fault, when):
    """What a server says, and the number of the piece that goes wrong (None: it is all said)."""
    if fault in ("value", "protocol"):
        return {"value": VALUES, "protocol": PROTOCOLS}[fault][kind][when], None
    steps = page(length=False) if fault == "endless" and kind in ("http", "https") else WELL[kind]
    pieces = [number for number, step in enumerate(steps) if step]
    if kind == "smtp":
        pieces = pieces[:2]  # the answer to its last word is nobody's concern
    return steps, None if fault in ("well", "slow", *CERTIFICATES) else pieces[0 if when == "early" else -1]


class Server:
    def __init__(self, address, port, kind, fault, when, certificates):
        self.address, self.port, self.kind, self.fault, self.when = address, port, kind, fault, when
        self.asked = 0
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        name = CERTIFICATES.get(fault, "www")
        self.context.load_cert_chain(certificates / f"{name}.pem", certificates / f"{name}.key")

    async def listen(self):
        await asyncio.start_server(self.serve, self.address, self.port, backlog=64)

    async def serve(self, reader, writer):
        self.asked += 1
        try:
            if (self.kind == "https" and self.fault != "protocol") or self.fault in CERTIFICATES:
                await writer.start_tls(self.context)
            if self.kind == "hello" and self.fault not in CERTIFICATES:
                await self.say_wrong(reader, writer, *await self.hello(reader, writer))
            else:
                await self.talk(reader, writer)
        except (OSError, EOFError):
            pass  # the check has hung up
        finally:
            writer.transport.abort() if self.fault == "cut" else writer.close()

    async def talk(self, reader, writer):
        kind = "https" if self.kind == "hello" else self.kind
        steps, wrong = conversation(kind, self.fault, self.when)
        for number, step in enumerate(steps):
            if step is None:
                await reader.readuntil(QUESTION[kind] if self.fault != "protocol" else b"\n")
            elif number == wrong:
                return await self.say_wrong(reader, writer, step, b"x" * 65536)
            else:
                await asyncio.sleep(SLOW if self.fault == "slow" else 0)
                writer.write(step)
                await writer.drain()
        if self.fault == "protocol":
            await reader.read()  # it goes on waiting for a question that it knows

    async def hello(self, reader, writer):
        """What this server would say to begin TLS, and what it can say for ever."""
        came, goes = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = self.context.wrap_bio(came, goes, server_side=True)
        came.write(await reader.read(65536))
        try:
            session.do_handshake()
        except ssl.SSLWantReadError:
            flight = goes.read()
        end = 5 + int.from_bytes(flight[3:5])  # of the first record
        if self.when == "early":
            return flight[:end], CCS * 10000
        writer.write(flight[:end])
        return flight[end:], b"x" * 65536

    async def say_wrong(self, reader, writer, piece, for_ever):
        """This piece as the fault has it."""
        if self.fault == "garbage":
            piece = random.Random(self.address).randbytes(300) + b"\n"  # the same in each run
        elif self.fault == "drip":
            for byte in piece:
                await asyncio.sleep(BETWEEN)
                writer.write(bytes([byte]))
                await writer.drain()
        elif self.fault != "silence" and for_ever[:6] != CCS:
            piece = piece[: len(piece) // 2]
        if self.fault not in ("silence", "drip"):
            writer.write(piece)
            await writer.drain()
        if self.fault == "endless":
            for _ in range(MOST // len(for_ever)):
                writer.write(for_ever)
                await writer.drain()
        elif self.fault == "reset":
            end = writer.get_extra_info("socket")
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        elif self.fault in ("silence", "stall"):
            while await reader.read(4096):
                pass


async def main(places, certificates):
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # who hangs up while something is said is no news here
    servers = {place[0]: Server(*place, Path(certificates)) for place in json.loads(places)}
    for server in servers.values():
        await server.listen()
    print("null", flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        told = json.loads(line)
        if told == "asked":
            print(json.dumps({address: server.asked for address, server in servers.items()}), flush=True)
        else:
            servers[told[0]].fault = told[1]
            print("null", flush=True)
    os._exit(0)  # without a word for each connection that is open


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
