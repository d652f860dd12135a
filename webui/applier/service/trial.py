"""Try a health check that is not applied yet: ldirectord's own, once, beside the one that runs."""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from applier.host.host import Host, HostError, Output
from applier.parts.director import READ_SECONDS
from applier.wire.errors import ApplierRefused
from applier.wire.shapes import Trial, of_problem
from lbconfig.model.snapshot import CheckKind, FallbackCheck, ServerState, Snapshot
from lbconfig.render import ldirectord
from lbconfig.validate.services import validate

MOST = 20  # real servers of one trial; they are asked one after the other
AT_ONCE = 2  # trials; each is a program of its own, and may take minutes where servers are silent
_slots = threading.BoundedSemaphore(AT_ONCE)
MODULES = "/usr/lib/fairlead/perl"


@contextmanager
def slot() -> Iterator[None]:
    """Room for one trial. ApplierRefused where there is none."""
    if not _slots.acquire(blocking=False):
        raise ApplierRefused("busy", f"{AT_ONCE} checks are being tried already; try again when they have ended.")
    try:
        yield
    finally:
        _slots.release()


def ask(host: Host, snapshot: Snapshot, number: int) -> list[Trial]:
    """Ask every real server of that service, disabled ones too, and the fallback server if it is checked.

    ApplierRefused where it makes no sense.
    """
    service = next((one for one in snapshot.services if one.id == number), None)
    if service is None:
        raise ApplierRefused("unknown-service", "This service is not in the configuration that was sent.")
    problems = [one for one in validate(snapshot) if one.path.startswith(f"services[id={number}]")]
    if problems:
        raise ApplierRefused("problems", "The service has problems.", [of_problem(one) for one in problems])
    if service.check.kind is CheckKind.OFF or not service.real_servers:
        raise ApplierRefused("no-trial", "There is nothing to try: no health check, or no real server.")
    servers = tuple(replace(server, state=ServerState.ENABLED) for server in service.real_servers[:MOST])
    text = ldirectord.render(Snapshot((replace(service, enabled=True, real_servers=servers),)))
    asked = len(servers) + (service.fallback_server is not None and service.fallback.check is not FallbackCheck.OFF)
    output = _run(host, text, service.check.timeout * asked)
    try:
        found = [json.loads(line) for line in output.stdout.splitlines() if line.startswith("{")]
    except ValueError:
        found = []
    if len(found) != asked:
        said = " ".join((output.stderr or output.stdout).split())[-300:]
        raise ApplierRefused("no-trial", f"The check cannot be tried: ldirectord ended with {output.exit}: {said}.")
    return found


def _run(host: Host, text: str, longest: float) -> Output:
    with tempfile.TemporaryDirectory(prefix="fairlead-trial-") as folder:
        path = Path(folder) / "trial.cf"
        path.write_text(text)
        words = ["env", "PERL5OPT=-MFairlead::Once", f"PERL5LIB={MODULES}", "ldirectord", str(path), "start"]
        try:
            return host.command(words, timeout=READ_SECONDS + longest)
        except HostError as error:
            raise ApplierRefused("no-trial", f"The check cannot be tried: {error}.") from None
