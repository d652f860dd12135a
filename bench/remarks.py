"""Why our figures are not the papers': a sentence for each difference, written by people who have seen the figures.

Part -> sentences. They belong to the runs that docs/benchmarks.md shows; whoever puts other figures there reads them
again. What a run says by itself (caps, failures) stands in its result, not here.
"""

from __future__ import annotations

REMARKS: dict[str, tuple[str, ...]] = {
    "netpipe": (
        "NAT falls behind direct with one server already (0.40; the paper: 1.20, with cards that carried "
        "50 to 70 Mbit/s depending on which two were connected): a block and its echo wait for an emulated director "
        "twice, and with one connection nothing else is on the way meanwhile.",
        "NAT carries the same with three servers as with six, as in the paper: there, too, the director was at its end "
        "from the second server on.",
        "Direct routing stays at about 0.4 of direct with 1, 3 and 6 servers (the paper: 1.0): there the client's card "
        "was at its end first, at 2.5 times what a server's card carried, and here the client had no such end in this "
        "run. Against NAT it carries 1.0, 1.7 and 3.2 times as much; the paper: 0.8, 1.5 and 1.7.",
        "The director answered every time (the paper: it could not be reached from two servers by NAT on). Pages took "
        "1 to 2 seconds, and a second without load, too: other programs had most of this machine.",
    ),
    "aries": (
        "With four servers NAT gives 0.80 of direct where 0.5 was expected from the rate that each server was held to: "
        "other programs left the director more of the machine during the rounds than in the moment in which that rate "
        "was set. The paper's 0.25 is of eight servers; this quick run went to four.",
        "Up to two servers nothing is lost by a director, as in the paper below 2,000 requests a second.",
        "No request failed while a server was removed and added, by either way; the paper tells of no such test. The "
        "applies took 12 to 27 seconds because the emulated box shared its processor with the load.",
    ),
}
