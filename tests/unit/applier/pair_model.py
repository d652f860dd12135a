"""What of the kernel the link to the other box of a pair needs: WireGuard, and the threads of IPVS that tell it of
connections. A part of ModelHost."""

import dataclasses
import errno
import json
import re
import struct

import netlink_bytes as nl

from applier.host.host import HostError, Output
from applier.pair.roles import NOT_RUNNING, Role, hold_reason, hold_text, role_text
from lbconfig.model.network import Interface, Network
from lbconfig.model.pair import Pair, PairBox
from lbconfig.model.snapshot import Snapshot
from lbconfig.model.tuning import Tuning

PRIVATE, PUBLIC = "cHJpdmF0ZSBrZXkgb2YgdGhpcyBib3gsIDMyIGJ5dGU=", "cHVibGljIGtleSBvZiB0aGlzIGJveCwgMzIgYnl0ZXM="
PEER = "cHVibGljIGtleSBvZiB0aGUgb3RoZXIgYm94LCAzMmI="
LINK = "pair0"


ID = "0123456789abcdef" * 2


def pair_of(alone: Snapshot, peer: str = PEER, second: bool = False, **fields) -> Snapshot:
    """What a box that was alone becomes: its addresses float, and each box gets new ones. `second`: it is that one."""
    keys = (peer, PUBLIC) if second else (PUBLIC, peer)
    boxes = (_box(alone.network, 0, keys[0]), _box(alone.network, 1, keys[1]))
    empty = {"network": Network(), "tuning": Tuning()}
    return dataclasses.replace(alone, pair=Pair(ID, boxes, **fields), **empty)


def _box(network: Network, number: int, key: str) -> PairBox:
    interfaces = [
        dataclasses.replace(
            one, addresses=tuple(_other(text, number) for text in one.addresses), floating=one.addresses
        )
        for one in network.interfaces
    ]
    cable = Interface("eth2", addresses=(f"192.0.2.{number + 1}/30",))
    own = dataclasses.replace(network, hostname=f"lb{number + 1}", interfaces=(*interfaces, cable))
    return PairBox(own, Tuning(), "eth2", cable.addresses[0], key)


def _other(text: str, number: int) -> str:
    address, _, length = text.partition("/")
    return f"{address[: -len(address.rpartition(':' if ':' in address else '.')[2])]}{71 + number}/{length}"


