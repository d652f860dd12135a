"""A backup file of the whole box, and the factory reset."""

from __future__ import annotations

import logging
import sqlite3

from django.http import FileResponse
from django.utils import timezone

from api.bodies import BackupRequest, ResetRequest
from api.errors import ApiError, wrong_field
from api.revisions import keep_history
from api.routes import BINARY, Answer, Call
from applier.wire.client import connect
from system import backupfile
from system.forms import MAX_PASSPHRASE, MIN_PASSPHRASE

log = logging.getLogger(__name__)


def backup(call: Call) -> FileResponse:
    """Encrypted with the passphrase; a screen of the box restores it."""
    wanted: BackupRequest = call.body
    if not MIN_PASSPHRASE <= len(wanted.passphrase) <= MAX_PASSPHRASE:
        raise wrong_field("request", "passphrase", f"must have {MIN_PASSPHRASE} to {MAX_PASSPHRASE} characters")
    keep_history()
    try:
        file = backupfile.make(wanted.passphrase)
    except (OSError, sqlite3.Error) as error:
        raise ApiError(503, "no-backup", f"No backup file could be made: {error}.") from None
    log.info("%s took a backup file", call.caller.name)
    name = f"{timezone.now():%Y%m%d-%H%M}.fairlead-backup"
    return FileResponse(file, as_attachment=True, filename=name, content_type=BINARY)


def factory_reset(call: Call) -> Answer:
    """The box forgets all that was set up on it, in both slots, and restarts."""
    wanted: ResetRequest = call.body
    connect().factory_reset(wanted.hostname, call.caller.name)
    log.warning("%s resets the box", call.caller.name)
    return Answer(status=202)
