"""The kernel's IPVS table: read it, and change only the difference."""

from __future__ import annotations

from dataclasses import replace

from applier import ipvs_netlink
from applier.host import Host, HostError, run
from applier.ipvs_netlink import KernelService, NetlinkError
from lbconfig.render import ipvs
from lbconfig.render.ipvs import Checked, Server, Table

TIMEOUT = 120.0  # seconds; a thousand services of ten servers take five on one slow CPU
NAMED = 10  # so many lines that did not take are named one by one


def read(host: Host) -> list[KernelService]:
    try:
        return ipvs_netlink.dump(host.netlink)
    except NetlinkError as error:
        raise HostError("the table of virtual services", None, str(error)) from None


def read_table(host: Host) -> Table:
    return ipvs_netlink.to_table(read(host))


def timeouts(host: Host) -> tuple[int, int, int]:
    try:
        return ipvs_netlink.timeouts(host.netlink)
    except (NetlinkError, ValueError) as error:
        raise HostError("the timeouts of IPVS", None, str(error)) from None


def set_timeouts(host: Host, wanted: tuple[int, int, int]) -> None:
    run(host, ["ipvsadm", "--set", *map(str, wanted)])


def change(host: Host, present: Table, wanted: Table, checked: Checked) -> int:
    """Make the kernel's table, which is `present`, what is wanted; the number of lines it took.

    ldirectord must not run, nor have run since `present` was read: reading a large table takes seconds.
    ipvsadm goes on after a line that the kernel refuses and reports the last line's status only. So what counts
    is the table, read back.
    """
    lines = ipvs.difference(present, wanted, checked)
    if not lines:
        return 0
    argv = ["ipvsadm", "-R"]
    output = host.command(argv, stdin="".join(f"{line}\n" for line in lines), timeout=TIMEOUT)
    left = ipvs.difference(read_table(host), wanted, checked)
    if left:
        more = f" and {len(left) - NAMED} more" if len(left) > NAMED else ""
        said = " ".join(output.stderr.split())
        raise HostError(
            " ".join(argv), output.exit, f"these lines did not take: {'; '.join(left[:NAMED])}{more}. {said}"
        )
    return len(lines)


def to_put_back(saved: Table, now: Table, checked: Checked) -> Table:
    """The saved table, but for what ldirectord has found out since about the servers of checked services.

    A server that is gone comes back as it was: it was up a moment ago, and ldirectord takes it out if it died.
    One that is there and at 0 stays at 0, and one that has come up meanwhile stays up.
    """
    current = now.by_key()
    table = {}
    for service, servers in saved.services.items():
        present = now.services[current[service.key]] if service.key in current else {}
        keep = present if service.key in checked else {}
        table[service] = {place: _merged(server, keep.get(place)) for place, server in servers.items()}
    return Table(table)


def _merged(saved: Server, present: Server | None) -> Server:
    if present is None or (present.weight > 0 and saved.weight > 0):
        return saved
    return replace(saved, weight=present.weight)
