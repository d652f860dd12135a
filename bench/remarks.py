"""Why our figures are not the papers': a sentence for each difference, written by people who have seen the figures.

Part -> sentences. They belong to the runs that docs/benchmarks.md shows; whoever puts other figures there reads them
again. What a run says by itself (caps, failures) stands in its result, not here.
"""

from __future__ import annotations

REMARKS: dict[str, tuple[str, ...]] = {}
