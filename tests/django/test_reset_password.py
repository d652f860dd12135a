"""`manage.py reset_password`, which the console of the box calls."""

import io

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.db import DatabaseError, models

pytestmark = pytest.mark.django_db


def reset(*words: str) -> str:
    out = io.StringIO()
    call_command("reset_password", *words, stdout=out)
    return out.getvalue()


def test_the_names_and_a_new_password(client, admin, alice):
    assert reset() == "admin\nalice\n"
    admin.is_active = False
    admin.save()
    password = reset("admin").strip()
    admin.refresh_from_db()
    assert admin.check_password(password) and admin.is_active and len(password) == 19
    assert reset("admin").strip() != password
    assert client.get("/").status_code == 302  # whoever was logged in with the old one is not any more
    assert alice.get("/").status_code == 200


def test_who_does_not_exist(admin):
    with pytest.raises(CommandError, match="no user 'kim'"):
        reset("kim")
    with pytest.raises(CommandError):
        reset("\N{SNOWMAN}'; drop")


def test_a_database_that_cannot_be_written(admin, monkeypatch):
    def fail(self, *words, **more):
        raise DatabaseError("disk I/O error")

    monkeypatch.setattr(models.Model, "save", fail)
    with pytest.raises(CommandError, match="disk I/O error"):
        reset("admin")
    assert get_user_model().objects.get().check_password("a good password")
