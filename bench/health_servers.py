"""Many real servers in one process, in a guest, and their agent: writes down when each of them was asked.

Usage: health_servers.py FILE ADDRESS COUNT FIRST_PORT AGENT_PORT

A server is an address and a port: COUNT ports from FIRST_PORT on. All have one agent, which says another share each
time, so that there are weights to write. A line of FILE: seconds (time.time) and the port. FILE.first has the same of
the first question to each of them since FILE was empty: whoever waits for a first round reads that again and again.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import time
from functools import partial

ANSWER = b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nok\n"


class Log:
    """What is written down; whoever truncates the file begins anew."""

    def __init__(self, file: str) -> None:
        names = (file, f"{file}.first")
        self.all, self.first = (open(name, "a", buffering=1) for name in names)  # noqa: SIM115 # until the process ends
        self.seen: set[int] = set()

    def note(self, port: int) -> None:
        if os.fstat(self.all.fileno()).st_size == 0:
            self.seen.clear()
            self.first.truncate(0)
        line = f"{time.time():.3f} {port}\n"
        self.all.write(line)
        if port not in self.seen:
            self.seen.add(port)
            self.first.write(line)


async def main(file: str, address: str, count: int, first: int, agent_port: int) -> None:
    shares, log = itertools.cycle((40, 60, 80, 100)), Log(file)

    async def answer(port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        log.note(port)
        try:
            await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
            writer.write(ANSWER)
            await writer.drain()
        except (OSError, EOFError, TimeoutError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    async def say(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        log.note(agent_port)
        writer.write(f"{next(shares)}%\n".encode())
        writer.close()

    await asyncio.start_server(say, address, agent_port, backlog=1000)
    for port in range(first, first + count):
        await asyncio.start_server(partial(answer, port), address, port, backlog=100)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])))
