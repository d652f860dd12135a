"""What is root's part of a backup file and of its restore, and the factory reset.

The database, and so users, tokens, history and draft, are the web process's own. The certificate of the web page is
not: nginx reads it, and root writes it. The factory reset is a mark on the data partition; the boot script S10data
does what it says before anything of the box is read.
"""

from __future__ import annotations

import json
import logging
import os
import re
import ssl
from collections.abc import Callable
from pathlib import Path

from applier.base import durable
from applier.base.paths import Paths
from applier.host.host import Host, HostError, run
from applier.kept import storage
from applier.kept.faults import now
from applier.kept.generations import Generations
from applier.kept.turn import Held, Turn
from applier.wire.errors import ApplierRefused
from applier.wire.protocol import PEM_BLOCK
from applier.wire.shapes import Certificate, Nothing, PageKey, Restored

log = logging.getLogger("applier")


class Recovery:
    def __init__(
        self, paths: Paths, host: Host, generations: Generations, turn: Turn, hostname: Callable[[], str],
        restart: Callable[[Held], None],
    ) -> None:  # fmt: skip
        """`restart` keeps the turn until the box goes."""
        self._paths = paths
        self._host = host
        self._generations = generations
        self._turn = turn
        self._hostname = hostname
        self._restart = restart

    # --- verbs -------------------------------------------------------------------------------------

    def certificate(self) -> Certificate:
        """The box's own; empty where it has none on its disk."""
        return {"certificate": _blocks(self._certificate)}

    def page_key(self) -> PageKey:
        """The same with its private key, for a backup file."""
        return {"certificate": _blocks(self._certificate), "key": _blocks(self._key)}

    def restore(self, certificate: str, key: str, number: int, user: str) -> Restored:
        """`number`: of the newest revision that came back; generations get higher ones. Twice is as good as once."""
        with self._turn.take(f"a backup file is being restored by {user}"):
            try:
                changed = bool(certificate) and self.page_key() != {"certificate": certificate, "key": key}
                if changed:
                    self._put(certificate, key)
                self._generations.skip_to(number)
            except OSError as error:
                raise ApplierRefused(*storage.of_error(error, self._paths)) from None
        log.info("user %s restored a backup file up to revision %d", user, number)
        if changed:
            self._reload()
        return {"certificate": changed}

    def factory_reset(self, hostname: str, user: str) -> Nothing:
        if hostname != self._hostname():
            raise ApplierRefused("wrong-hostname", "This is not the host name of this box. Nothing was reset.")
        with self._turn.take(f"the box is reset by {user}") as held:
            try:
                durable.replace(self._paths.reset_mark, json.dumps({"user": user, "time": now()}).encode() + b"\n")
            except OSError as error:
                raise ApplierRefused(*storage.of_error(error, self._paths)) from None
            log.warning("user %s resets the box to its factory state", user)
            self._restart(held)
        return {}

    # --- the certificate ---------------------------------------------------------------------------

    @property
    def _certificate(self) -> Path:
        return self._paths.tls / "cert.pem"

    @property
    def _key(self) -> Path:
        return self._paths.tls / "key.pem"

    def _put(self, certificate: str, key: str) -> None:
        """Both, or none of them: what a power cut leaves between the two renames, own-certificate finishes."""
        new = [path.with_name(f"{path.name}.new") for path in (self._key, self._certificate)]
        try:
            durable.write(new[0], key.encode())
            os.chown(new[0], -1, self._paths.tls.stat().st_gid)  # nginx's group
            new[0].chmod(0o640)
            durable.write(new[1], certificate.encode(), 0o644)
            _check_page_key(new[1], new[0])
            durable.sync_folder(self._paths.tls)
        except (OSError, ApplierRefused):
            for path in new:
                path.unlink(missing_ok=True)
            raise
        durable.put(new[0], self._key)
        durable.put(new[1], self._certificate)

    def _reload(self) -> None:
        try:
            run(self._host, ["sv", "hup", str(self._paths.services / "nginx")])
        except HostError as error:
            log.error("the web server has not read its new certificate: %s", error)


def _blocks(path: Path) -> str:
    """Without what a person may have written around them; empty where there is no such file."""
    try:
        text = path.read_text(errors="replace")
    except OSError:
        return ""
    return "".join(re.findall(PEM_BLOCK, text.replace("\r\n", "\n")))


def _check_page_key(certificate: Path, key: Path) -> None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password=lambda: "")
    except (ssl.SSLError, ValueError) as error:
        reason = getattr(error, "reason", None) or str(error)
        text = f"This certificate and this key cannot be used together ({reason}). Nothing was changed."
        raise ApplierRefused("bad-certificate", text) from None
