"""The kernel's IPVS table: read it, and change only the difference."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from applier.host import ipvs_listing, ipvs_netlink
from applier.host.host import Host, HostError, Output, run
from applier.host.ipvs_netlink import Interrupted, KernelService, NetlinkError
from lbconfig.wanted import table as ipvs
from lbconfig.wanted.table import Checked, Server, ServerKey, Service, ServiceKey, Table, TableChange

WRITE = ["ipvsadm", "-R"]
TIMEOUT = 120.0  # seconds; a thousand services of ten servers take five on one slow CPU
LEAVES = 3.0  # seconds at most that a server has to end what it is answering
SETTLES = 0.5  # seconds: a connection that a client is just opening is none of the established ones yet
LOOKS_AGAIN = 0.1  # seconds
NAMED = 10  # so many lines that did not take are named one by one


def read(host: Host, keys: Collection[ServiceKey] | None = None) -> list[KernelService]:
    """`keys`: the services that are asked for; None: all."""
    try:
        return ipvs_netlink.dump(host.netlink) if keys is None else ipvs_netlink.some(host.netlink, keys)
    except NetlinkError as error:
        raise HostError("the table of virtual services", None, str(error)) from None


def read_table(host: Host, keys: Collection[ServiceKey] | None = None) -> Table:
    return ipvs_netlink.to_table(read(host, keys))


def listing(host: Host) -> str:
    """The kernel's list of it, for ipvs_listing.Listing; quick, and without what only netlink tells."""
    text = host.read(ipvs_listing.PATH)
    if text is None:
        raise HostError("the table of virtual services", None, "the kernel has no IPVS (module ip_vs)")
    return text


def timeouts(host: Host) -> tuple[int, int, int]:
    try:
        return ipvs_netlink.timeouts(host.netlink)
    except (NetlinkError, ValueError) as error:
        raise HostError("the timeouts of IPVS", None, str(error)) from None


def set_timeouts(host: Host, wanted: tuple[int, int, int]) -> None:
    run(host, ["ipvsadm", "--set", *map(str, wanted)])


def change(
    host: Host, present: Table, wanted: Table, checked: Checked, keys: Collection[ServiceKey] | None = None
) -> int:
    """Make the kernel's table, which is `present`, what is wanted; the number of lines it took.

    `keys`: both are these services' part of the table, and nothing else of it is looked at.

    ldirectord must not run, nor have run since `present` was read: reading a large table takes seconds.
    A server that leaves a service which goes on gets no new connections first, and LEAVES seconds to end what it
    is answering. ipvsadm goes on after a line that the kernel refuses and reports the last line's status only. So
    what counts is the table, read back.
    """
    changes = ipvs.changes(present, wanted, checked)
    if not changes:
        return 0
    rest, outputs = changes, []
    if leave := ipvs.taken_over(changes, present):
        outputs.append(_write(host, [*(change for change in changes if not change.deletes), *leave]))
        _wait_until_idle(host, leave)
        rest = [change for change in changes if change.deletes]
    outputs.append(_write(host, rest))
    left = ipvs.difference(read_table(host, keys), wanted, checked)
    if left:
        more = f" and {len(left) - NAMED} more" if len(left) > NAMED else ""
        said = " ".join(" ".join(output.stderr for output in outputs).split())
        raise HostError(
            " ".join(WRITE), outputs[-1].exit, f"these lines did not take: {'; '.join(left[:NAMED])}{more}. {said}"
        )
    return len(changes)


def _write(host: Host, changes: list[TableChange]) -> Output:
    return host.command(WRITE, stdin="".join(f"{change.line}\n" for change in changes), timeout=TIMEOUT)


def _wait_until_idle(host: Host, leave: list[TableChange]) -> None:
    """Until these servers have no established connection (of TCP and SCTP: UDP has none), or LEAVES is over."""
    waiting: dict[Service, set[ServerKey]] = {}
    for change in leave:
        if change.place is not None:
            waiting.setdefault(change.service, set()).add(change.place)
    until = host.now() + LEAVES
    host.sleep(SETTLES)
    while waiting:
        waiting = {service: busy for service, places in waiting.items() if (busy := _busy(host, service, places))}
        if waiting:
            if host.now() >= until:
                return
            host.sleep(LOOKS_AGAIN)


def _busy(host: Host, service: Service, places: set[ServerKey]) -> set[ServerKey]:
    try:
        servers = ipvs_netlink.servers(host.netlink, service)
    except Interrupted:
        return places  # looked at again
    except NetlinkError as error:
        raise HostError("the real servers of a virtual service", None, str(error)) from None
    return {place for place, server in servers.items() if place in places and server.active}


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
