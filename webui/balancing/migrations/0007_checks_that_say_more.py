"""Checks: successes, time between failures, ways to look for a text, old TLS; names of real servers."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("balancing", "0006_weights_that_follow_the_load")]

    operations = [
        migrations.AddField("virtualservice", "check_successes", models.PositiveIntegerField(default=1)),
        migrations.AddField("virtualservice", "check_retry", models.PositiveIntegerField(default=0)),
        migrations.AddField("virtualservice", "check_matching", models.CharField(default="contains", max_length=16)),
        migrations.AddField("virtualservice", "check_old_tls", models.BooleanField(default=False)),
        migrations.AddField("realserver", "name", models.CharField(blank=True, default="", max_length=64), False),
    ]
