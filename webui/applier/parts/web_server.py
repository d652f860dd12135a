"""nginx before the web UI: let it read its part of the configuration, without ending a connection.

It keeps what it runs with when it cannot do what it reads, and says so in its log alone. So it is asked before
(`nginx -t`), and looked at afterwards. When the box starts it waits for this part, and then reads everything.
"""

from __future__ import annotations

import re
from pathlib import Path

from applier.base.paths import Paths
from applier.host.host import FOR_ITS_GROUP, Host, HostError, run, wait_until
from applier.kept import page_key
from applier.parts import director
from lbconfig.model import certificate
from lbconfig.model.snapshot import Management
from lbconfig.render import web
from lbconfig.target import Target

SECONDS = 15  # for nginx to do what it was told, on a box that is busy
OWN = Management()  # the box's own certificate
_PORT = re.compile(r"listen (\d+) ")


def differs(host: Host, paths: Paths, new: Target) -> bool:
    """Whether nginx runs, or would start, with something else."""
    return any(host.read(path) != new.web for path in (paths.web, paths.web_read)) or (
        bool(new.page_key) and host.read(_file(paths, new.snapshot.management)) != new.page_key
    )


def load(host: Host, paths: Paths, text: str, management: Management = OWN) -> None:
    """HostError if nginx cannot work with it; then it runs with what it had, and the file is as it was.

    `management`: whose certificate and key the text names, where they are not there yet.
    """
    before = host.read(paths.web)
    at_boot = before is None and host.read(paths.web_read) is None
    host.put(paths.web_read, None)  # a kill from here on must not leave a note that is not true
    if management.page_key:
        _put_page_key(host, paths, management)
    host.put(paths.web, text)
    runs = not at_boot and director.service(host, _folder(paths)).pid is not None
    if runs or management.page_key:
        try:
            run(host, [f"{_folder(paths)}/run", "-t", "-q"])
        except HostError:
            host.put(paths.web, before)
            raise
    if runs:
        run(host, ["sv", "hup", _folder(paths)])
        port = int(_PORT.findall(text)[0])
        wait_until(host, f"the web page at port {port}", SECONDS, lambda: _unlike(host, port, management))
    host.put(paths.web_read, text)


def forget(host: Host, paths: Paths, management: Management) -> None:
    """Remove certificate and key that nothing names any more; what nginx reads stays."""
    if management.page_key and web.name(management) not in (host.read(paths.web) or ""):
        host.put(_file(paths, management), None)


def _put_page_key(host: Host, paths: Paths, management: Management) -> None:
    if sentences := page_key.unusable(management):
        field, words = next(iter(sentences.items()))
        raise HostError(f"the {field} of the web page", None, f"it {words}")
    if host.read(_file(paths, management)) != management.page_key:
        host.put(_file(paths, management), management.page_key, FOR_ITS_GROUP)


def _file(paths: Paths, management: Management) -> Path:
    return paths.certificates / web.name(management)


def _folder(paths: Paths) -> str:
    return str(paths.services / "nginx")


def _unlike(host: Host, port: int, management: Management) -> str | None:
    """What is seen instead of the page; None: it is there, with its certificate."""
    seen, wished = host.connect("127.0.0.1", port, 1.0), certificate.first(management.certificate)
    if seen != "open" or wished is None:
        return None if seen == "open" else seen
    shown = host.certificate("127.0.0.1", port, 1.0)
    return None if shown == wished.fingerprint else f"the certificate {shown}"
