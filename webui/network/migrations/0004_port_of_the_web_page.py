"""The port at which the web page listens."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("network", "0003_every_kind")]

    operations = [migrations.AddField("management", "port", models.PositiveIntegerField(default=443))]
