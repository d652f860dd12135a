"""The database learns how new its users and tokens are."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0002_scopes_of_tokens")]

    operations = [
        migrations.CreateModel(
            name="LedgerNumber",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveBigIntegerField()),
            ],
        ),
    ]
