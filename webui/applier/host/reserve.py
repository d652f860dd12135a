"""What the machine keeps for itself while it is flooded: set once, when the applier starts."""

from __future__ import annotations

import logging
from pathlib import Path

from applier.host.host import Host, HostError
from lbconfig.hardware import share

MEMORY = Path("/proc/meminfo")
THRESHOLD = "net/ipv4/vs/amemthresh"
log = logging.getLogger("applier")


def keep(host: Host) -> None:
    """What cannot be set is said in the log: the box has to come up anyway."""
    try:
        _keep(host)
    except HostError as error:
        log.error("floods: %s", error)


def _keep(host: Host) -> None:
    words = (host.read(MEMORY) or "").split()
    if words[:1] != ["MemTotal:"] or host.setting(THRESHOLD) is None:
        log.warning("this kernel does not tell its memory, or has no %s", THRESHOLD)
        return
    wanted = str(share.threshold(int(words[1])))
    if host.setting(THRESHOLD) != wanted:
        host.set(THRESHOLD, wanted)
        log.info("floods: IPVS keeps %s pages free", wanted)
