"""A room: processes with a network, a file system and process numbers of their own.

It is held by one shell, process 1 of the room. That ends when its input ends, at the latest with this process, and
the kernel then ends all others and takes the mounts and the network with them. Nothing has to be cleaned up.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
from pathlib import Path

from board.machines.wait import until

# $1: a folder; $2: the trees that are laid over each other, the uppermost first. All that is written is in memory.
SETUP = """
set -e
read -r number _ </proc/self/stat
mount -t tmpfs -o mode=755 room "$1"
root=$1/root
mkdir "$1/upper" "$1/work" "$root"
mount -t overlay -o "lowerdir=$2,upperdir=$1/upper,workdir=$1/work" room "$root"
mkdir -p "$root/proc" "$root/dev" "$root/tmp" "$root/run" "$root/root"
chmod 1777 "$root/tmp"
mount -t proc room "$root/proc"
mount -t tmpfs -o mode=755 room "$root/dev"
mkdir -m 1777 "$root/dev/shm"
for device in null zero random urandom; do
    : >"$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
ip link set lo up
echo "$number"
read -r _ || :
"""
ALONE = ["unshare", "--net", "--mount", "--pid", "--propagation=private", "--fork", "--kill-child"]
CLEAN = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}
LISTENING = {"tcp": "0A", "udp": "07"}  # proc_net_tcp(5)
ENDS = 60.0  # seconds until a room is empty
# As Perl warns of a condition that nobody thought of, in our modules; ldirectord itself has some of them.
UNDEFINED = re.compile(r"Use of uninitialized value.* at /usr/lib/fairlead/perl/.*")


class Room:
    def __init__(self, name: str, *layers: Path) -> None:
        """The uppermost tree first."""
        self.name = name
        self.folder = Path(tempfile.mkdtemp(prefix=f"fairlead-{name}-"))
        trees = ":".join(str(layer.resolve()) for layer in layers)
        self._holder = subprocess.Popen(
            [*ALONE, "sh", "-c", SETUP, "room", self.folder, trees],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        first = self._holder.stdout.readline()
        if not first:
            raise OSError(f"no room for {name}: {self.close()}")
        self.first = int(first)  # the number of its process 1, outside

    def close(self) -> str:
        """End all that is in it; what its shell complained of."""
        _, said = self._holder.communicate(timeout=ENDS)
        self.folder.rmdir()
        return said

    @property
    def root(self) -> Path:
        return Path(f"/proc/{self.first}/root{self.folder}/root")

    def inside(self, *words: object) -> list[str]:
        """The command that runs these words in the room."""
        enter = ["nsenter", f"--target={self.first}", "--net", "--mount", "--pid"]
        return [*enter, "chroot", f"{self.folder}/root", *map(str, words)]

    def beside(self, *words: object) -> list[str]:
        """The command that runs these words of this machine with the network of the room."""
        return ["nsenter", f"--target={self.first}", "--net", *map(str, words)]

    def ip(self, *words: str) -> None:
        done = subprocess.run(self.beside("ip", *words), capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 0, f"{self.name}: {words}: {done.stderr}"

    def processes(self) -> list[int]:
        """The numbers, outside, of all but the first one."""
        own, found = os.readlink(f"/proc/{self.first}/ns/pid"), []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if os.readlink(folder / "ns/pid") == own and int(folder.name) != self.first:
                    found.append(int(folder.name))
            except OSError:
                continue  # it has just ended
        return found

    def signal(self, number: signal.Signals) -> None:
        for process in self.processes():
            try:
                os.kill(process, number)
            except ProcessLookupError:
                continue

    def stop(self) -> None:
        """Until nobody runs any more: who was begun while the others were told would go on."""
        until(f"{self.name} to stop", lambda: self.signal(signal.SIGSTOP) or not self._running("T"), ENDS)

    def end_processes(self) -> None:
        """All but the first: the room and its network stay."""
        until(f"{self.name} to end", lambda: self.signal(signal.SIGKILL) or not self._running(), ENDS)

    def _running(self, but: str = "") -> list[int]:
        """Without those that nobody has asked how they ended, and those in this state of proc_pid_stat(5)."""
        running = []
        for process in self.processes():
            try:
                if not re.search(rf"\) [Z{but}] ", Path(f"/proc/{process}/stat").read_text()):
                    running.append(process)
            except OSError:
                continue
        return running

    def listens(self, protocol: str, port: int) -> bool:
        lines = [
            line.split()
            for file in (protocol, f"{protocol}6")
            for line in Path(f"/proc/{self.first}/net/{file}").read_text().splitlines()[1:]
        ]
        return any(one[1].endswith(f":{port:04X}") and one[3] == LISTENING[protocol] for one in lines)
