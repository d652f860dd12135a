"""Many real servers in one process, in a guest: writes down when each of them was asked.

Usage: health_servers.py FILE ADDRESS COUNT FIRST_PORT

A server is an address and a port: COUNT ports from FIRST_PORT on. A line of FILE: seconds (time.time) and the port.
"""

from __future__ import annotations

import asyncio
import sys
import time
from functools import partial

ANSWER = b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nok\n"


async def main(file: str, address: str, count: int, first: int) -> None:
    with open(file, "a", buffering=1) as log:

        async def answer(port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            log.write(f"{time.time():.3f} {port}\n")
            try:
                await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
                writer.write(ANSWER)
                await writer.drain()
            except (OSError, EOFError, TimeoutError, asyncio.LimitOverrunError):
                pass
            finally:
                writer.close()

        for port in range(first, first + count):
            await asyncio.start_server(partial(answer, port), address, port, backlog=100)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
