"""Whether the box can be reached while it is flooded: seconds that the web UI takes, with and without the reservation."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from board.lab.build import build
from tests.lab import updating
from tests.lab.director import VIP, Director, service
from tests.lab.fixtures import boot
from tests.lab.flood import flooded_lab, wish_flooded

from lbconfig.snapshot import CheckKind, HealthCheck

NAPI = "for f in /sys/class/net/eth*/threaded; do echo {} >$f; done"
GROUP = (
    "mkdir -p /sys/fs/cgroup; mountpoint -q /sys/fs/cgroup || mount -t cgroup2 none /sys/fs/cgroup;"
    "echo +cpu >/sys/fs/cgroup/cgroup.subtree_control; mkdir -p /sys/fs/cgroup/services;"
    "echo {weight} >/sys/fs/cgroup/services/cpu.weight;"
    "for p in $(ls /proc | grep '^[0-9]'); do [ -e /proc/$p/exe ] && [ $p != 1 ] && readlink /proc/$p/exe >/dev/null && echo $p >{to} 2>/dev/null; done; true"
)
OUT = GROUP.format(weight=100, to="/sys/fs/cgroup/cgroup.procs")


def into(weight):
    return GROUP.format(weight=weight, to="/sys/fs/cgroup/services/cgroup.procs")


BUDGET = "sysctl -q -w net.core.netdev_budget={} net.core.netdev_budget_usecs={}"
STATES = {
    "as it was": f"{OUT}; {NAPI.format(0)}; {BUDGET.format(300, 8000)}",
    "threaded": f"{OUT}; {NAPI.format(1)}; {BUDGET.format(300, 8000)}",
    "share 100": f"{into(100)}; {NAPI.format(0)}; {BUDGET.format(300, 8000)}",
    "threaded, share 100": f"{into(100)}; {NAPI.format(1)}; {BUDGET.format(300, 8000)}",
    "threaded, share 300": f"{into(300)}; {NAPI.format(1)}; {BUDGET.format(300, 8000)}",
}
FLOODS = {
    "none": None,
    "syn vip": ("syn", f"{VIP}:80"),
    "udp closed": ("udp", f"{VIP}:0"),
    "syn ui": ("syn", "10.1.0.1:443"),
}


def answers(page, url, count, patience):
    """Seconds."""
    found = []
    end = time.monotonic() + patience
    while len(found) < count and time.monotonic() < end:
        began = time.monotonic()
        with page.opener.open(url, timeout=120) as answer:
            assert answer.status == 200
            answer.read()
        found.append(time.monotonic() - began)
    return found


def facts(director):
    return director.succeed(
        "grep -E 'MemFree|MemAvail|Slab:' /proc/meminfo | tr -s ' ' | tr '\\n' ' '; cat /proc/sys/net/netfilter/nf_conntrack_count; wc -c /var/log/messages; dmesg | wc -l; cat /proc/net/softnet_stat; ipvsadm -Lnc | wc -l;"
        "ps | grep -c . ; uptime",
        120,
    )


def main(states, floods):
    with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
        with flooded_lab(Path(folder), build(), 512) as (lab, flood):
            director = lab.director
            boot(lab)
            print(
                "uname",
                director.succeed(
                    "uname -r; zcat /proc/config.gz 2>/dev/null| grep PREEMPT; ls /sys/fs/cgroup; grep -i cgroup /proc/filesystems; ls /sys/class/net/eth0/ | grep thr"
                ),
            )
            updating.set_up(director)
            director.apply(wish_flooded(service(1, "site", check=HealthCheck(CheckKind.OFF))))
            page = updating.Page(director)
            print(lab.world.get(f"{VIP}:80/", 3))
            print(lab.world.in_client("ping -c 1 10.1.0.1"))
            for state in states:
                director.succeed(STATES[state])
                for name in floods:
                    if FLOODS[name]:
                        flood.begin(*FLOODS[name], seconds=120)
                        time.sleep(3)
                    found = answers(page, director.url, 12, 40)
                    real = lab.world.get(f"{VIP}:80/name", 10)
                    took = flood.stop() if FLOODS[name] else (0, 1)
                    print(
                        f"== {state:22} {name:12} median {statistics.median(found):6.2f} longest {max(found):6.2f} of {len(found)}; {took[0] / took[1]:8.0f} packets/s; real ok {sum('rs' in r for r in real)}/10",
                        flush=True,
                    )
                    print("   ", facts(director).replace("\n", "\n    "), flush=True)
                    time.sleep(1)


if __name__ == "__main__":
    main(
        (sys.argv[1] if len(sys.argv) > 1 else ";".join(STATES)).split(";"),
        (sys.argv[2] if len(sys.argv) > 2 else ";".join(FLOODS)).split(";"),
    )
