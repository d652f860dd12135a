"""The systems of real servers, and the script that sets up each; assembled from the parts in server_scripts/."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lbconfig.model.addresses import version
from lbconfig.model.snapshot import TUNNELS, Forwarding

_PARTS = Path(__file__).parent / "server_scripts"


@dataclass(frozen=True, slots=True)
class System:
    name: str
    about: str  # which machines that is, and how long it lasts
    parts: tuple[str, ...]  # the script: these, one after the other
    gateway: str  # how it is told its default gateway; the names in braces are filled in
    restart_proof: bool = True
    tunnels: frozenset[Forwarding] = TUNNELS  # that it can have
    agent: bool = True  # whether its script brings one along
    file: str = "fairlead-server.sh"
    admin: str = "root"
    run: str = "sh fairlead-server.sh"
    place: str = '\n{name}=""\n'  # where a value of the script comes in, and how it is written
    value: str = "\n{name}={quoted}\n"
    quote: Callable[[str], str] = shlex.quote

    def gateway_command(self, address: str) -> str:
        family = version(address)
        anywhere, rc_variable = ("::/0", "ipv6_defaultrouter") if family == 6 else ("0.0.0.0/0", "defaultrouter")
        return self.gateway.format(family=family, gateway=address, anywhere=anywhere, rc_variable=rc_variable)

    def filled(self, values: dict[str, str]) -> str:
        """The script with these values; those that it has no place for are not needed on this system."""
        text = "".join((_PARTS / part).read_text() for part in self.parts)
        for name, value in values.items():
            line = self.value.format(name=name, quoted=self.quote(value))
            text = text.replace(self.place.format(name=name), line, 1)
        return text


def _quoted_for_powershell(value: str) -> str:
    """PowerShell takes typographic quotation marks as ends of a text, too."""
    return "'" + "".join(one * 2 if one in "'\u2018\u2019\u201a\u201b" else one for one in value) + "'"


PLAIN = "linux"
_WITHOUT_GUE = TUNNELS - {Forwarding.GUE}  # where no file makes the UDP port of a tunnel (decision 17)

SYSTEMS = {
    PLAIN: System(
        "Any Linux, until its restart",
        "Nothing is written on the server: its next restart takes it all back.",
        ("head.sh", "linux.sh", "linux-agent.sh", "linux-ip.sh", "tail.sh"),
        "ip -{family} route replace default via {gateway}",
        restart_proof=False,
    ),
    "networkd": System(
        "systemd-networkd",
        "Linux with files in /etc/systemd/network, systemd 244 or newer.",
        ("head.sh", "linux.sh", "linux-agent.sh", "linux-kept.sh", "linux-networkd.sh", "tail.sh"),
        "Gateway={gateway}   # in [Network] of the interface's file in /etc/systemd/network; then: networkctl reload",
        tunnels=_WITHOUT_GUE,
    ),
    "netplan": System(
        "netplan",
        "Ubuntu Server and others with files in /etc/netplan, systemd-networkd behind them. "
        "For Ubuntu on a desktop take NetworkManager.",
        ("head.sh", "linux.sh", "linux-agent.sh", "linux-kept.sh", "linux-netplan.sh", "tail.sh"),
        "routes: [{{to: '{anywhere}', via: '{gateway}'}}]   # in the interface's part of the file in /etc/netplan; "
        "then: netplan try",
        tunnels=_WITHOUT_GUE,
    ),
    "networkmanager": System(
        "NetworkManager",
        "Red Hat Enterprise Linux, AlmaLinux, Rocky, Fedora and others with nmcli, NetworkManager 1.20 or newer.",
        ("head.sh", "linux.sh", "linux-agent.sh", "linux-kept.sh", "linux-networkmanager.sh", "tail.sh"),
        "nmcli connection modify NAME ipv{family}.gateway {gateway}   # the NAME that nmcli connection shows; "
        "then: nmcli connection up NAME",
        tunnels=_WITHOUT_GUE,
    ),
    "freebsd": System(
        "FreeBSD",
        "FreeBSD 12 or newer. Written by its manual, not yet tried on such a machine: verify what it did.",
        ("head.sh", "freebsd.sh", "tail.sh"),
        "route -{family} change default {gateway}; sysrc {rc_variable}={gateway}",
        tunnels=frozenset({Forwarding.TUNNEL}),
        agent=False,
    ),
    "windows": System(
        "Windows",
        "Windows Server 2016 or newer. The virtual addresses come on a loopback adapter. "
        "Written by its documentation, not yet tried on such a machine: verify what it did.",
        ("windows.ps1",),
        "New-NetRoute -DestinationPrefix {anywhere} -NextHop {gateway} -InterfaceAlias NAME   # from Get-NetAdapter",
        tunnels=frozenset(),
        agent=False,
        file="fairlead-server.ps1",
        admin="an administrator",
        run="powershell -ExecutionPolicy Bypass -File fairlead-server.ps1",
        place="\n${name} = ''\n",
        value="\n${name} = {quoted}\n",
        quote=_quoted_for_powershell,
    ),
}
