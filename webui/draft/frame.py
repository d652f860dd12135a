"""What every page shows around its subject: faults, and whether the draft waits to be applied."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property

from django.utils import timezone

from applier.wire.client import ApplierDown, ApplierRefused
from applier.wire.shapes import ENDED, RunStatus, Status
from draft import store as draft
from draft import what_runs
from lbconfig.diff import services as diff
from lbconfig.model import certificate
from lbconfig.model.addresses import web_page
from lbconfig.model.snapshot import HTTPS_PORT, Snapshot, SnapshotError
from lbconfig.pair import hostnames

ENDS_SOON = 30  # days
TIME = "%Y-%m-%dT%H:%M:%SZ"  # as lbconfig.model.certificate has it; UTC


@dataclass(frozen=True)
class Desk:
    hostname: str
    pages: tuple[str, ...]  # by which its web page is reached


@dataclass
class Frame:
    """One look at the applier, shared by everything that one page draws."""

    status: Status | None = None
    down: str = ""  # why the applier does not answer
    faults: list = field(default_factory=list)

    @cached_property
    def running(self) -> Snapshot | None:
        """What the box runs; None when the applier does not answer."""
        if self.status is None:
            return None
        try:
            return what_runs.of(self.status)
        except (ApplierDown, ApplierRefused, SnapshotError):
            return None

    @property
    def told_faults(self) -> list:
        """Those that get a banner: what the line about the pair says already has none."""
        line = self.status["pair"] if self.status else None
        return [fault for fault in self.faults if line is None or fault["message"] != line["sentence"]]

    @cached_property
    def desk(self) -> Desk | None:
        """The other box of the pair, where the configuration is edited; None: it is edited here."""
        line = self.status["pair"] if self.status else None
        if line is None or not line["desk"]:
            return None
        port = self.running.management.port if self.running else HTTPS_PORT
        return Desk(line["desk"], tuple(web_page(address, port) for address in line["desk_addresses"]))

    @cached_property
    def draft(self) -> Snapshot:
        return draft.current()

    @property
    def hostname(self) -> str:
        """Of the box, or of both of a pair."""
        return " and ".join(hostnames(self.draft))

    @cached_property
    def waiting(self) -> int:
        """How many changes of the draft do not run yet."""
        if self.running is None or draft.same(self.running, self.draft):
            return 0
        return max(1, len(diff.summary(self.running, self.draft)))

    @cached_property
    def certificate_end(self) -> str:
        """A sentence, if the certificate that the admin gave the web page ends soon; "": it does not."""
        shown = certificate.first(self.running.management.certificate) if self.running else None
        if shown is None:
            return ""
        soon = timezone.now() + timedelta(days=ENDS_SOON)
        if f"{soon:{TIME}}" < shown.ends:
            return ""
        over = shown.ends < f"{timezone.now():{TIME}}"
        said = f"ended on {shown.last_day}: browsers refuse it" if over else f"ends on {shown.last_day}"
        return f"The certificate of this web page {said}. Give the box a new one."

    @property
    def applying(self) -> RunStatus | None:
        """The apply that is under way; it may wait to be confirmed."""
        run = self.status and self.status["apply"]
        return run if run and run["state"] not in ENDED else None


def look(request, anew: bool = False) -> Frame:
    """The frame of this request; the applier is asked once, unless it has been told to do something since."""
    if anew or not hasattr(request, "frame"):
        try:
            status = what_runs.status()
            request.frame = Frame(status=status, faults=status["faults"])
        except (ApplierDown, ApplierRefused) as error:
            request.frame = Frame(down=str(error))
    return request.frame


def frame(request) -> dict:
    """Context processor; pages before the log-in show nothing of the box."""
    if not getattr(request, "user", None) or not request.user.is_authenticated:
        return {}
    return {"frame": look(request)}
