"""Who holds an address: asks with ARP again and again, from the guest that plays the world.

    holders.py INTERFACE ADDRESS FILE

On SIGTERM FILE gets, as JSON, the MAC addresses that answered with the seconds since 1970 of their first and last
answers, and how many questions two of them answered.
"""

import fcntl
import json
import os
import signal
import socket
import struct
import sys
import time

EACH = 0.1  # seconds between two questions
ARP, REQUEST, REPLY = 0x0806, 1, 2
# Each question comes from another address of the client, by which its answers are told from those to the one before.
CLIENTS = [f"10.1.0.{number}" for number in range(10, 20)]
HEAD = struct.Struct("!6s6sHHHBBH6s4s6s4s")


def mac_of(interface):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        return fcntl.ioctl(any_socket, 0x8927, struct.pack("256s", interface.encode()))[18:24]  # SIOCGIFHWADDR


def main(interface, address, file):
    ending = []
    signal.signal(signal.SIGTERM, lambda *_: ending.append(1))
    own, wanted = mac_of(interface), socket.inet_aton(address)
    card = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ARP))
    card.bind((interface, ARP))
    spans: dict[str, tuple[float, float]] = {}
    answered: dict[bytes, set[bytes]] = {client: set() for client in map(socket.inet_aton, CLIENTS)}
    both = asked = 0
    while not ending:
        client = socket.inet_aton(CLIENTS[asked % len(CLIENTS)])
        both += len(answered[client]) > 1
        answered[client].clear()
        card.send(HEAD.pack(b"\xff" * 6, own, ARP, 1, 0x0800, 6, 4, REQUEST, own, client, bytes(6), wanted))
        asked += 1
        end = time.monotonic() + EACH
        while (left := end - time.monotonic()) > 0:
            card.settimeout(left)
            try:
                frame = card.recv(100)
            except TimeoutError:
                break
            *_, kind, mac, sender, _, target = HEAD.unpack(frame[: HEAD.size])
            if (kind, sender) == (REPLY, wanted) and target in answered:
                answered[target].add(mac)
                first, _ = spans.get(mac.hex(":"), (time.time(), 0))
                spans[mac.hex(":")] = (first, time.time())
    both += sum(len(macs) > 1 for macs in answered.values())
    with open(f"{file}.new", "w") as output:
        json.dump({"asked": asked, "holders": spans, "both": both}, output)
    os.replace(f"{file}.new", file)


if __name__ == "__main__":
    main(*sys.argv[1:])
