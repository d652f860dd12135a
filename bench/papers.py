"""The figures of the papers that `make bench` repeats, each with the place in its source; data and nothing else.

LISA      O'Rourke and Keefe, "Performance Evaluation of Linux Virtual Server", LISA 2001, pages 79-92
NETPIPE   Joseph Mack, lvs-users, 22 January 2000, "Re: IPVS Benchmarking"
HAPROXY   Willy Tarreau, "Benchmarks using Myricom's PCI-Express 10 Gig NICs", haproxy.1wt.eu
LIGHTTPD  "Mod-proxy-core and SQF", lighty developer blog
ARIES     "Linux Virtual Server" of Ericsson's ARIES project, Linux Journal
"""

from __future__ import annotations

LISA = 'O\'Rourke and Keefe, "Performance Evaluation of Linux Virtual Server", LISA 2001.'
NETPIPE = 'Joseph Mack on the list lvs-users, 22 January 2000 ("Re: IPVS Benchmarking").'
HAPROXY = 'Willy Tarreau, "Benchmarks using Myricom\'s PCI-Express 10 Gig NICs".'
LIGHTTPD = 'lighty developer blog, "Mod-proxy-core and SQF".'
ARIES = "Ericsson's ARIES project, Linux Journal."

# One web server without a director, replies a second (figure 15).
LISA_DIRECT = 3962.93
# (way, processors of the director, real servers) -> most replies a second, and where that stands.
LISA_PEAKS: dict[tuple[str, int, int], tuple[float, str]] = {
    ("NAT", 1, 4): (4270.0, "figure 15, Linux 2.2"),
    ("DR", 1, 1): (3897.9, "figure 16"),
    ("DR", 1, 2): (6466.2, "figure 16"),
    ("DR", 1, 4): (7200.0, "figure 19, in words: before the card had an interrupt of its own"),
    ("DR", 2, 2): (7700.0, "figure 12, in words"),
    ("DR", 2, 4): (10000.0, "figure 12, in words"),
    ("DR", 4, 4): (13019.3, "figure 15"),
}

# Real servers -> Mbit/s (the table "Connection").
NETPIPE_MBITS = {
    "direct": {1: 50, 2: 80, 3: 95, 4: 100, 5: 125, 6: 120},
    "NAT": {1: 60, 2: 68, 3: 66, 4: 68, 5: 75, 6: 72},
    "DR": {1: 50, 2: 80, 3: 100, 4: 100, 5: 125, 6: 120},
}

# One process, buffers of 16 kB ("Tests in single-process mode").
HAPROXY_HITS = 24790  # a second, at most
HAPROXY_BITS = 6.688e9  # a second, at most
HAPROXY_HALF = 32 * 1024  # bytes of the object with which half of that is reached

# Answers a second (the table "balancer"), keep-alive on.
LIGHTTPD_RATES = {"fast alone": 2833.60, "slow alone": 1249.45, "round robin": 2122.0, "shortest queue": 3213.0}

# Connections a second at most, eight servers (the text behind figure 7).
ARIES_RATES = {"direct": 7116.0, "NAT": 1790.0}
