"""A small model of the kernel's network: it takes lines of `ip -batch`, refuses what the kernel refuses, and answers
`ip -json`. What falls with what (routes with a link, members with a bond) falls here as well."""

import ipaddress
import json
from dataclasses import dataclass, field, replace

MODES_WITH_PRIMARY = {"active-backup", "balance-tlb", "balance-alb"}


class Refused(Exception):
    """In the kernel's words."""


@dataclass
class ModelLink:
    mac: str
    up: bool = False
    addresses: list[str] = field(default_factory=list)
    kind: str = ""
    mtu: int = 1500
    master: str = ""
    parent: str = ""
    tag: int = 0
    options: dict[str, str] = field(default_factory=dict)
    leases: list[str] = field(default_factory=list)  # floating addresses, which no line of ip is about


@dataclass(frozen=True)
class ModelRoute:
    destination: str
    via: str
    device: str
    metric: int = 0
    table: str = "main"

    @property
    def six(self) -> bool:
        return ":" in self.destination


class KernelModel:
    def __init__(self, links=("eth0", "eth1", "eth2")) -> None:
        self.links = {name: ModelLink(f"52:54:00:00:00:{i:02x}") for i, name in enumerate(links)}
        self.routes: list[ModelRoute] = []
        self.rules: list[
            tuple[str, int, str, bool]
        ] = []  # source, preference, table, whether main's defaults count not
        self.made = 16

    def state(self) -> dict:
        return {
            "links": {
                name: replace(link, mac="", addresses=sorted(link.addresses), leases=sorted(link.leases))
                for name, link in self.links.items()
            },
            "routes": sorted(self.routes, key=str),
            "rules": sorted(self.rules),
        }

    # --- what is written -------------------------------------------------------------------------

    def batch(self, lines, force=False, after=None) -> tuple[int, str]:
        """Exit code and what ip says; `after` is called after each line."""
        said = []
        for number, line in enumerate(lines, 1):
            try:
                self.line(line)
            except Refused as error:
                said.append(f"RTNETLINK answers: {error}: {line}\nCommand failed -:{number}\n")
                if not force:
                    break
            if after:
                after(line)
        return (1 if said else 0), "".join(said)

    def line(self, line: str) -> None:
        match line.split():
            case ["link", "add", *words]:
                self._add_link(words)
            case ["link", "delete", "dev", name]:
                self._delete(self._known(name))
            case ["link", "set", "dev", name, *words]:
                self._set(self._known(name), words)
            case ["address", "add", address, "dev", name, *kind]:
                self._add_address(self._known(name), address, kind)
            case ["address", "del", address, "dev", name]:
                self._delete_address(self._known(name), address)
            case ["address", "change", address, "dev", name, "valid_lft", "forever", "preferred_lft", *kind]:
                self._own_address(self._known(name), address, kind)
            case ["route", "replace", destination, *words]:
                self._replace_route(self._route(destination, words))
            case ["route", "del", destination, *words]:
                route = self._route(destination, words)
                if route not in self.routes:
                    raise Refused("No such process")
                self.routes.remove(route)
            case ["rule", verb, "from", source, "lookup", table, *suppress, "preference", preference]:
                self._rule(verb, (source, int(preference), table, suppress == ["suppress_prefixlength", "0"]))
            case _:
                raise AssertionError(f"the model does not know {line!r}")

    def _known(self, name: str) -> str:
        if name not in self.links:
            raise Refused(f'Cannot find device "{name}"')
        return name

    def _add_link(self, words) -> None:
        self.made += 1
        mac = f"52:54:00:00:01:{self.made % 256:02x}"
        match words:
            case ["link", parent, "name", name, "type", "vlan", "id", tag]:
                over = self.links[self._known(parent)]
                if any((link.parent, link.tag) == (parent, int(tag)) for link in self.links.values()):
                    raise Refused("File exists")
                link = ModelLink(over.mac, kind="vlan", parent=parent, tag=int(tag), mtu=over.mtu)
            case ["name", name, "address", told, "type", "bridge" as kind, *options]:
                link = ModelLink(told, kind=kind, options={"stp_state": "0"})
            case ["name", name, "mtu", mtu, "type", "wireguard" as kind]:
                link, options = ModelLink("", kind=kind, mtu=int(mtu)), []
            case ["name", name, "type", ("bond" | "bridge") as kind, *options]:
                link = ModelLink(mac, kind=kind)
                link.options = {"mode": "balance-rr", "miimon": "0"} if kind == "bond" else {"stp_state": "0"}
            case _:
                raise AssertionError(f"the model does not know {words}")
        if name in self.links:
            raise Refused("File exists")
        self.links[name] = link
        if link.kind != "vlan":
            self._options(name, options)

    def _delete(self, name: str) -> None:
        if self.links[name].kind == "":
            raise Refused("Operation not supported")
        for member in [one for one, link in self.links.items() if link.master == name]:
            self._release(member)
        for above in [one for one, link in self.links.items() if link.parent == name]:
            self._delete(above)
        self._down(name)
        del self.links[name]

    def _set(self, name: str, words) -> None:
        link = self.links[name]
        match words:
            case ["up"]:
                if link.parent and not self.links[link.parent].up:
                    raise Refused("Network is down")
                link.up = True
            case ["down"]:
                self._down(name)
            case ["mtu", number]:
                self._mtu(name, int(number))
            case ["address", mac]:
                link.mac = mac
            case ["nomaster"]:
                if link.master:
                    self._release(name)
            case ["master", master]:
                self._enslave(name, self._known(master))
            case ["type", kind, *options]:
                assert kind == link.kind, (name, words)
                self._options(name, options)
            case _:
                raise AssertionError(f"the model does not know {words}")

    def _down(self, name: str) -> None:
        link = self.links[name]
        link.up = False
        link.addresses = [one for one in link.addresses if ":" not in one]
        self.routes = [route for route in self.routes if route.device != name]
        for above in [one for one, other in self.links.items() if other.parent == name]:
            self._down(above)

    def _mtu(self, name: str, mtu: int) -> None:
        link = self.links[name]
        if link.parent and mtu > self.links[link.parent].mtu:
            raise Refused("Numerical result out of range")
        link.mtu = mtu
        for other in self.links.values():
            if other.parent == name and other.mtu > mtu:
                other.mtu = mtu
            if other.master == name and link.kind == "bond":
                other.mtu = mtu

    def _release(self, name: str) -> None:
        bond = self.links[self.links[name].master].kind == "bond"
        self.links[name].master = ""
        if bond:
            self._down(name)

    def _enslave(self, name: str, master: str) -> None:
        link, group = self.links[name], self.links[master]
        if link.master or group.kind not in ("bond", "bridge") or name == master:
            raise Refused("Device or resource busy")
        if group.kind == "bridge" and link.kind == "bridge":
            raise Refused("Too many levels of symbolic links")
        if group.kind == "bond":
            if link.up:
                raise Refused("Operation not permitted (device can not be enslaved while up)")
            link.up, link.mtu = True, group.mtu
        link.master = master

    def _options(self, name: str, words) -> None:
        link = self.links[name]
        given = dict(zip(words[::2], words[1::2], strict=True))
        if link.kind == "bond":
            self._bond(name, given)
        link.options |= given

    def _bond(self, name: str, given: dict[str, str]) -> None:
        link = self.links[name]
        members = [one for one, other in self.links.items() if other.master == name]
        mode = given.get("mode", link.options["mode"])
        if mode != link.options["mode"]:
            if link.up or members:
                raise Refused("Directory not empty" if members else "Device or resource busy")
            link.options = {"mode": mode, "miimon": link.options["miimon"]}
            link.options |= {"xmit_hash_policy": "layer2"}
            link.options |= {"lacp_rate": "slow"} if mode == "802.3ad" else {}
        if "lacp_rate" in given and (mode != "802.3ad" or link.up):
            raise Refused("Operation not permitted")
        if "primary" in given and (mode not in MODES_WITH_PRIMARY or given["primary"] not in self.links):
            raise Refused("Operation not permitted")

    def _add_address(self, name: str, address: str, kind) -> None:
        link = self.links[name]
        host = address.partition("/")[0]
        same_host = [one for one in link.addresses if one.partition("/")[0] == host]
        same_host += [one for one in link.leases if one.partition("/")[0] == host]
        if address in (*link.addresses, *link.leases) or (":" in address and same_host):
            raise Refused("File exists")
        assert link.up, f"{address} is added to {name}, which is down"
        if address.endswith("/128"):
            assert kind == ["nodad", "preferred_lft", "0"], (address, kind)
        elsewhere = any(
            one.partition("/")[0] == host
            for other in self.links.values()
            if other is not link
            for one in other.addresses
        )
        if ":" in address and elsewhere:
            assert kind[:1] == ["nodad"], f"{address} is on another link: it would be taken for a duplicate"
        link.addresses.append(address)

    def _own_address(self, name: str, address: str, kind) -> None:
        """Of a lease."""
        link = self.links[name]
        if address not in link.leases:
            raise Refused("Cannot assign requested address")
        assert kind == (["0", "nodad"] if ":" in address else ["forever"]), (address, kind)
        link.leases.remove(address)
        link.addresses.append(address)

    def _delete_address(self, name: str, address: str) -> None:
        link = self.links[name]
        if address in link.leases:
            link.leases.remove(address)
            return
        if address not in link.addresses:
            raise Refused("Cannot assign requested address")
        link.addresses.remove(address)
        if ":" not in address and not any(":" not in one for one in link.addresses):
            self.routes = [route for route in self.routes if route.device != name or route.six]

    @staticmethod
    def _route(destination: str, words) -> ModelRoute:
        given = dict(zip(words[::2], words[1::2], strict=True))
        metric = int(given.get("metric", 1024 if ":" in destination else 0))
        return ModelRoute(destination, given.get("via", ""), given["dev"], metric, given.get("table", "main"))

    def _replace_route(self, route: ModelRoute) -> None:
        link = self.links[self._known(route.device)]
        if not link.up:
            raise Refused("Network is down")
        local = route.via.startswith("fe80:")
        if route.via and not local and not any(_contains(address, route.via) for address in link.addresses):
            raise Refused("Nexthop has invalid gateway")
        key = (route.destination, route.metric, route.table)
        self.routes = [one for one in self.routes if (one.destination, one.metric, one.table) != key]
        self.routes.append(route)

    def _rule(self, verb: str, rule) -> None:
        if verb == "add":
            if rule in self.rules:
                raise Refused("File exists")
            self.rules.append(rule)
        elif rule in self.rules:
            self.rules.remove(rule)
        else:
            raise Refused("No such file or directory")

    # --- what is read ----------------------------------------------------------------------------

    def json(self, argv: list[str]) -> list[dict]:
        match argv:
            case ["address", "show"]:
                return [_LOOPBACK, *(self._address_entry(name) for name in self.links)]
            case ["-details", "address", "show"]:
                return [_LOOPBACK, *(self._address_entry(name) | self._details(name) for name in self.links)]
            case ["-details", "route", "show", "table", "all"]:
                return [self._route_entry(one) for one in self.routes]
            case [kind, "rule", "show"]:
                return [_rule_entry(*one) for one in self.rules if (":" in one[0]) == (kind == "-6")]
        raise AssertionError(f"the model does not know ip {argv}")

    def several(self, questions: str) -> str:
        """What `ip -json -details -batch -` prints."""
        return "".join(json.dumps(self.json(["-details", *line.split()])) + "\n" for line in questions.splitlines())

    def _address_entry(self, name: str) -> dict:
        link = self.links[name]
        return {
            "ifname": name,
            "flags": ["BROADCAST", *(["UP", "LOWER_UP"] if link.up else [])],
            "operstate": "UP" if link.up else "DOWN",
            "address": link.mac,
            "mtu": link.mtu,
            "addr_info": [
                {
                    "family": "inet6" if ":" in one else "inet",
                    "local": one.split("/")[0],
                    "prefixlen": int(one.split("/")[1]),
                }
                for one in link.addresses
            ]
            + [
                {
                    "family": "inet6" if ":" in one else "inet",
                    "local": one.split("/")[0],
                    "prefixlen": int(one.split("/")[1]),
                    "dynamic": True,
                }
                for one in link.leases
            ],
        } | ({"master": link.master} if link.master else {})

    def _details(self, name: str) -> dict:
        link = self.links[name]
        if not link.kind:
            return {"max_mtu": 9600}
        words = {"lacp_rate": "ad_lacp_rate"}
        data = {words.get(word, word): int(value) if value.isdigit() else value for word, value in link.options.items()}
        if link.kind == "vlan":
            return {
                "link": link.parent,
                "linkinfo": {"info_kind": "vlan", "info_data": {"protocol": "802.1Q", "id": link.tag}},
            }
        return {"linkinfo": {"info_kind": link.kind, "info_data": data}}

    @staticmethod
    def _route_entry(route: ModelRoute) -> dict:
        default = ipaddress.ip_network(route.destination).prefixlen == 0
        entry = {"dst": "default" if default else route.destination, "dev": route.device, "flags": []}
        entry |= {"gateway": route.via} if route.via else {}
        entry |= {"metric": route.metric} if route.metric else {}
        entry |= {"pref": "medium"} if route.six else {}
        return entry | ({"table": route.table} if route.table != "main" else {})


_LOOPBACK = {
    "ifname": "lo",
    "flags": ["LOOPBACK", "UP"],
    "address": "00:00:00:00:00:00",
    "addr_info": [{"family": "inet", "local": "127.0.0.1", "prefixlen": 8}],
}


def _rule_entry(source: str, preference: int, table: str, suppressed: bool) -> dict:
    return {"priority": preference, "src": source, "table": table} | ({"suppress_prefixlen": 0} if suppressed else {})


def _contains(address: str, host: str) -> bool:
    network, parsed = ipaddress.ip_interface(address).network, ipaddress.ip_address(host)
    return parsed.version == network.version and parsed in network
