"""The dialogue that gives the box an address when the network is gone.

It changes what runs, and only that: whatever waits in the draft goes on waiting. The draft is told of the address,
so that applying it later does not take it away again.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Generator
from dataclasses import replace

from applier.wire.client import ApplierDown, ApplierRefused, connect
from applier.wire.shapes import Status
from command.api import Api, Refused, Unreachable
from console.changing import applied
from console.dialogue import Ask, Dialogue, numbered
from lbconfig.model.addresses import within
from lbconfig.model.snapshot import Interface, Management, Network, Snapshot, SnapshotError, from_data
from lbconfig.validate import fields

DHCP, NONE = "dhcp", "none"


def set_address() -> Dialogue:
    try:
        status = connect().status()
        running = from_data(status["snapshot"])
        names = interfaces(status, running)
        yield listing(status, names)
        if not names:
            return
        name = names[(yield from numbered("Number of the interface", [True] * len(names)))]
        address = yield from asked_address()
        wished = yield from wish(running, name, address)
        done = yield from applied(wished, f"{name}: {address}, set at the console")
    except (ApplierDown, ApplierRefused, SnapshotError) as error:
        yield f"\n{error}\n"
        return
    if done:
        yield tell_draft(name, wished)


def interfaces(status: Status, running: Snapshot) -> list[str]:
    found = [link["name"] for link in status["interfaces"] if link["name"] != "lo"]
    return [*found, *(one.name for one in running.network.interfaces if one.name not in found)]


def listing(status: Status, names: list[str]) -> str:
    if not names:
        return "The box has no network interface. Check its cards, or the settings of the hypervisor.\n"
    links = {link["name"]: link for link in status["interfaces"]}
    lines = []
    for number, name in enumerate(names, 1):
        link = links.get(name)
        state = "missing" if link is None else "up" if link["up"] else "down (no cable, or not in use)"
        lines.append(f"  {number}  {name}  {state}  {', '.join(link['addresses']) if link else ''}".rstrip())
    return "\n".join([*lines, ""])


def asked_address() -> Generator[str | Ask, str, str]:
    """ "192.0.2.10/24" or "dhcp"."""
    while True:
        text = yield Ask("Address with its prefix length, such as 192.0.2.10/24, or dhcp; an empty line cancels: ")
        wrong = None if text == DHCP else fields.interface_address(text)
        if not wrong:
            return text
        yield f"It {wrong}.\n"


def wish(running: Snapshot, name: str, address: str) -> Generator[str | Ask, str, Snapshot]:
    """What runs, with the address, the gateway that belongs to it, and the way to the web page."""
    network = with_address(running.network, name, address)
    management = running.management
    if address != DHCP:
        network = yield from with_gateway(network, address)
        management = yield from with_access(management, address)
    management = yield from with_interface(management, name)
    return replace(running, network=network, management=management)


def with_address(network: Network, name: str, address: str) -> Network:
    """It takes the place of the interface's addresses of the same kind, IPv4 or IPv6."""
    old = next((one for one in network.interfaces if one.name == name), Interface(name))
    other = ":" not in address
    kept = tuple(one for one in old.addresses if (":" in one) == other)
    new = replace(old, dhcp=True, addresses=kept) if address == DHCP else with_fixed(old, address, kept)
    others = tuple(new if one.name == name else one for one in network.interfaces)
    return replace(network, interfaces=others if new in others else (*others, new))


def with_fixed(old: Interface, address: str, kept: tuple[str, ...]) -> Interface:
    by_dhcp = old.dhcp and ":" in address  # DHCP brings IPv4 alone, and may stay beside an address of IPv6
    return replace(old, dhcp=by_dhcp, addresses=(address, *kept))


def with_gateway(network: Network, address: str) -> Generator[str | Ask, str, Network]:
    six = ":" in address
    now = (network.gateway6 if six else network.gateway) or NONE
    while True:
        text = yield Ask(f"Default gateway, or none: [{now}] ", now)
        wrong = None if text == NONE else fields.host_address(text)
        if not wrong:
            router = "" if text == NONE else text
            return replace(network, gateway6=router) if six else replace(network, gateway=router)
        yield f"It {wrong}.\n"


def with_access(management: Management, address: str) -> Generator[str | Ask, str, Management]:
    """The web page answers only to the networks of a list; that of the address may have to be added."""
    near = ipaddress.ip_interface(address).network
    allowed = [ipaddress.ip_network(one) for one in management.allow]
    if any(within(near, one) for one in allowed):
        return management
    yield f"The web page may be opened from {', '.join(management.allow) or 'nowhere'} only.\n"
    while True:
        text = yield Ask(f"Allow {near} as well, yes or no? [yes] ", "yes")
        if text in ("yes", "no"):
            return replace(management, allow=(*management.allow, str(near))) if text == "yes" else management


def with_interface(management: Management, name: str) -> Generator[str | Ask, str, Management]:
    """The web page may answer on some interfaces only; the one that gets the address may have to be added."""
    if management.answers_on(name):
        return management
    yield f"The web page answers on {' and '.join(management.interfaces)} only.\n"
    while True:
        text = yield Ask(f"Let it answer on {name} as well, yes or no? [yes] ", "yes")
        if text in ("yes", "no"):
            more = (*management.interfaces, name)
            return replace(management, interfaces=more) if text == "yes" else management


def tell_draft(name: str, wished: Snapshot) -> str:
    """Whether the draft of the web page knows the address now, as a sentence."""
    new = next(one for one in wished.network.interfaces if one.name == name)
    api = Api()
    try:
        network = api.get("network")
        others = [one for one in network["interfaces"] if one["name"] != name]
        old = next((one for one in network["interfaces"] if one["name"] == name), {"name": name})
        changed = {**old, "dhcp": new.dhcp, "addresses": list(new.addresses)}
        gateways = {"gateway": wished.network.gateway, "gateway6": wished.network.gateway6}
        api.ask("PUT", "network", {**network, **gateways, "interfaces": [*others, changed]})
        if access := _opened(api.get("management"), wished.management, name):
            api.ask("PATCH", "management", access)
    except (Unreachable, Refused) as error:
        return (
            "The draft on the web page does not know this address yet. Enter it there, too, before you apply the "
            f"draft, or discard the draft. ({error})\n"
        )
    return "The draft on the web page has it as well. What else is in there still waits to be applied.\n"


def _opened(draft: dict, wished: Management, name: str) -> dict:
    """What the draft's access to the web page lacks of what was chosen here."""
    allow, interfaces = draft["allow"], draft["interfaces"]
    missing = [one for one in wished.allow if one not in allow]
    shut = interfaces and name not in interfaces and wished.answers_on(name)
    return ({"allow": [*allow, *missing]} if missing else {}) | ({"interfaces": [*interfaces, name]} if shut else {})
