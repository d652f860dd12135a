"""The steps of an apply that are about the network. What a step is: see job.py; their order: steps.py."""

from __future__ import annotations

from dataclasses import replace

from applier.apply.job import Job, Step
from applier.base.paths import Paths
from applier.host.host import Host
from applier.parts.announce import announce, changed, places
from applier.parts.network import act as network
from lbconfig.wanted.netstate import Address, NetworkState


def _as_it_is(job: Job) -> NetworkState:
    """The whole network, to come back to it."""
    new = job.network
    return replace(
        network.present(job.host),
        hostname=job.host.setting("kernel/hostname") or "",
        dhcp=tuple(
            name for name in dict.fromkeys((*job.old.dhcp, *new.dhcp)) if network.asks(job.host, job.paths, name)
        ),
    )


def _remember(job: Job) -> None:
    if job.saved.network is None:
        job.saved.places = places(job.host)
        job.saved.network = _as_it_is(job)


def _put_back(job: Job, links_too: bool) -> None:
    before = job.saved.network
    if before is None:
        return  # it failed before it changed anything
    now = places(job.host)
    network.put_back(job.host, job.paths, before, job.network, job.trouble, links_too)
    # Where the neighbours had been told otherwise.
    announce(job.host, changed(now, places(job.host), before.addresses))


class MakeLinks(Step):
    name = "links"
    why = "Before the settings, some of which each interface has for itself; nothing lives on a new one yet."

    def due(self, job: Job) -> bool:
        return network.links_to_make(job.host, job.network, job.old) > 0

    def do(self, job: Job) -> str:
        _remember(job)
        return f"{network.make_links(job.host, job.network, job.old, job.trouble)} changes"

    def undo(self, job: Job) -> None:
        _put_back(job, links_too=True)


class AddToNetwork(Step):
    name = "interfaces-add"
    why = "Before the services that live on these addresses; what is removed goes last, when nothing uses it."

    def due(self, job: Job) -> bool:
        host, new = job.host, job.network
        named = host.setting("kernel/hostname") == new.hostname
        asking = all(network.asks(host, job.paths, name) for name in new.dhcp)
        return not named or not asking or network.lacks(host, new, job.old)

    def do(self, job: Job) -> str:
        _remember(job)
        before = network.addresses(job.host)
        network.add(job.host, job.paths, job.network, job.trouble, job.old)
        return f"{len(network.addresses(job.host) - before)} added"

    def undo(self, job: Job) -> None:
        # The new links stay until the settings that they have are undone.
        _put_back(job, links_too=False)


class Announce(Step):
    name = "announce"
    why = "As soon as the addresses are there: until then the neighbours send to where they were."

    def due(self, job: Job) -> bool:
        return bool(self._moved(job))

    def do(self, job: Job) -> str:
        moved = self._moved(job)
        announce(job.host, moved)
        return f"{len(moved)} addresses"

    def _moved(self, job: Job) -> dict[Address, str]:
        if job.before is None:  # at a boot all are news to the neighbours, whoever has added them (early.py)
            return changed({}, places(job.host), job.network.addresses)
        if job.saved.network is None:
            return {}
        return changed(job.saved.places, places(job.host), job.network.addresses)


class PutNames(Step):
    name = "names"
    why = "Before the health checks, which may ask for names."

    def due(self, job: Job) -> bool:
        return names_differ(job) or time_differs(job)

    def do(self, job: Job) -> str:
        job.saved.names = job.host.read(job.paths.names) or ""
        job.saved.time = job.host.read(job.paths.time) or ""
        self._put(job, job.new.names, job.new.time, job.network)
        return "written"

    def undo(self, job: Job) -> None:
        if job.saved.names is not None and job.saved.time is not None:
            before = job.saved.network or job.old
            self._put(job, job.saved.names, job.saved.time, before)

    @staticmethod
    def _put(job: Job, names: str, time: str, state: NetworkState) -> None:
        job.host.put(job.paths.resolver, _resolver(job.host, job.paths, names, state.dhcp))
        job.host.put(job.paths.names, names or None)
        if (job.host.read(job.paths.time) or "") == time:
            return
        job.host.put(job.paths.time, time or None)
        # What the clock does is nobody's reason to go back: it runs on, and the log tells why it is not set.
        verb = "restart" if time else "stop"
        job.host.command(["sv", "-w", "5", verb, str(job.paths.services / network.TIME_SERVICE)])


def names_differ(job: Job) -> bool:
    host, paths, names = job.host, job.paths, job.new.names
    wished = _resolver(host, paths, names, job.network.dhcp)
    # In whatever order: dhcp-event has its own.
    resolver = {*(host.read(paths.resolver) or "").splitlines()}
    return (host.read(paths.names) or "") != names or resolver != {*wished.splitlines()}


def time_differs(job: Job) -> bool:
    return (job.host.read(job.paths.time) or "") != job.new.time


def _resolver(host: Host, paths: Paths, names: str, dhcp: tuple[str, ...]) -> str:
    """The admin's name servers, or those that DHCP brought."""
    if "nameserver " in names:
        return names
    brought = (host.read(paths.run / "dhcp" / f"{name}.names") or "" for name in sorted(dhcp))  # as dhcp-event
    return "".join(brought) + names


class RemoveFromNetwork(Step):
    name = "interfaces-remove"
    why = "Last of the changes: the services that used these addresses are gone from the table by now."

    def due(self, job: Job) -> bool:
        return network.has_more(job.host, job.paths, job.old, job.network)

    def do(self, job: Job) -> str:
        job.saved.removed = _as_it_is(job)  # all that may have to come back
        leaves = [name for name in job.old.dhcp if name not in job.network.dhcp]
        job.saved.told = network.told(job.host, job.paths, leaves)
        before = network.addresses(job.host)
        network.remove(job.host, job.paths, job.old, job.network)
        removed = len(before - network.addresses(job.host))
        # The kernel may have taken more along (a route, DHCP's last act).
        network.add(job.host, job.paths, job.network, job.trouble, job.old)
        return f"{removed} removed"

    def undo(self, job: Job) -> None:
        if job.saved.removed is None:
            return
        now = places(job.host)
        network.retell(job.host, job.paths, job.saved.told)  # before DHCP is asked again
        network.add(job.host, job.paths, replace(job.saved.removed, hostname=""), job.trouble)
        for setting in job.before.settings if job.before else ():  # of links that were made anew
            if job.host.setting(setting.key) not in (setting.value, None):
                job.host.set(setting.key, setting.value)
        announce(job.host, changed(now, places(job.host), job.saved.removed.addresses))
