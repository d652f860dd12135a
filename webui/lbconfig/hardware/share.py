"""What is kept of the machine's memory while it is flooded, so that the box itself goes on.

IPVS looks at free memory once a second (defense_work_handler in the kernel's ip_vs_ctl.c). Below net.ipv4.vs.amemthresh
it forgets half-open connections, and turns away one new connection in threshold / (threshold - free): all of them when
half of the threshold is left. It counts free pages only, and Linux fills those with what it has read from disk: so
vm.watermark_scale_factor (/etc/sysctl.d/fairlead.conf) has the kernel give such pages back above the threshold, or
reading a large file would be taken for a flood.
"""

from __future__ import annotations

PAGE = 4  # KiB
# Parts of all memory. RESERVE has to be below the 1/10 of watermark_scale_factor 1000, where pages are given back
# (kernel Documentation/admin-guide/sysctl/vm.rst); half of it is the least that is left to processes.
RESERVE = 0.08
KERNELS_OWN = 1024  # pages: net.ipv4.vs.amemthresh as the kernel has it


def threshold(memory: int) -> int:
    """For net.ipv4.vs.amemthresh, in pages; `memory` in KiB."""
    return max(KERNELS_OWN, int(memory * RESERVE) // PAGE)
