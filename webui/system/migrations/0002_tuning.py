from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("system", "0001_restored")]

    operations = [
        migrations.CreateModel(
            "Tuning",
            [
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("version", models.PositiveBigIntegerField(default=0)),
                ("changed_by", models.CharField(blank=True, max_length=150)),
                ("changed_at", models.DateTimeField(null=True)),
                ("settings", models.JSONField(default=list)),
                ("cards", models.JSONField(default=list)),
                ("spread", models.BooleanField(default=True)),
                ("power", models.CharField(default="balanced", max_length=16)),
            ],
            {"abstract": False},
        ),
    ]
