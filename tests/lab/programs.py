"""The image's nft and ldirectord on this machine: its base layer with the overlay over it, as a root folder.

They run in namespaces of their own (users, mounts, network), so it takes no root and they reach nobody.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from board.lab.build import TOP, Image
from board.machines.talking import Talking

ALONE = ("unshare", "--user", "--map-root-user", "--net", "--mount")
LAY_OVER = """
mount -t overlay overlay -o "lowerdir=$1:$2" "$3" && mount --bind "$4" "$3/run" && exec chroot "$3" /bin/sh -c '
    echo ready
    read -r line
'
"""
# As the box starts ldirectord (overlay/etc/sv/ldirectord/run).
ENVIRONMENT = ("PATH=/usr/sbin:/usr/bin", "PERLIO=perlio", "PERL5OPT=-Mfairlead", "PERL5LIB=/usr/lib/fairlead/perl")
EVERY_FILE = ("PERL5OPT=-Mfairlead -MEveryFile", "PERL5LIB=/usr/lib/fairlead/perl:/run")
FILE = "/run/ldirectord.cf"


@dataclass(frozen=True)
class Said:
    exit: int
    text: str


class Programs:
    """Use it as a context. Each answer takes a few hundredths of a second: what is slow to start is started once."""

    def __init__(self, image: Image, folder: Path) -> None:
        self.tree = image.layers["base"].parent / "tree"
        self.root, self.run = folder / "root", folder / "run"

    def __enter__(self) -> Programs:
        for folder in (self.root, self.run):
            folder.mkdir()
        shutil.copy(Path(__file__).with_name("EveryFile.pm"), self.run)
        words = [*ALONE, "sh", "-c", LAY_OVER, "sh", TOP / "overlay", self.tree, self.root, self.run]
        self._namespaces = Talking(words)
        if self._namespaces.hear() != "ready\n":
            raise OSError(f"no namespaces or no overlay here: {self._namespaces.end()}")
        self._director = Talking(self._inside("env", "-i", *ENVIRONMENT, *EVERY_FILE, "ldirectord"))
        return self

    def __exit__(self, *_: object) -> None:
        for program in (self._director, self._namespaces):
            program.end()

    def nft(self, rules: str) -> Said:
        return self._once("nft", "-c", "-f", "-", given=rules)

    def director(self, text: str) -> Said:
        """`ldirectord FILE status`. Raises OSError when ldirectord is gone."""
        (self.run / "ldirectord.cf").write_text(text)
        self._director.say(FILE)
        answer = self._director.hear()
        if not answer.strip().isdigit():
            raise OSError(f"ldirectord is gone: {answer}{self._director.end()}")
        return Said(int(answer), (self.run / "ldirectord.cf.said").read_text(errors="replace"))

    def director_alone(self, text: str) -> Said:
        """The same by a Perl that is started for it."""
        (self.run / "ldirectord.cf").write_text(text)
        return self._once("env", "-i", *ENVIRONMENT, "ldirectord", FILE, "status")

    def _once(self, *words: str, given: str = "") -> Said:
        done = subprocess.run(
            self._inside(*words),
            input=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        return Said(done.returncode, done.stdout)

    def _inside(self, *words: str) -> list[str]:
        target = ("--target", str(self._namespaces.process.pid), "--user", "--net", "--mount", "--root", "--wdns=/")
        return ["nsenter", *target, "--preserve-credentials", *words]
