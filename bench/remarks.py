"""Why our figures are not the papers': a sentence for each difference, written by people who have seen the figures.

Part -> sentences. They belong to the runs that docs/benchmarks.md shows; whoever puts other figures there reads them
again. What a run says by itself (caps, failures) stands in its result, not here.
"""

from __future__ import annotations

REMARKS: dict[str, tuple[str, ...]] = {
    "instructions": (
        "Against the stock set-up direct routing and NAT take 0.66, the tunnel 0.63; with one interface 0.60 to "
        "0.63. The next part shows each step.",
        "Direct routing takes 0.81 of what a stock box takes to route the same packets by rules that keep state, "
        "and 1.23 of a router without any rule, 1.15 on a box with one interface. IPVS's own functions take some "
        "5,000 instructions of a connection; on a box with several interfaces the check of senders takes 2,000 "
        "more, which the kernel spares a router whose packets come one behind the other (decision 31).",
        "NAT takes 0.81 of nftables' translation without any other rule, and 0.76 of translation beside stateful ones.",
        "Where the admin has a rule about what is routed through the box, connections are tracked again (decision "
        "33): direct routing and NAT then take about a quarter more, and what is routed takes 1.13 of the stock "
        "box's.",
        "HAProxy and nginx take six times as much as direct routing and three times as much as NAT. On our box they "
        "take 0.85 to 0.88 of what they take on the stock one: its rules and its tracking met their packets, too.",
        "A first look, at a stock kernel and a naive set-up with mitigations off, had 50,000 for direct routing, "
        "105,000 for NAT, 242,000 for HAProxy by TCP and 240,000 for nginx.",
        "Rounds that stand apart were disturbed by other programs on this machine: in the dearest one of NAT "
        "clients had to send again (11.5 packets a connection in place of 10), and in the cheapest one of HAProxy "
        "something ran on the box right before, which was taken for what always runs.",
        "Translation by nftables failed for some of the clients' connections (16 to 64 of 3,000 to 9,000), probably "
        "because its table of tracked connections still had one with the same ports.",
    ),
    "steps": (
        "Most is saved by not tracking at all and by rules that stand where a packet of a service does not come: a "
        "fifth or more of either way. What is not cleared comes next for NAT (6 per cent), whose packets go through "
        "the box both ways.",
        "What would save more and was left (decision 31): without the check of senders a box with several "
        "interfaces would be as cheap as one with a single interface.",
    ),
    "lisa2001": (
        "Direct routing with one, two and four servers gives 0.98, 2.00 and 2.40 of one server asked directly (the "
        "paper, one processor: 0.98, 1.63, 1.82). With two servers the servers are at their end here, which the "
        "paper's faster ones were not; with four it is the director, or nearly: the lowest of its rounds answers 93 "
        "of 100 requests at the highest rate offered.",
        "NAT with four servers gives 1.23; the paper: 1.08, by Linux 2.2. That is 0.51 of direct routing's (the "
        "paper: 0.59); with two servers it gives more (1.47) than with four, as spreading over more of them saves "
        "the director nothing.",
        "A second virtual processor lifts NAT with four servers from 1.23 to 1.77 of direct. Direct routing stays "
        "where it was (2.29; the paper went from 1.82 to 2.52): this machine has two processors in all, and with "
        "two of the director's nothing is left for clients and servers.",
        "Four virtual processors take a machine with as many; this one has two.",
        "Beyond the highest rate NAT's curve falls where the paper's stays level: a client's second is over before "
        "an answer has come through a director that waits for its turn.",
        "The tunnel, which the paper left out, gives what direct routing gives. Its ends on the servers are a "
        "program of ours and no kernel module, and share the machine.",
    ),
    "netpipe": (
        "NAT falls behind direct with one server already (0.38; the paper: 1.20, with cards that carried 50 to 70 "
        "Mbit/s depending on which two were connected): a block and its echo wait for an emulated director twice, "
        "and with one connection nothing else is on the way meanwhile.",
        "NAT carries hardly more with six servers than with three, as in the paper: the director is at its end.",
        "Direct routing stays at 0.4 to 0.5 of direct with 1, 3 and 6 servers (the paper: 1.0): there the client's "
        "card was at its end first, and here the client had no such end. Against NAT it carries 1.3 to 1.5 times as "
        "much; the paper: 0.8 to 1.7.",
        "The director answered every time, in 0.35 s at most (median) while its processor was used up by NAT; "
        "without load it took 0.17 s. The paper: it could not be reached from two servers by NAT on.",
    ),
    "sizes": (
        "The highest bandwidth is that of 63 kB for each of the most hits by NAT and of 160 kB by direct routing; "
        "on the page 34 kB: its network ended at 10 Gbit/s, and this one does not.",
        "Half of the highest bandwidth comes with the largest object only (the page: 32 kB): nothing but the "
        "processors bounds the bandwidth here, and larger objects cost less for each byte.",
        "By direct routing only the clients' acknowledgements pass the director. It is at its end with the largest "
        "object all the same.",
    ),
    "unequal": (
        "Least connections serves 1.41 times what round robin does, and shortest expected delay with weights of 2 "
        "and 1 serves 1.36 times; the note: 1.51, with servers of 2,122 answers a second by round robin. Of two "
        "servers, one twice as slow, no scheduler gets more than 1.5.",
    ),
    "aries": (
        "With four servers NAT gives 0.80 of direct where 0.5 was expected from the rate that each server was held "
        "to: other programs left the director more of the machine during the rounds than in the moment in which "
        "that rate was set. The paper's 0.25 is of eight servers; this quick run went to four.",
        "Up to two servers nothing is lost by a director, as in the paper below 2,000 requests a second.",
        "No request failed while a server was removed and added, by either way; the paper tells of no such test. "
        "The applies took 12 to 27 seconds because the emulated box shared its processor with the load.",
    ),
}
