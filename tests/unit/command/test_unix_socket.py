"""The command's way to the web process: a UNIX socket, and the token that lies beside it."""

import http.server
import json
import os
import socketserver
import threading

import pytest

from command.api import Api, Refused, Unreachable
from command.main import main


class Web(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.seen.append((self.command, self.path, self.headers, self._body()))
        status, body = self.server.answer
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_PUT = do_POST = do_GET

    def _body(self) -> bytes:
        if self.server.refuses_early:
            self.close_connection = True
            return b""
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def address_string(self):
        return "socket"

    def log_message(self, *words):
        pass


@pytest.fixture
def web(tmp_path):
    (tmp_path / "web").mkdir()
    (tmp_path / "web/console-token").write_text("the secret\n")
    server = Web(str(tmp_path / "web/web.sock"), Page)
    server.seen, server.answer, server.refuses_early = [], (200, b'{"fine": true}'), False
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_a_question_and_its_answer(web, tmp_path):
    api = Api(tmp_path)
    assert api.get("services", name="a b&c") == {"fine": True}
    assert api.ask("PUT", "draft", {"services": []}) == {"fine": True}
    (_, path, headers, body), (method, _, _, sent) = web.seen
    assert path == "/api/v1/services?name=a%20b%26c" and headers["Authorization"] == "Bearer the secret" and body == b""
    assert method == "PUT" and json.loads(sent) == {"services": []}
    web.answer = (204, b"")
    assert api.post("draft/discard") is None


def test_a_refusal(web, tmp_path):
    problem = {"object": "virtual service 'shop'", "field": "port", "message": "must be 1", "path": "x"}
    web.answer = (422, json.dumps({"error": {"code": "problems", "message": "No.", "problems": [problem]}}).encode())
    with pytest.raises(Refused) as caught:
        Api(tmp_path).get("status")
    assert (caught.value.code, caught.value.problems, str(caught.value)) == ("problems", [problem], "No.")
    web.answer = (404, b'"other"')
    with pytest.raises(Refused, match="HTTP 404"):
        Api(tmp_path).get("status")


def test_a_file_that_is_refused_before_all_of_it_has_come(web, tmp_path):
    web.refuses_early = True
    web.answer = (409, json.dumps({"error": {"code": "not-leading", "message": "lb2 does not lead."}}).encode())
    file = tmp_path / "bundle"
    file.write_bytes(bytes(8 << 20))
    with pytest.raises(Refused, match="lb2 does not lead") as caught:
        Api(tmp_path).send("pair/update", file)
    assert caught.value.status == 409


def test_an_answer_that_is_none(web, tmp_path):
    web.answer = (502, b"<html>")
    with pytest.raises(Unreachable, match="not JSON"):
        Api(tmp_path).get("status")


def test_nobody_answers(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("FAIRLEAD_RUN", str(tmp_path))
    assert main(["status"]) == 3 and "has not started yet" in capsys.readouterr().err
    (tmp_path / "web").mkdir()
    (tmp_path / "web/console-token").write_text("the secret\n")
    assert main(["status"]) == 3
    assert "does not answer" in capsys.readouterr().err


def test_the_token_is_a_file_of_the_web_process(tmp_path):
    """Root reads it, and sends it to the web process: a link led to any file of root's, a FIFO to no end."""
    (tmp_path / "web").mkdir()
    (tmp_path / "secret").write_text("of root's")
    token = tmp_path / "web/console-token"
    token.symlink_to(tmp_path / "secret")
    with pytest.raises(Unreachable, match="console-token"):
        Api(tmp_path).get("status")
    token.unlink()
    os.mkfifo(token)
    with pytest.raises(Unreachable, match="it is not a file of the web process"):
        Api(tmp_path).get("status")


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_another_user(tmp_path):
    (tmp_path / "web").mkdir()
    (tmp_path / "web/console-token").write_text("the secret\n")
    (tmp_path / "web/console-token").chmod(0)
    with pytest.raises(Unreachable, match="Only root"):
        Api(tmp_path).get("status")
