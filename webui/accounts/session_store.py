"""The sessions of the database, of which a log-in ends by accounts.sessions and not by the clock of the wall."""

from __future__ import annotations

from django.contrib.sessions.backends import db

from accounts import sessions


class SessionStore(db.SessionStore):
    """Django looks for rows that end later than now: a clock that is set right would end every log-in."""

    def _get_session_from_db(self):
        row = self.model.objects.filter(session_key=self.session_key).first()
        if row is not None and sessions.BEGAN in self.decode(row.session_data):
            return row
        return super()._get_session_from_db()  # type: ignore[misc]  # Django has it, its types do not
