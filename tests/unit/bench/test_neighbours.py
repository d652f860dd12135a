"""Clients and real servers in namespaces of this machine, without a director."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bench.neighbours import MARK, NAMESPACES

from bench import compiled

TOP = Path(__file__).parents[3]
# Everything that a part does with them, and twice: what is left of the first time must not be in the way.
STORY = """
import json, os, socket, struct, subprocess
from types import SimpleNamespace
from bench.neighbours import Neighbours, run
from bench.stage import Stage

LISTEN = (
    "import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.bind(('10.1.0.141', 9)); "
    "print('ready', flush=True); s.settimeout(60); print(s.recv(9))"
)
SEND = "import socket; s = socket.socket(type=socket.SOCK_RAW, proto=4); s.sendto({}, ('10.2.0.11', 0))"

def start(namespace, text):
    words = ["ip", "netns", "exec", namespace, "python3", "-c", text]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)

def through_the_tunnel(near):
    # An IP-in-IP packet made by hand, as a director would send it: a datagram to the VIP for the server's own address.
    datagram = struct.pack("!HHHH", 9, 9, 13, 0) + b"hello"
    inner = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 33, 1, 0, 64, 17, 0, socket.inet_aton("10.1.0.10"),
                        socket.inet_aton("10.1.0.141"))
    total = sum(struct.unpack("!10H", inner))
    inner = inner[:10] + struct.pack("!H", 0xFFFF - (total % 0xFFFF)) + inner[12:]
    listening = start("rs1", LISTEN)
    assert listening.stdout.readline() == "ready\\n"
    assert start("client", SEND.format(repr(inner + datagram))).wait(60) == 0
    return listening.communicate(timeout=60)[0].strip()

told = []
for _ in range(2):
    with Neighbours() as near:
        near.add_servers(2)
        here = Stage(SimpleNamespace(running=SimpleNamespace(pid=os.getpid())), near, print)
        here.serve()
        free = here.load("10.2.0.11", "10.2.0.12", seconds=1, rate=100).log
        here.serve(per_second=50)
        held = here.load("10.2.0.11", seconds=3, rate=200).log
        near.give_vip(1, "10.1.0.121")
        near.give_vip(1, "10.1.0.121")
        near.give_vip(1, "10.1.0.141", tunnel=True)
        arp = run("ip netns exec client busybox arping -I servers -c 1 -w 1 10.1.0.121 || true")
        told.append([free.tried, free.replies + free.late, held.rate, held.failed, "Received 0" in arp,
                     through_the_tunnel(near)])
print(json.dumps(told))
"""


def test_clients_ask_servers_that_take_a_vip_without_answering_arp(tmp_path):
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        pytest.skip("/dev/net/tun is not open to this user")
    try:
        for name in ("load", "serve", "untunnel"):
            compiled.program(name)
    except compiled.CannotCompile as error:
        if "not installed" not in str(error):
            raise
        pytest.skip("no compiler; make bench brings it")
    (tmp_path / "story.py").write_text(STORY)
    words = ["unshare", *NAMESPACES, sys.executable, tmp_path / "story.py"]
    environment = {**os.environ, MARK: "1", "PYTHONPATH": f"{TOP}/webui:{TOP}"}
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    for tried, answered, rate, failed, silent, datagram in json.loads(done.stdout):
        assert tried == answered > 50
        assert rate <= 70 and failed > 100
        assert silent and datagram == "b'hello'"
