"""Names and time: who is asked for addresses, and for what o'clock it is.

Both files are whole only together with what DHCP brought (overlay/usr/share/fairlead/dhcp-event): servers that the
admin named count alone, and where there are none those of DHCP do.
"""

from __future__ import annotations

from lbconfig.model.snapshot import Snapshot


def render_names(snapshot: Snapshot) -> str:
    """In resolv.conf(5) syntax; without name servers DHCP's come in front of it."""
    network = snapshot.network
    lines = [f"nameserver {server}" for server in network.dns]
    lines += [f"search {' '.join(network.search)}"] if network.search else []
    return "".join(f"{line}\n" for line in lines)


def render_time(snapshot: Snapshot) -> str:
    """For chronyd: a client alone, which opens no port."""
    servers = snapshot.network.ntp
    return "".join(
        f"{line}\n"
        for line in (
            *(f"server {server} iburst" for server in servers),
            *([] if servers else ["sourcedir /run/fairlead/dhcp"]),
            "port 0",
            "cmdport 0",
            "bindcmdaddress /run/fairlead/time/chronyd.sock",
            "pidfile /run/fairlead/time/chronyd.pid",
            "driftfile /run/fairlead/time/drift",
            # Its first three answers may fix a clock that is years wrong; later it is only led.
            "makestep 1 3",
            "rtcsync",
        )
    )
