"""nginx before the web UI: let it read its part of the configuration, without an end to any connection.

It keeps what it runs with when it cannot do what it reads, and says so in its log alone. So it is asked before
(`nginx -t`), and looked at afterwards. When the box starts it waits for this part, and then reads everything.
"""

from __future__ import annotations

import re

from applier import director
from applier.host import Host, HostError, run, wait_until
from applier.paths import Paths

SECONDS = 15  # for nginx to do what it was told, on a box that is busy
_PORT = re.compile(r"listen (\d+) ")


def differs(host: Host, paths: Paths, text: str) -> bool:
    """Whether nginx runs, or would start, with something else."""
    return host.read(paths.web) != text or host.read(paths.web_read) != text


def load(host: Host, paths: Paths, text: str) -> None:
    """HostError if nginx cannot work with it; then it runs with what it had, and the file is as it was."""
    before = host.read(paths.web)
    at_boot = before is None and host.read(paths.web_read) is None
    host.put(paths.web_read, None)  # a kill from here on must not leave a note that is not true
    host.put(paths.web, text)
    if not at_boot and director.service(host, _folder(paths)).pid is not None:
        try:
            run(host, [f"{_folder(paths)}/run", "-t", "-q"])
        except HostError:
            host.put(paths.web, before)
            raise
        run(host, ["sv", "hup", _folder(paths)])
        port = int(_PORT.search(text)[1])
        wait_until(host, f"the web page at port {port}", SECONDS, lambda: _unreachable(host, port))
    host.put(paths.web_read, text)


def _folder(paths: Paths) -> str:
    return str(paths.services / "nginx")


def _unreachable(host: Host, port: int) -> str | None:
    seen = host.connect("127.0.0.1", port, 1.0)
    return None if seen == "open" else seen
