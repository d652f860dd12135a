"""Run inside a network namespace of its own, as its root: the same networks, over the kernel itself.

python network_on_kernel.py ROUNDS SEED    exit code 77: this kernel cannot even make pairs of cards
"""

import ipaddress
import json
import random
import subprocess
import sys

from hypothesis import HealthCheck, Phase, given, seed, settings
from networks import CARDS, networks, snapshot_of

from applier.base.paths import Paths
from applier.host.host import Live
from applier.parts.network import act as network
from lbconfig.model.snapshot import Bridge, Interface, Network
from lbconfig.wanted import network as interfaces
from lbconfig.wanted.netstate import NOTHING


class Host(Live):
    """Without a host name, which is not the namespace's own, and with a note of what was asked."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def command(self, argv, stdin="", timeout=20.0):
        if "-batch" in argv and "-json" not in argv:
            self.lines += stdin.splitlines()
        return super().command(argv, stdin, timeout)

    def read(self, path):
        return None

    def setting(self, key):
        return "lb"


def works(*words: str) -> bool:
    return subprocess.run(["ip", *words], capture_output=True, check=False).returncode == 0


def kinds() -> frozenset[str]:
    """Those that this kernel can make."""
    tried = {
        "bridge": ["name", "try", "type", "bridge"],
        "bond": ["name", "try", "type", "bond", "mode", "active-backup"],
        "vlan": ["link", CARDS[0], "name", "try", "type", "vlan", "id", "9"],
    }
    found = {kind for kind, words in tried.items() if works("link", "add", *words) and works("link", "delete", "try")}
    return frozenset(found)


def go(host: Host, old, new) -> None:
    def raising(error):
        raise error

    network.make_links(host, new, old, raising)
    network.add(host, Paths(), new, raising, old)
    network.remove(host, Paths(), old, new)
    network.add(host, Paths(), new, raising, old)


def same_link_local_address() -> None:
    """A bridge that is made anew has the one that it had, whatever MAC the kernel thinks of at first."""
    wanted = interfaces.wanted(snapshot_of(Network(interfaces=(Interface("br0", bridge=Bridge((CARDS[0],))),))))
    host, found = Host(), []
    for _ in range(2):
        go(host, NOTHING, wanted)
        shown = host.command(["ip", "-json", "address", "show", "dev", "br0", "scope", "link"]).stdout
        found.append([one["local"] for one in json.loads(shown)[0]["addr_info"]])
        mac = next(one.mac for one in network.present(host).links if one.name == CARDS[0])
        go(host, wanted, NOTHING)
    assert found == [[eui64(mac)]] * 2, (found, mac)


def eui64(mac: str) -> str:
    """RFC 4291, appendix A."""
    octets = bytes.fromhex(mac.replace(":", ""))
    low = bytes([octets[0] ^ 2, *octets[1:3], 0xFF, 0xFE, *octets[3:]])
    return str(ipaddress.IPv6Address(b"\xfe\x80" + bytes(6) + low))


def main(rounds: int, number: int) -> None:
    for name in CARDS:
        if not works("link", "add", name, "type", "veth", "peer", "name", f"far-{name}"):
            sys.exit(77)
        works("link", "set", f"far-{name}", "up")
    able, host, state = kinds(), Host(), [NOTHING]

    @seed(number)
    @settings(
        max_examples=rounds,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(networks(able))
    def walk(wanted) -> None:
        old, new = state[0], interfaces.wanted(snapshot_of(wanted))
        host.lines = []
        go(host, old, new)
        done, host.lines = host.lines, []
        told = f"{old}\n{new}\n" + "\n".join(done)
        assert not network.missing(host, new), (network.missing(host, new), told)
        found = {one for one in network.addresses(host) if not one[0].startswith("far-")}
        assert found == {*new.addresses}, (found, told)
        now = network.present(host)
        assert {*now.routes} == {*new.routes} and {*now.rules} == {*new.rules}, (now, told)
        assert {one.name for one in now.links if one.kind} == {one.name for one in new.links if one.kind}, told
        go(host, old, new)
        assert host.lines == [], ("the second time", host.lines, told)
        state[0] = new

    if "bridge" in able:
        same_link_local_address()
    walk()
    go(host, state[0], NOTHING)
    left = network.present(host)
    assert not left.routes and not left.rules and not any(one.kind for one in left.links), left
    print(f"{rounds} networks with {', '.join(sorted(able))}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(2**32))
