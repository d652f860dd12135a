"""The relay between a check and a server of the peers' lab (tests/peers/relay.py)."""

import socket
import ssl
import threading
import time

import lbconfig_certificates as pems
from tests.peers import relay

PATIENCE = 10  # seconds; a half of what a relay waits for


def serve(server: socket.socket, context: ssl.SSLContext, ticketed: threading.Event) -> None:
    plain, _ = server.accept()
    with context.wrap_socket(plain, server_side=True) as secure:
        ticketed.set()  # OpenSSL sends its session tickets with the end of the handshake
        secure.sendall(secure.recv(100).upper())
        secure.recv(1)


def test_a_session_ticket_is_not_waited_on_as_an_answer(tmp_path, monkeypatch):
    """A check that is slow to ask, as on a busy machine: what the server has sent by then is only its tickets."""
    (tmp_path / "pair.pem").write_text(pems.LB + pems.LB_KEY)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "pair.pem")
    ticketed = threading.Event()
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setattr(relay, "TLS", (port,))
        far, near = socket.socketpair()
        threads = [
            threading.Thread(target=serve, args=(server, context, ticketed), daemon=True),
            threading.Thread(target=relay.relay, args=(far, "none", "127.0.0.1", port, context), daemon=True),
        ]
        for thread in threads:
            thread.start()
        near.settimeout(PATIENCE)
        with client.wrap_socket(near) as secure:
            assert ticketed.wait(PATIENCE)
            time.sleep(1)  # the relay has its time to read them
            secure.sendall(b"a question")
            assert secure.recv(100) == b"A QUESTION"
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
