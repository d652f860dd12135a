"""What is kept of the machine's memory while it is flooded, so that the box itself goes on.

IPVS looks at free memory once a second (defense_work_handler in the kernel's ip_vs_ctl.c). Below net.ipv4.vs.amemthresh
it forgets half-open connections, and turns away one new connection in threshold / (threshold - free): all of them when
half of the threshold is left. What comes until it looks again must fit into that half: at 320 bytes a connection and
400,000 new ones a second and core, two cores fill 256 MB a second, so a tenth of the 2 GiB that stand beside them is
too little (decision 35: in the lab 8 % were used up between two looks).

IPVS counts free pages only, and Linux fills those with what it has read from disk: so the box's own programs, which do
all the reading, may have MOST per cent of memory (/etc/init.d/S01share), and the rest stays free of it.
"""

from __future__ import annotations

PAGE = 4  # KiB
# Of all memory. With the 60 % of S01share and what the kernel takes (a tenth on the smallest box) this has to be below
# 1, or reading a large file would be taken for a flood.
RESERVE = 0.16
KERNELS_OWN = 1024  # pages: net.ipv4.vs.amemthresh as the kernel has it


def threshold(memory: int) -> int:
    """For net.ipv4.vs.amemthresh, in pages; `memory` in KiB."""
    return max(KERNELS_OWN, int(memory * RESERVE) // PAGE)
