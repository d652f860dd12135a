"""What a box of a pair tells the other one of itself twice a second, for people to read. Pure.

What the two agree on goes another way (lbconfig/agreement.py): nothing is changed because of a beat.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from applier.pair.fitness import Lacks
from applier.pair.roles import RESUMED
from lbconfig.agreement_lines import DIGEST, MAX_NUMBER, LineError
from lbconfig.model.problem import quote
from lbconfig.model.reading import SnapshotError, build

LINEAGE = 32  # digests that a beat has
MAX_NAME = 253  # characters of a host name
MAX_WORDS = 200  # characters of the reason and of the version


@dataclass(frozen=True, slots=True)
class Beat:
    hostname: str
    role: str  # as roles.py has them
    since: float  # how many seconds ago it took that role
    reason: str
    version: str
    revision: int  # the number of the confirmed one; 0: the factory configuration
    digest: str  # of the snapshot that runs
    lineage: tuple[str, ...]  # digests of what was confirmed, the newest first
    ready: bool  # whether it may lead
    connections: int  # entries in its table
    time: int  # by its clock, in Unix seconds
    lacks: tuple[int, ...] = (0, 0, 0, 0)  # what keeps it from serving as well as it could (fitness.Lacks)

    def to_data(self) -> dict[str, object]:
        return asdict(self) | {"since": round(self.since, 1), "lineage": list(self.lineage), "lacks": list(self.lacks)}


def read(data: Mapping[str, object]) -> Beat:
    """What to_data() made, once it went through JSON. LineError for anything else, with the field."""
    since = data.get("since")
    if type(since) not in (int, float) or not 0 <= since <= MAX_NUMBER:  # type: ignore[operator] # it is a number
        raise LineError(f"since: must be 0 to {MAX_NUMBER} seconds")
    try:
        beat = build(Beat, {**data, "since": float(since)})  # type: ignore[arg-type]
    except SnapshotError as error:
        raise LineError(f"{error.path or 'beat'}: {error.message}") from None
    if beat.role not in RESUMED:
        raise LineError(f"role: must be one of {', '.join(RESUMED)}, not {quote(beat.role[:80])}")
    for name in ("revision", "connections", "time"):
        if not 0 <= getattr(beat, name) <= MAX_NUMBER:
            raise LineError(f"{name}: must be 0 to {MAX_NUMBER}")
    for name, longest in (("hostname", MAX_NAME), ("reason", MAX_WORDS), ("version", MAX_WORDS)):
        if len(getattr(beat, name)) > longest:
            raise LineError(f"{name}: has more than {longest} characters")
    if len(beat.lineage) > LINEAGE:
        raise LineError(f"lineage: has more than {LINEAGE} digests")
    if len(beat.lacks) != len(Lacks._fields) or not all(0 <= count <= MAX_NUMBER for count in beat.lacks):
        raise LineError(f"lacks: must be {len(Lacks._fields)} numbers, each 0 to {MAX_NUMBER}")
    for digest in (beat.digest, *beat.lineage):
        if not DIGEST.fullmatch(digest):
            raise LineError(f"digest: must be 64 hexadecimal digits, not {quote(digest[:80])}")
    return beat
