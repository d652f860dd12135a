"""The ordered steps from one configuration to another: each with do, undo, and the reason for its place.

The same steps lead from one generation to the next, from an empty kernel to the confirmed generation at boot, and
back from an apply that was cut short. Each compares the system with the configuration and changes only the
difference, so doing one twice does nothing the second time.

Undo is called in reverse order for every step that was begun, also for the one that failed; so undo must cope with
a `do` that came only half way.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from applier.apply.hardware_steps import PlaceInterrupts, TuneHardware
from applier.apply.job import Job, Step, Unsafe
from applier.apply.network_steps import AddToNetwork, Announce, MakeLinks, PutNames, RemoveFromNetwork
from applier.apply.pair_steps import (
    AddFloating,
    Connections,
    Elect,
    EndElection,
    MakePairLink,
    RemoveFloating,
    election_missing,
)
from applier.host.host import PRIVATE, HostError, wait_until
from applier.parts import director, firewall, table, web_server
from applier.parts.network import act as network
from lbconfig.render import web
from lbconfig.wanted import table as ipvs
from lbconfig.wanted.settings import Setting

VERIFY_SECONDS = 15  # how long the last look may wait for what it wants to see


class Store(Step):
    name = "store"
    why = "First: what cannot be stored is not begun. It is not the confirmed one yet, so a power cut forgets it."

    def do(self, job: Job) -> str:
        job.generations.whole(job.stored)  # it was written when the request was admitted; it must also be readable
        return f"revision {job.number}"


class Lint(Step):
    name = "lint"
    why = "Before anything is touched: are the interfaces there, and can the programs read their files?"

    def do(self, job: Job) -> str:
        network.must_exist(job.host, job.network)
        rules = job.paths.candidate / "nftables.conf"
        for text in dict.fromkeys((job.rules_meanwhile, job.new.rules)):
            if text == job.host.read(job.paths.nftables):
                continue  # nft has loaded it
            job.host.put(rules, text)
            firewall.check(job.host, rules)
        if job.new.has_checks and checks_change(job):
            director.read(job.host, job.paths, job.new.checks)
        return "nft and ldirectord can read them"


class Firewall(Step):
    name = "nftables"
    why = "Before addresses and forwarding, so that nothing is ever reachable that the rules would not allow."

    def due(self, job: Job) -> bool:
        if not job.doubted:
            same = job.host.read(job.paths.nftables) == job.rules_meanwhile
            return not same or not firewall.is_loaded(job.host)
        try:
            return firewall.altered(job.host, job.paths, job.rules_meanwhile) is not None
        except HostError:
            return True  # loaded once more, they are these

    def do(self, job: Job) -> str:
        saved = job.saved
        saved.rules_loaded = firewall.is_loaded(job.host)
        saved.rules = job.host.read(job.paths.nftables)
        try:
            _load_rules(job, job.rules_meanwhile)
        except HostError as error:
            if not job.lenient:
                raise
            return self._closed(job, error)
        return "loaded"

    def _closed(self, job: Job, error: HostError) -> str:
        """At boot nobody can be asked: keep the rules that are ours, or close the box to all but the web UI."""
        job.trouble(error)
        if job.saved.rules_loaded and job.saved.rules is not None:
            return "the rules that were there stay"
        try:
            firewall.load_closed(job.host, job.paths.candidate / "closed.conf", job.new.own)
        except HostError as second:
            # The boot scripts loaded a table that lets nothing in; with that one it is safe to go on.
            if not firewall.is_loaded(job.host):
                raise Unsafe("nftables", None, firewall.last_resort(second)) from None
            return "closed"
        return "closed to all but the web UI"

    def undo(self, job: Job) -> None:
        # Where somebody had unloaded them by hand, those that should have been there are put back.
        rules = job.saved.rules if job.saved.rules_loaded else None
        if rules is None and job.before is not None:
            rules = job.before.rules
        if rules is not None:
            _load_rules(job, rules)


class RemoveFromFirewall(Step):
    name = "nftables-remove"
    why = "After the table and the addresses: until then clients of what leaves were still served."

    def due(self, job: Job) -> bool:
        return job.rules_meanwhile != job.new.rules and job.host.read(job.paths.nftables) == job.rules_meanwhile

    def do(self, job: Job) -> str:
        job.saved.rules_removed = True
        try:
            _load_rules(job, job.new.rules)
        except HostError as error:
            job.trouble(error)
        return "loaded without what has left"

    def undo(self, job: Job) -> None:
        if job.saved.rules_removed:
            _load_rules(job, job.rules_meanwhile)


class MoveWebPage(Step):
    name = "web-page"
    why = "Right after the rules that shut the old port and open the new one: it is away for as short as can be."

    def due(self, job: Job) -> bool:
        return web_server.differs(job.host, job.paths, job.new)

    def do(self, job: Job) -> str:
        management = job.new.snapshot.management
        job.saved.web = job.host.read(job.paths.web) or ""
        try:
            web_server.load(job.host, job.paths, job.new.web, management)
        except HostError as error:
            if not (job.lenient and management.page_key):
                raise
            # Without a web page nobody could give the box another certificate.
            job.trouble(
                HostError("the web page shows the box's own certificate, as yours cannot be used", None, str(error))
            )
            web_server.load(job.host, job.paths, web.alone(job.new.snapshot))
        return f"port {management.port}{', with your certificate' if management.page_key else ''}"

    def undo(self, job: Job) -> None:
        if job.saved.web:
            web_server.load(job.host, job.paths, job.saved.web)
            web_server.forget(job.host, job.paths, job.new.snapshot.management)


class Settings(Step):
    name = "sysctl"
    why = "After the rules, because it switches forwarding on; before addresses, because it says how ARP answers."

    def due(self, job: Job) -> bool:
        return bool(settings_that_differ(job)) or table.timeouts(job.host) != job.new.timeouts

    def do(self, job: Job) -> str:
        host, saved = job.host, job.saved.settings
        for setting in job.new.settings:
            present = host.setting(setting.key)
            if present is None:
                job.trouble(HostError(f"setting {setting.key}", None, "this kernel or box has none of that name"))
            else:
                saved[setting.key] = present
        # Each is read again: to switch forwarding changes others.
        changed = 0
        for setting in job.new.settings:
            if setting.key in saved and not setting.holds(host.setting(setting.key)):
                host.set(setting.key, setting.value)
                changed += 1
        timeouts = table.timeouts(host)
        if timeouts != job.new.timeouts:
            job.saved.timeouts = timeouts
            table.set_timeouts(host, job.new.timeouts)
            changed += 1
        return f"{changed} changed"

    def undo(self, job: Job) -> None:
        # In the same order again, for the same reason.
        for key, value in job.saved.settings.items():
            if job.host.setting(key) not in (value, None):  # None: its interface is gone
                job.host.set(key, value)
        if job.saved.timeouts is not None:
            table.set_timeouts(job.host, job.saved.timeouts)


class PutSorryPage(Step):
    name = "sorry-page"
    why = "Before the services that show it; it is only a text."

    def due(self, job: Job) -> bool:
        return sorry_page_differs(job)

    def do(self, job: Job) -> str:
        job.saved.sorry_page = job.host.read(job.paths.sorry_page) or ""
        job.host.put(job.paths.sorry_page, job.new.sorry_page)
        return "written"

    def undo(self, job: Job) -> None:
        if job.saved.sorry_page is not None:
            job.host.put(job.paths.sorry_page, job.saved.sorry_page or None)


class StopDirector(Step):
    name = "ldirectord-stop"
    why = "It writes the table of virtual services itself, so it must not run while the table is changed."

    def due(self, job: Job) -> bool:
        changes = not job.new.has_checks or checks_change(job) or bool(_lines(job))
        active = director.state(job.host, job.paths).active or bool(director.processes(job.host, job.paths))
        return changes and active

    def do(self, job: Job) -> str:
        job.saved.director_ran = True
        director.stop(job.host, job.paths)
        return "stopped"

    def undo(self, job: Job) -> None:
        # By now the steps after it are undone: its file and the table are as they were.
        if job.saved.director_ran:
            director.start(job.host, job.paths)


class ChangeTable(Step):
    name = "ipvs"
    why = "Between stop and start of ldirectord: only the difference, so what is not touched keeps its connections."

    def due(self, job: Job) -> bool:
        return bool(_lines(job))

    def do(self, job: Job) -> str:
        _must_not_run(job, "ipvsadm -R")
        job.saved.table = table.read_table(job.host, job.keys)
        count = table.change(job.host, job.saved.table, job.table, job.checked, job.keys)
        return f"{count} changes"

    def undo(self, job: Job) -> None:
        if job.saved.table is None:
            return
        _must_not_run(job, "ipvsadm -R")
        now = table.read_table(job.host, job.keys)
        table.change(job.host, now, table.to_put_back(job.saved.table, now, job.checked), {}, job.keys)


class StartDirector(Step):
    name = "ldirectord-start"
    why = "As soon as the table is right: until then nobody notices a server that dies."

    def due(self, job: Job) -> bool:
        runs = director.state(job.host, job.paths).pid is not None
        return checks_change(job) or runs != job.new.has_checks

    def do(self, job: Job) -> str:
        if checks_change(job):
            _must_not_run(job, "start")  # it would go on with the file that it has read already
        job.saved.checks = job.host.read(job.paths.ldirectord) or ""
        job.host.put(job.paths.ldirectord, job.new.checks, PRIVATE)
        if not job.new.has_checks:
            return "no service is checked"
        # By this file it may be starting by itself: then this waits until it does.
        director.start(job.host, job.paths)
        return "started"

    def undo(self, job: Job) -> None:
        if job.saved.checks is None:
            return
        director.stop(job.host, job.paths)
        job.host.put(job.paths.ldirectord, job.saved.checks or None, PRIVATE)


class Verify(Step):
    name = "verify"
    why = "Before the confirmation: only what was seen to run may be loaded at the next boot."

    def do(self, job: Job) -> str:
        for what, probe in VERIFIED:
            try:
                wait_until(job.host, what, VERIFY_SECONDS, functools.partial(probe, job))
            except HostError as error:
                job.trouble(error)
        return "all as configured"


class Confirm(Step):
    name = "confirm"
    why = "The very last: a failure of any step before it leaves the next boot with what was confirmed before."

    def do(self, job: Job) -> str:
        job.generations.confirm(job.stored, job.seconds(), job.lineage)
        return f"revision {job.number}"

    def undo(self, job: Job) -> None:
        job.generations.confirm_again(job.confirmed)


def _load_rules(job: Job, rules: str) -> None:
    """The copy of what runs is away meanwhile: a kill in between must not leave one that is not true."""
    path = job.paths.candidate / "nftables.conf"
    present = job.host.read(job.paths.nftables)
    job.host.put(path, rules)
    job.host.put(job.paths.nftables, None)
    try:
        firewall.load(job.host, path)
    except HostError as error:
        if error.exit is not None and present is not None:
            job.host.put(job.paths.nftables, present)  # nft said no, so it changed nothing
        raise
    firewall.note(job.host, job.paths, rules)
    job.host.put(job.paths.nftables, rules)


def settings_that_differ(job: Job) -> list[tuple[Setting, str | None]]:
    """With their present values; None: this kernel or box has none of that name."""
    seen = [(setting, job.host.setting(setting.key)) for setting in job.new.settings]
    return [(setting, present) for setting, present in seen if not setting.holds(present)]


def sorry_page_differs(job: Job) -> bool:
    return job.host.read(job.paths.sorry_page) != job.new.sorry_page


def checks_change(job: Job) -> bool:
    return (job.host.read(job.paths.ldirectord) or "") != job.new.checks


def _lines(job: Job) -> list[str]:
    return ipvs.difference(table.read_table(job.host, job.keys), job.table, job.checked)


def _must_not_run(job: Job, command: str) -> None:
    state = director.state(job.host, job.paths)
    if state.active or director.processes(job.host, job.paths):
        raise HostError(command, None, f"not tried, because ldirectord runs: {state.text}")


def _verify_rules(job: Job) -> str | None:
    return None if firewall.is_loaded(job.host) else "the table of the firewall is not there"


def _verify_network(job: Job) -> str | None:
    absent = network.missing(job.host, job.network)
    return f"missing: {', '.join(absent[:10])}" if absent else None


def _verify_table(job: Job) -> str | None:
    lines = _lines(job)
    return f"not taken: {'; '.join(lines[:10])}" if lines else None


def _verify_director(job: Job) -> str | None:
    state = director.state(job.host, job.paths)
    if not job.new.has_checks:
        return None if state.pid is None else f"it runs though no service is checked ({state.text})"
    return None if state.checks else state.text


VERIFIED: tuple[tuple[str, Callable[[Job], str | None]], ...] = (
    ("the firewall", _verify_rules),
    ("the network", _verify_network),
    ("the table of virtual services", _verify_table),
    ("ldirectord", _verify_director),
    ("the pair", election_missing),
)

APPLY: tuple[Step, ...] = (
    Store(),
    Lint(),
    Firewall(),
    MoveWebPage(),
    MakeLinks(),
    MakePairLink(),
    TuneHardware(),
    Settings(),
    EndElection(),
    AddToNetwork(),
    AddFloating(),
    PlaceInterrupts(),
    Announce(),
    PutNames(),
    PutSorryPage(),
    StopDirector(),
    ChangeTable(),
    Connections(),
    StartDirector(),
    Elect(),
    RemoveFromNetwork(),
    RemoveFloating(),
    RemoveFromFirewall(),
    Verify(),
    Confirm(),
)
# At boot, and back from an apply that was cut short: the generation is there and confirmed already.
CONVERGE = tuple(step for step in APPLY if step.name not in ("store", "lint", "confirm"))
