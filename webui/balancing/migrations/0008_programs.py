"""Checks by a program of the admin's own."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("balancing", "0007_checks_that_say_more")]

    operations = [
        migrations.AddField("virtualservice", "check_program", models.TextField(blank=True, default=""), False),
    ]
