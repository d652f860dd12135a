"""The counted director as the first box of a pair; the second one is a guest beside it that nobody counts.

The link, the threads of the kernel that tell connections, the firewall and the settings are the product's own, of the
snapshot of a pair. Nobody is elected: who leads has no part in what a connection costs.
"""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.counted import QUIET, CountedStage, snapshot
from bench.neighbours import TapEnd
from board.lab.build import Image
from board.machines.director import Director
from board.machines.lab import data_disk
from board.machines.link import UserNetwork
from board.machines.paired import key_of
from board.machines.wait import until

from lbconfig.model.network import Network
from lbconfig.model.snapshot import Pair, PairBox, Tuning
from lbconfig.target import Target

IN_A_PAIR = "in a pair"
CABLE = "eth1"  # the servers' network is the pair cable as well
SETTLES = 8.0  # seconds until a program that has ended costs nothing any more: what runs anyway is counted first
BEGIN = """
from applier.base.paths import Paths; from applier.host.host import Live; from applier.parts.pair import daemons, link
"""
JOIN = f"{BEGIN}link.put(Live(), Paths(), open('/run/pair.conf').read())"
HEARD = f"{BEGIN}found = link.peer(Live()); print(found.received if found and found.handshake else 0)"
TELL = f"""{BEGIN}
wanted = daemons.wanted(link.wanted(open('/run/pair.conf').read()))
daemons.put(Live(), wanted)
daemons.resize(Live(), wanted, large={{large}})
"""
END = f"{BEGIN}daemons.put(Live(), ())"


@dataclass
class Second:
    stage: CountedStage

    @contextmanager
    def told(self, large: bool) -> Iterator[None]:
        """As long as this lasts, the second box is told of connections, in messages of this size."""
        director = self.stage.director
        director.succeed(f"nft -f '/run/bench/{IN_A_PAIR}.nft'; sysctl -qp '/run/bench/{IN_A_PAIR}.sysctl'")
        director.python(TELL.format(large=large))
        time.sleep(SETTLES)
        try:
            yield
        finally:
            director.python(END)


@contextmanager
def second_box(stage: CountedStage, image: Image) -> Iterator[Second]:
    """Boot it and join both; the director is what it was until somebody asks for more."""
    folder = Path(tempfile.mkdtemp(prefix="fairlead-"))
    cards = (UserNetwork(()), TapEnd("tap-second"))
    second = Director("second", folder, image, nics=cards, data=data_disk(folder))
    second.clock = "tsc"
    try:
        with second:
            second.wait_until_started()
            # Its applier would take down at once a link of which it knows nothing.
            second.execute(f"{QUIET} >/dev/null 2>&1")
            second.wait_until_succeeds("sv status /run/service/applier | grep -q ^down")
            second.succeed("ip link set eth1 up; ip address add 10.2.0.2/24 dev eth1; nft flush ruleset")
            join(stage.director, second)
            yield Second(stage)
    finally:
        shutil.rmtree(folder)


def join(first: Director, second: Director) -> None:
    boxes = first, second
    keys = [key_of(one) for one in boxes]
    alone = snapshot()
    cards = [one for one in alone.network.interfaces if one.name != "eth0"]
    networks = (
        Network(hostname="first", interfaces=alone.network.interfaces),
        Network(
            hostname="second",
            interfaces=tuple(
                dataclasses.replace(one, addresses=tuple(text.replace(".1/", ".2/") for text in one.addresses))
                for one in cards
            ),
        ),
    )
    pair = Pair(
        "0123456789abcdef" * 2,
        (
            PairBox(networks[0], Tuning(), CABLE, "10.2.0.1/24", keys[0]),
            PairBox(networks[1], Tuning(), CABLE, "10.2.0.2/24", keys[1]),
        ),
    )
    both = dataclasses.replace(alone, network=Network(), pair=pair)
    for number, one in enumerate(boxes):
        target = Target(1, both, number)
        one.write("/run/pair.conf", target.pair_conf)
        one.python(JOIN)
        if number == 0:
            settings = "".join(
                f"{found.key.replace('/', '.')}={found.value}\n" for found in target.settings if "/vs/sync" in found.key
            )
            one.write(f"/run/bench/{IN_A_PAIR}.sysctl", settings)
            one.write(f"/run/bench/{IN_A_PAIR}.nft", f"flush ruleset\n{target.rules}")
            one.succeed(f"nft -f '/run/bench/{IN_A_PAIR}.nft'")
    second.python(TELL.format(large=True))
    until("the two boxes to hear each other", lambda: int(first.python(HEARD)) > 0, timeout=60)
