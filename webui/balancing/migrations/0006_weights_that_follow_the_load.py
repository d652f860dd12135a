"""Agents, slow start and a least number of servers: what is there goes on as it is."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("balancing", "0005_whole_answers")]

    operations = [
        migrations.AddField("virtualservice", "agent_kind", models.CharField(default="off", max_length=16)),
        migrations.AddField("virtualservice", "agent_port", models.PositiveIntegerField(default=3333)),
        migrations.AddField("virtualservice", "agent_interval", models.PositiveIntegerField(default=5)),
        migrations.AddField("virtualservice", "agent_floor", models.PositiveIntegerField(default=10)),
        migrations.AddField("virtualservice", "slow_start", models.PositiveIntegerField(default=0)),
        migrations.AddField("virtualservice", "least_healthy_servers", models.PositiveIntegerField(default=0)),
        migrations.AddField("virtualservice", "least_healthy_then", models.CharField(default="tell", max_length=16)),
        migrations.AddField("virtualservice", "least_healthy_again", models.PositiveIntegerField(default=0)),
    ]
