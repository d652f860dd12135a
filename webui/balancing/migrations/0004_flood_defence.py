from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("balancing", "0003_more_addresses"),
    ]

    operations = [
        migrations.AddField(
            model_name="policy",
            name="flood_defence",
            field=models.CharField(default="automatic", max_length=16),
        ),
    ]
