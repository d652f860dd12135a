"""Two appliers over model hosts that have been joined and are no pair yet, and what the network lets through."""

import dataclasses

from box import DNS, WEB
from two_boxes import KEYS, OLD, Half, Two, network

from applier.pair.joining import record
from applier.pair.joining.record import Record
from lbconfig.model.snapshot import Interface, Management, Snapshot
from lbconfig.validate.services import validate

ID = OLD.pair.id
KEPT, LOST = "192.168.10.3", "192.168.10.77"  # where the second box is joined: an address that it keeps, and another


def alone(number: int, place: str) -> Snapshot:
    """As each box was before; the first one has what floats later."""
    own = (("192.168.10.1/24", "10.2.0.1/24"), (f"{place}/24", "10.2.0.90/24"))[number]
    found = dataclasses.replace(network(number, floats=False), hostname=("lb1", "spare")[number])
    cards = tuple(Interface(f"eth{at}", addresses=(text,)) for at, text in enumerate(own))
    services = (WEB, DNS) if number == 0 else ()
    found = Snapshot(
        services=services,
        network=dataclasses.replace(found, interfaces=cards),
        management=Management(allow=("192.168.0.0/16",)),
    )
    assert not validate(found), validate(found)
    return found


def set_up(box: Half, place: str = KEPT) -> None:
    """It runs a configuration of its own, and was joined with the other one."""
    assert box.apply(alone(box.number, place))["state"] == "done", box.applier.status()["apply"]
    join(box, place)


def join(box: Half, place: str = KEPT) -> None:
    addresses = (place, "192.168.10.1")
    found = Record(ID, box.number, KEYS, ("spare", "lb1")[box.number], addresses[box.number], 1000, None, ())
    record.keep(box.paths, found)


class Apart(Two):
    """Two boxes that have just been joined. `place`: where the second one is."""

    def __init__(self, folder, place: str) -> None:
        self.place = place
        super().__init__(folder)

    def set_up(self, box: Half) -> None:
        set_up(box, self.place)

    def speaks(self, box: Half) -> bool:
        """Over the link alone: with the process that talks there, a path, and a firewall that lets it in."""
        other = self.boxes[1 - box.number]
        if not all(one.host.pair.services["pair"] and "pair0" in one.host.links for one in self.boxes):
            return False
        first, second = (f"192.0.2.{one.number + 1}/30" in str(one.host.links["eth2"].addresses) for one in self.boxes)
        if first and second:
            return True
        there = first or not second or self.place == KEPT
        return there and ("set joined {" not in other.host.rules or bool(other.host.joined))
