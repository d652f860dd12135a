"""VLANs, bonds and bridges, routes, names and time."""

from django.db import migrations, models

LISTS = ("routes", "policies", "dns", "search", "ntp")


class Migration(migrations.Migration):
    dependencies = [("network", "0002_gateway_of_ipv6")]

    operations = [
        *(migrations.AddField("network", name, models.JSONField(default=list)) for name in LISTS),
        migrations.AddField("interface", "on", models.BooleanField(default=True)),
        migrations.AddField("interface", "mtu", models.PositiveIntegerField(default=0)),
        migrations.AddField("interface", "note", models.CharField(blank=True, default="", max_length=500), False),
        *(migrations.AddField("interface", name, models.JSONField(null=True)) for name in ("vlan", "bond", "bridge")),
    ]
