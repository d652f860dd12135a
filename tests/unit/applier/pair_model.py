"""What of the kernel the link to the other box of a pair needs: WireGuard, and the threads of IPVS that tell it of
connections. A part of ModelHost."""

import errno
import re
import struct

import netlink_bytes as nl

from applier.host.host import Output

PRIVATE, PUBLIC = "cHJpdmF0ZSBrZXkgb2YgdGhpcyBib3gsIDMyIGJ5dGU=", "cHVibGljIGtleSBvZiB0aGlzIGJveCwgMzIgYnl0ZXM="
PEER = "cHVibGljIGtleSBvZiB0aGUgb3RoZXIgYm94LCAzMmI="
LINK = "pair0"


def conf(own: int = 0, peer: str = PEER, endpoint: str = "192.0.2.2:51820") -> str:
    """WireGuard's file of the first or the second box."""
    return (
        "# The link to the other box\n[Interface]\nListenPort = 51820\n\n[Peer]\n"
        f"PublicKey = {peer}\nEndpoint = {endpoint}\n"
        f"AllowedIPs = 169.254.64.{2 - own}/32, 224.0.0.81/32, ff02::81/128\nPersistentKeepalive = 1\n"
    )


class PairModel:
    def __init__(self, host) -> None:
        self.host = host
        self.conf = ""  # what wg was told last
        self.daemons: dict[int, tuple[str, int, int]] = {}  # 1: master, 2: backup -> interface, sync id, bytes
        self.mixed = False  # whether a service has servers of both IP versions

    def state(self) -> dict:
        return {"daemons": dict(self.daemons), "conf": self.conf if LINK in self.host.links else ""}

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
            case ["show", "pair0", "dump"]:
                return Output(0, self._dump(), "") if LINK in self.host.links else Output(1, "", "No such device")
        raise AssertionError(f"the model does not know wg {words}")

    def _sync(self, text) -> Output:
        if LINK not in self.host.links:
            return Output(1, "", "Unable to modify interface: No such device")
        self.conf = text
        return Output(0, "", "")

    def _dump(self) -> str:
        said = dict(re.findall(r"^(\w+) = (.*)$", self.conf, re.MULTILINE))
        first = "\t".join((said.get("PrivateKey", "(none)"), PUBLIC, said.get("ListenPort", "0"), "off"))
        if "PublicKey" not in said:
            return f"{first}\n"
        allowed = said["AllowedIPs"].replace(" ", "")
        peer = (said["PublicKey"], "(none)", said["Endpoint"], allowed, "0", "0", "148", said["PersistentKeepalive"])
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


def _attributes(data: bytes) -> dict[int, bytes]:
    found, at = {}, 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        found[kind] = data[at + 4 : at + length]
        at += length + 3 & ~3
    return found
