"""A real server that tells its name: HTTP on port 80, lines over TCP and datagrams over UDP on port 7000;
over IPv4 and IPv6. Lines over SCTP over IPv4.

Usage: server.py NAME

/download is DOWNLOAD pieces of PIECE bytes, one every PAUSE seconds: 20 seconds and 4 MB.
/work is answered after PACE seconds, for WORKERS clients at a time; /run/world/NAME.pace may say other seconds.
An agent on port 3333 says how much of its load the server can take, as a mean of NOTES looks, one every LOOK seconds;
/run/world/NAME.agent may say something else.
"""

from __future__ import annotations

import asyncio
import socket
import statistics
import sys
from collections import deque
from pathlib import Path

DOWNLOAD, PIECE, PAUSE = 80, 50_000, 0.25
PACE = 0.1  # seconds of work for one answer
WORKERS = 4  # clients that are worked for side by side
NOTES, LOOK = 25, 0.2
COLOURS = {"rs1": "#2563eb", "rs2": "#059669", "rs3": "#b45309"}
PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{name}</title>
<style>
body {{ font: 1.2rem system-ui, sans-serif; display: grid; place-content: center; text-align: center;
  min-height: 90vh; color: white; background: {colour}; }}
h1 {{ font-size: 5rem; margin: 0; }}
</style>
<h1>{name}</h1>
<p>This page comes from the real server {name}. Reload it: another one answers.</p>
</html>
"""


class Server:
    def __init__(self, name: str) -> None:
        self.name = name
        page = PAGE.format(name=name, colour=COLOURS.get(name, "#444444"))
        self.workers = asyncio.Semaphore(WORKERS)
        self.asked = 0  # clients that are worked for, or wait
        self.notes = deque([0], NOTES)  # of that, as it was
        self.pages = {"/": ("text/html", page), "/name": ("text/plain", f"{name}\n"), "/health": ("text/plain", "ok\n")}
        self.pages["/work"] = self.pages["/name"]

    async def work(self) -> None:
        pace = Path(f"/run/world/{self.name}.pace")
        self.asked += 1
        try:
            async with self.workers:
                await asyncio.sleep(float(pace.read_text()) if pace.exists() else PACE)
        finally:
            self.asked -= 1

    async def watch(self) -> None:
        while True:
            self.notes.append(self.asked)
            await asyncio.sleep(LOOK)

    async def agent(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        told = Path(f"/run/world/{self.name}.agent")
        text = told.read_text() if told.exists() else f"{self.share()}%\n"
        writer.write(text.encode())
        writer.close()

    def share(self) -> int:
        return round(100 * WORKERS / max(WORKERS, statistics.mean(self.notes)))

    async def http(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
            path = request.split(b" ", 2)[1].decode(errors="replace").partition("?")[0]
            if path == "/download":
                await self.download(writer)
                return
            if path == "/work":
                await self.work()
            kind, text = self.pages.get(path, ("text/plain", ""))
            status = "200 OK" if text else "404 Not Found"
            body = text.encode()
            head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
            writer.write(f"{head}X-Server: {self.name}\r\nConnection: close\r\n\r\n".encode() + body)
            await writer.drain()
        except (OSError, EOFError, TimeoutError, IndexError, asyncio.LimitOverrunError):
            pass  # a health check that only connects, or a client that went away
        finally:
            writer.close()

    async def download(self, writer: asyncio.StreamWriter) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {DOWNLOAD * PIECE}\r\nX-Server: {self.name}\r\n"
        writer.write(f"{head}Connection: close\r\n\r\n".encode())
        for number in range(DOWNLOAD):
            writer.write(bytes([number]) * PIECE)
            await writer.drain()
            await asyncio.sleep(PAUSE)

    async def lines(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Long connections: every line comes back behind the server's name."""
        try:
            while line := await reader.readline():
                writer.write(f"{self.name} ".encode() + line)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()


class Datagrams(asyncio.DatagramProtocol):
    def __init__(self, name: str) -> None:
        self.name = name

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.DatagramTransport):
            self.transport = transport

    def datagram_received(self, data: bytes, address: tuple) -> None:
        self.transport.sendto(f"{self.name} ".encode() + data, address)


async def main(name: str) -> None:
    server = Server(name)
    loop = asyncio.get_running_loop()
    for everywhere in ("0.0.0.0", "::"):  # noqa: S104 # it has a network of its own
        await asyncio.start_server(server.http, everywhere, 80, backlog=1000)
        await asyncio.start_server(server.lines, everywhere, 7000, backlog=1000)
        await asyncio.start_server(server.agent, everywhere, 3333, backlog=1000)
    associations = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_SCTP)
    associations.bind(("0.0.0.0", 7000))  # noqa: S104
    await asyncio.start_server(server.lines, sock=associations)
    await loop.create_datagram_endpoint(lambda: Datagrams(name), local_addr=("::", 7000))  # IPv4, too
    await server.watch()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
