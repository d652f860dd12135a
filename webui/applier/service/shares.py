"""What the health checks say of weights that follow the load.

They write a file of it (overlay/usr/lib/fairlead/perl/Fairlead/Weights.pm), a line for each such server: the service's
id, address and port, the share that is in the table, that of its agent, the agent's word, when it came back, its state.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import NamedTuple

from applier.base.paths import Paths
from applier.host.host import Host
from lbconfig.model.addresses import endpoint

ALL = "*"  # instead of a server: of the service as a whole


class Said(NamedTuple):
    share: int  # per cent of its weight
    word: str  # of its agent: "drain", "maint", …; empty: it takes connections
    # "up", "down"; "kept": it fails, and stays for want of others; "well": it could serve, but too few others could.
    # Of ALL "aside": too few are well, so none serves.
    state: str


Shares = Mapping[int, Mapping[str, Said]]  # by the service's id; by server as key() has it, and ALL


def key(address: str, port: int) -> str:
    return endpoint(address, port)


def read(host: Host, paths: Paths) -> Shares:
    """Empty where there are none. Raises HostError."""
    return of_text(host.read(paths.run / "weights") or "")


@functools.lru_cache(1)  # it is asked for every two seconds, and mostly says the same
def of_text(text: str) -> Shares:
    found: dict[int, dict[str, Said]] = {}
    for line in text.splitlines():
        match line.split():
            case [service, server, written, _, word, _, state] if service.isdecimal() and written.isdecimal():
                said = Said(int(written), "" if word == "-" else word, state)
                found.setdefault(int(service), {})[server] = said
    return found
