"""Updates as a person and a program see them: the page with a log-in, and the API with a token."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from contextlib import suppress
from pathlib import Path

from board.machines.director import ANSWER, Director, browser
from board.machines.spent import WEB, spent
from board.machines.wait import until

USER, PASSWORD = "kim", "rope and tide"
UPLOAD = 240.0  # seconds that a bundle may take to get there
INSTALL = 480.0  # seconds
SELDOM = 3.0  # seconds between two questions: each of them keeps the one slow processor from what it waits for
STICK = 160  # MiB


def set_up(director: Director) -> None:
    """Somebody has entered the set-up code, at the page: that runs already, where a program would have to be loaded."""
    status, text = director.set_up(USER, PASSWORD)
    assert status == 200, text


class Page:
    """The web page, logged in."""

    def __init__(self, director: Director) -> None:
        self.url = director.url
        self.opener = browser()
        address = f"{self.url}/login/"
        values = {"username": USER, "password": PASSWORD}
        status, text = self.post(address, values, self.get("/login/"))
        assert status == 200 and "Log out" in text, text

    def get(self, path: str) -> str:
        return self.read(self.url + path)[1]

    def post(self, address: str, values: dict, form: str) -> tuple[int, str]:
        """Send a form; `form` is the page that it is on."""
        body = urllib.parse.urlencode({"csrfmiddlewaretoken": token_of(form), **values}).encode()
        return self.read(urllib.request.Request(address, body, {"Referer": address}))

    @spent(WEB)
    def read(self, request: str | urllib.request.Request) -> tuple[int, str]:
        try:
            with self.opener.open(request, timeout=ANSWER) as answer:
                return answer.status, answer.read().decode(errors="replace")
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(errors="replace")

    @spent(WEB)
    def upload(self, bundle: Path) -> str:
        """As the page's script does it; the source under which the applier knows the bundle."""
        address = f"{self.url}/system/updates/upload/"
        with bundle.open("rb") as file:
            headers = {"X-CSRFToken": token_of(self.get("/system/updates/")), "Referer": address}
            headers |= {"Content-Type": "application/octet-stream", "Content-Length": str(bundle.stat().st_size)}
            request = urllib.request.Request(address, file, headers)
            with self.opener.open(request, timeout=UPLOAD) as answer:
                after = json.load(answer)["next"]
        return urllib.parse.parse_qs(urllib.parse.urlsplit(after).query)["source"][0]

    def restart_into(self, slot: str) -> None:
        """Push the button. The page that follows may come too late from a slow box: it is on its way then."""
        path = f"/system/updates/restart/{slot}/"
        with suppress(OSError, http.client.HTTPException):
            status, text = self.post(self.url + path, {}, self.get(path))
            assert status == 200 and "The box restarts" in text, text


class Api:
    def __init__(self, director: Director, token: str = "") -> None:
        """`token`: one that the box knows already, as that of the other box of its pair."""
        self.url = f"{director.url}/api/v1"
        if not token:
            token = director.succeed(["fairlead", "token", "create", "story", "--may", "update"], 180).strip()
        self.token = token

    def state(self) -> dict:
        return self.ask(urllib.request.Request(f"{self.url}/update"))[1]

    def send(self, bundle: Path, path: str = "update") -> tuple[int, dict]:
        """To this box alone; "pair/update": to both boxes of a pair."""
        with bundle.open("rb") as file:
            headers = {"Content-Type": "application/octet-stream", "Content-Length": str(bundle.stat().st_size)}
            return self.ask(urllib.request.Request(f"{self.url}/{path}", file, headers), UPLOAD)

    def install(self, bundle: Path) -> tuple[dict, list[int]]:
        """Send it and wait for the end; the job, and the percentages that were seen."""
        status, answer = self.send(bundle)
        assert status == 202, answer
        seen = []

        def ended() -> dict:
            job = self.state()["job"]
            seen.append(job["percent"])
            return job if job["state"] != "running" else {}

        return until("the end of the install", ended, INSTALL, SELDOM), seen

    def restart(self) -> dict:
        status, answer = self.ask(urllib.request.Request(f"{self.url}/update/restart", b""))
        assert status == 202, answer
        return answer

    def ask(self, request: urllib.request.Request, timeout: float = ANSWER) -> tuple[int, dict]:
        request.add_header("Authorization", f"Bearer {self.token}")
        try:
            with browser().open(request, timeout=timeout) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)


def token_of(form: str) -> str:
    found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form)
    assert found, form
    return found[1]


def make_stick(path: Path, files: dict[str, Path]) -> Path:
    """A USB stick as a shop sells it, one FAT file system, with these files on it."""
    with path.open("wb") as file:
        file.truncate(STICK << 20)
    subprocess.run(["mformat", "-i", path, "-F", "::"], check=True)
    for name, content in files.items():
        subprocess.run(["mcopy", "-i", path, content, f"::{name}"], check=True)
    return path


def plugged_in(stick: Path) -> tuple[str, ...]:
    """Words for QEMU."""
    drive = f"if=none,id=stick,file={stick},format=raw,readonly=on"
    disk = "scsi-hd,drive=stick,removable=on,vendor=Shop,product=Stick"
    return ("-device", "virtio-scsi-pci", "-drive", drive, "-device", disk)
