"""An authority and what it has signed, for the servers of the lab; made anew for each run."""

from __future__ import annotations

import subprocess
from pathlib import Path

SIGNED = ("www.example.org", "mail.example.org")  # www.pem and www.key, …
OLD = "www.example.org"  # old.pem and old.key: signed, and over since yesterday
ALONE = "nobody.example.org"  # self.pem and self.key: signed by itself
EASY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
DAYS = ["-x509", "-days", "2"]


def make(folder: Path) -> None:
    """Files for servers in etc/ssl/lab below the folder; ca.pem beside them is for who asks."""
    place = folder / "etc/ssl/lab"
    place.mkdir(parents=True)
    _openssl(place, "req", *DAYS, *EASY, "-subj", "/CN=Lab", "-keyout", "ca.key", "-out", "ca.pem")
    _openssl(place, "req", *DAYS, *EASY, *_named(ALONE), "-keyout", "self.key", "-out", "self.pem")
    for name in SIGNED:
        short = name.partition(".")[0]
        signed = ["-CA", "ca.pem", "-CAkey", "ca.key"]
        _openssl(place, "req", *DAYS, *EASY, *_named(name), *signed, "-keyout", f"{short}.key", "-out", f"{short}.pem")
    _openssl(place, "req", *EASY, *_named(OLD), "-keyout", "old.key", "-out", "old.csr")
    given = ["-CA", "ca.pem", "-CAkey", "ca.key", "-copy_extensions", "copy", "-days", "-1"]
    _openssl(place, "x509", "-req", *given, "-in", "old.csr", "-out", "old.pem")


def _named(name: str) -> list[str]:
    return ["-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}", "-addext", "basicConstraints=CA:FALSE"]


def _openssl(folder: Path, *words: str) -> None:
    subprocess.run(["openssl", *words], cwd=folder, capture_output=True, check=True)
