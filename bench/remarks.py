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
        "105,000 for NAT, 242,000 for HAProxy over TCP and 240,000 for nginx.",
        "Rounds that stand apart were disturbed by other programs on this machine: in the dearest one of NAT "
        "clients had to send again (11.5 packets a connection instead of 10), and in the cheapest one of HAProxy "
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
        "Direct routing with one, two and four servers gives 0.96, 1.92 and 1.99 of one server asked directly (the "
        "paper, one processor: 0.98, 1.63, 1.82). With two servers the servers are at their end here, which the "
        "paper's faster ones were not; with four it is the director.",
        "NAT gives hardly more than one server does, however many there are: with four 0.93 of one asked directly, and "
        "0.98 on two processors (the paper: 1.08, by Linux 2.2), and 0.47 of direct routing's (the paper: 0.59). Its "
        "rounds differ by a third, as the director is at its end from one server on.",
        "More virtual processors change nothing (the paper's direct routing with four servers went from 1.82 to 2.52 "
        "with two and to 3.29 with four): this machine has two processors in all, and with one of the director's both "
        "are busy, as QEMU takes a part of one for the director's cards, and clients and servers the rest.",
        "Beyond the highest rate NAT's curve falls where the paper's stays level: a client's second is over before "
        "an answer has come through a director that waits for its turn.",
        "The tunnel, which the paper left out, gives 0.94 of what direct routing gives with one processor and four "
        "servers. Its ends on the servers are a program of ours and no kernel module, and share the machine.",
    ),
    "netpipe": (
        "NAT falls behind direct with one server already (0.78; the paper: 1.20, with cards that carried 50 to 70 "
        "Mbit/s depending on which two were connected): a block and its echo wait for an emulated director twice, "
        "and with one connection nothing else is on the way meanwhile.",
        "From three servers on NAT carries no more, as in the paper from two on: the director is at its end. Direct "
        "goes on growing, so the ratio falls, to 0.43 (the paper, whose client's card ended it: 0.60).",
        "Direct routing carries 0.59 to 0.85 of direct (the paper: 1.0): requests pass an emulated director on their "
        "way, which the paper's saturated cards hid. Against NAT it carries 1.1 to 1.4 times as much; the paper: 0.8 "
        "with one server, 1.2 to 1.7 with more.",
        "The director answered every time, in 0.53 s at most (median) while its processor was used up, and in 2.4 s "
        "at the longest; without load it took 0.13 s. Without a director in the way some pages took 6 to 8 s, while it "
        "had next to nothing to do: it is clients and servers that had this machine's processors then. The paper: it "
        "could not be reached from two servers with NAT on.",
    ),
    "sizes": (
        "The highest bandwidth is that of 70 kB for each of the most hits with NAT and of 269 kB with direct routing; "
        "on the page 34 kB: its network ended at 10 Gbit/s, and this one does not.",
        "Half of the highest bandwidth comes with 10 MiB with NAT and with direct routing, with 1 MiB without a "
        "director (the page: 32 kB): nothing but the processors bounds the bandwidth here, and larger objects cost "
        "less for each byte.",
        "By direct routing only the clients' acknowledgements pass the director. It is at its end with the largest "
        "object anyway.",
        "With NAT an object of 256 KiB comes more slowly than one of 64 KiB. A quick run a day before did not have "
        "that (2,432 Mbit/s instead of 506, and 5,740 small objects a second instead of 3,652). That run's tree with "
        "today's kernel gives 480 to 840 Mbit/s today, today's tree with that run's kernel 450 to 610, and today's 450 "
        "to 770: neither tree nor kernel, so probably the machine. Without threads for packets it was once 980 to "
        "1,090; by turns in one boot, a day later, 410 to 540 with them and 440 to 530 without.",
    ),
    "unequal": (
        "Least connections serves 1.41 times what round robin does, and shortest expected delay with weights of 2 "
        "and 1 serves 1.38 times; the note: 1.51, with servers of 2,122 answers a second by round robin. Of two "
        "servers, one 2.2 times as slow, no scheduler gets more than 1.6.",
    ),
    "aries": (
        "With NAT eight servers behind the director give 0.29 of what they give without it; the paper: 0.25. With "
        "direct routing 0.50: the director is at its end with four servers.",
        "Up to two servers nothing is lost by a director, as in the paper below 2,000 requests a second.",
        "No request failed while a server was removed and added, five times with NAT and six times with direct "
        "routing; the paper tells of no such test. The evening before, 12,448 of 275,232 got no answer within their "
        "second by direct routing: an apply was due three quarters of the only processor. Decision 36 tells what was "
        "changed, and from which load on requests are lost anyway.",
    ),
    "peers": (
        "This box with NAT and keepalived's NAT are the same IPVS; what they differ by here is within the rounds' "
        "spread. Against a stock set-up the instructions tell (below).",
        "HAProxy and nginx give a fifth or less of NAT's replies: each connection is two to them, and each byte "
        "goes through a program. They can do what this box cannot: end TLS, look into requests.",
        "Translation by nftables failed for 1,286 connections, probably because its table of tracked connections "
        "still had one with the same ports.",
    ),
    "reachable": (
        "With what the box keeps for itself the overview comes in 0.93 s (median) while packets that begin connections "
        "to a service come in for a minute and fill the memory that there is for them, and in 1.5 s at the longest; "
        "without it in 19 s, and in 35 s at the longest. In 2000 the director could not be reached at all.",
        "The evening before it was 0.27 s and 0.41 s: the box's own programs were due three times as much of the "
        "processor. Clients of a busy box noticed that while a change was applied (decision 36).",
        "All clients are served in each row: what is turned away when memory is short, TCP tries again a second later.",
        "Earlier runs had answers of 20 s with the reservation, too, as soon as memory was full: the kernel "
        "gave away what it had read of the box's own programs. Decision 35 tells how that was found and fixed.",
    ),
    "growth": (
        "From empty an apply takes less than ten times as long with a thousand services as with a hundred. A change "
        "of one server costs little more beside a thousand services than beside ten: what did not change is neither "
        "sent nor rendered nor read again. With the command that applies here, that includes reading a file of 2 MB.",
    ),
    "table": (
        "In a table of a million rows a connection takes 341 bytes or so, 320 of them its entry, and looking for it "
        "53 to 77 instructions; with 4,096 rows (what Linux has by itself) 418 to 3,294, as rows get 49 to 293 "
        "entries long.",
    ),
}
