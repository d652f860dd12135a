"""Methods and status codes of web checks; fields that a check does not use are empty (schema 3 of the snapshot)."""

from django.db import migrations, models

from lbconfig.migrate import WEB_ALSO_GOOD, unused_of_schema_2


def as_schema_3(apps, schema_editor) -> None:
    for row in apps.get_model("balancing", "VirtualService").objects.all():
        check = {name: getattr(row, f"check_{name}") for name in FIELDS}
        for name, empty in unused_of_schema_2(check).items():
            setattr(row, f"check_{name}", empty)
        row.check_statuses = WEB_ALSO_GOOD if check["kind"] in ("http", "https") and not check["expect"] else ""
        row.save()


FIELDS = (
    "kind", "port", "path", "host", "expect", "login", "password", "secret", "database", "ask", "verify", "authority",
    "connects",
)  # fmt: skip


class Migration(migrations.Migration):
    dependencies = [("balancing", "0004_flood_defence")]

    operations = [
        migrations.AddField("virtualservice", "check_method", models.CharField(default="get", max_length=8)),
        migrations.AddField(
            "virtualservice", "check_statuses", models.CharField(blank=True, default="", max_length=1024), False
        ),
        migrations.RunPython(as_schema_3, migrations.RunPython.noop),
    ]
