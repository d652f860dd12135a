"""What systemd does for the agent of a real server: a process without rights for each connection, told who asks.

    python inetd.py ADDRESS FOLDER [ASKER…]

The agent answers at port 3333, as the program "agent" in FOLDER; port 80 takes connections, for health checks.
It says "done" when both listen, and ends with its input.
"""

import os
import socketserver
import subprocess
import sys
import threading

AGENT, WEB = 3333, 80
NOBODY = 65534


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 256


class Answer(socketserver.BaseRequestHandler):
    def handle(self):
        folder, askers = sys.argv[2], sys.argv[3:]
        subprocess.run(
            ["sh", f"{folder}/agent", "answer", *askers], cwd=folder, stdin=self.request, stdout=self.request,
            env={"PATH": os.environ["PATH"], "REMOTE_ADDR": self.client_address[0]}, check=False,
            user=NOBODY, group=NOBODY, extra_groups=[],
        )  # fmt: skip


if __name__ == "__main__":
    for port, handler in ((AGENT, Answer), (WEB, socketserver.BaseRequestHandler)):
        threading.Thread(target=Server((sys.argv[1], port), handler).serve_forever, daemon=True).start()
    os.write(1, b"done\n")
    sys.stdin.read()
