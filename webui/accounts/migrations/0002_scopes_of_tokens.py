"""Tokens get scopes, an end and networks. Those that exist could install updates, and go on doing just that."""

from django.db import migrations, models


def only_updates(apps, schema_editor):
    apps.get_model("accounts", "ApiToken").objects.update(scopes=["update"])


class Migration(migrations.Migration):
    dependencies = [("accounts", "0001_api_tokens")]

    operations = [
        migrations.AddField("apitoken", "scopes", models.JSONField(default=list)),
        migrations.AddField("apitoken", "expires", models.DateTimeField(blank=True, null=True)),
        migrations.AddField("apitoken", "networks", models.JSONField(default=list)),
        migrations.RunPython(only_updates, migrations.RunPython.noop),
    ]
