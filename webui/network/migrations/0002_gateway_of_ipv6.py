"""The default gateway of IPv6 (schema 2 of the snapshot)."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("network", "0001_initial")]

    operations = [
        migrations.AddField("network", "gateway6", models.CharField(blank=True, default="", max_length=45), False),
    ]
