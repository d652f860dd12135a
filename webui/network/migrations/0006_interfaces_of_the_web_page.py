"""The interfaces that the web page answers on."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("network", "0005_certificate_of_the_web_page")]

    operations = [migrations.AddField("management", "interfaces", models.JSONField(default=list))]
