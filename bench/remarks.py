"""Why our figures are not the papers': a sentence for each difference, written by people who have seen the figures.

Part -> sentences. They belong to the runs that docs/benchmarks.md shows; whoever puts other figures there reads them
again. What a run says by itself (caps, failures) stands in its result, not here.
"""

from __future__ import annotations

REMARKS: dict[str, tuple[str, ...]] = {
    "lisa2001": (
        "NAT with four servers reaches 1.20 of one server asked directly; the paper: 1.08, by Linux 2.2, where one "
        "server alone saturated the director. Here one server is 0.55 of direct routing's highest by construction, as "
        "there; that NAT comes out so near is measured.",
        "Direct routing with four servers reaches 1.62 (the paper: 1.82). The director had less of the machine in the "
        "rounds than when its highest rate was looked for: other programs took four fifths of it, and QEMU's processor "
        "was only half used.",
        "With one server direct routing gives what direct gives (0.97; the paper: 0.98), and NAT less, as there.",
        "Beyond the highest rate the curves fall where the paper's stay level: a client's second is over before an "
        "answer has come through a director that waits for its turn on a busy machine.",
        "The tunnel, which the paper left out, costs more than direct routing here: its ends on the servers are a "
        "program of ours and no kernel module, and share the machine.",
    ),
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
    "sizes": (
        "The highest bandwidth is that of 43 kB for each of the most hits by NAT and of 18 kB by direct routing; on "
        "the page 34 kB. So the curve has the page's shape, 15 to 45 times lower, by an emulated director.",
        "By NAT half of the highest bandwidth comes with the largest object only (the page: 32 kB): a quick run has "
        "five sizes, and one of 256 KiB is probably slowed by the way through a director that takes milliseconds.",
        "By direct routing only the clients' acknowledgements pass the director. It is at its end with the largest "
        "object all the same (124 % of a processor), which gets no more than one of 256 KiB.",
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
