"""The program that sends by a port, which the one that measures starts.

    python3 -m applier.capacity.sender PORT TARGET

It makes a network namespace of its own and says {"pid": …}; PORT is moved there. For each line that it is given, a
JSON list of the traffic's name, packets a second and seconds, it sends to the hardware address TARGET and says
{"sent": packets}, or {"error": "…"}. It ends with its input.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path

from applier.host.host import Host, HostError, Live, run
from lbconfig.capacity import cable
from lbconfig.capacity.cable import Traffic

PKTGEN = Path("/proc/net/pktgen")
CONTROL = PKTGEN / "pgctrl"


def answer(host: Host, port: str, target: str, line: str) -> dict[str, object]:
    """To one line."""
    try:
        name, rate, seconds = json.loads(line)
        traffic = next(one for one in cable.TRAFFICS if one.name == name)
        return {"sent": send(host, port, target, traffic, rate, seconds)}
    except (HostError, ValueError) as error:
        return {"error": str(error)}


def send(host: Host, port: str, target: str, traffic: Traffic, rate: float, seconds: float) -> int:
    """The packets that were sent."""
    run(host, ["ip", "link", "set", "dev", port, "up"])
    thread = _thread(host)
    host.tell(thread, "rem_device_all\n")
    host.tell(thread, f"add_device {port}\n")
    for order in cable.orders(traffic, target, rate):
        host.tell(PKTGEN / port, f"{order}\n")
    refused: list[HostError] = []

    def start() -> None:
        try:
            host.tell(CONTROL, "start\n")  # returns when it has ended
        except HostError as error:
            refused.append(error)

    sending = threading.Thread(target=start, daemon=True)
    sending.start()
    sending.join(seconds)
    host.tell(CONTROL, "stop\n")
    sending.join()
    if refused:
        raise refused[0]
    return cable.read_sent(host.read(PKTGEN / port) or "")


def _thread(host: Host) -> Path:
    """Of the last CPU: the first ones have most of the interrupts."""
    names = [name for name in host.names(PKTGEN) if name.startswith("kpktgend_")]
    if not names:
        raise HostError("pktgen", None, "this kernel has no packet generator")
    return PKTGEN / max(names, key=lambda name: int(name.rpartition("_")[2]))


def main(port: str, target: str) -> int:
    host = Live()
    os.unshare(os.CLONE_NEWNET)  # type: ignore[attr-defined] # Python 3.12, which the box has; we check for 3.11
    print(json.dumps({"pid": os.getpid()}), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(host, port, target, line)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
