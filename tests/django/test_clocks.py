"""A clock that is anywhere: nothing is lost, nothing that ended counts again, copies and history stay in order."""

import re
import sqlite3
from datetime import UTC, datetime, timedelta

import pytest
from django.core.cache import cache
from django.template import Context, Template

from accounts import tokens
from accounts.models import ApiToken
from changes.models import Revision
from web import backups

TODAY = datetime(2026, 11, 25, 12, tzinfo=UTC)
YEARS = timedelta(days=3650)
HOUR = timedelta(hours=1)
# What the clock shows, one after the other; the last one is right, and stays so.
CLOCKS = {
    "1970 at the first boot, then led to now": [datetime(1970, 1, 1, tzinfo=UTC), TODAY],
    "ten years ahead, then led to now": [TODAY + YEARS, TODAY],
    "ten years ahead over a restart": [TODAY + YEARS, TODAY + YEARS + timedelta(days=2), TODAY],
    "an hour back": [TODAY, TODAY - HOUR],
    "back and forth": [TODAY, TODAY - HOUR, TODAY + YEARS, TODAY],
}
odd_clocks = pytest.mark.parametrize("shown", CLOCKS.values(), ids=CLOCKS)


def test_a_moment_has_one_format_with_24_hours(settings):
    """What a template or a view shows takes its format from web/locales."""
    moment = datetime(2026, 1, 31, 14, 5, tzinfo=UTC)
    for one in ("DATETIME_FORMAT", "SHORT_DATETIME_FORMAT", ""):
        assert Template(f"{{{{ one|date:'{one}' }}}}" if one else "{{ one }}").render(Context({"one": moment})) == (
            "31 Jan 2026, 14:05"
        )
    assert Template("{{ one|time }}").render(Context({"one": moment})) == "14:05"
    formats = {
        f"{path.name}: {found}"
        for path in settings.WEBUI.glob("*/templates/**/*.html")
        for found in re.findall(r"\|(?:date|time)\b(?::[\"']([^\"']*))?", path.read_text())
        if found not in ("c", "DATETIME_FORMAT", "DATE_FORMAT", "TIME_FORMAT")
    }
    assert not formats


class Clock:
    def __init__(self, monkeypatch) -> None:
        self.moment = TODAY
        monkeypatch.setattr("django.utils.timezone.now", lambda: self.moment)
        monkeypatch.setattr("web.backups.now", lambda: self.moment)
        monkeypatch.setattr("time.time", self.seconds)

    def seconds(self) -> float:
        return self.moment.timestamp()


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


@pytest.fixture
def database(settings, tmp_path):
    settings.DATA, settings.BACKUPS = tmp_path, tmp_path / "backups"
    settings.DATABASE = tmp_path / "fairlead.sqlite3"
    with sqlite3.connect(settings.DATABASE) as connection:
        connection.execute("CREATE TABLE t (x)")
    return settings.DATABASE


def days_of(clock: Clock, shown: list[datetime], count: int):
    """Each moment of the table, then so many right days."""
    for moment in [*shown, *(shown[-1] + timedelta(days=day, minutes=day) for day in range(1, count + 1))]:
        clock.moment = moment
        yield moment


@odd_clocks
def test_a_copy_a_day_is_kept_and_the_last_ones_stay(database, clock, shown):
    made = []
    for moment in days_of(clock, shown, 7):
        backups.make_if_due()
        made.append(backups.listed()[0])
        assert made[-1].made == moment, "a new one, which is the newest"
        backups.make_if_due()
        assert backups.listed()[0] == made[-1], "one a day"
    assert backups.listed() == made[: -1 - backups.KEEP : -1]


def test_copies_of_an_older_version_make_room_for_new_ones(database, clock):
    for moment in (TODAY - timedelta(days=1), TODAY + YEARS):
        name = f"fairlead-{moment.strftime(backups.MOMENT)}.sqlite3"
        (database.parent / "backups").mkdir(exist_ok=True)
        (database.parent / "backups" / name).write_bytes(b"x")
    for _ in days_of(clock, [TODAY], backups.KEEP - 1):
        backups.make()
    assert [one.number for one in backups.listed()] == [5, 4, 3, 2, 1]


def test_two_damaged_databases_of_one_second_are_kept_both(database, clock):
    first = backups.put_aside()
    database.write_bytes(b"x")
    second = backups.put_aside()
    assert first != second and first.exists() and second.exists()


@odd_clocks
def test_a_token_that_has_ended_does_not_come_back(admin, clock, shown):
    token, record = tokens.make_record(admin, "old", ["read"], tokens.ends(1))
    clock.moment = record.expires + HOUR
    tokens.note_ended()  # as the web process does by itself, if nobody asks
    for _ in days_of(clock, shown, 1):
        with pytest.raises(tokens.Unusable, match="has ended on 26 November 2026"):
            tokens.owner(token)


def test_a_token_that_is_looked_at_after_its_end_does_not_come_back(admin, clock):
    token, record = tokens.make_record(admin, "old", ["read"], tokens.ends(1))
    clock.moment = record.expires
    for moment in (record.expires, TODAY):
        clock.moment = moment
        with pytest.raises(tokens.Unusable):
            tokens.owner(token)


def test_a_token_of_a_clock_that_was_ahead_lasts_as_long_as_it_was_meant_to(admin, clock):
    clock.moment = TODAY + YEARS
    token, _ = tokens.make_record(admin, "new", ["read"], tokens.ends(30))
    clock.moment = TODAY
    tokens.note_ended()
    assert tokens.owner(token) and ApiToken.objects.get().expires == TODAY + timedelta(days=30)


@odd_clocks
def test_a_token_without_an_end_counts_always_and_its_use_is_noted(admin, clock, shown):
    token, _ = tokens.make_record(admin, "monitoring", ["read"])
    for moment in days_of(clock, shown, 2):
        assert tokens.owner(token)
        assert abs(ApiToken.objects.get().used - moment) <= HOUR


@odd_clocks
def test_history_is_in_the_order_of_the_applies(admin, clock, shown):
    for number, moment in enumerate(days_of(clock, shown, 2), 1):
        Revision.objects.create(number=number, created=moment, user="a", outcome="confirmed", seconds=1, snapshot="{}")
    numbers = [one.number for one in Revision.objects.all()]
    assert numbers == sorted(numbers, reverse=True)


@odd_clocks
def test_a_lock_out_lasts_what_it_lasts(clock, shown, monkeypatch):
    """Neither for years, nor shorter where somebody sets the clock forward."""
    passed = [1000.0]
    monkeypatch.setattr("web.cache.steady", lambda: passed[0])
    clock.moment = shown[0]
    cache.set("locked", 1, 900)
    for _ in days_of(clock, shown, 2):
        assert cache.get("locked") == 1
    passed[0] += 901
    assert cache.get("locked") is None
