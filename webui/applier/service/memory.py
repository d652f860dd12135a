"""What the box's own programs take of the memory that they may have (/etc/init.d/S01share)."""

from __future__ import annotations

from pathlib import Path

from applier.host.host import Host, HostError

GROUP = Path("/sys/fs/cgroup/services")
# Of what they may have. The rest holds what they have read of their programs: in the lab a box of 512 MB with 93 % in
# use answered nothing for minutes, because each program was read from the disk again at each turn.
FULL = 0.75
FAULT = "memory"
MIB = 1 << 20


def trouble(host: Host) -> str | None:
    """A sentence where they have too little left for what they read; None where not, or where nothing is known."""
    try:
        most, parts = host.read(GROUP / "memory.high"), host.read(GROUP / "memory.stat")
    except HostError:
        return None
    if not most or not parts or not most.strip().isdigit():
        return None
    own = {name: int(number) for name, _, number in (line.partition(" ") for line in parts.splitlines())}
    taken, limit = own.get("anon", 0), int(most)
    if taken <= FULL * limit:
        return None
    return (
        f"The programs of the box fill {taken // MIB} of the {limit // MIB} MiB of memory that they may have; "
        "with little more all of them become slow. Give the box more memory, or remove services: more than a hundred "
        "servers need 1 GB."
    )