class PairModel:
    def __init__(self, host) -> None:
        self.host = host
        self.conf = ""  # what wg was told last
        self.daemons: dict[int, tuple[str, int, int]] = {}  # 1: master, 2: backup -> interface, sync id, bytes
        self.services = {"vrrp": False, "floater": False, "pair": False}
        self.holds: list[tuple[str, str]] = []  # what the floater knows
        self.rival = False  # the other box leads
        self.kept = False  # what the floater held lasts for a while without it
        self.restarts = 0  # of keepalived
        self.received = 0  # bytes over the link
        self.strayed = ""  # where the link sends to, if not to what it was told
        self.mixed = False  # whether a service has servers of both IP versions

    def state(self) -> dict:
        wg = self.conf if LINK in self.host.links else ""
        return {"daemons": dict(self.daemons), "conf": wg, "services": dict(self.services), "holds": sorted(self.holds)}

    # --- keepalived and the floater ---

    def sv(self, name, verb) -> Output:
        if verb == "status":
            return Output(0, f"run: {name}: (pid 9) 5s\n" if self.services[name] else f"down: {name}: 5s\n", "")
        return self.host.change(f"sv {verb} {name}", lambda: self._sv(name, verb))

    def _sv(self, name, verb) -> Output:
        paths, files = self.host.paths, self.host.files
        there = files.get({"vrrp": paths.keepalived, "floater": paths.floating, "pair": paths.pair_link}[name])
        self.restarts += verb == "restart"
        self.services[name] = verb in ("up", "restart") and bool(there)
        if name == "floater":
            self.kept = self.kept and not self.services[name]
            self.holds = _read(there) if self.services[name] else []
        self.elect()
        return Output(0, "", "")

    def obey(self, line) -> str:
        if not self.services["floater"]:
            raise HostError(f"floater: {line}", None, "Connection refused")
        match line.split():
            case ["reload", *remove]:
                return self.host.change(f"floater {line}", lambda: self._reload(bool(remove)))
            case ["keep"]:
                return self.host.change("floater keep", self._keep)
            case ["hold", *reason]:
                self.host.files[self.host.paths.hold] = hold_text(" ".join(reason))
            case ["release"]:
                self.host.files[self.host.paths.hold] = "0\n"
            case ["hand-over", *_]:
                self.rival = True
            case _:
                raise AssertionError(f"the model does not know {line}")
        self.elect()
        return "ok"

    def _reload(self, remove) -> str:
        self.kept = False
        wanted = _read(self.host.files[self.host.paths.floating])
        self.holds = wanted if remove else [*dict.fromkeys([*self.holds, *wanted])]
        self.elect()
        return "ok"

    def _keep(self) -> str:
        self.holds, self.kept = [], True
        return "ok"

    def elect(self) -> None:
        """The role, and with it the addresses, are what files and services say."""
        files, paths = self.host.files, self.host.paths
        if not self.services["floater"]:
            role = None
        elif not self.services["vrrp"]:
            role = Role("fault", 0.0, NOT_RUNNING)
        elif (held := hold_reason(files.get(paths.hold, ""))) is not None:
            role = Role("held", 0.0, held)
        else:
            role = Role("stands by" if self.rival else "leads", 0.0, "")
        if role is not None:
            files[paths.role] = role_text(role)
        for name, link in self.host.links.items():
            leading = role is not None and role.role == "leads"
            if self.kept:
                continue
            link.leases = [address for place, address in self.holds if place == name] if leading else []
            # An address for itself alone becomes a lease where it is; of IPv6 there is each one once.
            link.addresses = [one for one in link.addresses if one not in link.leases]
            there = {one.partition("/")[0] for one in link.addresses if ":" in one}
            if both := there & {one.partition("/")[0] for one in link.leases}:
                self.host.violations.append(f"{name} has {both} twice")

    # --- WireGuard and the threads of IPVS ---

    def wg(self, words, stdin) -> Output:
        match words:
            case ["genkey"]:
                return Output(0, f"{PRIVATE}\n", "")
            case ["pubkey"] if stdin.strip() == PRIVATE:
                return Output(0, f"{PUBLIC}\n", "")
            case ["pubkey"]:
                return Output(1, "", "wg: Key is not the correct length or format")
            case ["syncconf", "pair0", "/proc/self/fd/0"]:
                return self.host.change("wg syncconf", lambda: self._sync(stdin))
            case ["set", "pair0", "peer", _, "endpoint", _]:
                return self.host.change("wg set", lambda: self._set(words[3], words[5]))
            case ["show", "pair0", "dump"]:
                return Output(0, self._dump(), "") if LINK in self.host.links else Output(1, "", "No such device")
        raise AssertionError(f"the model does not know wg {words}")

    def _sync(self, text) -> Output:
        if LINK not in self.host.links:
            return Output(1, "", "Unable to modify interface: No such device")
        self.conf = text
        return Output(0, "", "")

    def _set(self, key, endpoint) -> Output:
        assert f"PublicKey = {key}\n" in self.conf and f"Endpoint = {endpoint}\n" in self.conf
        self.strayed = ""
        return Output(0, "", "")

    def _dump(self) -> str:
        said = dict(re.findall(r"^(\w+) = (.*)$", self.conf, re.MULTILINE))
        first = "\t".join((said.get("PrivateKey", "(none)"), PUBLIC, said.get("ListenPort", "0"), "off"))
        if "PublicKey" not in said:
            return f"{first}\n"
        allowed = said["AllowedIPs"].replace(" ", "")
        alive = said["PersistentKeepalive"]
        there = self.strayed or said["Endpoint"]
        peer = (said["PublicKey"], "(none)", there, allowed, "0", str(self.received), "148", alive)
        return f"{first}\n" + "\t".join(peer) + "\n"

    def netlink(self, command, request) -> list[bytes]:
        if command == 11:
            found = [nl.message(9, nl.daemon(kind, *one)) for kind, one in sorted(self.daemons.items())]
            return [*found, nl.DONE]
        given = _attributes(request[24:])
        [kind] = struct.unpack("=I", given[1])
        if command == 10:
            return self.host.change("daemon stops", lambda: self._stop(kind))
        return self.host.change("daemon starts", lambda: self._start(kind, given))

    def _stop(self, kind) -> list[bytes]:
        return [nl.error(0 if self.daemons.pop(kind, None) else errno.ESRCH)]

    def _start(self, kind, given) -> list[bytes]:
        interface = given[2].rstrip(b"\0").decode()
        if self.mixed:
            return [nl.error(errno.EINVAL)]
        if interface not in self.host.links:
            return [nl.error(errno.ENODEV)]
        if kind in self.daemons:
            return [nl.error(errno.EEXIST)]
        assert (given[5], given[7], given[8]) == (b"\xe0\0\0\x51", struct.pack("=H", 8848), b"\1")
        self.daemons[kind] = (interface, *struct.unpack("=I", given[3]), *struct.unpack("=H", given[4]))
        return [nl.error(0)]

    def look(self) -> None:
        """After each change of the network: a thread goes on with a link that is gone, and nobody hears it."""
        link = self.host.links.get(LINK)
        for kind, (interface, sync_id, _) in self.daemons.items():
            address = f"169.254.64.{sync_id if kind == 1 else 3 - sync_id}/30"
            if interface == LINK and (link is None or address not in link.addresses):
                self.host.violations.append(f"daemon {kind} runs over a link that is gone or has another address")


def _read(text) -> list[tuple[str, str]]:
    return [(name, address) for name, address in json.loads(text)["addresses"]]


def _attributes(data: bytes) -> dict[int, bytes]:
    found, at = {}, 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        found[kind] = data[at + 4 : at + length]
        at += length + 3 & ~3
    return found
