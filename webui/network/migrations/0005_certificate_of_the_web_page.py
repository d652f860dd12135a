"""The certificate that the web page shows, and its private key."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("network", "0004_port_of_the_web_page")]

    operations = [
        migrations.AddField("management", "certificate", models.TextField(blank=True, default="")),
        migrations.AddField("management", "key", models.TextField(blank=True, default="")),
    ]
