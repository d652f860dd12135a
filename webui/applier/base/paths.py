"""Where things lie. In tests and in the lab the environment moves them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Paths:
    state: Path = Path("/data/applier")  # survives a power cut
    mount: Path | None = Path("/data")  # where the data partition must be mounted; None: it need not be one
    run: Path = Path("/run/fairlead")  # gone with a power cut, like the kernel's state
    services: Path = Path("/run/service")  # runit's
    dhcp_template: Path = Path("/usr/share/fairlead/runit/dhcp")
    version_file: Path = Path("/usr/lib/fairlead/VERSION")
    slots: Path = Path("/disk")  # a folder for each slot's configuration
    shared: Path = Path("/disk/shared")  # what both slots read

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Paths:
        names = {
            "state": "FAIRLEAD_STATE",
            "run": "FAIRLEAD_RUN",
            "services": "FAIRLEAD_SERVICES",
            "version_file": "FAIRLEAD_VERSION_FILE",
            "slots": "FAIRLEAD_SLOTS",
            "shared": "FAIRLEAD_SHARED",
        }
        moved = {field: Path(environment[name]) for field, name in names.items() if environment.get(name)}
        paths = cls(**moved)
        return replace(paths, mount=None) if "state" in moved else paths

    @property
    def socket(self) -> Path:
        return self.run / "applier.sock"

    @property
    def pair_socket(self) -> Path:
        """Of the applier, for the process that talks with the other box of a pair (pair/channel.py)."""
        return self.run / "pair.sock"

    @property
    def setup_code(self) -> Path:
        return self.run / "setup-code"

    @property
    def set_up(self) -> Path:
        """The marker that somebody has set the box up."""
        return self.state / "set-up"

    @property
    def tls(self) -> Path:
        """The folder of the web page's certificate and its key."""
        return self.state.parent / "tls"

    @property
    def pair_key(self) -> Path:
        """The private key by which the other box of the pair knows this one; in no configuration and no backup."""
        return self.state.parent / "pair/key"

    @property
    def joined(self) -> Path:
        """What this box has agreed with the other one of the pair that they are about to be (joining/record.py)."""
        return self.state.parent / "pair/joined"

    @property
    def reset_mark(self) -> Path:
        """While it is there, the next boot forgets all that the box has kept (S10data)."""
        return self.slots / "factory-reset"

    @property
    def early(self) -> Path:
        """What the next boot brings up before anything of Python is loaded (early.py)."""
        return self.state / "early"

    @property
    def early_digest(self) -> Path:
        return self.state / "early.sha256"

    @property
    def reserve(self) -> Path:
        """Room that is set aside on the data partition."""
        return self.state / "reserve"

    @property
    def ldirectord(self) -> Path:
        return self.run / "ldirectord.cf"

    @property
    def checker(self) -> Path:
        """The socket of the program that starts ldirectord."""
        return self.run / "ldirectord.socket"

    @property
    def checks_wanted(self) -> Path:
        """That program's own mark: while it is there, checks run."""
        return self.run / "ldirectord.wanted"

    @property
    def events(self) -> Path:
        """Why servers left and came back (events.py)."""
        return self.state / "events"

    @property
    def lead_changes(self) -> Path:
        """Which box of the pair began to lead, when and why (lead_changes.py)."""
        return self.shared / "lead-changes"

    @property
    def drills(self) -> Path:
        """What drills of the pair have shown (drills.py)."""
        return self.shared / "pair-drills"

    @property
    def pair_hold(self) -> Path:
        """That an admin holds this box of the pair (pair_hold.py)."""
        return self.shared / "pair-hold"

    @property
    def pair_update(self) -> Path:
        """How far the update of both boxes of the pair is (update/rolling/record.py)."""
        return self.shared / "pair-update"

    @property
    def told(self) -> Path:
        """The socket at which the health checks say so; Fairlead/Rounds.pm has its name, too."""
        return self.run / "events"

    @property
    def sorry_page(self) -> Path:
        """/etc/fairlead/sorry.conf shows this file."""
        return self.run / "sorry/sorry.html"

    @property
    def web(self) -> Path:
        """A part of nginx.conf; nginx waits for it when the box starts (overlay/etc/sv/nginx/run)."""
        return self.run / "web.conf"

    @property
    def certificates(self) -> Path:
        """A folder that nginx may read, of what the web page shows instead of the box's own certificate.

        render/web.py names it, too. Its group is that of its files (S20folders).
        """
        return self.run / "certificates"

    @property
    def web_read(self) -> Path:
        """What of it nginx was last told to read (web_server.py)."""
        return self.run / "web.read"

    @property
    def names(self) -> Path:
        """What is configured about names; dhcp-event makes resolv.conf of it, too."""
        return self.run / "names.conf"

    @property
    def resolver(self) -> Path:
        """/etc/resolv.conf leads here."""
        return self.run / "resolv.conf"

    @property
    def time(self) -> Path:
        """What chronyd reads."""
        return self.run / "chrony.conf"

    @property
    def keepalived(self) -> Path:
        """What keepalived reads; there in a pair alone, as is `floating` (overlay/etc/sv/vrrp/run)."""
        return self.run / "keepalived.conf"

    @property
    def floating(self) -> Path:
        """The addresses that the floater holds while this box leads."""
        return self.run / "floating.json"

    @property
    def vrrp_events(self) -> Path:
        """The pipe by which keepalived tells the floater the state of its group."""
        return self.run / "vrrp.fifo"

    @property
    def hold(self) -> Path:
        """Anything but 0 in its first line, and keepalived stands aside; the next line says why."""
        return self.run / "hold"

    @property
    def role(self) -> Path:
        """Which role the box has in its pair, by the floater."""
        return self.run / "role"

    @property
    def floater(self) -> Path:
        """The socket of the floater; it hears root alone."""
        return self.run / "floater"

    @property
    def nftables(self) -> Path:
        """The rules that the kernel runs."""
        return self.run / "nftables.conf"

    @property
    def pair_link(self) -> Path:
        """WireGuard's part of the link to the other box of the pair, as the kernel runs it; not there without one."""
        return self.run / "pair.conf"

    @property
    def rules_seen(self) -> Path:
        """What the kernel had of them right after they were loaded (firewall.py)."""
        return self.run / "nftables.seen"

    @property
    def first_round(self) -> Path:
        """Left by the health checks when every server was checked once since the boot (first-round)."""
        return self.run / "first-round"

    @property
    def candidate(self) -> Path:
        """A folder for files that are only being tried."""
        return self.run / "candidate"

    @property
    def running(self) -> Path:
        """Which generation the kernel's state was last brought to, since boot."""
        return self.run / "running.json"

    @property
    def pending(self) -> Path:
        """What waits to be confirmed."""
        return self.run / "pending.json"

    @property
    def untuned(self) -> Path:
        """What the kernel or a card refused when the hardware was tuned last (hardware.py)."""
        return self.run / "untuned.json"

    @property
    def module_options(self) -> Path:
        """modprobe reads what is in this folder."""
        return self.run.parent / "modprobe.d/fairlead.conf"

    @property
    def boot_faults(self) -> Path:
        """A folder where the boot scripts leave a sentence a file about what went wrong."""
        return self.run / "faults"

    @property
    def disk(self) -> Path:
        """Links to the partitions of the disk that the box runs from; not there without such a disk."""
        return self.run / "disk"

    @property
    def boot_state(self) -> Path:
        return self.disk / "boot-state"

    @property
    def slot_file(self) -> Path:
        """Which slot runs: A or B."""
        return self.run / "slot"

    @property
    def upload(self) -> Path:
        """Where the web process leaves bundles."""
        return self.shared / "upload"

    @property
    def taken(self) -> Path:
        """Where they go before anybody looks at them; root's alone."""
        return self.shared / "taken"

    @property
    def update_record(self) -> Path:
        return self.shared / "update.json"

    @property
    def least_version(self) -> Path:
        """No older one is installed or started any more (least_version.py)."""
        return self.shared / "least-version"

    @property
    def capacity(self) -> Path:
        """What the box was measured to forward."""
        return self.shared / "capacity.json"

    @property
    def slot_notes(self) -> Path:
        """When each slot was installed, and by whom."""
        return self.shared / "slots.json"

    @property
    def version(self) -> str:
        try:
            return self.version_file.read_text().strip()
        except OSError:
            return "development"
