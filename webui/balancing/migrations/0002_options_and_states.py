"""Options of services, thresholds and states of real servers (schema 2 of the snapshot)."""

from django.db import migrations, models


def states(apps, schema_editor) -> None:
    apps.get_model("balancing", "RealServer").objects.filter(enabled=False).update(state="disabled")


class Migration(migrations.Migration):
    dependencies = [("balancing", "0001_initial")]

    operations = [
        migrations.AddField("virtualservice", "enabled", models.BooleanField(default=True)),
        migrations.AddField("virtualservice", "note", models.CharField(blank=True, default="", max_length=1024), False),
        migrations.AddField("virtualservice", "hash_port", models.BooleanField(default=False)),
        migrations.AddField("virtualservice", "hash_next", models.BooleanField(default=False)),
        migrations.AddField("virtualservice", "persistence", models.PositiveIntegerField(default=0)),
        migrations.AddField("virtualservice", "persistence_prefix", models.PositiveIntegerField(default=0)),
        migrations.AddField("virtualservice", "one_packet", models.BooleanField(default=False)),
        migrations.AddField("virtualservice", "call_id", models.BooleanField(default=False)),
        migrations.AddField(
            "virtualservice", "more_ports", models.CharField(blank=True, default="", max_length=1024), False
        ),
        migrations.AddField(
            "virtualservice", "check_login", models.CharField(blank=True, default="", max_length=1024), False
        ),
        migrations.AddField(
            "virtualservice", "check_password", models.CharField(blank=True, default="", max_length=1024), False
        ),
        migrations.AddField(
            "virtualservice", "check_secret", models.CharField(blank=True, default="", max_length=1024), False
        ),
        migrations.AddField(
            "virtualservice", "check_database", models.CharField(blank=True, default="", max_length=1024), False
        ),
        migrations.AddField(
            "virtualservice", "check_ask", models.CharField(blank=True, default="", max_length=1024), False
        ),
        migrations.AddField("virtualservice", "check_verify", models.BooleanField(default=False)),
        migrations.AddField("virtualservice", "check_authority", models.TextField(blank=True, default=""), False),
        migrations.AddField("virtualservice", "check_connects", models.PositiveIntegerField(default=0)),
        migrations.AddField("virtualservice", "fallback_kind", models.CharField(default="none", max_length=16)),
        migrations.AddField(
            "virtualservice", "fallback_address", models.CharField(blank=True, default="", max_length=45), False
        ),
        migrations.AddField("virtualservice", "fallback_port", models.PositiveIntegerField(default=0)),
        migrations.CreateModel(
            "SorryPage",
            [
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("version", models.PositiveBigIntegerField(default=0)),
                ("changed_by", models.CharField(blank=True, max_length=150)),
                ("changed_at", models.DateTimeField(null=True)),
                ("title", models.CharField(max_length=1024)),
                ("paragraphs", models.JSONField(default=list)),
            ],
            {"abstract": False},
        ),
        migrations.CreateModel(
            "Policy",
            [
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("version", models.PositiveBigIntegerField(default=0)),
                ("changed_by", models.CharField(blank=True, max_length=150)),
                ("changed_at", models.DateTimeField(null=True)),
                ("tcp_timeout", models.PositiveIntegerField()),
                ("fin_timeout", models.PositiveIntegerField()),
                ("udp_timeout", models.PositiveIntegerField()),
                ("release_removed", models.BooleanField()),
                ("release_persistent", models.BooleanField()),
                ("reuse_ports", models.BooleanField()),
                ("adopt", models.BooleanField()),
                ("icmp_errors", models.BooleanField()),
                ("route_answers", models.BooleanField()),
            ],
            {"abstract": False},
        ),
        migrations.AddField("realserver", "state", models.CharField(default="enabled", max_length=16)),
        migrations.AddField("realserver", "upper", models.PositiveIntegerField(default=0)),
        migrations.AddField("realserver", "lower", models.PositiveIntegerField(default=0)),
        migrations.AddField("realserver", "forwarding", models.CharField(blank=True, default="", max_length=16), False),
        migrations.RunPython(states, migrations.RunPython.noop),
        migrations.RemoveField("realserver", "enabled"),
    ]
