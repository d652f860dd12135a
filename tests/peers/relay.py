"""Between a check and a good server: passes everything on, but what the server says first goes wrong on the way.

    python relay.py '[["stall", "10.2.0.91", "10.2.0.20", 6379, "tcp"], …]' CERTIFICATE KEY

Each place relays one kind of fault. Where the port is one of TLS, the fault is inside the encryption.
"""

import json
import os
import select
import socket
import ssl
import struct
import sys
import threading
import time

TLS = (443, 636, 993, 995)
MOST = 16 << 20  # bytes of an answer that has no end; who reads so much of it has failed anyway
BETWEEN = 0.3  # seconds between two bytes of a server that drips
ENDS = 20  # seconds after which a relay gives up


def start_of(fault, data):
    """What is passed on of it, where it is not all."""
    return data[:-1] if fault == "almost" else data[: max(1, len(data) // 2)]


def say(end, fault, data):
    """To the check: `data` as this fault has it. True where the conversation goes on."""
    if fault == "none":
        end.sendall(data)
        return True
    if fault == "drip":
        for byte in data:
            time.sleep(BETWEEN)
            end.sendall(bytes([byte]))
        return True
    end.sendall(start_of(fault, data))
    if fault == "endless":
        for _ in range(MOST // 65536):
            end.sendall(b"x" * 65536)
    elif fault in ("stall", "almost"):
        while end.recv(4096):
            pass
    elif fault == "reset":
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return False


def heard(*ends):
    """Those that have something to say; none where all are silent for too long."""
    waiting = [end for end in ends if isinstance(end, ssl.SSLSocket) and end.pending()]
    return waiting or select.select(ends, (), (), ENDS)[0]


def more_of(source):
    """What it has said; None where what has come says nothing: a session ticket of TLS, a part of a record."""
    source.settimeout(0)
    try:
        return source.recv(65536)
    except (BlockingIOError, ssl.SSLWantReadError):
        return None
    finally:
        source.settimeout(ENDS)


def relay(end, fault, server, port, context):
    """One connection. By one thread: two that use the same TLS at once make OpenSSL end the whole program."""
    try:
        with socket.create_connection((server, port), ENDS) as far:
            end.settimeout(ENDS)
            inner, outer = end, far
            if port in TLS:
                inner = context.wrap_socket(end, server_side=True)
                outer = ssl._create_unverified_context().wrap_socket(far)
            with inner, outer:
                first = True
                while ready := heard(inner, outer):
                    for source in ready:
                        if (data := more_of(source)) is None:
                            continue
                        if not data:
                            return
                        if source is inner:
                            outer.sendall(data)
                        elif not first:
                            inner.sendall(data)
                        elif say(inner, fault, data):
                            first = False
                        else:
                            return
    except OSError:
        pass  # the check has hung up


def listen(fault, address, server, port, context):
    with socket.create_server((address, port), backlog=64) as listener:
        os.write(1, b"listens\n")
        while True:
            end, _ = listener.accept()
            threading.Thread(target=relay, args=(end, fault, server, port, context), daemon=True).start()


def datagrams(fault, address, server, port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here, socket.socket(type=socket.SOCK_DGRAM) as far:
        if fault != "reset":  # nobody is there: the kernel says so
            here.bind((address, port))
        os.write(1, b"listens\n")
        while fault != "reset":
            asked, who = here.recvfrom(65536)
            far.sendto(asked, (server, port))
            data = far.recv(65536)
            part = start_of(fault, data)
            said = {"none": [data], "stall": [], "drip": [data[:1]], "endless": [b"x" * 1400] * 99}
            for one in said.get(fault, [part]):
                here.sendto(one, who)


def main(places, certificate, key):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    for fault, address, server, port, protocol in json.loads(places):
        target, words = (listen, (context,)) if protocol == "tcp" else (datagrams, ())
        threading.Thread(target=target, args=(fault, address, server, port, *words), daemon=True).start()
    sys.stdin.read()  # ends with the test


if __name__ == "__main__":
    main(*sys.argv[1:])
