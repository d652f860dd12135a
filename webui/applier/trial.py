"""Try a health check that is not applied yet: ldirectord's own, once, beside the one that runs."""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

from applier.director import READ_SECONDS
from applier.errors import ApplierRefused
from applier.host import Host, HostError
from applier.shapes import Trial
from lbconfig.render import ldirectord
from lbconfig.snapshot import CheckKind, ServerState, Snapshot
from lbconfig.validate import validate

MOST = 20  # servers of one trial; they are asked one after the other
MODULES = "/usr/lib/fairlead/perl"


def ask(host: Host, snapshot: Snapshot, number: int) -> list[Trial]:
    """Ask every real server of that service, disabled ones too. ApplierRefused where it makes no sense."""
    service = next((one for one in snapshot.services if one.id == number), None)
    if service is None:
        raise ApplierRefused("unknown-service", "This service is not in the configuration that was sent.")
    problems = [one for one in validate(snapshot) if one.path.startswith(f"services[id={number}]")]
    if problems:
        raise ApplierRefused("problems", "The service has problems.", [asdict(one) for one in problems])
    if service.check.kind is CheckKind.OFF or not service.real_servers:
        raise ApplierRefused("no-trial", "There is nothing to try: no health check, or no real server.")
    servers = tuple(replace(server, state=ServerState.ENABLED) for server in service.real_servers[:MOST])
    text = ldirectord.render(Snapshot((replace(service, enabled=True, real_servers=servers),)))
    with tempfile.TemporaryDirectory(prefix="fairlead-trial-") as folder:
        path = Path(folder) / "trial.cf"
        path.write_text(text)
        words = ["env", "PERL5OPT=-MFairlead::Once", f"PERL5LIB={MODULES}", "ldirectord", str(path), "start"]
        longest = service.check.timeout * len(servers) * 2  # a check of UDP pings twice
        try:
            output = host.command(words, timeout=READ_SECONDS + longest)
        except HostError as error:
            raise ApplierRefused("no-trial", f"The check cannot be tried: {error}.") from None
    try:
        found = [json.loads(line) for line in output.stdout.splitlines() if line.startswith("{")]
    except ValueError:
        found = []
    if len(found) != len(servers):
        said = " ".join((output.stderr or output.stdout).split())[-300:]
        raise ApplierRefused("no-trial", f"The check cannot be tried: ldirectord ended with {output.exit}: {said}.")
    return found
